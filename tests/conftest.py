"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite what golden cases expect")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real data that others wrote; it is not part of the repository."""
    folder = Path(os.environ.get("TOOLWRIGHT_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not folder.is_dir():
        pytest.skip("the corpus of public servers is not here; set TOOLWRIGHT_CORPUS to its folder")
    return folder
