"""The Python SDK 1: `ClientSession` on the SDK's transports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from exchange import ANSWER, Called, Note, Target, main
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


class _Client:
    def __init__(self, session: Any) -> None:
        self._session = session

    async def hello(self) -> list[str]:
        result = await self._session.initialize()
        return [result.protocolVersion, result.serverInfo.name]

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self._session.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any], note: Note | None = None) -> Called:
        result = await self._session.call_tool(name, arguments, progress_callback=note)
        return Called(result.isError, result.content[0].text, result.structuredContent)

    async def read(self, uri: str) -> str:
        text: str = (await self._session.read_resource(uri)).contents[0].text
        return text

    async def prompt(self, name: str) -> str:
        text: str = (await self._session.get_prompt(name)).messages[0].content.text
        return text


async def _answer(_context: Any, _params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={**ANSWER})


@asynccontextmanager
async def _connect(target: Target) -> AsyncIterator[_Client]:
    if isinstance(target, str):
        transport: Any = streamablehttp_client(target)
    else:
        transport = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    async with transport as streams, ClientSession(*streams[:2], elicitation_callback=_answer) as session:
        yield _Client(session)


main(_connect)
