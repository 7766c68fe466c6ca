"""What stubwright is compared with, in environments of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent / ".venv"
_FASTMCP = "fastmcp>=4.1"


class NotThereError(Exception):
    """A peer cannot be had."""


def installed_fastmcp() -> Path | None:
    """The Python of the environment that has FastMCP; nothing where it was not made yet."""
    python = _FOLDER / "bin" / "python"
    return python if python.exists() and [*_FOLDER.glob("lib/*/site-packages/fastmcp/__init__.py")] else None


def fastmcp() -> Path:
    """The Python of the environment that has FastMCP; it is made where it is not there yet.

    Raises:
        NotThereError: It cannot be made.
    """
    if found := installed_fastmcp():
        return found
    print(f"installing FastMCP into {_FOLDER.name}", file=sys.stderr)
    return environment(_FOLDER, _FASTMCP)


def environment(folder: Path, requirement: str) -> Path:
    """The Python of a new environment that has what is required.

    Raises:
        NotThereError: It cannot be made.
    """
    python = folder / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", requirement],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise NotThereError(f"{requirement} cannot be installed into {folder}:\n{done.stderr}")
    return python
