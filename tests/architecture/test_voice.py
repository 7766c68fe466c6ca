"""A function's docstring begins with an imperative, such as "Return": it says what the call does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGES = {
    name: ROOT / folder / name for name, folder in (("stubwright", "generator"), ("stubwright_runtime", "runtime"))
}

MOST = {"stubwright": 0.103, "stubwright_runtime": 0.065}
"""The largest share of a package's functions whose docstrings begin otherwise. Lower it as it falls."""

DONE = {
    "stubwright": (
        ".",
        "calling",
        "codegen",
        "commands",
        "compile",
        "diagnostics",
        "diff",
        "docs",
        "incremental",
        "jsonschema",
        "mock",
        "project",
        "serving",
        "targets",
    ),
    "stubwright_runtime": (
        ".",
        "client",
        "mcp",
        "models",
        "observability",
        "policy",
        "projection",
        "schema",
        "sdk",
        "server",
        "state",
        "tasks",
        "values",
    ),
}
"""The rooms in which none does; `.` stands for the modules beside them."""

CLAUSES = {"What", "Who", "Whom", "Whose", "Whoever", "Whether", "Where", "Which", "How", "When", "Why"}
NOUNS = {"The", "A", "An", "Of", "Nobody", "Nothing", "No", "All", "Each", "Every"}
NO_CALLS = {"property", "cached_property", "getter", "setter", "deleter"}
"""Decorators of what is read like an attribute, and so described by a noun phrase."""


def _is_called(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {ast.unparse(each).rpartition(".")[2] for each in function.decorator_list}
    return names.isdisjoint(NO_CALLS)


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines and the docstrings of the functions in a module that have one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_called(node):
            text = ast.get_docstring(node)
            if text:
                yield node.lineno, text


def is_wrong(docstring: str) -> bool:
    """Tell whether a docstring begins with something other than an imperative, as far as its first word shows."""
    word = re.match(r"\w+", docstring)
    return word is not None and word[0] in CLAUSES | NOUNS


def _room(path: Path, package: str) -> str:
    folders = path.relative_to(PACKAGES[package]).parts[:-1]
    return folders[0] if folders else "."


@cache
def _judged(package: str) -> tuple[tuple[str, str, bool], ...]:
    """Return the room and the place of each docstring in a package, and whether it is wrong."""
    return tuple(
        (_room(path, package), f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}", is_wrong(text))
        for path in sorted(PACKAGES[package].rglob("*.py"))
        for line, text in docstrings(path.read_text("utf-8"))
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_few_docstrings_of_functions_begin_without_an_imperative(package: str) -> None:
    judged = _judged(package)
    assert sum(wrong for _, _, wrong in judged) <= MOST[package] * len(judged)


@pytest.mark.parametrize(("package", "room"), [(package, room) for package, rooms in DONE.items() for room in rooms])
def test_a_room_that_is_done_stays_so(package: str, room: str) -> None:
    assert (PACKAGES[package] / room).is_dir()
    assert [place for where, place, wrong in _judged(package) if where == room and wrong] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f():\n    """Return the name."""', [False]),
        ('async def f():\n    """Whether it is."""', [True]),
        ('class A:\n    """A class."""\n    def f(self):\n        """The name."""', [True]),
        ('class A:\n    @property\n    def f(self):\n        """The name."""', []),
        ('class A:\n    @functools.cached_property\n    def f(self):\n        """The name."""', []),
        ('def f():\n    """Nobody, so far."""', [True]),
        ("def f(): ...", []),
    ],
)
def test_judging_docstrings(source: str, expected: list[bool]) -> None:
    assert [is_wrong(text) for _, text in docstrings(source)] == expected
