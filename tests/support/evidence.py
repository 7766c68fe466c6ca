"""Checks that the tests named in the tables of `docs/security.md` and `docs/specification.md` exist.

    python tests/support/evidence.py

Reports each row that refers to a missing test, has neither a test nor a reason, or has a wrong number.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("docs/security.md", "docs/specification.md")

_NAMED = re.compile(r"`(tests/[\w./-]+)?(?:::(\w+))?`")
"""A file or a folder, a function in it, or another function of the previous file."""

_WHY = re.compile(r"none: \w+ \w+ \w+")
"""The text in place of a missing test."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row in a table whose last column is `test`: its line, the table's columns, and its cells."""

    line: int
    columns: Sequence[str]
    cells: Sequence[str]


def rows(text: str) -> Iterator[Row]:
    """Return the rows of all such tables in a page, without headings."""
    columns: Sequence[str] = ()
    for number, line in enumerate(text.splitlines(), 1):
        cells = _cells(line)
        if not columns or not cells:
            columns = cells
        elif columns[-1] == "test" and set("".join(cells)) != {"-"} and any(cells[1:]):
            yield Row(number, columns, cells)


def faults(text: str) -> Iterator[str]:
    """Return the faults on a page, with their lines."""
    number = 0
    for row in rows(text):
        if len(row.cells) != len(row.columns):
            yield f"{row.line}: {len(row.cells)} cells in a table of {len(row.columns)} columns"
            continue
        if row.columns[0] == "#":
            number += 1
            if row.cells[0] != str(number):
                yield f"{row.line}: the row is number {row.cells[0]}; {number} comes next"
        yield from (f"{row.line}: {fault}" for fault in _shown(row.cells[-1]))


def _shown(cell: str) -> Iterator[str]:
    named = [(path, test) for path, test in _NAMED.findall(cell) if path or test]
    if not named and not _WHY.match(cell):
        yield "no test is named; write `tests/FILE.py::test_NAME`, or `none: ` and why"
    file = ""
    for path, test in named:
        file = path or file
        if not (ROOT / file).exists():
            yield f"there is no {file}"
        elif test and test not in _tests(file):
            yield f"there is no {test} in {file or 'no file'}"


@cache
def _tests(file: str) -> frozenset[str]:
    """Return the test names in a file."""
    path = ROOT / file
    text = path.read_text("utf-8") if path.is_file() else ""
    return frozenset(re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE))


def _cells(line: str) -> Sequence[str]:
    """Return the cells in a table line, or an empty list for other lines."""
    if not line.startswith("|"):
        return ()
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:].removesuffix("|"))]


def main() -> None:
    """Report the faults in the pages, and exit with 1 if there are any."""
    found = [f"{page}:{fault}" for page in PAGES for fault in faults((ROOT / page).read_text("utf-8"))]
    sys.exit("\n".join(found) if found else 0)


if __name__ == "__main__":
    main()
