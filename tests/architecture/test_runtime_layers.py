"""Import rules of the runtime at import time: a client does not load the server, nor a server the client."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TypeVar

import pytest

import sources
from stubwright import package_data

LAYERS = (
    ("errors", "extras", "in_process", "lazy", "values"),
    ("network",),
    ("observability", "models"),
    ("schema", "projection"),
    ("mcp",),
    ("package",),
    ("primitives",),
    ("client", "state"),
    ("server",),
    ("http", "policy", "tasks"),
)
"""The rooms from the lowest to the highest, by the import-time imports of their modules; rooms of one layer do not
import each other.

Optional features are imported later. Lazy modules, which import names on access, are not in a room.
"""

RANKS = {room: rank for rank, layer in enumerate(LAYERS) for room in layer}

NAMES = frozenset({"__init__", "generated"})


def _modules() -> list[PurePosixPath]:
    found = (path.relative_to(package_data.RUNTIME) for path in package_data.RUNTIME.rglob("*.py"))
    return sorted(PurePosixPath(path.with_suffix("")) for path in found)


def _imported(module: PurePosixPath, *, everywhere: bool = False) -> Iterator[PurePosixPath]:
    """Yield the modules that one imports at its top, or `everywhere`: for type checkers and in functions, too."""
    path = package_data.RUNTIME / f"{module}.py"
    for node in sources.walk(path) if everywhere else sources.parse(path).body:
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("stubwright") for alias in node.names)
        if not isinstance(node, ast.ImportFrom):
            continue
        if not node.level:
            assert not (node.module or "").startswith("stubwright")
            continue
        steps = module.parts[: -node.level]
        assert node.level <= len(module.parts), f"{module} leaves the runtime"
        target = PurePosixPath(*steps, *(node.module.split(".") if node.module else ()))
        if (package_data.RUNTIME / f"{target}.py").is_file():
            yield target
        else:
            yield from (target / alias.name for alias in node.names)


@cache
def _imports() -> Mapping[PurePosixPath, list[PurePosixPath]]:
    """What each module imports at its top; read by the first test that asks, not while tests are collected."""
    return {module: sorted(set(_imported(module))) for module in _modules()}


@cache
def _all_imports() -> Mapping[PurePosixPath, frozenset[PurePosixPath]]:
    return {module: frozenset(_imported(module, everywhere=True)) for module in _modules()}


def test_all_that_is_imported_is_there() -> None:
    assert frozenset().union(*_imports().values(), *_all_imports().values()) <= _imports().keys()


def test_each_room_has_its_layer() -> None:
    assert {module.parts[0] for module in _imports() if str(module) not in NAMES} == RANKS.keys()


@pytest.mark.parametrize("room", RANKS)
def test_no_import_goes_up(room: str) -> None:
    wrong = [
        f"{module} imports {other}"
        for module, others in _imports().items()
        if module.parts[0] == room
        for other in others
        if other.parts[0] != room and RANKS[other.parts[0]] >= RANKS[room]
    ]
    assert not wrong


SDK = {
    "client/features/subscriptions": "a client of the SDK",
    "client/transports/connect": "its servers and transports as targets",
    "client/transports/parameter_headers": "its kinds of servers",
    "server/transports/sdk_streams": "its clients in the same process",
}
"""The modules that import the SDK, when something of the SDK is given to them."""


def test_few_modules_import_the_sdk() -> None:
    """Never at their top, so that it need not be installed; type checkers are another matter."""
    importing: dict[str, bool] = {}
    for module in _modules():
        path = package_data.RUNTIME / f"{module}.py"
        at_top = [*sources.parse(path).body]
        functions = [node for node in sources.walk(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for node in [*at_top, *(inner for each in functions for inner in ast.walk(each))]:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            if any(name.partition(".")[0] == "mcp" for name in names):
                importing[str(module)] = importing.get(str(module), False) or node in at_top
    assert importing == dict.fromkeys(SDK, False)


def test_one_module_knows_what_keeps_the_promises_of_a_manifest() -> None:
    """Beside it, the command line starts workers, and what protects the endpoint reads tokens."""
    knowing = {
        str(module)
        for module, imported in _all_imports().items()
        if module.parts[0] == "server"
        for other in imported
        if other.parts[0] in LAYERS[-1]
    }
    types = {"server/core/core", "server/core/feature"}  # names that the module exports
    assert knowing - types == {"server/app/optional_features", "server/transports/http/protection"}


MOST_MODULES = 15


@pytest.mark.parametrize("root", [package_data.RUNTIME, package_data.ROOT], ids=["runtime", "compiler"])
def test_no_room_is_a_warehouse(root: Path) -> None:
    folders = {path.parent for path in root.rglob("*.py")}
    sizes = {str(folder): sum(path.name != "__init__.py" for path in folder.glob("*.py")) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_no_module_imports_itself_by_way_of_others() -> None:
    left = {module: set(found) for module, found in _imports().items() if str(module) not in NAMES}
    while free := [module for module, found in left.items() if not found & left.keys()]:
        for module in free:
            del left[module]
    assert not {str(module): sorted(map(str, found & left.keys())) for module, found in left.items()}


LARGEST_CIRCLE = 6
"""Lower it with the circle."""


def test_the_largest_circle_of_imports_does_not_grow() -> None:
    """Modules of a circle are understood and changed together, also if some of their imports come late."""
    circle = _largest_circle(_all_imports())
    names = sorted(map(str, circle))
    assert len(names) <= LARGEST_CIRCLE, f"these import each other; remove an import that closes a circle: {names}"


_Node = TypeVar("_Node")


def _largest_circle(imports: Mapping[_Node, Collection[_Node]]) -> frozenset[_Node]:
    """Return the most modules of which each imports each other, by way of others."""
    reached = {module: _reached(module, imports) for module in imports}
    circles = (frozenset(other for other in others if module in reached[other]) for module, others in reached.items())
    return max(circles, key=len, default=frozenset())


def _reached(module: _Node, imports: Mapping[_Node, Collection[_Node]]) -> set[_Node]:
    reached: set[_Node] = set()
    waiting = [module]
    while waiting:
        new = set(imports[waiting.pop()]) - reached
        reached |= new
        waiting += new
    return reached


@pytest.mark.parametrize(
    ("imports", "circle"),
    [
        ({}, ""),
        ({"a": "b", "b": "c", "c": ""}, ""),
        ({"a": "b", "b": "a", "c": "ab"}, "ab"),
        ({"a": "b", "b": "ca", "c": "d", "d": "e", "e": "c"}, "cde"),
        ({"a": "b", "b": "c", "c": "ad", "d": "ef", "e": "c", "f": ""}, "abcde"),
    ],
)
def test_the_largest_circle_is_found(imports: Mapping[str, str], circle: str) -> None:
    assert _largest_circle(imports) == {*circle}


@pytest.mark.parametrize(("half", "other"), [("client", "server"), ("server", "client")])
def test_a_half_never_imports_the_other(half: str, other: str) -> None:
    """Wherever in a module: at its top, in functions, or for type checkers alone."""
    for path in (package_data.RUNTIME / half).rglob("*.py"):
        for node in sources.walk(path):
            depth = len(path.relative_to(package_data.RUNTIME).parts)
            if isinstance(node, ast.ImportFrom) and node.level == depth:
                assert (node.module or "").partition(".")[0] != other, path.name


@pytest.mark.parametrize("module", sorted(NAMES))
def test_checkers_see_the_names_that_are_loaded(module: str) -> None:
    """What a module of names says twice, it says alike: its imports for type checkers, and its table."""
    tree = sources.parse(package_data.RUNTIME / f"{module}.py")
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
    package = importlib.import_module("stubwright_runtime" if module == "__init__" else f"stubwright_runtime.{module}")
    assert {name for _, name in loaded} == {*package.__all__} == {*dir(package)}
    assert all(getattr(package, name) is not None for name in package.__all__)
