"""Traces, measures and records requests.

Unexpected exceptions are logged; the caller receives only a reference to the log line.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING

from ...mcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    INVALID_STATE,
    URL_ELICITATION_REQUIRED,
    ProtocolError,
)
from ...observability.logs import log
from ...values.json import is_mapping
from ...values.modules import is_observed
from ..core.call_state import CallState, make_reference
from .trace_context import find_traceparent, read_trace_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...package import Package
    from ..core.outcomes import OutcomeStatus
    from ..core.request import Answer, Request, Result
    from .audit import Audit, Recorder
    from .telemetry import Telemetry


class Instrumentation:
    """Traces, measures and records the messages of one server."""

    def __init__(self, package: Package, recorder: Recorder | None) -> None:
        self._package = package
        self._recorder = recorder

    async def observe(self, answer: Answer, request: Request, *, is_traced: bool) -> Result:
        """Handle a message with `answer`, and trace, measure and record it."""
        start = time.perf_counter()
        recorder, record = self._recorder, None
        is_shown = is_traced and self._telemetry.shows
        if (recorder is not None or is_shown) and request.method == "tools/call" and request.id is not None:
            record = request.record = CallState(time.time(), request.transport, request.revision.date)
            if recorder is not None:
                record.traceparent = find_traceparent(request.params, request.traceparent)
        result: Result = None
        error: BaseException | None = None
        observation = self._telemetry.begin(request) if is_traced else None
        try:
            result = await answer(request)
        except ProtocolError as raised:
            error = raised
            raise
        except Exception as raised:  # noqa: BLE001 - logged; the caller receives only a reference
            error = explain_internal_error(request, raised)
            raise error from None
        except BaseException as raised:
            error = raised
            raise
        finally:
            seconds = time.perf_counter() - start
            if observation is not None:
                observation.end(seconds, result, error, record)
            if recorder is not None and record is not None and _has_completed(result):
                trace = None if observation is None else observation.find_trace_id()
                record.seconds, record.trace = seconds, trace or read_trace_id(record.traceparent)
                self._record(recorder, request, record, error)
            error = None  # the traceback refers to this frame: a reference cycle
        return result

    def begin_session(self, request: Request) -> Callable[[], None] | None:
        """Start timing a session. Return a function that records the duration, or `None` if telemetry is not used."""
        if not is_observed():
            return None
        begun = time.monotonic()
        end = self._telemetry.begin_session(request)
        return lambda: end(time.monotonic() - begun)

    @cached_property
    def _telemetry(self) -> Telemetry:
        from .telemetry import Telemetry

        return Telemetry(self._package)

    def _record(self, recorder: Recorder, request: Request, record: CallState, error: BaseException | None) -> None:
        if record.status is None:
            record.status, record.reason = ("failed", "protocol_error") if error is None else _explain(error)
        if record.principal is None:
            record.principal = request.principal
        record.client = request.channel.client
        record.record_parameters(request.params)
        recorder.record(record)


def make_recorder(package: Package, audit: Audit) -> Recorder:
    """Return the recorder of a package's calls, which writes to `audit`.

    Raises:
        OSError: The audit file cannot be opened.
    """
    from .audit import AuditHook, Recorder
    from .audit_file import AuditFile

    return Recorder(package, AuditHook(audit) if callable(audit) else AuditFile(audit))


def explain_internal_error(request: Request, error: Exception) -> ProtocolError:
    """Log an unexpected exception, and return the error for the caller, which contains only a reference."""
    reference_id = make_reference()
    log().error("%s failed (reference %s)", request.method, reference_id, exc_info=error)
    if request.record is not None:
        request.record.status, request.record.reason = "failed", "internal_error"
        request.record.reference = reference_id
    return ProtocolError(INTERNAL_ERROR, f"Internal error (reference {reference_id})")


def _has_completed(result: Result) -> bool:
    """Return whether a call is complete, rather than waiting for the client's answer in its next round."""
    return result is None or result.get("resultType") != "input_required"


def _explain(error: BaseException) -> tuple[OutcomeStatus, str]:
    if not isinstance(error, ProtocolError):
        return "cancelled", "cancelled"
    if error.code == URL_ELICITATION_REQUIRED:
        return "denied", "not_visited"
    if error.code in (INVALID_PARAMS, INVALID_REQUEST):
        is_state = is_mapping(error.data) and error.data.get("reason") == INVALID_STATE
        return "invalid", "request_state" if is_state else "parameters"
    return "failed", "protocol_error"
