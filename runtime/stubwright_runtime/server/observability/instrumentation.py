"""Observation of requests: spans and metrics if telemetry is set up, and records if calls are recorded.

Takes all messages, before any other step; tells telemetry and the record of calls. It changes only unexpected
exceptions: their text stays in the log, and the caller gets a reference.
"""

from __future__ import annotations

import os
import time
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ...mcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    INVALID_STATE,
    URL_ELICITATION_REQUIRED,
    ProtocolError,
)
from ...observability.logs import log, name_records
from ...values.json import is_mapping
from ...values.modules import find_loaded
from ..core.call_state import CURRENT, CallState, make_reference
from ..core.principal import find_current
from .trace_context import find_traceparent, read_trace_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...package import Package
    from ..core.call_state import Transport
    from ..core.exchange import Exchange, Rest, Result
    from ..core.outcomes import Ending
    from ..core.principal import Principal
    from .audit import Audit, Recorder
    from .telemetry import Observation, Telemetry

_PROVIDERS: Final = ("OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER")
"""The environment variables that set OpenTelemetry up without a line of code."""

_IS_CONFIGURED: Final = any(os.environ.get(name) for name in _PROVIDERS)
"""True if one of them does. They are read once, since every message asks."""

_NO_OPS: Final = ("opentelemetry.trace", "opentelemetry.metrics")
"""The modules of the providers that record nothing."""


def is_observed() -> bool:
    """Tell whether OpenTelemetry is set up, in code or by the environment."""
    if _IS_CONFIGURED:
        return True
    providers = []
    if (trace := find_loaded("opentelemetry.trace")) is not None:
        providers.append(trace.get_tracer_provider())
    if (metrics := find_loaded("opentelemetry.metrics")) is not None:
        providers.append(metrics.get_meter_provider())
    return any(not type(provider).__module__.startswith(_NO_OPS) for provider in providers)


class Instrumentation:
    """The middleware.

    Attributes:
        transport: The transport of requests that do not come over HTTP.
    """

    def __init__(self, package: Package, recorder: Recorder | None, user: Principal) -> None:
        """Take the package, the recorder of its calls, if any, and the local user."""
        self.transport: Transport = "memory"
        self._observed = package
        self._package = package.name
        self._recorder = recorder
        self._user = user

    async def __call__(self, rest: Rest, exchange: Exchange) -> Result:
        """Pass a message on, and look at how that ends."""
        start = time.perf_counter()
        transport: Transport = "http" if exchange.over_http else self.transport
        is_call = exchange.method == "tools/call" and exchange.id is not None
        call_state = CallState(time.time(), transport, exchange.revision) if is_call else None
        result: Result = None
        error: BaseException | None = None
        with name_records(self._package):
            if self._recorder is not None and call_state is not None:
                call_state.traceparent = find_traceparent(exchange.params, exchange.traceparent)
            observation = self._observe(exchange, transport)
            token = CURRENT.set(call_state)
            try:
                result = await rest(exchange)
            except ProtocolError as raised:
                error = raised
                raise
            except Exception as raised:  # noqa: BLE001 - any of them goes into the log only
                error = _internal_error(exchange, call_state, raised)
                raise error from None
            except BaseException as raised:
                error = raised
                raise
            finally:
                CURRENT.reset(token)
                seconds = time.perf_counter() - start
                trace = None if observation is None else observation.end(seconds, result, error, call_state)
                if self._recorder is not None and call_state is not None and _is_over(result, error):
                    call_state.seconds, call_state.trace = seconds, trace or read_trace_id(call_state.traceparent)
                    self._record(self._recorder, exchange, call_state, error)
                error = None  # its traceback holds this frame
        return result

    def _observe(self, exchange: Exchange, transport: Transport) -> Observation | None:
        return None if not is_observed() else self._telemetry.begin(exchange, transport)

    def begin_session(self, exchange: Exchange) -> Callable[[], None] | None:
        """Note the start of a session; return a function that notes its end, or `None` without telemetry."""
        if not is_observed():
            return None
        begun = time.monotonic()
        end = self._telemetry.begin_session(exchange, "http" if exchange.over_http else self.transport)
        return lambda: end(time.monotonic() - begun)

    @cached_property
    def _telemetry(self) -> Telemetry:
        from .telemetry import Telemetry

        return Telemetry(self._observed)

    def _record(
        self, recorder: Recorder, exchange: Exchange, call_state: CallState, error: BaseException | None
    ) -> None:
        if call_state.ending is None:
            call_state.ending, call_state.reason = ("failed", "protocol_error") if error is None else _why(error)
        if call_state.principal is None:
            call_state.principal = find_current(over_http=exchange.over_http, user=self._user)
        call_state.client = exchange.client
        call_state.note_parameters(exchange.params or {})
        recorder.record(call_state)


def make_recorder(package: Package, audit: Audit) -> Recorder:
    """Return the recorder of calls of a package's server.

    Raises:
        OSError: The file cannot be opened.
    """
    from .audit import AuditHook, Recorder
    from .audit_file import AuditFile

    return Recorder(package, AuditHook(audit) if callable(audit) else AuditFile(audit))


def _internal_error(exchange: Exchange, call_state: CallState | None, error: Exception) -> ProtocolError:
    """Log an unexpected exception, and return the error for the caller."""
    reference_id = make_reference()
    log().error("%s failed (reference %s)", exchange.method, reference_id, exc_info=error)
    if call_state is not None:
        call_state.ending, call_state.reason, call_state.reference = "failed", "internal_error", reference_id
    return ProtocolError(INTERNAL_ERROR, f"Internal error (reference {reference_id})")


def _is_over(result: Result, error: BaseException | None) -> bool:
    """Tell whether a call has ended; otherwise the server waits for an answer, which comes with another request."""
    if isinstance(error, ProtocolError):
        return error.code != URL_ELICITATION_REQUIRED
    return result is None or result.get("resultType") != "input_required"


def _why(error: BaseException) -> tuple[Ending, str]:
    """Return the ending and the reason of a call that gave no result."""
    if not isinstance(error, ProtocolError):
        return "cancelled", "cancelled"
    if error.code in (INVALID_PARAMS, INVALID_REQUEST):
        is_state = is_mapping(error.data) and error.data.get("reason") == INVALID_STATE
        return "invalid", "request_state" if is_state else "parameters"
    return "failed", "protocol_error"
