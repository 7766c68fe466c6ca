"""Files, written as editors write them."""

from __future__ import annotations

from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write a file as many editors do: another one takes its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}~")
    new.write_text(text)
    new.replace(path)
