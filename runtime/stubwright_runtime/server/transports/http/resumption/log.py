"""The log of messages on the streams of a session, in memory or in the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

LISTENING: Final = "_"
"""The name of a session's own stream, which belongs to no request."""

Sending: TypeAlias = Callable[[bytes, str], Awaitable[None]]
"""Sends a message with its id."""


class Position(NamedTuple):
    """The position of a message.

    Attributes:
        stream: Its stream.
        number: Its number there.
    """

    stream: str
    number: int


class EventLog(Protocol):
    """The log of one session."""

    async def keep(self, stream: str, message: bytes | None, *, is_answer: bool = False) -> str:
        """Keep a message as the next one of its stream, and return its id.

        Args:
            stream: The name of the stream.
            message: The message; `None` is the start of the stream, where clients can resume, too.
            is_answer: True if it is the last of its stream.

        Returns:
            The id; empty if the message could not be kept.
        """
        ...

    async def find(self, last: str) -> Position | None:
        """Return the position of a message of this session, by its id; `None` if this session has sent none that late.

        The message need not be kept any more: its stream may go on.
        """
        ...

    async def replay(self, position: Position, send: Sending) -> None:
        """Send the messages after a position on its stream."""
