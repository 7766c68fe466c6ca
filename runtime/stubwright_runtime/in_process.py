"""The interface through which a client connects to a server object in the same process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    Send: TypeAlias = Callable[[bytes], Awaitable[None]]


@runtime_checkable
class InProcessServer(Protocol):
    """A server object to which clients in the same process can connect."""

    def open_connection(self, deliver: Send, /) -> AbstractAsyncContextManager[Send]:
        """Connect a client during an `async with` block.

        Args:
            deliver: Receives each JSON-RPC message for the client; the server sends the next message after it returns.

        Returns:
            A context manager that yields a function to send a message to the server.
        """
        ...
