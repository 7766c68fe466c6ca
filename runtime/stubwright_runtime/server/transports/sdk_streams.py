"""In-process connections for clients of the official SDK."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio

from .memory import open_connection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    from ..app.core import Core


@asynccontextmanager
async def open_streams(
    core: Core,
) -> AsyncGenerator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    """Connect an SDK client to a server during the block. Yield the streams that the client reads and writes."""
    from mcp.shared.message import SessionMessage

    read_message = _find_reader()
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](16)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](16)

    async def deliver(line: bytes) -> None:
        # The client has closed its stream, or a handler that ignored its cancellation has outlived the connection.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await incoming.send(SessionMessage(read_message(line)))

    async with incoming, outgoing, open_connection(core, deliver) as send, anyio.create_task_group() as tasks:

        async def forward() -> None:
            async for item in outgoing:
                await send(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

        tasks.start_soon(forward)
        try:
            yield read_stream, write_stream
        finally:
            tasks.cancel_scope.cancel()


def _find_reader() -> Callable[[bytes], Any]:
    """Return the function that parses a message in the installed SDK, version 1 or 2."""
    try:
        import mcp.types

        read: Callable[[bytes], Any] = getattr(mcp.types, "JSONRPCMessage").model_validate_json  # noqa: B009 - version 1
    except (ImportError, AttributeError):
        from mcp_types import jsonrpc_message_adapter

        return lambda line: jsonrpc_message_adapter.validate_json(line, by_name=False)
    return read
