"""FastMCP's `Client` of releases 2 to 4."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from exchange import ANSWER, Called, Note, Target, main
from fastmcp import Client
from fastmcp.client.transports import StdioTransport


class _Client:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def hello(self) -> list[str]:
        result = self._client.initialize_result
        if result is not None:
            known = result.model_dump(mode="json", by_alias=True)
            return [known["protocolVersion"], known["serverInfo"]["name"]]
        return [self._client.protocol_version, self._client.server_info.name]  # release 4 does not initialize

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self._client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any], note: Note | None = None) -> Called:
        result = await self._client.call_tool(name, arguments, progress_handler=note, raise_on_error=False)
        return Called(result.is_error, result.content[0].text, result.structured_content)

    async def read(self, uri: str) -> str:
        text: str = (await self._client.read_resource(uri))[0].text
        return text

    async def prompt(self, name: str) -> str:
        text: str = (await self._client.get_prompt(name)).messages[0].content.text
        return text


async def _answer(_message: str, _kind: Any, _params: Any, _context: Any) -> dict[str, str]:
    return {**ANSWER}


@asynccontextmanager
async def _connect(target: Target) -> AsyncIterator[_Client]:
    server = target if isinstance(target, str) else StdioTransport(target[0], target[1:])
    async with Client(server, elicitation_handler=_answer) as client:
        yield _Client(client)


main(_connect)
