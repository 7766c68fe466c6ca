"""The tools of public servers, from a saved list to a running server and back through its typed client."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import corpus as real
from corpus import SHARDS, Call, Echo, Server
from instances import same
from packages import imported
from runtime.server_fixture import exchange
from toolwright import compiler, naming, workspace
from toolwright.importing import tools, writing

STATELESS = "2026-07-28"
SHARD = pytest.mark.parametrize("shard", range(SHARDS))

# Annotations that are `Any` though the schema names a type; the reason stands in docs/generated-code.md.
WIDE: frozenset[str] = frozenset()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the generated packages, one for all processes of a run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "corpus"


@SHARD
def test_saved_lists_become_manifests_that_are_accepted(shard: int, corpus: Path, tmp_path: Path) -> None:
    for path in real.files(corpus, shard):
        made = real.imported(path)
        text = writing.manifest(made.manifest)
        (tmp_path / "manifest.yaml").write_text(text, "utf-8")
        checked = compiler.check(str(tmp_path / "manifest.yaml"), workspace.Disk(), "manifest.yaml")
        assert [found for found in checked.diagnostics if found.severity == "error"] == [], path.stem
        assert checked.manifest is not None
        listed, _ = tools.read(path.read_text("utf-8"))
        assert len(checked.manifest.tools) == len(listed), path.stem
        for tool, saved in zip(checked.manifest.tools, listed, strict=True):
            mended = any(f"`{tool.name}`" in note for note in made.notes)
            assert mended or json.dumps(tool.definition) == json.dumps(saved), f"{path.stem}: {tool.name}"


@SHARD
def test_every_tool_is_listed_verbatim(shard: int, corpus: Path, built: Path) -> None:
    for path in real.files(corpus, shard):
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


@SHARD
def test_raw_calls_come_back_as_they_were(shard: int, corpus: Path, built: Path) -> None:
    wrong: list[str] = []
    made = 0
    for path in real.files(corpus, shard):
        server = real.build(path, built)
        with imported(built, server.package) as module:
            todo = [call for tool in server.tools for call in real.calls(tool, path.stem)]
            wrong += asyncio.run(answered_raw(module, todo))
            made += len(todo)
    assert not wrong, f"{len(wrong)} of {made}: {wrong[:5]}"
    assert made > 100


async def answered_raw(module: Any, todo: Sequence[Call]) -> list[str]:
    """What is wrong with the raw answers of a server to these calls."""
    echo = Echo(module)
    server = module.build_server(echo)
    wrong = []
    for call in todo:
        echo.call = call
        (answer,) = await exchange(
            server, STATELESS, ("tools/call", {"name": call.tool, "arguments": call.arguments})
        )
        text = answer["content"][-1]["text"] if "content" in answer else str(answer)
        wrong += differences(call, text, answer.get("structuredContent"))
    return wrong


def differences(call: Call, text: str, result: Any) -> list[str]:
    """How an answer differs from its call: in the echo, which is its last text, and in the structured result."""
    shown = f"{call.tool}({json.dumps(call.arguments)[:300]})"
    if not text.startswith("{"):
        return [f"{shown} was refused: {text[:300]}"]
    if not same(json.loads(text), call.arguments):
        return [f"{shown} came as {text[:300]}"]
    if call.has_result and not same(result, call.result):
        return [f"{shown} gave {json.dumps(result)[:300]} for {json.dumps(call.result)[:300]}"]
    return []


@SHARD
def test_typed_calls_come_back_as_they_were(shard: int, corpus: Path, built: Path) -> None:
    wrong: list[str] = []
    made = 0
    for path in real.files(corpus, shard):
        server = real.build(path, built)
        with imported(built, server.package) as module:
            todo = [call for tool in server.tools for call in typed_calls(module, tool, path.stem)]
            wrong += asyncio.run(answered_typed(module, getattr(module, server.client), todo))
            made += len(todo)
    assert not wrong, f"{len(wrong)} of {made}: {wrong[:5]}"
    assert made > 100


def typed_calls(module: Any, tool: Mapping[str, Any], seed: str) -> list[Call]:
    """Calls of a tool with the arguments alone that a typed client has."""
    names = frozenset(wire_names(module.TOOLS[tool["name"]].Input))
    made = [real.only_named(call, tool["inputSchema"], names) for call in real.calls(tool, seed)]
    return [call for call in made if call is not None]


def wire_names(model: Any) -> dict[str, str]:
    """The fields of a model by their names on the wire."""
    return {info.alias or name: name for name, info in model.model_fields.items()}


async def answered_typed(module: Any, client: Any, todo: Sequence[Call]) -> list[str]:
    """What is wrong with what a typed client sends and gives back for these calls."""
    echo = Echo(module)
    wrong = []
    async with client.connect(module.build_server(echo)) as connected:
        for call in todo:
            echo.call, echo.seen = call, None
            method = getattr(connected, module.TOOLS[call.tool].method)
            arguments = keywords(module.TOOLS[call.tool].Input, method, call)
            try:
                given = await method(**arguments)
            except module.ToolFailed as error:
                given = error.result.content
            except module.InvalidResult as error:
                wrong.append(f"{call.tool}: {error}")
                continue
            result = given.model_dump(mode="json") if call.has_result else None
            text = json.dumps(echo.seen) if call.has_result or echo.seen is not None else given[-1].text
            wrong += differences(call, text, result)
    return wrong


def keywords(model: Any, method: Any, call: Call) -> dict[str, Any]:
    """The arguments of a call for a method of a client: by their Python names, as values of their Python types."""
    fields = wire_names(model)
    assert inspect.signature(method).parameters.keys() == {*fields.values()}, call.tool
    values = model.model_validate(call.arguments)
    return {fields[wire]: getattr(values, fields[wire]) for wire in call.arguments}


def every_package(corpus: Path, built: Path) -> dict[str, Server]:
    """The packages of this run, by the stems of their files."""
    made = {path.stem: real.build(path, built) for path in real.files(corpus)}
    assert len({server.package for server in made.values()}) == len(made)
    return made


def output(command: Sequence[str], folder: Path) -> str:
    """What a program that must succeed prints."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def test_mypy_finds_no_error(corpus: Path, built: Path, request: pytest.FixtureRequest) -> None:
    packages = sorted(server.package for server in every_package(corpus, built).values())
    assert request.config.cache is not None
    cache = request.config.cache.mkdir("mypy")  # what it knows of pydantic and the SDK costs more than the packages
    told = output(["mypy", "--strict", "--python-version=3.11", f"--cache-dir={cache}", *packages], built)
    assert re.match(r"Success: no issues found in \d+ source files", told)


