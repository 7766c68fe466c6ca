"""OpenTelemetry for tasks: a span for each run, in the trace of the call that made the task.

Takes tasks and their runs. Without telemetry nothing is loaded, since a server with tasks must start as fast as any
other.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..server.core.call_state import CURRENT
from ..server.observability.instrumentation import is_observed
from ..server.observability.trace_context import read_trace_id

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..server.core.call_state import CallState
    from .records import Task


def make_trace_headers() -> dict[str, str]:
    """Return the current trace as headers have it (W3C Trace Context).

    Without telemetry, it is the trace of the caller if calls are recorded, and otherwise empty.
    """
    trace: dict[str, str] = {}
    if is_observed():
        from opentelemetry.propagate import inject

        inject(trace)
    elif (call_state := CURRENT.get()) is not None and call_state.traceparent is not None:
        trace["traceparent"] = call_state.traceparent
    return trace


@contextmanager
def open_span(task: Task, call_state: CallState) -> Generator[None, None, None]:
    """Trace a run of a task, if there is telemetry."""
    if not is_observed():
        call_state.trace = read_trace_id(task.trace.get("traceparent"))
        yield
        return
    from opentelemetry.propagate import extract
    from opentelemetry.trace import StatusCode, get_tracer

    from ..observability.telemetry import describe_request

    attributes = {**describe_request("tools/call", {"name": task.tool}), "mcp.protocol.version": task.revision}
    with get_tracer("stubwright").start_as_current_span(
        f"task {task.tool}",
        extract(task.trace),
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        context = span.get_span_context()
        call_state.trace = f"{context.trace_id:032x}" if context.is_valid else None
        yield
        if call_state.ending not in (None, "completed"):
            span.set_attribute("error.type", call_state.reason or "failed")
            span.set_status(StatusCode.ERROR)
