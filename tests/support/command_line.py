"""The command `stubwright`, as tests run it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import forked


def stubwright(*argv: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What a command prints, and its exit status; see `forked.run`."""
    return forked.run(argv, cwd, env)
