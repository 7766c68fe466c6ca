"""Who may import whom in the runtime, so that a package can have one half of it without the other."""

from __future__ import annotations

import ast
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
"""For each folder of the runtime, the folders that its modules may import from; the shared modules have none."""


def _modules() -> list[PurePosixPath]:
    found = (path.relative_to(package_data.RUNTIME) for path in package_data.RUNTIME.rglob("*.py"))
    return sorted(PurePosixPath(path.with_suffix("")) for path in found)


def _imported(module: PurePosixPath) -> Iterator[PurePosixPath]:
    """The modules that one imports, wherever in it: at its top, in functions, or for type checkers alone."""
    tree = ast.parse((package_data.RUNTIME / f"{module}.py").read_text())
    for node in ast.walk(tree):
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
        if str(module.parent).strip(".") == folder
        for one in found
        if str(one.parent).strip(".") not in MAY_IMPORT[folder]
    ]
    assert not wrong


def test_no_module_imports_itself_by_way_of_others() -> None:
    left = {module: set(found) for module, found in IMPORTS.items()}
    while free := [module for module, found in left.items() if not found & left.keys()]:
        for module in free:
            del left[module]
    assert not {str(module): sorted(map(str, found & left.keys())) for module, found in left.items()}
