"""Writes files as editors do."""

from __future__ import annotations

from pathlib import Path


def write(path: Path, text: str) -> None:
    """Replace a file by renaming another file, as many editors do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}~")
    new.write_text(text)
    new.replace(path)
