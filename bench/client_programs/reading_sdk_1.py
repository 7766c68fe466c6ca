"""The Python SDK 1: `ClientSession`."""

from __future__ import annotations

from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from reading import Report, main


async def _look(command: list[str], report: Report) -> None:
    server = StdioServerParameters(command=command[0], args=command[1:])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()

        async def read(name: str) -> Any:
            return (await session.call_tool(name, {})).structuredContent

        await report({tool.name: tool.inputSchema for tool in (await session.list_tools()).tools}, read)


main(_look)
