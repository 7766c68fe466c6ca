"""The tutorial, run in our environment from the first step to the last; test_installing.py also installs it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from conftest import ROOT

from walkthrough import Walkthrough

PAGE: Final = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
OURS: Final = {
    ".venv/bin/pytest": "env PYTHONPATH=generated:. python -m pytest -p no:cacheprovider -p no:warnings -p anyio",
    ".venv/bin/rooms-mcp": "env PYTHONPATH=generated:. python -m rooms_mcp",
}
"""What runs the project's programs where it is not installed."""


@pytest.mark.long
def test_it_works_as_written(tmp_path: Path) -> None:
    with Walkthrough(tmp_path, skip=r"-m venv|pip install", instead=OURS) as walk:
        walk.play(PAGE)
        assert len(walk.blocks) == 1, "the set-up, which the README has, too"
        assert walk.count == PAGE.count("\n$ ")
