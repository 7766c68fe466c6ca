"""Limits the number of open streams, per caller and in total."""

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
"""The `Retry-After` of a refusal, in seconds."""


class TooManyStreamsError(ProtocolError):
    """The limit of open streams is reached.

    Attributes:
        status: The HTTP status of the response.
    """

    def __init__(self, message: str, status: int) -> None:
        """Create the error with a message for the caller and an HTTP status."""
        super().__init__(INTERNAL_ERROR, message)
        self.status = status


class Streams:
    """The open streams of one kind."""

    def __init__(self, most: int, each: int) -> None:
        """Set the limits in total and per caller; only the total applies to anonymous callers.

        Raises:
            ValueError: A limit is not positive.
        """
        if most < 1 or each < 1:
            raise ValueError(f"at least one stream must be allowed, not {min(most, each)}")
        self._most = most
        self._each = each
        self._open: Counter[str] = Counter()

    @contextmanager
    def count(self, principal: Principal) -> Generator[None, None, None]:
        """Count a stream while it is open. Raises TooManyStreamsError."""
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
