"""The log of a package: what others sent is in it without secrets, and cannot pass for lines of the log itself.

Takes records of any logger; gives the same records without the arguments that the manifest redacts and without session
ids. Only `set_up`, which the package's own command calls, changes how the process logs.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import threading
from typing import Final

from ..values.terminal import visible
from .redaction import scrub

_OTHERS: Final = ("mcp", "httpx2", "httpcore2", "sse_starlette", "uvicorn", "starlette")
"""Loggers, with those below them, that know messages, headers or URLs."""

_LATE: Final = tuple(f"httpcore2.{name}" for name in ("connection", "http11", "http2", "proxy", "socks"))
"""Loggers of theirs that are made with the first request only. A logger's filter sees nothing of those below it."""

_SESSION: Final = re.compile(r"(?<=session id: ).+|(?<=mcp-session-id', b')[^']*|\b[0-9a-f]{32}\b", re.IGNORECASE)

_QUERY: Final = re.compile(r"\?\S+")
"""Nothing is asked for in the query of the endpoint's URL; a token that a client puts there is for nobody to read."""


_JWT: Final = re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*")
"""An access token."""


def cleaned(text: str) -> str:
    """A text without what must not be read."""
    return _JWT.sub("[token]", scrub(text))


class Redaction(logging.Filter):
    """Takes what must not be read out of each record: for loggers and for handlers."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; none is dropped."""
        try:
            said = record.getMessage()
        except (TypeError, ValueError):  # else `logging` itself would print the arguments
            said = record.msg = f"{record.msg} (its arguments do not fit)"
            record.args = ()
        error = record.exc_info
        trace = record.exc_text or (_FORMAT.formatException(error) if error and error[0] is not None else "")
        texts = [said, trace, record.stack_info or ""]
        if (clean := [_clean(record, text) for text in texts]) != texts:
            record.msg, record.exc_text, record.stack_info = clean
            record.args = ()
            record.exc_info = None  # whoever has the exception has its text
        return True


REDACTION: Final = Redaction()


def _clean(record: logging.LogRecord, text: str) -> str:
    if record.name == "uvicorn.access":  # a line for each request, which knows no arguments
        return _QUERY.sub("?[query]", text)
    text = cleaned(text) if text else text
    return _SESSION.sub("[session]", text) if record.name.partition(".")[0] in _OTHERS else text


def logger(name: str) -> logging.Logger:
    """A logger of the package."""
    made = logging.getLogger(name)
    made.addFilter(REDACTION)
    return made


class Tally:
    """A line of the log for what may happen often: at once, and then at most one in a while, with a count."""

    def __init__(self, log: logging.Logger, message: str, seconds: float = 10.0) -> None:
        """Take the message, whose first argument is the count, and how many seconds are between two lines."""
        self._log = log
        self._message = message
        self._seconds = seconds
        self._count = 0
        self._last: tuple[object, ...] = ()
        self._timer: asyncio.TimerHandle | None = None

    def count(self, *arguments: object) -> None:
        """It has happened once more; the event loop runs."""
        self._count += 1
        self._last = arguments
        if self._timer is None:
            self._tell()

    def _tell(self) -> None:
        self._timer = None
        if self._count:
            self._log.warning(self._message, self._count, *self._last)
            self._count = 0
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._tell)


def guard() -> None:
    """Let the loggers of the libraries below pass the redaction, whatever the process makes of their records."""
    for name in {*_LATE, *logging.root.manager.loggerDict}:
        if name.partition(".")[0] in _OTHERS:
            logging.getLogger(name).addFilter(REDACTION)


def set_up(level: str) -> None:
    """Log on standard error; of the libraries below only what is a warning, since they know whole messages.

    Args:
        level: The least level that is logged.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(REDACTION)
    handler.setFormatter(_FORMAT)
    logging.basicConfig(handlers=[handler], level=level.upper())
    least = logging.getLogger().level
    for name in _OTHERS:
        logging.getLogger(name).setLevel(max(least, logging.INFO if name == "uvicorn" else logging.WARNING))
    logging.captureWarnings(capture=True)
    threading.excepthook = _thread_failed


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    error = failed.exc_value
    if error is not None and not isinstance(error, SystemExit):
        logger(__name__).error("a thread failed", exc_info=error)


class _Format(logging.Formatter):
    """Records in which nothing is obeyed, and whose further lines are indented: a line at the margin is a record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return visible(super().format(record)).replace("\n", "\n  ")


_FORMAT: Final = _Format("%(asctime)s %(levelname)s %(name)s: %(message)s")
