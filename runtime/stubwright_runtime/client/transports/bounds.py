"""Limits for messages from a server: their size, their total size, and the number of open requests.

A `ContextVar` passes a request's limit to the code that reads the response.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

MAX_RESULT_BYTES: Final = 64 * 1024 * 1024
"""The default maximum message size in bytes, equal to the maximum manifest size. Real results exceed 1 MiB."""

MOST_BLOCKS: Final = 10_000
"""The maximum number of content blocks in a result. A block takes a hundred times as much memory as its JSON."""

MOST_QUESTIONS: Final = 64
"""The maximum number of a server's open requests. Each is an asyncio task and can ask a person."""

CURRENT_BOUND: ContextVar[Bound | None] = ContextVar("current_bound", default=None)
"""The limit for the response to the current request."""


class TooLargeError(Exception):
    """The server exceeded a limit, which the message states.

    Attributes:
        size: The bytes received when the limit was exceeded.
        most: The limit in bytes.
    """

    def __init__(self, message: str, size: int, most: int) -> None:
        super().__init__(message)
        self.size = size
        self.most = most


@dataclass(slots=True)
class Bound:
    """The size limit for the response to one request.

    Attributes:
        most: The maximum size after decoding, in bytes; `None` for no limit.
        broken: The error that was raised because the response exceeded the limit, or `None`.
    """

    most: int | None
    broken: TooLargeError | None = None

    def check(self, size: int, who: str = "the server's response has") -> None:
        """Raise TooLargeError if `size` bytes exceed the limit; `who` starts the message."""
        if self.most is not None and size > self.most:
            message = f"{who} more than {self.most:,} bytes"
            # Do not store the raised exception itself, because its traceback references this object.
            self.broken = TooLargeError(message, size, self.most)
            raise TooLargeError(message, size, self.most)


@dataclass(slots=True)
class Bounds:
    """One connection's size limits.

    Attributes:
        each: The maximum message size in bytes, unless the request has its own limit; `None` for no limit.
        total: The maximum total size of all messages, in bytes; `None` for no limit.
        exceeded: The last error's message, or `None` if no limit was exceeded.
    """

    each: int | None = MAX_RESULT_BYTES
    total: int | None = None
    exceeded: str | None = None
    _seen: int = 0

    def find_bound(self) -> Bound:
        """Return the limit for responses to requests from the current context."""
        return CURRENT_BOUND.get() or Bound(self.each)

    def add(self, size: int) -> None:
        """Count received bytes.

        Raises:
            TooLargeError: The total size exceeds its limit.
        """
        self._seen += size
        if self.total is not None:
            self.check(self._seen, Bound(self.total), "the server sent")

    def check(self, size: int, bound: Bound, who: str = "the server's response has") -> None:
        """Raise TooLargeError if `size` bytes exceed `bound`, and store its message in `exceeded`."""
        try:
            bound.check(size, who)
        except TooLargeError as error:
            self.exceeded = str(error)
            raise
