"""Bounds on a server: the bytes of one message and, if given, of all, and the number of its open requests.

The bound of a request travels in a `contextvars` variable to the code that reads the answer.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from ...values.contexts import ContextValue

MAX_RESULT_BYTES: Final = 64 * 1024 * 1024
"""Default limit for the bytes of a message: the largest size of a manifest. Honest results have passed 1 MiB."""

MOST_BLOCKS: Final = 10_000
"""Blocks of content in one result: each costs a hundred times the memory that its bytes do."""

MOST_QUESTIONS: Final = 64
"""Requests of one server that may be open; each is a task, and may be a person who is asked."""

_OF_REQUEST: ContextVar[Bound | None] = ContextVar("of_request", default=None)


class TooLargeError(Exception):
    """The server sent more than it may; the message states the limit.

    Attributes:
        size: The bytes that had come when that was seen; more may have followed.
        most: The bytes that there may be.
    """

    def __init__(self, message: str, size: int, most: int) -> None:
        """Show the size."""
        super().__init__(message)
        self.size = size
        self.most = most


@dataclass(slots=True)
class Bound:
    """The bound on the bytes of the answer to one request, and the error once it was too large.

    Attributes:
        most: Bytes after decoding; `None` for no bound.
        broken: The error that was raised for more; `None` if there was none.
    """

    most: int | None
    broken: TooLargeError | None = None

    def check(self, size: int, who: str = "the server's answer has") -> None:
        """Raise TooLargeError if `size` bytes exceed the bound."""
        if self.most is not None and size > self.most:
            message = f"{who} more than {self.most:,} bytes"
            # Two exceptions: the traceback of the raised one holds this bound, and the message.
            self.broken = TooLargeError(message, size, self.most)
            raise TooLargeError(message, size, self.most)


def bound_answers(bound: Bound) -> ContextValue[Bound | None]:
    """Bound the answers to the requests that are sent in the block."""
    return ContextValue(_OF_REQUEST, bound)


@dataclass(slots=True)
class Bounds:
    """The bounds of one connection.

    Attributes:
        each: Bytes of a message that answers no request with its own bound; `None` for no bound.
        total: Bytes of all messages; `None` for no bound.
        exceeded: What the server sent too much of last, in words; `None` if it never did.
    """

    each: int | None = MAX_RESULT_BYTES
    total: int | None = None
    exceeded: str | None = None
    _seen: int = 0

    def find_bound(self) -> Bound:
        """Return the bound of an answer to the request in whose context this is called."""
        return _OF_REQUEST.get() or Bound(self.each)

    def add(self, size: int) -> None:
        """Take note of bytes that came.

        Raises:
            TooLargeError: They are more than all may be.
        """
        self._seen += size
        self.check(self._seen, Bound(self.total), "the server sent")

    def check(self, size: int, bound: Bound, who: str = "the server's answer has") -> None:
        """Raise TooLargeError where `size` bytes are more than `bound` allows, and take note of it."""
        try:
            bound.check(size, who)
        except TooLargeError as error:
            self.exceeded = str(error)
            raise
