"""The command `stubwright`, as tests run it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import forked


def stubwright(*argv: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What a command prints, and its exit status; see `forked.run`."""
    return forked.run(argv, cwd, env)


def forking(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The same where the command starts servers with its own interpreter, which are forked as well."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(forked.interpreter_in(Path(folder))), "-m", "stubwright", *argv]
        return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
