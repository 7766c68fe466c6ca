"""OpenTelemetry for tasks: metrics, and spans for runs in the call's trace.

The module is imported only if telemetry is enabled.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from ..server.core.request import find_request
from ..server.observability.trace_context import read_trace_id
from ..values.modules import is_observed

if TYPE_CHECKING:
    from collections.abc import Generator

    from opentelemetry.metrics import Counter, Histogram, UpDownCounter

    from ..server.core.call_state import CallState
    from .records import Task


def make_trace_headers() -> dict[str, str]:
    """Return the current trace's headers (W3C Trace Context); without telemetry, the caller's headers, if recorded."""
    trace: dict[str, str] = {}
    if is_observed():
        from opentelemetry.propagate import inject

        inject(trace)
    elif (request := find_request()) is not None and request.record is not None and request.record.traceparent:
        trace["traceparent"] = request.record.traceparent
    return trace


@contextmanager
def open_span(task: Task, call_state: CallState) -> Generator[None, None, None]:
    """Trace a task run, if telemetry is enabled."""
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
        if call_state.status not in (None, "completed"):
            span.set_attribute("error.type", call_state.reason or "failed")
            span.set_status(StatusCode.ERROR)


def add_waiting(tool: str, number: int) -> None:
    """Change the count of a tool's tasks that this process has received but not started."""
    if is_observed():
        _create_waiting().add(number, {"gen_ai.tool.name": tool})


def record_age(tool: str, seconds: float) -> None:
    """Record the seconds from a task's creation or last change to the start of its run."""
    if is_observed():
        _create_age().record(seconds, {"gen_ai.tool.name": tool})


def count_death(tool: str, *, is_retried: bool) -> None:
    """Count a run whose process died, and whether the task is retried."""
    if is_observed():
        for name in ("deaths", "retries") if is_retried else ("deaths",):
            _create_counter(name).add(1, {"gen_ai.tool.name": tool})


@cache
def _create_waiting() -> UpDownCounter:
    from opentelemetry.metrics import get_meter

    return get_meter("stubwright").create_up_down_counter(
        "stubwright.task.waiting", unit="{task}", description="Tasks that this process has received but not started."
    )


@cache
def _create_age() -> Histogram:
    from ..observability.telemetry import create_histogram

    return create_histogram("stubwright.task.age", "The time from a task's creation or last change until it runs.")


@cache
def _create_counter(name: str) -> Counter:
    from opentelemetry.metrics import get_meter

    return get_meter("stubwright").create_counter(
        f"stubwright.task.{name}", unit="{run}", description=f"The {name} of task runs."
    )
