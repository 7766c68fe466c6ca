"""Import rules: the compiler's folders are layers without upward imports or cycles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import sources
from stubwright import package_data

LAYERS = (
    ("package_data", "pycode", "http", "paths", "tokens"),
    ("diagnostics",),
    ("dependencies", "naming"),
    ("ir",),
    ("jsonschema",),
    ("targets",),
    ("codegen",),
    ("compile",),
    ("incremental",),
    ("project",),
    ("login",),
    ("importers",),
    ("diff", "mock", "docs", "serving", "publishing"),
    ("recording", "workbench"),
    ("calling", "contract_tests"),
    ("commands",),
    ("cli", "pytest_plugin"),
    ("__main__",),
)
"""The rooms from the lowest to the highest layer; rooms of one layer do not import each other."""

RANKS = {room: rank for rank, layer in enumerate(LAYERS) for room in layer}


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted(package_data.ROOT.rglob("*.py")):
        steps = path.relative_to(package_data.ROOT).with_suffix("").parts
        found[".".join(("stubwright", *(steps[:-1] if steps[-1] == "__init__" else steps)))] = path
    return found


MODULES = _modules()


def _imported(name: str) -> Iterator[str]:
    """All that a module imports of stubwright: at its top, in functions, and for type checkers alone."""
    path = MODULES[name]
    for node in sources.walk(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *(node.module.split(".") if node.module else ())])
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                if inner in MODULES:
                    yield inner
                elif module in MODULES:
                    yield module


@cache
def _imports() -> Mapping[str, frozenset[str]]:
    """What each module imports of stubwright; read by the first test that asks, not while tests are collected."""
    return {name: frozenset(_imported(name)) - {name} for name in MODULES}


def _room(name: str) -> str:
    _, _, below = name.partition(".")
    return below.partition(".")[0]


def test_each_room_has_its_layer() -> None:
    assert {_room(name) for name in MODULES} - {""} == RANKS.keys()


@pytest.mark.parametrize("room", RANKS)
def test_no_import_goes_up(room: str) -> None:
    wrong = [
        f"{name} imports {other}"
        for name, others in _imports().items()
        if _room(name) == room
        for other in others
        if _room(other) not in ("", room) and RANKS[_room(other)] >= RANKS[room]
    ]
    assert not wrong


def test_no_imports_go_round() -> None:
    left = dict(_imports())
    while ready := {name for name, others in left.items() if others.isdisjoint(left)}:
        left = {name: others for name, others in left.items() if name not in ready}
    assert not left


def _calls(name: str) -> Iterator[str]:
    for node in sources.walk(MODULES[name]):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=called) | ast.Attribute(attr=called):
                    yield called


def _makes_names(name: str) -> Iterator[str]:
    """What in a module makes a Python name of a text: a `Name` of parts without dots, or more at the end of one."""
    for node in sources.walk(MODULES[name]):
        match node:
            case ast.Call(func=ast.Name(id="Name"), args=[ast.JoinedStr(values=parts)]):
                if not any(isinstance(part, ast.Constant) and "." in str(part.value) for part in parts):
                    yield ast.unparse(node)
            case ast.Call(func=ast.Name(id="Name"), args=[ast.BinOp() as made]):
                yield ast.unparse(made)
            case ast.BinOp(op=ast.Add(), left=ast.Attribute(attr="stem" | "method" | "module" | "names")):
                yield ast.unparse(node)
            case ast.Attribute(attr="isidentifier"):
                yield ast.unparse(node)
            case _:
                pass


def test_only_naming_makes_python_names() -> None:
    reads_types = "stubwright.codegen.models.inspection"
    apart = ("stubwright.naming", "stubwright.pycode", reads_types)
    made = {name: [*_makes_names(name)] for name in MODULES if name not in apart}
    assert {name: texts for name, texts in made.items() if texts} == {}


@pytest.mark.parametrize("suffix", ["Handlers", "Client", "Ask", "Context", "Input", "Output"])
def test_templates_make_no_names(suffix: str) -> None:
    for path in package_data.TEMPLATES.rglob("*.jinja*"):
        assert "}}" + suffix not in path.read_text(), path.name


WRITING = {"write_text", "write_bytes", "mkdir", "unlink", "rmdir", "rmtree", "touch", "symlink_to", "rename"}


def test_only_the_project_writes_to_the_disk() -> None:
    # They run in an interpreter without stubwright, and write to the temporary file or folder that they are given.
    apart = {"stubwright.importers.python.program", "stubwright.serving.proof"}
    writing = {name for name in MODULES if not WRITING.isdisjoint(_calls(name))}
    assert {name for name in writing if _room(name) != "project"} == apart


@pytest.mark.parametrize(
    ("library", "importers"),
    [
        ("datamodel_code_generator", {"codegen.models.datamodel"}),
        ("black", {"codegen.source.render"}),
        ("jinja2", {"codegen.source.render", "docs.page"}),
        ("markdown_it", {"docs.markdown"}),
        ("watchfiles", {"commands.shared.watching"}),
        ("yaml", {"compile.syntax.yamltext", "compile.syntax.yamlwriter"}),
    ],
)
def test_a_library_has_few_callers(library: str, importers: set[str]) -> None:
    found = set()
    for name, path in MODULES.items():
        for node in sources.walk(path):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(one.split(".")[0] == library for one in names):
                found.add(name)
    assert {name.partition(".")[2] for name in found} == importers


def test_one_module_reads_strict_json() -> None:
    readers = {name for name, path in MODULES.items() if "object_pairs_hook" in sources.read(path)}
    assert readers == {"stubwright.compile.syntax.strictjson"}


def test_the_map_names_files_that_exist() -> None:
    """Each file and folder in backticks on docs/architecture.md exists below a root or next to another file."""
    checkout = package_data.ROOT.parents[1]
    roots = (checkout, package_data.ROOT, package_data.RUNTIME, package_data.RUNTIME / "server", checkout / "runtime")
    missing = []
    for paragraph in re.split(r"\n\n|\n(?=- )", (checkout / "docs" / "architecture.md").read_text("utf-8")):
        beside: list[Path] = []
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", paragraph):
            places = [place for root in (*roots, *beside) if (place := root / name).exists()]
            beside += [folder for place in places for folder in (place, place.parent)]
            if not places:
                missing.append(name)
    assert missing == []
