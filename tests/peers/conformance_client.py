"""The client for the official conformance suite: a generated binding that follows each scenario.

The suite appends its server's URL to the command, and names the scenario in the environment. The package is
`scenario_mcp`, compiled by `test_conformance_client.py` from the manifest of that scenario.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import scenario_mcp  # type: ignore[import-not-found]
from scenario_mcp import ScenarioClient, list_prompts, list_resources, list_tools

from stubwright_runtime import SkillError, list_skills, read_skill

Play = Callable[[Any], Awaitable[None]]


def _answer(question: Any) -> Any:
    """Agrees to everything, and leaves the rest to the defaults."""
    fields = question.schema["properties"] if question.schema else {}
    return {name: True for name, field in fields.items() if field["type"] == "boolean" and "default" not in field}


async def _call_all(client: Any) -> None:
    """Calls each tool that the server lists and the package has, if it needs no arguments."""
    for tool in await list_tools(client):
        if tool.name in scenario_mcp.TOOLS and not tool.input_schema.get("required"):
            await _call(client, tool.name)


async def _call(client: Any, name: str, **arguments: Any) -> None:
    await getattr(client, scenario_mcp.TOOLS[name].method)(**arguments)


async def _add(client: Any) -> None:
    await client.add_numbers(a=5, b=3)


async def _standard_headers(client: Any) -> None:
    await _call_all(client)
    for resource in await list_resources(client):
        await client._read(resource.uri)
    for prompt in await list_prompts(client):
        await client._prompt(prompt.name, {})


async def _custom_headers(client: Any) -> None:
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        await _call(client, call["name"], **call["arguments"])


async def _invalid_headers(client: Any) -> None:
    kept = [tool.name for tool in await list_tools(client)]
    assert kept == ["valid_tool"], kept
    await client.valid_tool(region="us-west1")


async def _references(client: Any) -> None:
    await list_tools(client)


async def _preservation(client: Any) -> None:
    (schema,) = (tool.input_schema for tool in await list_tools(client) if tool.name == "json_schema_2020_12_tool")
    await client.json_schema_echo(schema_=schema)


async def _rounds(client: Any) -> None:
    async with anyio.create_task_group() as tasks:  # none of them may mix with another
        for name in scenario_mcp.TOOLS:
            tasks.start_soon(_call, client, name)


async def _list_skills(client: Any) -> None:
    await list_skills(client)


async def _load_skills(client: Any) -> None:
    for skill in await list_skills(client):
        try:
            await read_skill(client, skill)
        except SkillError:
            continue
        for file in skill.resources:
            await read_skill(client, skill, file.uri)


_PLAYS: dict[str, Play] = {
    "tools_call": _add,
    "request-metadata": _call_all,
    "http-standard-headers": _standard_headers,
    "http-custom-headers": _custom_headers,
    "http-invalid-tool-headers": _invalid_headers,
    "json-schema-ref-no-deref": _references,
    "json-schema-2020-12-preservation": _preservation,
    "sep-2322-client-request-state": _rounds,
    "elicitation-sep1034-client-defaults": _call_all,
    "sse-retry": _call_all,
    "sep-2640-client-no-prefetch": _list_skills,
    **{f"sep-2640-client-verify-{what}": _load_skills for what in ("digest", "size", "frontmatter")},
}


async def main(url: str) -> None:
    """Play the scenario."""
    callbacks: Any = {"on_question": _answer, "on_sample": lambda _: "Paris", "roots": [Path.cwd()]}
    async with ScenarioClient.connect(url, timeout=20, **callbacks) as client:
        await _PLAYS[os.environ["MCP_CONFORMANCE_SCENARIO"]](client)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
