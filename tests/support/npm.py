"""Installs the npm packages of the TypeScript tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def find_runtime(package: str) -> list[str]:
    """Return the command prefix that runs a package's program, or skip the test if npx cannot fetch it."""
    prefix = ["npx", "-y", "-p", package]
    done = subprocess.run([*prefix, package.partition("@")[0], "--version"], capture_output=True, text=True)
    if done.returncode and os.environ.get("CI") != "true":
        pytest.skip(f"npx cannot run {package}: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return prefix


def install(folder: Path) -> None:
    """Install the packages of `package.json` in a folder, or skip the test if npm cannot, except in CI."""
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--no-package-lock"]
    if shutil.which("npm") is None:
        if os.environ.get("CI") == "true":
            raise FileNotFoundError("npm is not installed")
        pytest.skip("npm is not installed")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode and os.environ.get("CI") != "true":
        pytest.skip(f"npm cannot install the packages of the test: {done.stderr}")
    assert done.returncode == 0, done.stderr
