"""Each distribution declares exactly its imports, and its lock has all of them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

import amounts

DISTRIBUTIONS = {
    "stubwright": (ROOT / "pyproject.toml", ROOT / "generator" / "stubwright"),
    "stubwright-runtime": (ROOT / "runtime" / "pyproject.toml", ROOT / "runtime" / "stubwright_runtime"),
}
LOCK = (ROOT / ".ci" / "requirements.txt").read_text("utf-8")

FRAMEWORKS = frozenset({"agents", "langchain_core", "pydantic_ai"})
"""The packages of frameworks that a user has who asks for tools of theirs."""


def requirements(file: Path) -> tuple[dict[NormalizedName, Requirement], dict[NormalizedName, Requirement]]:
    """What a distribution always needs, and what its extras add."""
    project = tomllib.loads(file.read_text("utf-8"))["project"]
    extras = [line for lines in project.get("optional-dependencies", {}).values() for line in lines]
    always, added = (
        {canonicalize_name(each.name): each for each in map(Requirement, lines)}
        for lines in (project["dependencies"], extras)
    )
    return always, added


def imported(folder: Path) -> Iterator[frozenset[NormalizedName]]:
    """For each package that the code of a folder imports, also in functions and for type checkers: who provides it."""
    owners = {**packages_distributions(), **{name.replace("-", "_"): [name] for name in DISTRIBUTIONS}}
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            for top in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - FRAMEWORKS:
                yield frozenset(canonicalize_name(owner) for owner in owners.get(top, [f"the unknown {top}"]))


@pytest.mark.parametrize("name", amounts.sample(DISTRIBUTIONS, 1))
def test_what_is_imported_is_declared_and_the_other_way_round(name: str) -> None:
    always, added = requirements(DISTRIBUTIONS[name][0])
    found = {*imported(DISTRIBUTIONS[name][1])} - {frozenset({name})}
    assert [each for each in found if each.isdisjoint(always | added)] == []
    assert always.keys() - frozenset().union(*found) == set()


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_lock_has_what_is_declared(name: str) -> None:
    always, added = requirements(DISTRIBUTIONS[name][0])
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.MULTILINE))
    for dependency, requirement in (always | added).items():
        if dependency not in DISTRIBUTIONS:
            assert requirement.specifier.contains(locked[dependency]), f"run make lock PACKAGE={dependency}"


def test_the_lock_names_no_index_and_has_digests() -> None:
    assert "://" not in LOCK
    entries = re.findall(r"^[a-z0-9-]+==.*(?:\n    .*)+", LOCK, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^[a-z]", LOCK, re.MULTILINE))
    assert all("--hash=sha256:" in entry for entry in entries)
