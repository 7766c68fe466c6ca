"""Requests as they are seen from outside: each has a beginning, an end, and a record where calls are recorded.

Takes all messages, right below the SDK's own span; tells OpenTelemetry and the record of calls. It changes nothing but
for exceptions that should not be there: their text stays in the log, and the caller learns a reference.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    URL_ELICITATION_REQUIRED,
)
from opentelemetry.trace import get_current_span
from pydantic import ValidationError

from ...observability.logs import log
from ...values.json import is_mapping
from ..core.call_state import CURRENT, Course, reference
from ..core.principal import current
from .audit import Recorder, Told
from .audit_file import AuditFile
from .telemetry import Telemetry

if TYPE_CHECKING:
    from ...package import Package
    from ...sdk.requests import CallNext, HandlerResult, ServerRequestContext
    from ..core.call_state import Transport
    from ..core.outcomes import Ending
    from ..core.principal import Principal
    from .audit import Audit


_INITIALIZED: Final = "notifications/initialized"
"""It is answered as long as its session lives, which hears of changes from then on."""


class Observer:
    """The middleware.

    Attributes:
        transport: What requests come over that do not come over HTTP.
    """

    def __init__(self, package: Package, recorder: Recorder | None, user: Principal) -> None:
        """Take the package, where its calls are recorded, and the local user."""
        self.transport: Transport = "memory"
        self._telemetry = Telemetry(package)
        self._recorder = recorder
        self._user = user

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on, and look at how that ends."""
        start = time.perf_counter()
        transport: Transport = self.transport if ctx.request is None else "http"
        is_call = ctx.method == "tools/call" and ctx.request_id is not None
        course = Course(time.time(), transport, ctx.protocol_version) if is_call else None
        metric = self._telemetry.came(ctx, transport)
        token = CURRENT.set(course)
        result: HandlerResult = None
        error: BaseException | None = None
        try:
            result = await call_next(ctx)
        except (MCPError, ValidationError) as raised:
            error = raised
            raise
        except Exception as raised:  # noqa: BLE001 - whatever it is, the log alone learns it
            known_as = reference()
            log().error("%s failed (reference %s)", ctx.method, known_as, exc_info=raised)
            error = MCPError(INTERNAL_ERROR, f"Internal error (reference {known_as})")
            if course is not None:
                course.ending, course.reason, course.reference = "failed", "internal_error", known_as
            raise error from None
        except BaseException as raised:
            error = raised
            raise
        finally:
            CURRENT.reset(token)
            seconds = time.perf_counter() - start
            if ctx.method == _INITIALIZED:
                if error is not None:
                    self._telemetry.left(metric, seconds)
            else:
                self._telemetry.ended(metric, seconds, result, error, course)
            if course is not None and _is_over(result, error):
                course.seconds = seconds
                self._record(ctx, course, error)
        return result

    def _record(self, ctx: ServerRequestContext[Any, Any], course: Course, error: BaseException | None) -> None:
        if self._recorder is None:
            return
        if course.ending is None:
            course.ending, course.reason = ("failed", "protocol_error") if error is None else _why(error)
        if course.principal is None:
            course.principal = current(over_http=ctx.request is not None, user=self._user)
        if (client := ctx.session.client_params) is not None:
            course.client = client.client_info.name, client.client_info.version
        course.trace = _trace()
        course.called(ctx.params or {})
        self._recorder.record(course)


def recorder(package: Package, audit: Audit) -> Recorder:
    """What records the calls of a package's server.

    Raises:
        OSError: The file cannot be opened.
    """
    return Recorder(package, Told(audit) if callable(audit) else AuditFile(audit))


def _trace() -> str | None:
    """The id of the current trace."""
    context = get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else None


def _is_over(result: HandlerResult, error: BaseException | None) -> bool:
    """Whether a call has ended; else the server waits for an answer, which comes with another request."""
    if isinstance(error, MCPError):
        return error.error.code != URL_ELICITATION_REQUIRED
    return not (is_mapping(result) and result.get("resultType") == "input_required")


def _why(error: BaseException) -> tuple[Ending, str]:
    """How a call ended that gave no result."""
    if isinstance(error, ValidationError):
        return "invalid", "parameters"
    if not isinstance(error, MCPError):
        return "cancelled", "cancelled"
    data = error.error.data
    if error.error.code in (INVALID_PARAMS, INVALID_REQUEST):
        is_state = is_mapping(data) and data.get("reason") == "invalid_request_state"
        return "invalid", "request_state" if is_state else "parameters"
    return "failed", "protocol_error"
