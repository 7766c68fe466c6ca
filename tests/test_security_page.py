"""The table of `docs/security.md` names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_guarantee_names_tests_that_are_there() -> None:
    lines = (ROOT / "docs" / "security.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith(("| **", "| class"))]
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", row.split(" | ")[2])
        assert named, row
        text = ""
        for file, test in named:
            text = (ROOT / file).read_text("utf-8") if file else text
            assert f"def {test}(" in text or not test, (test, row)
