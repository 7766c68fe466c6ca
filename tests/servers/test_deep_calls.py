"""Deeply nested alternatives from end to end: servers, clients and the command line answer in time, at any depth."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import mcp
import pytest
from mcp import StdioServerParameters

import amounts
import forked
import packages
import serving
import trees

pytestmark = pytest.mark.anyio

DEPTHS = (20, 90)
SECONDS = 60
"""For each answer; without bounds the first of these took minutes at depth 20, and the others as many GB."""

HANDLERS = """
class Trees:
    def tagged(self, args, ctx):
        return args.model_dump(mode="json")

    def loose(self, args, ctx):
        return args.model_dump(mode="json")

    def chain(self, args, ctx):
        return args.model_dump(mode="json")
"""
SCHEMAS = {"tagged": trees.schema(), "loose": trees.schema("anyOf", tagged=False), "chain": trees.chain(40)}
LEAVES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tagged": ({"kind": "c"}, {"kind": "z"}),
    "loose": ({"of_a": "x"}, dict.fromkeys(("of_a", "of_b", "of_c"), 1)),
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deep")
    tools = [
        {"name": name, "description": f"The tool {name}.", "inputSchema": schema, "outputSchema": schema}
        for name, schema in SCHEMAS.items()
    ]
    packages.generate(folder, packages.manifest(tools, name="deep"))
    (folder / "deep_handlers.py").write_text(HANDLERS)
    return folder


@pytest.fixture(scope="module")
def package(folder: Path) -> Iterator[ModuleType]:
    with packages.imported(folder, "deep_mcp") as package:
        yield package


@asynccontextmanager
async def connected(folder: Path, package: ModuleType, transport: str, mode: Any) -> AsyncIterator[Any]:
    """The generated client in one of two eras; the SDK's own checks results with a validator that takes ages."""
    if transport == "stdio":
        start = [*forked.interpreter(), "-m", "deep_mcp", "--handlers", "deep_handlers:Trees"]
        command = StdioServerParameters(command=start[0], args=start[1:], cwd=str(folder))
        async with package.DeepClient.connect(mcp.Client(command, mode=mode)) as client:
            yield client
    else:
        names: dict[str, Any] = {}
        exec(HANDLERS, names)
        with serving.asgi(package.asgi_app(names["Trees"]())) as url:
            async with package.DeepClient.connect(mcp.Client(f"{url}/mcp", mode=mode)) as client:
                yield client


@pytest.mark.parametrize(
    ("transport", "mode"),
    [("http", "auto"), *map(amounts.mark_long, [("stdio", "legacy"), ("stdio", "auto"), ("http", "legacy")])],
)
async def test_calls_are_answered_at_any_depth(folder: Path, package: ModuleType, transport: str, mode: Any) -> None:
    async with connected(folder, package, transport, mode) as client:
        for name, (good, bad) in LEAVES.items():
            node = {"kind": "b"} if name == "tagged" else {}
            for depth in DEPTHS:
                value = trees.tree(depth, good, **node)
                with anyio.fail_after(SECONDS):
                    result = await getattr(client, name)(**value)
                assert result.model_dump(mode="json") == value
                with anyio.fail_after(SECONDS), pytest.raises(package.ToolFailed) as failed:
                    await getattr(client, name)(**trees.tree(depth, bad, **node))
                assert f"- node{'.children[0]' * (depth - 1)}" in str(failed.value)
                assert len(str(failed.value)) < 20_000
        with anyio.fail_after(SECONDS), pytest.raises(package.ToolFailed, match="too complex"):
            await client.chain(**trees.path(40))


