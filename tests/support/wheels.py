"""Builds wheels offline, as an installer does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def build(project: Path, folder: Path) -> Path:
    """Build a project's wheel in a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    before = {*folder.glob("*.whl")}
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = {*folder.glob("*.whl")} - before
    return built


def install(site: Path, *built: Path) -> None:
    """Unpack wheels into a folder for `sys.path`, as an installer does, without dependencies."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    done = subprocess.run([*pip, *map(str, built)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
