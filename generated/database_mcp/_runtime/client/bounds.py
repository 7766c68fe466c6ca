# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""How much a server may send: for one message, and, where that is said, in all.

Takes the bytes of messages after decoding, so that what is compressed counts as what it becomes; says when they are too
many. The bound of a request goes with its context, as a `contextvars` variable, to whatever reads the answer.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

MAX_RESULT_BYTES: Final = 64 * 1024 * 1024
"""Bytes of one message by default: as many as a manifest's file may have. Honest results have passed 1 MiB."""

_OF_REQUEST: ContextVar[tuple[int | None] | None] = ContextVar("of_request", default=None)


class TooLargeError(Exception):
    """The server sent more than it may; the message says how much that is."""


@contextmanager
def at_most(most: int | None) -> Generator[None, None, None]:
    """Bound the answers to the requests that are sent in the block.

    Args:
        most: Bytes after decoding; `None` for no bound.
    """
    token = _OF_REQUEST.set((most,))
    try:
        yield
    finally:
        _OF_REQUEST.reset(token)


@dataclass(slots=True)
class Bounds:
    """The bounds of one connection.

    Attributes:
        each: Bytes of a message that answers no request with a bound of its own; `None` for no bound.
        total: Bytes of all messages; `None` for no bound.
        exceeded: What the server sent too much of last, in words; `None` where it never did.
    """

    each: int | None = MAX_RESULT_BYTES
    total: int | None = None
    exceeded: str | None = None
    _seen: int = 0

    def here(self) -> int | None:
        """The bytes that an answer may have to the request in whose context this is called."""
        own = _OF_REQUEST.get()
        return self.each if own is None else own[0]

    def add(self, size: int) -> None:
        """Take note of bytes that came.

        Raises:
            TooLargeError: They are more than all may be.
        """
        self._seen += size
        self.check(self._seen, self.total, "the server sent")

    def check(self, size: int, most: int | None, who: str = "the server's answer has") -> None:
        """Raise TooLargeError where `size` bytes are more than there may be."""
        if most is not None and size > most:
            self.exceeded = f"{who} more than {most:,} bytes"
            raise TooLargeError(self.exceeded)
