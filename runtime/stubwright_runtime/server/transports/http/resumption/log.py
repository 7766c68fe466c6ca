"""The interface of event logs, in memory or in the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

LISTENING: Final = "_"
"""The name of the stream that belongs to no request."""

Sending: TypeAlias = Callable[[bytes, str], Awaitable[None]]
"""Sends a message with its id."""


class Position(NamedTuple):
    """The position of a message in a session.

    Attributes:
        stream: The name of its stream.
        number: Its number.
    """

    stream: str
    number: int


class EventLog(Protocol):
    """The event log of one session."""

    async def append(self, stream: str, message: bytes | None, *, is_answer: bool = False) -> str:
        """Append a message to its stream, and return its id.

        Args:
            stream: The name of the stream.
            message: The message; `None` is the start of the stream, where clients can also resume.
            is_answer: True for the last message of a stream.

        Returns:
            The event id; empty if the message could not be stored.
        """
        ...

    async def find(self, last: str) -> Position | None:
        """Return the position of an event id; `None` if this session has not sent it.

        The message itself may have been dropped, because its stream may continue.
        """
        ...

    async def replay(self, position: Position, send: Sending) -> None:
        """Send the messages after a position on its stream."""
