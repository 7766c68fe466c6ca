"""The record of calls: the caller, the tool, the outcome and the cost of each.

Records come in the order in which calls end. Those that find no place in the queue are counted.
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
"""Records that may wait to be written."""

_AT_ONCE: Final = 500
"""The maximum number of records in a batch."""

_AGAIN: Final = 1.0
"""Seconds after which a failed write is tried again."""

_GATHERING: Final = 0.05
"""Seconds in which records gather, so that the thread that writes them does not interrupt each call."""

_LAST: Final = 2.0
"""Seconds that a stop waits for records that are not written yet."""

_ARGUMENTS: Final = 64 * 1024
"""Bytes of arguments that a record has, at most; larger ones are omitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call of a tool, or a request that was refused before its tool was known.

    Attributes:
        time: The time of its arrival, in UTC.
        id: Its unique id in the log and for the caller.
        trace: The trace that it belongs to (W3C Trace Context), in hexadecimal; `None` if there is none.
        server: The server's name.
        server_version: The server's version.
        manifest: The SHA-256 of the package's `manifest.json`, its first 16 hexadecimal digits.
        transport: `http`, `stdio`, or `memory` in one process.
        revision: The MCP revision that the caller speaks.
        principal: The kind of the principal: `token`, `local` or `anonymous`; `None` if it is unknown.
        issuer: The issuer of the principal's token.
        subject: The subject of the token.
        oauth_client: The OAuth client that the token was issued to.
        client: The name that the client program reports, unchecked.
        client_version: The version that it reports.
        tool: The tool, as the caller wrote it; `None` if it is unknown.
        alias_of: The tool that this is an old name of; `None` if it is not an old name.
        keys: The names of the arguments, the first 50.
        key_count: The number of arguments.
        arguments: Their values, with redactions of the manifest; only if it has `audit: {arguments: true}`,
            they were found valid, and they have no more than 64 KiB.
        outcome: The status of the call.
        reason: The reason in one word; `None` if it completed.
        reference: The id, if the log says more under it.
        duration_ms: Milliseconds from its arrival to its result.
        argument_bytes: The size of the arguments as JSON; `None` if it was not measured.
        result_bytes: The size of the result as JSON; `None` if there is none.
        cleaned: The number of texts in the result that were sanitized.
        replayed: True if an earlier call had this result (`policy.once`).
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
"""The destination of records: a function, which is called in its own thread, or a file; `-` is standard error."""


class Sink(Protocol):
    """A consumer of records, in one thread."""

    def take(self, records: Sequence[CallRecord], lost: int) -> bool:
        """Take records, and the number lost before them; return whether all records so far are done.

        If they are not, it is called again later, without records.
        """
        ...

    def close(self) -> None:
        """Note that no more records will come for now."""
        ...


class Recorder:
    """The recorder of calls, which gives their records to a sink."""

    def __init__(self, package: Package, sink: Sink, waiting: int = _WAITING) -> None:
        """Take the package whose calls they are; the thread starts with the first call."""
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
        self._giving = 0
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None

    def record(self, call_state: CallState) -> None:
        """Queue the record of a call that has ended; never waits."""
        if call_state.result is not None:
            with suppress(ValueError):  # half a character, which no transport takes either
                call_state.result_bytes = len(to_json(call_state.result))
            call_state.result = None  # so that waiting records are small
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
        """Wait until all calls so far are recorded, or the time has ended."""
        if self._thread is None:
            return
        done = threading.Event()
        self._hurry.set()
        with suppress(Full):
            self._queue.put(done, timeout=seconds)
        with name_records(self._package.name):
            if not done.wait(seconds):
                log().error(
                    "audit records that were not written before the server stopped: %d", self._count_unwritten()
                )
                atexit.unregister(self.flush)  # it would wait for the same records once more

    def _count_unwritten(self) -> int:
        return self._giving + sum(isinstance(each, CallState) for each in [*self._queue.queue])

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="audit", daemon=True)
                self._thread.start()
                # Python does not wait for a daemon thread when it ends.
                atexit.register(self.flush)

    def _work(self) -> None:
        name_after(self._package.name)
        while True:
            taken = [self._queue.get()]
            if not isinstance(taken[0], threading.Event):
                self._hurry.wait(_GATHERING)
            with suppress(Empty):
                while len(taken) < _AT_ONCE:
                    taken.append(self._queue.get_nowait())
            records = [record for each in taken if isinstance(each, CallState) for record in self._build_records(each)]
            self._giving = len(records)
            self._give(records)
            self._giving = 0
            for each in taken:
                if isinstance(each, threading.Event):
                    self._hurry.clear()
                    self._sink.close()
                    each.set()

    def _give(self, records: Sequence[CallRecord]) -> None:
        """Give records to the sink without a time limit: meanwhile others wait in the queue, or are lost."""
        while True:
            with self._lock:
                lost, self._lost = self._lost, 0
            if self._sink.take(records, lost):
                return
            records = ()
            self._hurry.wait(_AGAIN)
            self._hurry.clear()

    def _build_records(self, call_state: CallState) -> list[CallRecord]:
        try:
            return [self._record(call_state)]
        except Exception:  # noqa: BLE001 - the thread must live on
            log().exception("a call could not be recorded (reference %s)", call_state.id)
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
    """A sink that calls a function."""

    def __init__(self, function: Callable[[CallRecord], object]) -> None:
        """Take the function; its exceptions are logged, the first one with its traceback."""
        self._function = function
        self._failed = 0

    def take(self, records: Sequence[CallRecord], lost: int) -> bool:
        """Call it for each record."""
        if lost:
            log().error("%d audit records were lost because the audit hook is too slow", lost)
        for record in records:
            try:
                self._function(record)
            except Exception as error:  # noqa: BLE001 - the function is the user's
                self._failed += 1
                if self._failed == 1:
                    log().error("the audit hook failed (reference %s)", record.id, exc_info=error)
        return True

    def close(self) -> None:
        """Log the number of failures since the first, which was logged."""
        if self._failed > 1:
            log().error("the audit hook failed %d more times", self._failed - 1)
            self._failed = 1


def shows_arguments(package: Package) -> bool:
    """Return whether the manifest lets records have the values of arguments."""
    settings: Mapping[str, Any] = package.manifest.get("audit") or {}
    return bool(settings.get("arguments"))


def _shorten(text: str | None) -> str | None:
    return None if text is None else shorten(text)
