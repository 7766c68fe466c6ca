"""A sample of each attack of `bench/torture/`; `make torture` runs them in full."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import forked

FOLDER = Path(__file__).parents[2] / "bench" / "torture"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "run" and not path.stem.startswith("_"))

LIMITED = ("clocks", "connections")
"""Attacks that start servers under limits, or with a preloaded library, which have no effect on forked processes."""


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_sample_of_the_attack_holds(name: str, tmp_path: Path) -> None:
    if shutil.which("redis-server") is None and os.environ.get("CI") != "true":
        pytest.skip("redis-server is not installed; the attacks keep state in a real one")
    python = sys.executable if name in LIMITED else str(forked.interpreter_in(tmp_path))
    command = [python, str(FOLDER / f"{name}.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_attack_has_its_figures_on_the_page() -> None:
    page = (FOLDER.parents[1] / "docs" / "security.md").read_text()
    assert [name for name in NAMES if f"`bench/torture/{name}.py`" not in page] == []
