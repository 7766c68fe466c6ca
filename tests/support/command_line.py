"""Runs the command `stubwright` in tests."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import forked


def stubwright(*argv: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Return a command's output and exit status; see `forked.run`."""
    return forked.run(argv, cwd, env)


def forking(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command whose servers, started with its interpreter, are forked as well."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(forked.interpreter_in(Path(folder))), "-m", "stubwright", *argv]
        return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
