"""The Python SDK 2: `Client`."""

from __future__ import annotations

from typing import Any

from mcp import Client, StdioServerParameters
from reading import Report, main


async def _look(command: list[str], report: Report) -> None:
    async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:

        async def read(name: str) -> Any:
            return (await client.call_tool(name, {})).structured_content

        await report({tool.name: tool.input_schema for tool in (await client.list_tools()).tools}, read)


main(_look)