async def test_clients_check_results_at_any_depth(package: ModuleType) -> None:
    made: list[Any] = []

    async def call(ctx: Any) -> Any:
        return {"content": [], "structuredContent": made[-1]}

    handling = serving.ScriptedServer(tools_call=call)
    async with package.DeepClient.connect(handling.server) as client:
        for name, (good, bad) in LEAVES.items():
            node = {"kind": "b"} if name == "tagged" else {}
            for depth in DEPTHS:
                made.append(trees.tree(depth, good, **node))
                with anyio.fail_after(SECONDS):
                    result = await getattr(client, name)(node=made[-1]["node"])
                assert result.model_dump(mode="json") == made[-1]
                made.append(trees.tree(depth, bad, **node))
                with anyio.fail_after(SECONDS), pytest.raises(package.InvalidResult):
                    await getattr(client, name)(node=trees.tree(1, good)["node"])
        made.append(trees.path(40))
        with anyio.fail_after(SECONDS), pytest.raises(package.InvalidResult, match="too complex"):
            await client.chain()


BOUNDED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3_000_000_000, 3_000_000_000))
from stubwright.cli import main
sys.argv[0] = "stubwright"
main()
"""


def bounded(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, with 3 GB of address space."""
    command = [*forked.interpreter(), "-c", BOUNDED, *arguments]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=6 * SECONDS, check=False
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("depth", "name"),
    [(20, "tagged"), (90, "loose"), *map(amounts.mark_long, [(20, "loose"), (90, "tagged")])],
)
def test_the_command_line_takes_defaults_and_examples_at_any_depth(tmp_path: Path, name: str, depth: int) -> None:
    node = {"kind": "b"} if name == "tagged" else {}
    good, bad = (trees.tree(depth, leaf, **node)["node"] for leaf in LEAVES[name])

    def tool(value: Any) -> dict[str, Any]:
        schema = json.loads(json.dumps(SCHEMAS[name]))
        schema["properties"]["node"] |= {"default": value, "description": "A node."}
        examples = [{"name": "one", "input": {"node": value}}]
        return {"name": name, "description": "A tool.", "inputSchema": schema, "stubwright": {"examples": examples}}

    (tmp_path / "good.json").write_text(json.dumps(packages.manifest([tool(good)])))
    (tmp_path / "bad.json").write_text(json.dumps(packages.manifest([tool(bad)])))
    fine = bounded(tmp_path, "generate", "good.json", "-o", "out")
    assert fine.returncode == 0, fine.stdout + fine.stderr
    wrong = bounded(tmp_path, "check", "bad.json")
    assert wrong.returncode == 1
    assert "error[SW240]" in wrong.stdout + wrong.stderr
    assert "warning[SW320]" in wrong.stdout + wrong.stderr

    (tmp_path / "tools.json").write_text(json.dumps({"tools": [tool(bad)]}))
    imported = bounded(tmp_path, "import", "tools", "tools.json", "-o", "imported.yaml")
    assert imported.returncode == 0, imported.stdout + imported.stderr


def test_the_command_line_refuses_what_would_take_too_long(tmp_path: Path) -> None:
    schema = {**trees.chain(40), "default": trees.path(40)}
    (tmp_path / "chain.json").write_text(json.dumps(packages.manifest([packages.tool("chain", inputSchema=schema)])))
    result = bounded(tmp_path, "check", "chain.json")
    assert "too complex" in result.stdout + result.stderr
    (tmp_path / "tools.json").write_text(json.dumps({"tools": [{"name": "chain", "inputSchema": schema}]}))
    assert bounded(tmp_path, "import", "tools", "tools.json", "-o", "imported.yaml").returncode == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [f"value-{number}" for number in range(5_000)]},
        {
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": f"k{n}"}, f"x{n}": {}}, "required": ["kind"]}
                for n in range(200)
            ]
        },
    ],
    ids=["enum", "oneOf"],
)
def test_many_alternatives_take_seconds(tmp_path: Path, schema: Any) -> None:
    (tmp_path / "many.json").write_text(json.dumps(packages.manifest([packages.tool("many", {"value": schema})])))
    made = bounded(tmp_path, "generate", "many.json", "-o", "out")
    assert made.returncode == 0, made.stdout + made.stderr
