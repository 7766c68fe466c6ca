"""Requirements of MCP's pages that no other test covers, with the examples of these pages."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import anyio
import mcp
import pytest

from packages import check, generate, imported, manifest, tool
from serving import KINDS, ScriptedServer, ask, reach
from stubwright.diagnostics import Diagnostic
from stubwright.importers import acceptance, tools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WEATHER = {
    "name": "get_weather",
    "title": "Weather Information Provider",
    "description": "Get current weather information for a location",
    "inputSchema": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "City name or zip code"}},
        "required": ["location"],
    },
}
NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
SUM = {"name": "calculate_sum", "description": "Add two numbers", "inputSchema": NUMBERS}
TIME = {
    "name": "get_current_time",
    "description": "Returns the current server time",
    "inputSchema": {"type": "object", "additionalProperties": False},
}
MEASURED = {
    "temperature": {"type": "number", "description": "Temperature in celsius"},
    "conditions": {"type": "string", "description": "Weather conditions description"},
    "humidity": {"type": "number", "description": "Humidity percentage"},
}
SQL = {
    "name": "execute_sql",
    "description": "Execute SQL on Google Cloud Spanner",
    "inputSchema": {
        "type": "object",
        "properties": {
            "region": {
                "type": "string",
                "description": "The region to execute the query in",
                "x-mcp-header": "Region",
            },
            "query": {"type": "string", "description": "The SQL query to execute"},
        },
        "required": ["region", "query"],
    },
}
ICON = {"src": "https://example.com/weather-icon.png", "mimeType": "image/png", "sizes": ["48x48"]}
EXAMPLES = [
    WEATHER,
    {**WEATHER, "icons": [ICON]},
    {
        **WEATHER,
        "name": "get_weather_data",
        "outputSchema": {"type": "object", "properties": MEASURED, "required": [*MEASURED]},
    },
    SUM,
    {**SUM, "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", **NUMBERS}},
    TIME,
    {**TIME, "inputSchema": {"type": "object"}},
    {**TIME, "annotations": {"title": "Time", "readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}},
    {**TIME, "execution": {"taskSupport": "forbidden"}},
    SQL,
]
README = {
    "uri": "file:///project/README.md",
    "name": "README.md",
    "mimeType": "text/markdown",
    "annotations": {"audience": ["user"], "priority": 0.8, "lastModified": "2025-01-12T15:00:58Z"},
}
REVIEW = {
    "name": "code_review",
    "title": "Code Review Assistant",
    "description": "Review code for bugs and improvements",
    "arguments": [{"name": "code", "description": "The code to review", "required": True}],
}


def codes(found: list[Diagnostic]) -> list[str]:
    return [one.code for one in found]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_definitions_compile(tmp_path: Path, example: dict[str, Any]) -> None:
    resources = [README, {"uri": "git://project/main", "name": "main"}]
    value = manifest([example], name="examples", resources=resources, prompts=[REVIEW])
    assert codes(check(tmp_path, value)) == []
    made = tmp_path / generate(tmp_path, value) / "manifest.json"
    assert json.loads(made.read_text())["tools"] == [example]


def test_the_examples_of_names_are_fine(tmp_path: Path) -> None:
    names = ["getUser", "DATA_EXPORT_v2", "admin.tools.list"]
    assert codes(check(tmp_path, manifest([tool(name) for name in names]))) == ["SW311"]
    assert codes(check(tmp_path, manifest([tool("")]))) == ["SW105"]
    for uri in ("file:///a", "git://host/a", "weather:now"):
        assert codes(check(tmp_path, manifest([], resources=[{"uri": uri, "name": "a"}]))) == []
    assert codes(check(tmp_path, manifest([], resources=[{"uri": "nowhere", "name": "a"}]))) == ["SW256"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_no_parameters_means_none(tmp_path: Path, mode: Any) -> None:
    class Handlers:
        def get_current_time(self, args: object, ctx: object) -> str:
            return "noon"

    with imported(tmp_path, generate(tmp_path, manifest([TIME], name="clock"))) as package:
        async with mcp.Client(package.build_server(Handlers()), mode=mode) as client:
            [block] = (await client.call_tool("get_current_time", {})).content
            assert block.type == "text"
            assert block.text == "noon"
            refused = await client.call_tool("get_current_time", {"zone": "UTC"})
            assert refused.is_error
            [block] = refused.content
            assert block.type == "text"
            assert block.text == "Invalid arguments for get_current_time:\n- zone: unknown key"


@pytest.mark.anyio
async def test_a_retry_has_an_id_of_its_own(tmp_path: Path) -> None:
    ids = []
    question = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}

    async def answer(ctx: Any) -> Mapping[str, Any]:
        ids.append(ctx.request_id)
        await ask(ctx, "who", "elicitation/create", question)
        return {"content": [{"type": "text", "text": "done"}]}

    asks = tool("ask", stubwright={"ask": {"who": {"message": "Who?", "schema": {"type": "object", "properties": {}}}}})
    handling = ScriptedServer(tools_call=answer)
    with imported(tmp_path, generate(tmp_path, manifest([asks], name="asking"))) as package:
        for kind in KINDS:
            if kind.endswith("legacy"):
                continue  # there is no retry
            ids.clear()
            async with (
                reach(kind, handling) as target,
                package.AskingClient.connect(target, on_question=lambda _: {}) as client,
            ):
                [block] = await client.ask()
                assert block.text == "done"
            assert len(ids) == len(set(ids)) == 2, kind


WRONG = {
    "spaces": {"type": "string", "x-mcp-header": "two words"},
    "empty": {"type": "string", "x-mcp-header": ""},
    "colon": {"type": "string", "x-mcp-header": "a:b"},
    "kind": {"type": "array", "x-mcp-header": "List"},
}


@pytest.mark.anyio
async def test_a_header_that_is_wrong_costs_its_tool_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    twice = {"type": "string", "x-mcp-header": "Region"}
    offered = [tool(name, {"a": schema}) for name, schema in WRONG.items()]
    offered = [SQL, *offered, tool("twice", {"a": twice, "b": {**twice, "x-mcp-header": "REGION"}}), WEATHER]
    bad = [*WRONG, "twice"]

    async def listed(ctx: Any) -> Mapping[str, Any]:
        return {"tools": offered, "ttlMs": 0, "cacheScope": "private"}

    with (
        imported(tmp_path, generate(tmp_path, manifest([WEATHER], name="listing"))) as package,
        caplog.at_level(logging.WARNING),
        anyio.fail_after(20),
    ):
        for kind in ("memory", "http"):
            caplog.clear()
            async with (
                reach(kind, ScriptedServer(tools_list=listed)) as target,
                package.ListingClient.connect(target) as client,
            ):
                assert [one.name for one in await package.list_tools(client)] == ["execute_sql", "get_weather"]
            for name in bad:
                assert f"dropping tool {name!r}: invalid x-mcp-header" in caplog.text

    made = tools.make_manifest(offered, name="listed")
    settled = acceptance.repair(made.manifest)
    assert [one["name"] for one in settled.manifest["tools"]] == ["execute_sql", "get_weather"]
    told = json.dumps([*made.notes, *settled.notes])
    for name in bad:
        assert name in told
