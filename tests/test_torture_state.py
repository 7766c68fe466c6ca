"""The attacks on what a server stores, as samples; `bench/torture/` has them whole."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench" / "torture"


@pytest.mark.parametrize("name", ["store", "rollback"])
def test_an_attack_holds_nobody_else_up(name: str) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    done = subprocess.run(
        [sys.executable, BENCH / f"{name}.py", "--quick"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
