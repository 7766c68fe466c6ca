"""FastMCP's `Client` of releases 2 to 4; reads `data`, which it parses by the `outputSchema`."""

from __future__ import annotations

from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from pydantic_core import to_jsonable_python
from reading import Report, main


async def _look(command: list[str], report: Report) -> None:
    async with Client(StdioTransport(command[0], command[1:])) as client:
        listed = [tool.model_dump(mode="json", by_alias=True) for tool in await client.list_tools()]

        async def read(name: str) -> Any:
            return to_jsonable_python((await client.call_tool(name, {})).data)

        await report({tool["name"]: tool["inputSchema"] for tool in listed}, read)


main(_look)
