"""Calls a server's tools with FastMCP's client. Runs in an environment with FastMCP.

    python bench/fastmcp_client.py < calls.json

Reads `{"command": [...], "env": {...}, "calls": [[NAME, ARGUMENTS], ...], "answers": {...}}` and prints the structured
results. Answers forms with `answers`, and accepts every confirmation.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main() -> None:
    asked = json.load(sys.stdin)
    command, *arguments = asked["command"]

    async def answer(_message: str, _type: object, params: Any, _context: object) -> dict[str, Any]:
        return {name: asked["answers"].get(name, True) for name in params.requested_schema["properties"]}

    transport = StdioTransport(command, arguments, env=asked["env"])
    async with Client(transport, elicitation_handler=answer) as client:
        results = [await client.call_tool(name, given) for name, given in asked["calls"]]
    print(json.dumps([result.structured_content for result in results]))


asyncio.run(main())
