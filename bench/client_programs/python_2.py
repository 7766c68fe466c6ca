"""The Python SDK 2: `Client`, which negotiates the revision."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from exchange import ANSWER, Called, Note, Target, main
from mcp import Client, StdioServerParameters


class _Client:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def hello(self) -> list[str]:
        return [self._client.protocol_version, self._client.server_info.name]

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any], note: Note | None = None) -> Called:
        result = await self._client.call_tool(name, arguments, progress_callback=note)
        return Called(result.is_error, result.content[0].text, result.structured_content)

    async def read(self, uri: str) -> str:
        text: str = (await self._client.read_resource(uri)).contents[0].text
        return text

    async def prompt(self, name: str) -> str:
        text: str = (await self._client.get_prompt(name)).messages[0].content.text
        return text


async def _answer(_context: Any, _params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={**ANSWER})


@asynccontextmanager
async def _connect(target: Target) -> AsyncIterator[_Client]:
    server = target if isinstance(target, str) else StdioServerParameters(command=target[0], args=target[1:])
    async with Client(server, elicitation_callback=_answer) as client:
        yield _Client(client)


main(_connect)
