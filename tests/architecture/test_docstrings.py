"""Docstrings name existing exceptions under `Raises:` and existing parameters under `Args:`."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT

import sources

CODE = [ROOT / "generator" / "stubwright", ROOT / "runtime" / "stubwright_runtime"]
FILES = sorted(path for folder in CODE for path in folder.rglob("*.py"))

_ENTRY = re.compile(r" {4}(\*{0,2}[A-Za-z_][\w.]*):")
_INLINE = re.compile(r"\bRaises ([A-Z][\w.]*\w)")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def entries(docstring: str, section: str) -> Iterator[str]:
    """Yield the names that a section of a docstring explains."""
    lines = docstring.split("\n")
    if f"{section}:" not in lines:
        return
    for line in lines[lines.index(f"{section}:") + 1 :]:
        if line and not line.startswith(" "):
            return
        if (match := _ENTRY.match(line)) is not None:
            yield match[1].lstrip("*")


def documented() -> Iterator[tuple[str, ast.AST, str]]:
    """Yield where each docstring is, what it is of, and its text."""
    for path in FILES:
        for node in sources.walk(path):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
                text := ast.get_docstring(node)
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node, text


@cache
def known_names(path: Path) -> set[str]:
    """Return the names in a module: our classes anywhere, and its imports."""
    found = {*classes()}
    for node in sources.walk(path):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found | {*dir(builtins)}


@cache
def classes() -> frozenset[str]:
    """Return the names of all classes of ours."""
    return frozenset(node.name for path in FILES for node in sources.walk(path) if isinstance(node, ast.ClassDef))


MODULES = {path.stem if path.stem != "__init__" else path.parent.name for path in FILES}


def is_known(name: str, path: Path) -> bool:
    """Return whether an exception exists: in Python, in our code, or in the module before its dot."""
    first, _, rest = name.partition(".")
    if not rest:
        return name in classes() or hasattr(builtins, name) or name in known_names(path)
    return name.rpartition(".")[2] in classes() if first in MODULES - {"mcp"} else True


def test_what_is_raised_is_there() -> None:
    wrong = [
        f"{where}: {name}"
        for where, node, text in documented()
        for name in [*entries(text, "Raises"), *_INLINE.findall(text.partition("\nRaises:")[0])]
        if not is_known(name, ROOT / where.partition(":")[0])
    ]
    assert wrong == []


def parameters(node: ast.AST) -> set[str]:
    """Return the names that `Args:` may explain: the parameters of a function or of a class's constructor."""
    if isinstance(node, Function):
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        return {each.arg for each in every if each is not None}
    assert isinstance(node, ast.ClassDef)
    fields = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    made = [each for each in node.body if isinstance(each, Function) and each.name in ("__init__", "__new__")]
    return fields.union(*map(parameters, made))


def test_the_parameters_that_are_explained_are_there() -> None:
    wrong = [
        f"{where}: {name}"
        for where, node, text in documented()
        for name in entries(text, "Args")
        if name not in parameters(node)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "section", "names"),
    [
        (
            "One.\n\nRaises:\n    ValueError: It is wrong.\n        So.\n    a.BError: Or so.\n",
            "Raises",
            ["ValueError", "a.BError"],
        ),
        ("One.\n\nArgs:\n    one: It.\n    **more: They.\n\nRaises:\n    OSError: No.\n", "Args", ["one", "more"]),
        ("One.", "Raises", []),
    ],
)
def test_sections_are_read(text: str, section: str, names: list[str]) -> None:
    assert [*entries(text, section)] == names
