"""Limits for a server: the size of a message, the total size, and the number of its open requests.

A `ContextVar` passes the limit of a request to the code that reads the answer.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from ...values.contexts import ContextValue

MAX_RESULT_BYTES: Final = 64 * 1024 * 1024
"""The default maximum bytes of a message: the largest size of a manifest. Real results exceed 1 MiB."""

MOST_BLOCKS: Final = 10_000
"""The maximum content blocks of a result. A block takes a hundred times the memory of its bytes."""

MOST_QUESTIONS: Final = 64
"""The maximum number of a server's open requests. Each is an asyncio task, and may ask a person."""

_OF_REQUEST: ContextVar[Bound | None] = ContextVar("of_request", default=None)


class TooLargeError(Exception):
    """The server exceeded a limit, which the message states.

    Attributes:
        size: The number of bytes received when the limit was exceeded.
        most: The limit in bytes.
    """

    def __init__(self, message: str, size: int, most: int) -> None:
        """Show the size."""
        super().__init__(message)
        self.size = size
        self.most = most


@dataclass(slots=True)
class Bound:
    """The size limit for the answer to one request.

    Attributes:
        most: Bytes after decoding; `None` for no limit.
        broken: The error if the answer exceeded the limit.
    """

    most: int | None
    broken: TooLargeError | None = None

    def check(self, size: int, who: str = "the server's answer has") -> None:
        """Raise TooLargeError if `size` bytes exceed the limit."""
        if self.most is not None and size > self.most:
            message = f"{who} more than {self.most:,} bytes"
            # Two exceptions, because the traceback of the raised one references this object.
            self.broken = TooLargeError(message, size, self.most)
            raise TooLargeError(message, size, self.most)


def bound_answers(bound: Bound) -> ContextValue[Bound | None]:
    """Limit the answers to the requests of the block."""
    return ContextValue(_OF_REQUEST, bound)


@dataclass(slots=True)
class Bounds:
    """The size limits of one connection.

    Attributes:
        each: Bytes of a message, unless its request has a limit; `None` for no limit.
        total: Bytes of all messages; `None` for no limit.
        exceeded: The message of the last error; `None` if no limit was exceeded.
    """

    each: int | None = MAX_RESULT_BYTES
    total: int | None = None
    exceeded: str | None = None
    _seen: int = 0

    def find_bound(self) -> Bound:
        """Return the limit for answers to requests of the current context."""
        return _OF_REQUEST.get() or Bound(self.each)

    def add(self, size: int) -> None:
        """Count received bytes.

        Raises:
            TooLargeError: The total exceeds its limit.
        """
        self._seen += size
        if self.total is not None:
            self.check(self._seen, Bound(self.total), "the server sent")

    def check(self, size: int, bound: Bound, who: str = "the server's answer has") -> None:
        """Raise TooLargeError if `size` bytes exceed `bound`, and record it."""
        try:
            bound.check(size, who)
        except TooLargeError as error:
            self.exceeded = str(error)
            raise
