"""Connections of clients in the same process, which exchange the same messages as on stdio."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from .stdio.connection import Connection
from .stdio.reading import Line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ...in_process import Send
    from ..app.core import Core

_AHEAD = 16
"""Messages of a client that may wait until the server reads them."""


class _Delivery:
    """The messages for a client."""

    def __init__(self, deliver: Send) -> None:
        self.send = deliver
        self.is_full = False

    async def wait_for_change(self) -> None:
        """Return immediately: a client that is too busy makes `send` wait."""

    def end_waits(self) -> None:
        """Do nothing, as `wait_for_change` never waits."""


@asynccontextmanager
async def open_connection(core: Core, deliver: Send) -> AsyncGenerator[Send]:
    """Connect a client to a server for the length of the block. Yields the function to send a message to the server.

    The first connection starts the handlers, the end of the last one stops them.
    """
    messages: asyncio.Queue[bytes] = asyncio.Queue(_AHEAD)
    async with core.lifespan():
        connection = Connection(core, _Delivery(deliver), "memory")

        async def read() -> None:
            while True:
                await connection.take(Line(await messages.get()))

        reading = asyncio.create_task(read())
        try:
            yield messages.put
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            await connection.close()
