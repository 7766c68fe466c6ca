"""In-process connections, which carry the same messages as stdio."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from .stdio.connection import Connection
from .stdio.reader import Line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ...in_process import Send
    from ..app.core import Core

_MAX_WAITING = 16
"""The maximum number of messages that wait for a client to read them."""


class _Delivery:
    def __init__(self, deliver: Send) -> None:
        self.send = deliver
        self.is_full = False

    async def wait_for_change(self) -> None:
        """Return immediately, because `send` itself waits until the client reads."""

    def end_waits(self) -> None:
        """Do nothing, because `wait_for_change` never waits."""


@asynccontextmanager
async def open_connection(core: Core, deliver: Send) -> AsyncGenerator[Send]:
    """Connect a client to a server during the block. Yield the function that sends the client's messages to the server.

    The first connection starts the handlers; closing the last one stops them.
    """
    messages: asyncio.Queue[bytes] = asyncio.Queue(_MAX_WAITING)
    async with core.lifespan():
        connection = Connection(core, _Delivery(deliver), "memory")

        async def read() -> None:
            while True:
                await connection.handle(Line(await messages.get()))

        reading = asyncio.create_task(read())
        try:
            yield messages.put
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            await connection.close()
