"""Writes messages as lines of a recording.

For other data, only the size is recorded, since it could contain secrets.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from stubwright.recording.lines import HEADER, KIND, VERSION
from stubwright_runtime.mcp.vocabulary import SECTIONS
from stubwright_runtime.values.json import refuse_constant

if TYPE_CHECKING:
    from stubwright.recording.redaction import Redactor

Sender: TypeAlias = Literal["client", "server"]

_LISTS: Final = frozenset(section.method for section in SECTIONS)


class Recorder:
    """Records one run: all messages between clients and one server.

    Attributes:
        failure: The first write error, if any.
        has_answers: True if the server has sent a message.
    """

    def __init__(self, append: Callable[[bytes], None], redactor: Redactor, server: Mapping[str, Any]) -> None:
        """Write the header for a run.

        Args:
            append: Appends a line. Raises OSError.
            redactor: Removes secrets.
            server: The server's location, without secrets.
        """
        self.failure: OSError | None = None
        self.has_answers = False
        self._append = append
        self._redactor = redactor
        self._run = secrets.token_hex(4)
        self._start = time.monotonic()
        self._lock = threading.Lock()  # each direction has a separate thread
        self._listing: set[str] = set()
        date = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._write({HEADER: KIND, "version": VERSION, "run": self._run, "date": date, "server": server})

    def record(self, sender: Sender, data: bytes, exchange: int | None = None, **more: Any) -> None:
        """Record a message.

        Args:
            sender: The side that sent the message.
            data: The message's bytes.
            exchange: Over HTTP, the number of the message's request.
            more: Additional keys for the line.
        """
        if not data.strip():
            return
        with self._lock:
            self.has_answers |= sender == "server"
            line = {"run": self._run, "at": round(time.monotonic() - self._start, 3), "from": sender}
            line |= {} if exchange is None else {"exchange": exchange}
            self._write({**line, **more, **self._describe(sender, data, exchange)})

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Add values to redact from now on."""
        with self._lock:
            self._redactor.add_secrets(secrets)

    def add_note(self, sender: Sender, exchange: int | None = None, **more: Any) -> None:
        """Record what is known about a missing message.

        Args:
            sender: The side that sent the message.
            exchange: Over HTTP, the number of the message's request.
            more: The keys for the line.
        """
        with self._lock:
            line = {"run": self._run, "at": round(time.monotonic() - self._start, 3), "from": sender}
            line |= {} if exchange is None else {"exchange": exchange}
            self._write({**line, **more})

    def _describe(self, sender: Sender, data: bytes, exchange: int | None) -> dict[str, Any]:
        try:
            message = json.loads(data, parse_constant=refuse_constant)
            messages = message if isinstance(message, list) else [message]
            if not all(isinstance(each, dict) for each in messages):
                return {"unreadable": len(data)}
            redacted: Any = [self._redact(sender, each, exchange) for each in messages]
            redacted = redacted if isinstance(message, list) else redacted[0]
            json.dumps(redacted, allow_nan=False)  # rejects `1e999`, which is parsed as infinity
        except (ValueError, RecursionError):
            return {"unreadable": len(data)}
        return {"message": redacted}

    def _redact(self, sender: Sender, message: Mapping[str, Any], exchange: int | None) -> Any:
        lists = False
        if "id" in message:
            key = json.dumps([exchange, message["id"]])
            if sender == "client" and message.get("method") in _LISTS:
                self._listing.add(key)
            elif sender == "server" and "method" not in message and key in self._listing:
                self._listing.discard(key)
                lists = True
        return self._redactor.redact(message, lists=lists)

    def _write(self, line: Mapping[str, Any]) -> None:
        if self.failure is not None:
            return
        try:
            self._append(_encode(line) + b"\n")
        except OSError as error:
            self.failure = error


def _encode(line: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON allows but UTF-8 does not
        return json.dumps(line, separators=(",", ":")).encode()