def test_pyright_finds_no_error(corpus: Path, built: Path) -> None:
    if importlib.util.find_spec("pyright") is None and "CI" not in os.environ:
        pytest.skip("pyright is not installed")
    packages = sorted(server.package for server in every_package(corpus, built).values())
    command = ["pyright", "--pythonversion=3.11", f"--pythonpath={sys.executable}", *packages]
    assert "0 errors, 0 warnings" in output(command, built)


def test_black_changes_nothing(corpus: Path, built: Path) -> None:
    packages = sorted(server.package for server in every_package(corpus, built).values())
    # The runtime in each package is the same, and is checked where it comes from.
    output(["black", "--check", "--line-length=120", "--target-version=py311", "--exclude=/_runtime/", *packages], built)


def test_any_stands_only_where_a_schema_names_no_type(corpus: Path, built: Path) -> None:
    counts: Counter[str] = Counter()
    wide = set()
    for stem, server in every_package(corpus, built).items():
        counts += written(built / server.package / "models")
        with imported(built, server.package) as module:
            for wire in server.tools:
                tool = module.TOOLS[wire["name"]]
                models = ((tool.Input, wire["inputSchema"]), (tool.Output, wire.get("outputSchema")))
                wide |= {f"{stem}: {place}" for model, schema in models if model for place in untyped(model, schema)}
    print(dict(counts))
    assert wide == ({*WIDE} if real.WHOLE else {place for place in WIDE if place in wide})
