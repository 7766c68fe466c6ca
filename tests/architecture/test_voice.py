"""A function's docstring begins with an imperative, such as "Return": it says what the call does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from conftest import ROOT

PACKAGES = {
    name: ROOT / folder / name for name, folder in (("stubwright", "generator"), ("stubwright_runtime", "runtime"))
}

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


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_of_functions_begin_with_an_imperative(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted(PACKAGES[package].rglob("*.py"))
        for line, text in docstrings(path.read_text("utf-8"))
        if is_wrong(text)
    ]
    assert wrong == []


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
