"""Who may import whom in the runtime when it is imported, so that a client loads no server, and a server no client."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from toolwright import package_data

MAY_IMPORT = {
    "": {""},
    "client": {"", "client"},
    "state": {"", "state"},
    "server": {"", "state", "server"},
    "http": {"", "state", "server", "http"},
    "policy": {"", "state", "server", "policy"},
    "tasks": {"", "state", "server", "tasks"},
}
"""For each folder, those that its modules may import from at once; what a manifest asks for is imported later.

The modules of names, which load what they are asked for, are in none.
"""

NAMES = frozenset({"__init__", "generated"})


def _modules() -> list[PurePosixPath]:
    found = (path.relative_to(package_data.RUNTIME) for path in package_data.RUNTIME.rglob("*.py"))
    return sorted(PurePosixPath(path.with_suffix("")) for path in found)


def _imported(module: PurePosixPath) -> Iterator[PurePosixPath]:
    """The modules that one imports at its top."""
    for node in ast.parse((package_data.RUNTIME / f"{module}.py").read_text()).body:
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("toolwright") for alias in node.names)
        if not isinstance(node, ast.ImportFrom):
            continue
        if not node.level:
            assert not (node.module or "").startswith("toolwright")
            continue
        steps = module.parts[: -node.level]
        assert node.level <= len(module.parts), f"{module} leaves the runtime"
        target = PurePosixPath(*steps, *(node.module.split(".") if node.module else ()))
        if (package_data.RUNTIME / f"{target}.py").is_file():
            yield target
        else:
            yield from (target / alias.name for alias in node.names)


IMPORTS = {module: sorted(set(_imported(module))) for module in _modules()}


def test_all_that_is_imported_is_there() -> None:
    assert {one for found in IMPORTS.values() for one in found} <= IMPORTS.keys()


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_from_those_below_it_alone(folder: str) -> None:
    wrong = [
        f"{module} imports {one}"
        for module, found in IMPORTS.items()
        if str(module.parent).strip(".") == folder and str(module) not in NAMES
        for one in found
        if str(one.parent).strip(".") not in MAY_IMPORT[folder]
    ]
    assert not wrong


def test_no_module_imports_itself_by_way_of_others() -> None:
    left = {module: set(found) for module, found in IMPORTS.items() if str(module) not in NAMES}
    while free := [module for module, found in left.items() if not found & left.keys()]:
        for module in free:
            del left[module]
    assert not {str(module): sorted(map(str, found & left.keys())) for module, found in left.items()}


@pytest.mark.parametrize(("half", "other"), [("client", "server"), ("server", "client")])
def test_a_half_never_imports_the_other(half: str, other: str) -> None:
    """Wherever in a module: at its top, in functions, or for type checkers alone."""
    for path in (package_data.RUNTIME / half).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert (node.module or "").partition(".")[0] != other, path.name


@pytest.mark.parametrize("module", sorted(NAMES))
def test_checkers_see_the_names_that_are_loaded(module: str) -> None:
    """What a module of names says twice, it says alike: its imports for type checkers, and its table."""
    tree = ast.parse((package_data.RUNTIME / f"{module}.py").read_text())
    (choice,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (f".{node.module}", alias.asname)
        for node in choice.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == alias.asname
    }
    (call,) = (node.value for node in choice.orelse if isinstance(node, ast.Assign))
    assert isinstance(call, ast.Call)
    loaded = {(home, name) for home, names in ast.literal_eval(call.args[1]).items() for name in names}
    assert seen == loaded
    package = importlib.import_module("toolwright_runtime" if module == "__init__" else f"toolwright_runtime.{module}")
    assert {name for _, name in loaded} == {*package.__all__} == {*dir(package)}
    assert all(getattr(package, name) is not None for name in package.__all__)
