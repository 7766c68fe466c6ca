"""The interface of event logs, which are in memory or in the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

LISTENING: Final = "_"
"""The name of the stream for messages outside any request."""

Sending: TypeAlias = Callable[[bytes, str], Awaitable[None]]
"""Sends a message with an event ID."""


class Position(NamedTuple):
    """A message's position in a session.

    Attributes:
        stream: The stream name.
        number: The message's number, which increases within the stream.
    """

    stream: str
    number: int


class EventLog(Protocol):
    """One session's event log."""

    async def append(self, stream: str, message: bytes | None, *, is_answer: bool = False) -> str:
        """Append a message to its stream and return its event ID.

        Args:
            stream: The name of the stream that sends the message.
            message: The encoded message; `None` marks the start of the stream, where clients can also resume.
            is_answer: True for the response, which is a stream's last message.

        Returns:
            The event ID; empty if the message could not be stored.
        """
        ...

    async def find(self, last: str) -> Position | None:
        """Return an event ID's position; `None` if this session has not sent it.

        The position remains valid after the message is dropped, because later messages may still follow.
        """
        ...

    async def replay(self, position: Position, send: Sending) -> None:
        """Send the retained messages that follow a position on its stream."""
