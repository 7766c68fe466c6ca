"""Runs the `stubwright` command in tests."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import forked


def stubwright(*argv: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command. Return its output and exit status. See `forked.run`."""
    return forked.run(argv, cwd, env)


def forking(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that also forks the servers that it starts with its interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(forked.interpreter_in(Path(folder))), "-m", "stubwright", *argv]
        return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
