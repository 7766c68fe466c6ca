"""Limits on the open streams of callers that only wait, and the refusal of one more.

Over HTTP a refusal has a status and headers that say when to come again; on standard input and output it has only its
words.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ...mcp.errors import INTERNAL_ERROR, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Generator

    from .principal import Principal

LISTENERS: Final = 1000
"""The maximum number of open streams of `subscriptions/listen`."""

LISTENERS_EACH: Final = 100
"""The maximum number of these for one caller."""

AGAIN: Final = 5
"""Seconds after which a caller that is refused may try again."""


class TooManyStreamsError(ProtocolError):
    """A stream more than may be open.

    Attributes:
        status: The status of the answer over HTTP.
    """

    def __init__(self, message: str, status: int) -> None:
        """Take the text for the caller and the status."""
        super().__init__(INTERNAL_ERROR, message)
        self.status = status


class Streams:
    """The open streams of one kind."""

    def __init__(self, most: int, each: int) -> None:
        """Take the maximum numbers in total and for one caller. Indistinguishable callers share the first.

        Raises:
            ValueError: One of the two is not positive.
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
            raise TooManyStreamsError(f"You have {self._each} streams open. Close one first, or try again later.", 429)
        if self._open.total() >= self._most:
            raise TooManyStreamsError("The server has too many open streams. Try again later.", 503)
        self._open[principal.key] += 1
        try:
            yield
        finally:
            self._open[principal.key] -= 1
            if not self._open[principal.key]:
                del self._open[principal.key]
