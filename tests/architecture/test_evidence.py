"""Pages with tables of tests name existing tests, and the check detects mistakes."""

from __future__ import annotations

import pytest

import evidence

HEAD = "| # | what | test |\n|---|---|---|\n"


@pytest.mark.parametrize(("page", "least"), [("docs/security.md", 60), ("docs/specification.md", 135)])
def test_each_row_of_a_page_has_its_test(page: str, least: int) -> None:
    text = (evidence.ROOT / page).read_text("utf-8")
    assert len([*evidence.rows(text)]) >= least
    assert [*evidence.faults(text)] == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| 1 | a | `tests/architecture/test_evidence.py::test_what_is_wrong_is_told` |", None),
        ("| 1 | a | `tests/architecture/test_evidence.py`, `::test_what_is_wrong_is_told`; `x` |", None),
        ("| 1 | a \\| b | `tests/cases/handles` |", None),
        ("| 1 | a | none: the host decides that |", None),
        ("| **a heading** | | |", None),
        ("| 1 | a | `tests/test_nothing.py::test_a` |", "3: there is no tests/test_nothing.py"),
        (
            "| 1 | a | `tests/architecture/test_evidence.py::test_a` |",
            "3: there is no test_a in tests/architecture/test_evidence.py",
        ),
        ("| 1 | a | `tests/support/evidence.py::rows` |", "3: there is no rows in tests/support/evidence.py"),
        ("| 1 | a | `::test_a` |", "3: there is no test_a in no file"),
        (
            "| 1 | a | `tests/architecture/test_evidence.py`, `::test_a` |",
            "3: there is no test_a in tests/architecture/test_evidence.py",
        ),
        ("| 1 | a | |", "3: no test is named; write `tests/FILE.py::test_NAME`, or `none: ` and why"),
        ("| 1 | a | none: |", "3: no test is named; write `tests/FILE.py::test_NAME`, or `none: ` and why"),
        ("| 2 | a | none: the host decides that |", "3: the row is number 2; 1 comes next"),
        ("| 1 | a | b | none: the host decides that |", "3: 4 cells in a table of 3 columns"),
    ],
)
def test_what_is_wrong_is_told(row: str, fault: str | None) -> None:
    assert [*evidence.faults(f"{HEAD}{row}\n")] == ([] if fault is None else [fault])


def test_numbers_go_on_from_table_to_table() -> None:
    one, two = ("| 1 | a | none: the host decides |\n", "| 2 | a | none: the host decides |\n")
    assert [*evidence.faults(f"{HEAD}{one}\nwords\n\n{HEAD}{two}")] == []
    assert [*evidence.faults(f"{HEAD}{one}\nwords\n\n{HEAD}{one}")] == ["9: the row is number 1; 2 comes next"]


def test_other_tables_are_left_alone() -> None:
    assert [*evidence.rows("| a | b |\n|---|---|\n| 1 | 2 |\n")] == []
