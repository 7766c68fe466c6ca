"""Package loggers, which redact secrets and prevent log injection."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from functools import partial
from typing import Any, Final

from ..values.contexts import ContextValue
from ..values.terminal import replace_controls
from .redaction import scrub
from .scope import SCOPE, Scope
from .standard_error import BackgroundStream, open_background

_OTHERS: Final = ("mcp", "httpx2", "httpcore2", "sse_starlette", "uvicorn", "starlette")
"""Library loggers that log messages, headers or URLs."""

_LATE: Final = tuple(f"httpcore2.{name}" for name in ("connection", "http11", "http2", "proxy", "socks"))
"""Child loggers that libraries create at the first request; their parents' filters do not apply to them."""

_SEEN: Final[set[str]] = set()
"""The loggers that `redact_library_logs` has already processed."""

_SESSION: Final = re.compile(r"(?<=session id: ).+|(?<=mcp-session-id', b')[^']*|\b[0-9a-f]{32}\b", re.IGNORECASE)

_QUERY: Final = re.compile(r"\?\S+")
"""A query string. The endpoint has no query parameters, but clients might send tokens in them."""

_JWT: Final = re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*")
"""A JWT."""


def redact_text(text: str) -> str:
    """Remove secrets and tokens from text."""
    return redact_jwts(scrub(text), "[token]")


def redact_jwts(text: str, mark: str) -> str:
    """Replace JWTs in text with a marker."""
    return _JWT.sub(mark, text)


class Redaction(logging.Filter):
    """A filter for loggers and handlers that redacts log records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact a record without dropping it."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # otherwise, `logging` would print the arguments
            message = record.msg = f"{record.msg} (its arguments do not match the format)"
            record.args = ()
        error = record.exc_info
        trace = record.exc_text or (_FORMAT.formatException(error) if error and error[0] is not None else "")
        texts = [message, trace, record.stack_info or ""]
        if (clean := [_clean(record, text) for text in texts]) != texts:
            record.msg, record.exc_text, record.stack_info = clean
            record.args = ()
            record.exc_info = None  # the exception's message can contain the text
        return True


REDACTION: Final = Redaction()


def _clean(record: logging.LogRecord, text: str) -> str:
    if record.name == "uvicorn.access":  # uvicorn's access log
        return _QUERY.sub("?[query]", text)
    text = redact_text(text) if text else text
    return _SESSION.sub("[session]", text) if record.name.partition(".")[0] in _OTHERS else text


def log() -> logging.Logger:
    """Return the current package's logger, by default the runtime's."""
    return make_logger(SCOPE.get().package)


def make_logger(name: str) -> logging.Logger:
    """Return a logger whose records are redacted."""
    named_logger = logging.getLogger(name)
    named_logger.addFilter(REDACTION)
    return named_logger


def name_after(package: str) -> None:
    """Set the package under which this context logs."""
    SCOPE.set(Scope(package))


def name_records(package: str) -> ContextValue[Scope]:
    """Set the package under which the block logs."""
    outer = SCOPE.get()
    return ContextValue(SCOPE, Scope(package, outer.secrets, outer.waits))


class LogThrottle:
    """Logs frequent events: the first immediately, then at most one line per period, with a count."""

    def __init__(self, log: logging.Logger, message: str, seconds: float = 10.0) -> None:
        """Create a throttle; the first argument of `message` is the count, and `seconds` is the period."""
        self._log = log
        self._message = message
        self._seconds = seconds
        self._count = 0
        self._last: tuple[object, ...] = ()
        self._timer: asyncio.TimerHandle | None = None

    def count(self, *arguments: object) -> None:
        """Count an event. An event loop must be running."""
        self._count += 1
        self._last = arguments
        if self._timer is None:
            self._log_count()

    def _log_count(self) -> None:
        self._timer = None
        if self._count:
            self._log.warning(self._message, self._count, *self._last)
            self._count = 0
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._log_count)


def redact_library_logs() -> None:
    """Redact libraries' records, whatever handlers the process has."""
    for name in {*_LATE, *logging.root.manager.loggerDict} - _SEEN:
        if name.partition(".")[0] in _OTHERS:
            logging.getLogger(name).addFilter(REDACTION)
        _SEEN.add(name)  # last, because another thread may connect in the meantime


class _Handler(logging.StreamHandler[Any]):
    def close(self) -> None:
        # `logging.shutdown` calls this method.
        self.drain()
        super().close()

    def drain(self) -> None:
        if isinstance(self.stream, BackgroundStream):
            self.stream.drain(1.0)


def drain_log() -> None:
    """Wait at most one second until pending records are written. Call this before output that must follow them."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Handler):
            handler.drain()


def set_up(level: str) -> None:
    """Log to standard error. Libraries, which would otherwise log whole messages, log only warnings.

    The process does not wait for the reader of standard error, except for up to a second at exit.

    Args:
        level: The lowest level to log.
    """
    handler = _Handler(open_background())
    handler.addFilter(REDACTION)
    handler.setFormatter(_FORMAT)
    _FORMAT.folds = level != "debug"
    logging.basicConfig(handlers=[handler], level=level.upper())
    least = logging.getLogger().level
    for name in _OTHERS:
        logging.getLogger(name).setLevel(max(least, logging.INFO if name == "uvicorn" else logging.WARNING))
    logging.captureWarnings(capture=True)
    threading.excepthook = partial(_thread_failed, log())  # each thread has its own context


def _thread_failed(log: logging.Logger, failed: threading.ExceptHookArgs) -> None:
    error = failed.exc_value
    if error is not None and not isinstance(error, SystemExit):
        log.error("a thread failed", exc_info=error)


class _Format(logging.Formatter):
    """Replaces control characters, and indents continuation lines so that each unindented line starts a record.

    Attributes:
        folds: True to omit the runtime's frames from tracebacks.
    """

    folds = False

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging calls it
        if not self.folds or ei[1] is None:
            return super().formatException(ei)
        from .tracebacks import format_folded

        return format_folded(ei[1])

    def format(self, record: logging.LogRecord) -> str:
        return replace_controls(super().format(record)).replace("\n", "\n  ")


_FORMAT: Final = _Format("%(asctime)s %(levelname)s %(name)s: %(message)s")
