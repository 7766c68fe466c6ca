"""Limits the number of open streams, in total and per caller."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ...mcp.errors import INTERNAL_ERROR, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Generator

    from .principal import Principal

LISTENERS: Final = 1000
"""The maximum number of open `subscriptions/listen` streams."""

LISTENERS_EACH: Final = 100
"""The maximum number of `subscriptions/listen` streams per caller."""

RETRY_SECONDS: Final = 5
"""The `Retry-After` of a refused stream, in seconds."""


class TooManyStreamsError(ProtocolError):
    """The total or the caller's maximum number of open streams is reached.

    Attributes:
        status: The HTTP status: 429 for the caller's limit, 503 for the total.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(INTERNAL_ERROR, message)
        self.status = status


class Streams:
    """Counts the open streams of one kind."""

    def __init__(self, most: int, each: int) -> None:
        """Set the maximum number of streams in total and per caller; anonymous callers share the total.

        Raises:
            ValueError: A limit is not positive.
        """
        if most < 1 or each < 1:
            raise ValueError(f"stream limits must be at least 1, not {min(most, each)}")
        self._most = most
        self._each = each
        self._open: Counter[str] = Counter()

    @contextmanager
    def count(self, principal: Principal) -> Generator[None, None, None]:
        """Count a stream as open during the block. Raises TooManyStreamsError."""
        if principal.kind != "anonymous" and self._open[principal.key] >= self._each:
            raise TooManyStreamsError(f"You have {self._each} open streams. Close one, or try again later.", 429)
        if self._open.total() >= self._most:
            raise TooManyStreamsError("The server has too many open streams. Try again later.", 503)
        self._open[principal.key] += 1
        try:
            yield
        finally:
            self._open[principal.key] -= 1
            if not self._open[principal.key]:
                del self._open[principal.key]
