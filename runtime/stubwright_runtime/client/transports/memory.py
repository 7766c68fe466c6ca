"""The in-process transport for a server object."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...in_process import InProcessServer, Send
    from ..rpc.connection import RpcConnection


class MemoryTransport:
    """The transport for a server object in this process."""

    over_http = False
    name = "the server"

    def __init__(self, server: InProcessServer) -> None:
        """Prepare a transport, without opening it."""
        self._server = server
        self._opened = AsyncExitStack()
        self._connection: RpcConnection | None = None
        self._send: Send | None = None
        self._room = asyncio.Event()

    async def open(self, connection: RpcConnection) -> None:
        """Connect to the server."""
        self._connection = connection
        self._send = await self._opened.enter_async_context(self._server.open_connection(self._deliver))

    async def _deliver(self, message: bytes) -> None:
        connection = self._connection
        if connection is None:
            return
        while not connection.has_room:
            self._room.clear()
            await self._room.wait()
        connection.receive(message)

    def resume(self) -> None:
        """Resume delivering messages when the connection has room again."""
        self._room.set()

    async def send(self, message: Mapping[str, Any], _headers: Mapping[str, str] | None = None, /) -> None:
        """Send a message, unless the connection is closed."""
        from pydantic_core import to_json

        if self._send is not None:
            await self._send(to_json(message, inf_nan_mode="null"))

    async def close(self, _seconds: float, /) -> None:
        """Close the connection."""
        self._connection = self._send = None
        self._room.set()
        await self._opened.aclose()

    def log_lines(self) -> tuple[str, ...]:
        """Return an empty tuple, because the server logs to this process."""
        return ()
