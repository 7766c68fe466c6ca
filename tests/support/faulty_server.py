"""A stdio MCP server in which each tool has one fault, with the SDK's low-level server.

`python faulty_server.py [TOOL …]` serves all tools, or only the named tools.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
from jsonschema_rs import is_valid
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TEXT: Final = {"type": "object", "properties": {"text": {"type": "string"}, "other": {"type": "integer"}}}
TEXT_ALONE: Final = {**TEXT, "required": ["text"], "additionalProperties": False}
NUMBER: Final = {
    "type": "object",
    "properties": {"number": {"type": "integer", "minimum": 0, "maximum": 100}, "note": {"type": "string"}},
    "required": ["number"],
}
PLACE: Final = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "number": {"type": "integer", "minimum": 10}},
    "required": ["place", "number"],
}
COUNT: Final = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
SCHEMAS: Final[dict[str, Any]] = {
    "crash": TEXT_ALONE,
    "misfit": NUMBER,
    "hang": NUMBER,
    "stack": TEXT_ALONE,
    "protocol": TEXT_ALONE,
    "loose": NUMBER,
    "noisy": NUMBER,
    "good": NUMBER,
    "erase": NUMBER,
    "absent": TEXT_ALONE,
    "offline": TEXT_ALONE,
    "elsewhere": PLACE,
    "shown": {"type": "object", "additionalProperties": False},
    "sneaky": NUMBER,
    "again": NUMBER,
    "fresh": {"type": "object", "additionalProperties": False},
}
KEPT: Final[list[int]] = []
"""State that `shown` returns, and that `sneaky` (declared read-only) and `again` (declared idempotent) change."""

UNCHECKED: Final = ("loose", "absent", "offline", "elsewhere")
"""Tools that do not validate."""

WIRE: Final = os.dup(1)


def describe(name: str) -> types.Tool:
    hints = None if name == "erase" else types.ToolAnnotations(read_only_hint=True)
    if name == "again":
        hints = types.ToolAnnotations(idempotent_hint=True)
    output = COUNT if name in ("misfit", "good") else None
    return types.Tool(name=name, input_schema=SCHEMAS[name], output_schema=output, annotations=hints)


def say(text: str, *, is_error: bool = False, structured: Any = None) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(text=text)]
    return types.CallToolResult(content=content, is_error=is_error, structured_content=structured)


def call(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    if name not in UNCHECKED and name in SCHEMAS and not is_valid(SCHEMAS[name], arguments):
        return say("text, number, other, note: not valid", is_error=True)
    text, number = arguments.get("text", ""), arguments.get("number", 0)
    match name:
        case "crash" if not text.isascii():
            print("cannot spell that", file=sys.stderr, flush=True)
            os._exit(3)
        case "misfit":
            count = number if number <= 10 else "many"
            return say(f'{{"count": {number}}}', structured={"count": count})
        case "hang" if number > 50:
            time.sleep(600)
        case "stack" if not text:
            return say('Traceback (most recent call last):\n  File "a.py", line 1, in <module>', is_error=True)
        case "protocol" if len(text) > 20:
            raise MCPError(types.INTERNAL_ERROR, "too long for me")
        case "noisy" if number == 0:
            os.write(WIRE, b"nothing to count\n")
        case "good":
            return say(f'{{"count": {number}}}', structured={"count": number})
        case "absent":
            return say(f"there is no text `{text}`", is_error=True)
        case "elsewhere":  # the number of a valid call is too large, and the place is always unknown
            large = "number: too large, " if type(number) is int else ""
            return say(f"{large}place: {arguments.get('place')} is unknown", is_error=True)
        case "offline":
            raise MCPError(types.INTERNAL_ERROR, "the network is down")
        case "shown":
            return say(f"{len(KEPT)} kept")
        case "fresh":
            return say(str(time.perf_counter_ns()))
        case "sneaky" if number > 20:
            KEPT.append(number)
        case "again":
            KEPT.append(number)
        case "erase":
            Path("erased").touch()
    return say("done")


async def main(names: list[str]) -> None:
    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[describe(name) for name in names])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return call(params.name, params.arguments or {})

    server = Server("faulty", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:] or [*SCHEMAS])
