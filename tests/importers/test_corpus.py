"""The tools of public servers, from a saved list to a running server and its typed client."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import amounts
import corpus as real
from amounts import choose
from corpus import SHARDS, Call, Echo, Server
from corpus_calls import STATELESS, check_raw, check_typed, output, wire_names
from packages import check, imported, without_formatter_off
from server_fixture import exchange
from stubwright.compile import pipeline
from stubwright.compile.syntax import yamlwriter
from stubwright.importers import acceptance, tools
from stubwright.project.files import disk

pytestmark = pytest.mark.corpus

SHARD = pytest.mark.parametrize("shard", range(SHARDS))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the generated packages, one for all processes of a run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "corpus"


LARGEST = choose(real.VARIABLE, 200_000, 2**40, 2**40)
"""The bytes of the largest list of tools that this run takes."""


def files(corpus: Path, shard: int | None = None) -> list[Path]:
    """Return the lists for this run. The few large lists would take more time than all others."""
    return [path for path in real.files(corpus, shard) if path.stat().st_size <= LARGEST]


@SHARD
def test_saved_lists_become_manifests_that_are_accepted(shard: int, corpus: Path, tmp_path: Path) -> None:
    for path in files(corpus, shard):
        made = real.imported(path)
        text = yamlwriter.format_manifest(made.manifest)
        (tmp_path / "manifest.yaml").write_text(text, "utf-8")
        checked = pipeline.compile_manifest(str(tmp_path / "manifest.yaml"), disk.Disk(), "manifest.yaml")
        assert [found for found in checked.diagnostics if found.severity == "error"] == [], path.stem
        assert checked.manifest is not None
        listed, _ = tools.read(path.read_text("utf-8"))
        assert len(checked.manifest.tools) == len(listed), path.stem
        for tool, saved in zip(checked.manifest.tools, listed, strict=True):
            fixed = any(f"`{tool.name}`" in note for note in made.notes)
            assert fixed or json.dumps(tool.definition) == json.dumps(saved), f"{path.stem}: {tool.name}"


EXCLUSIVE = {"type": "object", "properties": {"page": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}}
TUPLE = {"type": "object", "properties": {"place": {"items": [{"type": "number"}, {"type": "number"}]}}}


@pytest.mark.parametrize("role", ["inputSchema", "outputSchema"])
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (EXCLUSIVE, "http://json-schema.org/draft-04/schema#"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", **EXCLUSIVE},
            "http://json-schema.org/draft-04/schema#",
        ),
        (TUPLE, "https://json-schema.org/draft/2019-09/schema"),
        ({"$schema": "https://json-schema.org/draft-07/schema#", **TUPLE}, "http://json-schema.org/draft-07/schema#"),
        ({"type": "object", "$schema": "urn:x"}, "https://json-schema.org/draft/2020-12/schema"),
    ],
)
def test_import_names_the_dialect_that_a_schema_is_written_in(
    schema: dict[str, Any], said: str, role: str, tmp_path: Path
) -> None:
    made = tools.make_manifest([{"name": "go", "inputSchema": {"type": "object"}, role: schema}], name="sample")
    fixed = made.manifest["tools"][0][role]
    first = {} if "$schema" in schema else {"$schema": said}
    assert json.dumps(fixed) == json.dumps({**first, **schema, "$schema": said}), "its keys keep their order"
    assert len(made.notes) == 1
    assert f"the `{role}` of tool `go` is invalid in its own dialect" in made.notes[0]
    assert f"`$schema` was set to `{said}`" in made.notes[0]
    assert not [found for found in check(tmp_path, made.manifest) if found.severity == "error"]


@pytest.mark.parametrize(
    ("role", "left", "what"),
    [("inputSchema", [], "tool `go`"), ("outputSchema", ["go"], "`outputSchema` of tool `go`")],
)
def test_import_leaves_out_a_schema_that_is_wrong_in_every_dialect(
    role: str, left: list[str], what: str, tmp_path: Path
) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "strng"}}}
    made = tools.make_manifest([{"name": "go", "inputSchema": {"type": "object"}, role: schema}], name="sample")
    assert made.manifest["tools"][0][role] == schema
    settled = acceptance.repair(made.manifest)
    assert [tool["name"] for tool in settled.manifest["tools"]] == left
    (note,) = settled.notes
    assert note.startswith(f"{what} was omitted: `strng` is not a JSON Schema type")
    assert [found.severity for found in check(tmp_path, settled.manifest)] == ["warning"] * settled.warnings


def test_import_mends_text_that_no_file_can_hold(tmp_path: Path) -> None:
    tool = '{"name": "go", "description": "\\ud83d \\ud83d\\ude00", "inputSchema": {"type": "object"}}'
    listed, info = tools.read(f'{{"serverInfo": {{"name": "", "version": ""}}, "tools": [{tool}]}}')
    assert info == {}
    made = tools.make_manifest(listed, name="sample")
    assert made.manifest["tools"][0]["description"] == "\ufffd \U0001f600"
    assert made.notes == ("tool `go` contained lone surrogates; each was replaced with U+FFFD",)
    assert check(tmp_path, made.manifest) == []


@pytest.mark.parametrize("shard", amounts.sample(range(SHARDS), 1))
def test_every_tool_is_listed_verbatim(shard: int, corpus: Path, built: Path) -> None:
    for path in files(corpus, shard):
        server = real.build(path, built)
        with imported(built, server.package) as module:
            made = module.build_server(Echo(module))
            for revision in ("2025-11-25", STATELESS):
                (answer,) = asyncio.run(exchange(made, revision, ("tools/list", {})))
                expected = [carried(tool, revision) for tool in server.tools]
                assert json.dumps(answer["tools"]) == json.dumps(expected), f"{path.stem}, {revision}"


def carried(tool: Mapping[str, Any], revision: str) -> Mapping[str, Any]:
    """A tool as a revision has it: before 2026-07-28, an `outputSchema` is one of objects."""
    if revision >= STATELESS or tool.get("outputSchema", {"type": "object"}).get("type") == "object":
        return tool
    return {key: value for key, value in tool.items() if key != "outputSchema"}


def servers(corpus: Path, built: Path, shard: int, *, rich: bool) -> Iterator[tuple[Path, Server]]:
    """The packages of a shard, by the files that they are made of."""
    for path in real.rich_files(corpus, shard) if rich else files(corpus, shard):
        yield path, real.build(path, built, rich=rich)


CALLED = pytest.mark.parametrize(
    ("shard", "rich"),
    [
        case if index % 2 == rich else amounts.mark_long(case)  # each shard once
        for index in range(SHARDS)
        for rich, name in enumerate(["text", "rich"])
        for case in [pytest.param(index, bool(rich), id=f"{index}-{name}")]
    ],
)


@CALLED
def test_raw_calls_come_back_as_they_were(shard: int, rich: bool, corpus: Path, built: Path) -> None:
    wrong: list[str] = []
    called: Counter[str] = Counter()
    for path, server in servers(corpus, built, shard, rich=rich):
        with imported(built, server.package) as module:
            todo = {tool["name"]: real.calls(tool, path.stem) for tool in server.tools}
            wrong += asyncio.run(check_raw(module, [call for each in todo.values() for call in each]))
            called.update({f"{path.stem}: {name}": len(each) for name, each in todo.items()})
    assert not wrong, f"{len(wrong)} of {called.total()}: {wrong[:5]}"
    silent = [name for name, count in called.items() if not count]
    assert len(silent) <= 1, f"no valid arguments were found for {silent}"
    assert rich or called.total() > 100  # of some samples, no server has a format


@CALLED
def test_typed_calls_come_back_as_they_were(shard: int, rich: bool, corpus: Path, built: Path) -> None:
    wrong: list[str] = []
    made = 0
    for path, server in servers(corpus, built, shard, rich=rich):
        with imported(built, server.package) as module:
            todo = [call for tool in server.tools for call in typed_calls(module, tool, path.stem)]
            wrong += asyncio.run(check_typed(module, getattr(module, server.client), todo))
            made += len(todo)
    assert not wrong, f"{len(wrong)} of {made}: {wrong[:5]}"
    assert rich or made > 100


def typed_calls(module: Any, tool: Mapping[str, Any], seed: str) -> list[Call]:
    """Calls of a tool with the arguments alone that a typed client has."""
    names = frozenset(wire_names(module.TOOLS[tool["name"]].Input))
    made = [real.only_named(call, tool["inputSchema"], names) for call in real.calls(tool, seed)]
    return [call for call in made if call is not None]


EVERY_CHECKED = choose(real.VARIABLE, 1, 2, 1)
"""Of how many packages the slowest tools check one."""


def every_package(corpus: Path, built: Path) -> dict[str, Server]:
    """The packages of this run, by the stems of their files."""
    made = {path.stem: real.build(path, built) for path in files(corpus)}
    made |= {f"{path.stem}, rich": real.build(path, built, rich=True) for path in real.rich_files(corpus)}
    assert len({server.package for server in made.values()}) == len(made)
    return made


@pytest.mark.long
def test_mypy_finds_no_error(corpus: Path, built: Path, mypy: list[str]) -> None:
    packages = sorted(server.package for server in every_package(corpus, built).values())
    told = output([*mypy[2:], "--python-version=3.11", *packages], built)
    assert re.match(r"Success: no issues found in \d+ source files", told)


@pytest.mark.long
def test_pyright_finds_no_error(corpus: Path, built: Path) -> None:
    if importlib.util.find_spec("pyright") is None and "CI" not in os.environ:
        pytest.skip("pyright is not installed")
    packages = sorted(server.package for server in every_package(corpus, built).values())[::EVERY_CHECKED]
    # The runtime in each package is the same, and is checked where it comes from; so it is for Black, below.
    config = {"include": packages, "pythonVersion": "3.11", "typeCheckingMode": "strict"}
    (built / "pyrightconfig.json").write_text(json.dumps(config))
    assert "0 errors, 0 warnings" in output(["pyright", f"--pythonpath={sys.executable}"], built)


@pytest.mark.long
def test_ruff_finds_nothing_with_its_default_rules(corpus: Path, built: Path) -> None:
    packages = sorted(server.package for server in every_package(corpus, built).values())
    assert output(["ruff", "check", "--isolated", "--no-cache", *packages], built) == "All checks passed!\n"


@pytest.mark.long
def test_black_changes_nothing(corpus: Path, built: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    for package in sorted(server.package for server in every_package(corpus, built).values())[::EVERY_CHECKED]:
        without_formatter_off(built / package, copies / package)
    output(["black", "--check", "--line-length=120", "--target-version=py311", str(copies)], tmp_path)


def test_any_stands_only_where_a_schema_names_no_type(corpus: Path, built: Path) -> None:
    counts: Counter[str] = Counter()
    wide = []
    for path in files(corpus):
        server, stem = real.build(path, built), path.stem
        counts += written(built / server.package / "models")
        with imported(built, server.package) as module:
            for wire in server.tools:
                tool = module.TOOLS[wire["name"]]
                models = ((tool.Input, wire["inputSchema"]), (tool.Output, wire.get("outputSchema")))
                wide += [f"{stem}: {place}" for model, schema in models if model for place in untyped(model, schema)]
    assert counts["bare"] + counts["other"] <= counts["all"] // 400, counts
    assert wide == []


@pytest.mark.parametrize(
    ("annotation", "schema", "wide"),
    [
        (Any, {"type": "string"}, True),
        (Any, {"description": "Whatever."}, False),
        (Any | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        (Any | None, {"anyOf": [{"type": "string"}, {}]}, False),
        (list[Any], {"type": "array"}, False),
        (list[Any], {"type": "array", "items": {"$ref": "#/$defs/Name"}}, True),
        (list[float | Any], {"prefixItems": [{"type": "number"}]}, False),
        (list[float | Any], {"prefixItems": [{"type": "number"}], "items": {"type": "number"}}, True),
        (dict[str, Any], {"additionalProperties": {"enum": [1]}}, True),
        (dict[str, Any], {"additionalProperties": {}}, False),
    ],
)
def test_what_counts_as_too_wide(annotation: Any, schema: dict[str, Any], wide: bool) -> None:
    assert real.is_wide(annotation, [schema], {"$defs": {"Name": {"type": "string"}}}) is wide


def written(folder: Path) -> Counter[str]:
    """How many annotations there are in generated models, and in how many `Any` stands how."""
    counts: Counter[str] = Counter()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.AnnAssign):
                counts["all"] += 1
                counts[kind(ast.unparse(node.annotation))] += 1
    return counts


def kind(annotation: str) -> str:
    """Return how an annotation contains `Any`."""
    if not re.search(r"\bAny\b", annotation):
        return "none"
    if re.fullmatch(r"(Nullable\[)?Any\]?( \| None)?", annotation):
        return "bare"
    return "other" if re.search(r"\bAny\b", re.sub(r"dict\[str, Any\]|list\[Any\]", "", annotation)) else "held"


def untyped(model: Any, schema: Any) -> list[str]:
    """The fields of a model, and of those below it, that hold `Any` where their schema names types."""
    return [
        field.place for field in real.annotated(model, schema) if real.is_wide(field.annotation, field.schemas, schema)
    ]
