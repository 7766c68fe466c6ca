"""Audit records of tool calls, written in the order in which the calls finish.

If the queue is full, lost records are counted.
"""

from __future__ import annotations

import atexit
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from pydantic_core import to_json

from ...observability.logs import log, name_after, name_records
from ...values.terminal import shorten
from ..core.call_state import CallState

if TYPE_CHECKING:
    from ...package import Package
    from ..core.call_state import Transport
    from ..core.outcomes import OutcomeStatus
    from ..core.principal import Kind


_WAITING: Final = 10_000
"""The maximum number of records in the queue."""

_AT_ONCE: Final = 500
"""The maximum number of records per write."""

_AGAIN: Final = 1.0
"""Seconds between retries of a failed write."""

_GATHERING: Final = 0.05
"""Seconds to collect records for one write, so that the writing thread does not interrupt every call."""

_LAST: Final = 2.0
"""Seconds to wait for queued records when the server stops."""

_ARGUMENTS: Final = 64 * 1024
"""The maximum size of the arguments in a record, in bytes; larger arguments are omitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """The audit record of a tool call, or of a request that was refused before its tool was known.

    Attributes:
        time: When the call started, in UTC.
        id: The call's unique ID, also in the log and in the caller's error message.
        trace: The trace ID (W3C Trace Context) in hexadecimal; `None` if the call is not traced.
        server: The server's name.
        server_version: The server's version.
        manifest: The first 16 hexadecimal digits of the SHA-256 of the package's `manifest.json`.
        transport: `http`, `stdio`, or `memory` for in-process clients.
        revision: The MCP revision of the request.
        principal: The kind of the principal: `token`, `local` or `anonymous`; `None` if unknown.
        issuer: The token's issuer.
        subject: The token's subject.
        oauth_client: The OAuth client that the token was issued to.
        client: The name that the client reports, unverified.
        client_version: The version that the client reports.
        tool: The tool name that the caller sent; `None` if unknown.
        alias_of: The tool's current name, if the caller used an old name.
        keys: The names of the first 50 arguments.
        key_count: The number of arguments.
        arguments: The arguments, redacted, if they are valid and at most 64 KiB and the manifest has `audit:
            {arguments: true}`.
        outcome: How the call ended, such as `completed`.
        reason: One word for why the call did not complete, otherwise `None`.
        reference: The ID of a log line with details, if any.
        duration_ms: The call's duration in milliseconds.
        argument_bytes: The size of the arguments as JSON, in bytes; `None` if unknown.
        result_bytes: The size of the result as JSON, in bytes; `None` if the call has no result.
        cleaned: The number of strings in the result that sanitizing changed.
        replayed: True if the result is the stored result of an earlier call (`policy.once`).
    """

    time: datetime
    id: str
    trace: str | None = None
    server: str
    server_version: str
    manifest: str
    transport: Transport
    revision: str | None = None
    principal: Kind | None = None
    issuer: str | None = None
    subject: str | None = None
    oauth_client: str | None = None
    client: str | None = None
    client_version: str | None = None
    tool: str | None = None
    alias_of: str | None = None
    keys: Sequence[str] = ()
    key_count: int = 0
    arguments: Mapping[str, Any] | None = None
    outcome: OutcomeStatus
    reason: str | None = None
    reference: str | None = None
    duration_ms: float
    argument_bytes: int | None = None
    result_bytes: int | None = None
    cleaned: int = 0
    replayed: bool = False


Audit: TypeAlias = Callable[[CallRecord], object] | str | PathLike[str]
"""The destination of audit records: a function, called in a separate thread, or a file; `-` is standard error."""


class Sink(Protocol):
    """Writes records, for example to a file. All methods are called in the same thread."""

    def write(self, records: Sequence[CallRecord], lost: int) -> bool:
        """Write records, and the number of earlier records that were lost. Return whether everything was written.

        After False, the method is called again later, without the same records.
        """
        ...

    def close(self) -> None:
        """Write what remains, because the server stops or flushes its records."""
        ...


class Recorder:
    """Passes records of calls to a sink, in a thread that starts with the first call."""

    def __init__(self, package: Package, sink: Sink, waiting: int = _WAITING) -> None:
        """Create the recorder of a package's server, with a queue for `waiting` records."""
        info: Mapping[str, Any] = package.manifest["server"]
        self._package = package
        self._server: str = info["name"]
        self._version: str = info["version"]
        self._manifest = ""
        self._shows = shows_arguments(package)
        self._sink = sink
        self._queue: Queue[CallState | threading.Event] = Queue(waiting)
        self._lock = threading.Lock()
        self._lost = 0
        self._delivering = 0
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None

    def record(self, call_state: CallState) -> None:
        """Queue the record of a finished call, without waiting."""
        if call_state.result is not None:
            with suppress(ValueError):  # a lone surrogate, which no transport can encode
                call_state.result_bytes = len(to_json(call_state.result))
            call_state.result = None  # so that queued records are small
        if not self._shows or not call_state.is_valid or call_state.size is None or call_state.size > _ARGUMENTS:
            call_state.arguments = None
        if self._thread is None:
            self._start()
        try:
            self._queue.put_nowait(call_state)
        except Full:
            with self._lock:
                self._lost += 1

    def flush(self, seconds: float = _LAST) -> None:
        """Wait until all queued records are written or the timeout expires."""
        if self._thread is None:
            return
        done = threading.Event()
        self._hurry.set()
        with suppress(Full):
            self._queue.put(done, timeout=seconds)
        with name_records(self._package.name):
            if not done.wait(seconds):
                log().error("the server stopped before %d audit records were written", self._count_unwritten())
                atexit.unregister(self.flush)  # otherwise the next flush would wait again

    def _count_unwritten(self) -> int:
        return self._delivering + sum(isinstance(each, CallState) for each in [*self._queue.queue])

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
                self._thread.start()
                # At exit, Python does not wait for daemon threads.
                atexit.register(self.flush)

    def _run(self) -> None:
        name_after(self._package.name)
        while True:
            taken = [self._queue.get()]
            if not isinstance(taken[0], threading.Event):
                self._hurry.wait(_GATHERING)
            with suppress(Empty):
                while len(taken) < _AT_ONCE:
                    taken.append(self._queue.get_nowait())
            records = [record for each in taken if isinstance(each, CallState) for record in self._build_records(each)]
            self._delivering = len(records)
            self._deliver(records)
            self._delivering = 0
            for each in taken:
                if isinstance(each, threading.Event):
                    self._hurry.clear()
                    self._sink.close()
                    each.set()

    def _deliver(self, records: Sequence[CallRecord]) -> None:
        """Write records, retrying without limit.

        In the meantime, new records are queued, or lost if the queue is full.
        """
        while True:
            with self._lock:
                lost, self._lost = self._lost, 0
            if self._sink.write(records, lost):
                return
            records = ()
            self._hurry.wait(_AGAIN)
            self._hurry.clear()

    def _build_records(self, call_state: CallState) -> list[CallRecord]:
        try:
            return [self._record(call_state)]
        except Exception:  # noqa: BLE001 - the thread must keep running
            log().exception("failed to record a call (reference %s)", call_state.id)
            return []

    def _record(self, call_state: CallState) -> CallRecord:
        if not self._manifest:
            self._manifest = hashlib.sha256(self._package.read_data("manifest.json")).hexdigest()[:16]
        who, client = call_state.principal, call_state.client or (None, None)
        alias = self._package.aliases.get(call_state.name or "")
        shown = (
            None
            if call_state.arguments is None or call_state.tool is None
            else call_state.tool.redact(call_state.arguments)
        )
        return CallRecord(
            time=datetime.fromtimestamp(call_state.began, UTC),
            id=call_state.id,
            trace=call_state.trace,
            server=self._server,
            server_version=self._version,
            manifest=self._manifest,
            transport=call_state.transport,
            revision=_shorten(call_state.revision),
            principal=None if who is None else who.kind,
            issuer=None if who is None else _shorten(who.issuer),
            subject=None if who is None else _shorten(who.subject),
            oauth_client=None if who is None else _shorten(who.client),
            client=_shorten(client[0]),
            client_version=_shorten(client[1]),
            tool=_shorten(call_state.name),
            alias_of=None if alias is None else alias.tool,
            keys=tuple(map(shorten, call_state.keys)),
            key_count=call_state.key_count,
            arguments=shown,
            outcome=call_state.status or "failed",
            reason=call_state.reason,
            reference=call_state.reference,
            duration_ms=round(call_state.seconds * 1000, 3),
            argument_bytes=call_state.size,
            result_bytes=call_state.result_bytes,
            cleaned=call_state.cleaned,
            replayed=call_state.is_replay,
        )


class AuditHook:
    """A sink that calls a function with each record."""

    def __init__(self, function: Callable[[CallRecord], object]) -> None:
        """Create a sink that calls `function`. Its exceptions are logged, the first one with a traceback."""
        self._function = function
        self._failed = 0

    def write(self, records: Sequence[CallRecord], lost: int) -> bool:
        """Call the function with each record."""
        if lost:
            log().error("%d audit records were lost because the audit hook is too slow", lost)
        for record in records:
            try:
                self._function(record)
            except Exception as error:  # noqa: BLE001 - user code must not stop the thread
                self._failed += 1
                if self._failed == 1:
                    log().error("the audit hook failed (reference %s)", record.id, exc_info=error)
        return True

    def close(self) -> None:
        """Log the number of failures after the first."""
        if self._failed > 1:
            log().error("the audit hook failed %d more times", self._failed - 1)
            self._failed = 1


def shows_arguments(package: Package) -> bool:
    """Return whether the manifest lets records contain arguments."""
    settings: Mapping[str, Any] = package.manifest.get("audit") or {}
    return bool(settings.get("arguments"))


def _shorten(text: str | None) -> str | None:
    return None if text is None else shorten(text)
