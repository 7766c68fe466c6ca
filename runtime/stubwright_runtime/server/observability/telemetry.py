"""OpenTelemetry for the server: a span for each message, and two metrics.

Takes exchanges as they come and end; a span is current while its message is answered. Names that a caller invented
never become names of spans or attributes of metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context, propagate, trace
from opentelemetry.trace import SpanKind, StatusCode
from pydantic_core import to_json

from ...mcp.errors import ProtocolError
from ...observability import telemetry as common
from ...observability.logs import redact_text
from ...values.json import is_mapping
from ...values.terminal import shorten
from .audit import shows_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextvars import Token

    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

    from ...package import Package, Tool
    from ..core.call_state import CallState
    from ..core.request import Request

_OPERATIONS: Final = common.create_histogram(
    "mcp.server.operation.duration",
    "MCP request or notification duration as observed on the receiver from the time it was received until the result "
    "or ack is sent.",
)
_SESSIONS: Final = common.create_histogram(
    "mcp.server.session.duration", "The duration of the MCP session as observed on the MCP server."
)
_INITIALIZED: Final = "notifications/initialized"
"""It is answered as long as its session lives, which hears of changes from then on."""

_TO_SPANS_ALONE: Final = frozenset({"mcp.resource.uri", "gen_ai.tool.name", "gen_ai.prompt.name"})


@dataclass(frozen=True, slots=True)
class Observation:
    """One message that is being answered. Its span is current until the end."""

    _telemetry: Telemetry
    _method: str
    _span: Span
    _token: Token[context.Context]
    _metric: dict[str, AttributeValue]

    def end(
        self, seconds: float, result: object, error: BaseException | None, call_state: CallState | None
    ) -> str | None:
        """End the span; return the id of its trace, or `None` if nothing is traced."""
        try:
            if self._method != _INITIALIZED:
                self._telemetry.end(self._span, self._metric, seconds, result, error, call_state)
            elif error is not None:
                self._telemetry.end_session(self._metric, seconds)
        finally:
            self._span.end()
            context.detach(self._token)
        of_trace = self._span.get_span_context()
        return f"{of_trace.trace_id:032x}" if of_trace.is_valid else None


class Telemetry:
    """The spans and metrics of one server's requests."""

    def __init__(self, package: Package) -> None:
        """Take the package."""
        self._package = package
        self._shows = shows_arguments(package)
        self._tracer = trace.get_tracer("stubwright")

    def begin(self, request: Request) -> Observation:
        """Start the span of a message, below the one that its sender names in `_meta`."""
        attributes = self._describe(request)
        is_known = self._knows(attributes)
        span = self._tracer.start_span(
            _name(request, attributes, is_known=is_known),
            _find_parent(request),
            SpanKind.SERVER,
            {**attributes, **_describe_connection(request)},
        )
        token = context.attach(trace.set_span_in_context(span))
        return Observation(self, request.method, span, token, _of_metric(attributes, is_known=is_known))

    def begin_session(self, request: Request) -> Callable[[float], None]:
        """Return a function that records the duration in seconds of the session that a handshake begins."""
        metric = _of_metric(self._describe(request), is_known=True)
        return lambda seconds: self.end_session(metric, seconds)

    def _describe(self, request: Request) -> dict[str, AttributeValue]:
        attributes = common.describe_request(request.method, request.params)
        attributes["mcp.protocol.version"] = request.revision.date
        if request.transport != "memory":
            attributes |= common.PIPE if request.transport == "stdio" else common.HTTP
        if request.peer is not None:
            attributes["network.protocol.version"] = request.peer.http_version
        return attributes

    def end(
        self,
        span: Span,
        metric: dict[str, AttributeValue],
        seconds: float,
        result: object,
        error: BaseException | None,
        call_state: CallState | None,
    ) -> None:
        """Tell the span and the metric how it ended."""
        if is_mapping(result):
            if metric["mcp.method.name"] == "initialize" and isinstance(result.get("protocolVersion"), str):
                metric["mcp.protocol.version"] = result["protocolVersion"]
                span.set_attribute("mcp.protocol.version", result["protocolVersion"])
            if metric["mcp.method.name"] == "tools/call" and result.get("isError") is True:
                metric["error.type"] = "tool_error"
                span.set_attribute("error.type", "tool_error")
                span.set_status(StatusCode.ERROR)
        if error is not None:
            of_error, text = _describe_error(error)
            metric |= of_error
            span.set_attributes(of_error)
            span.set_status(StatusCode.ERROR, text)
        if (
            self._shows
            and call_state is not None
            and call_state.tool is not None
            and call_state.is_valid
            and span.is_recording()
        ):
            _show(span, call_state.tool, call_state)
        _OPERATIONS.record(seconds, metric)

    def end_session(self, metric: dict[str, AttributeValue], seconds: float) -> None:
        """Tell the metric how long a session was there."""
        _SESSIONS.record(seconds, {key: value for key, value in metric.items() if key != "mcp.method.name"})

    def _knows(self, attributes: dict[str, AttributeValue]) -> bool:
        """Tell whether a request names an existing entry, so that its name is one of few."""
        tool, prompt = attributes.get("gen_ai.tool.name"), attributes.get("gen_ai.prompt.name")
        if (
            tool is not None and self._package.resolve_alias(str(tool)) not in self._package.tools
        ) or not common.is_method(str(attributes["mcp.method.name"])):
            return False
        return prompt is None or prompt in self._package.prompts


def _name(request: Request, attributes: Mapping[str, AttributeValue], *, is_known: bool) -> str:
    if not common.is_method(request.method):
        return common.OTHER
    target = attributes.get("gen_ai.tool.name", attributes.get("gen_ai.prompt.name"))
    return f"{request.method} {target}" if is_known and target else request.method


def _find_parent(request: Request) -> context.Context | None:
    """Return the context that `_meta` carries (W3C Trace Context), or the header `traceparent` without a current span.

    It is `None` if neither is valid.
    """
    meta = request.params.get("_meta")
    carried = _extract(meta) if is_mapping(meta) else None
    if carried is None and request.traceparent is not None and not trace.get_current_span().get_span_context().is_valid:
        return _extract({"traceparent": request.traceparent})
    return carried


def _extract(carrier: Mapping[str, Any]) -> context.Context | None:
    try:
        carried = propagate.extract(carrier)
    except (TypeError, ValueError):  # from a propagator that refuses malformed values
        return None
    return carried if trace.get_current_span(carried).get_span_context().is_valid else None


def _of_metric(attributes: Mapping[str, AttributeValue], *, is_known: bool) -> dict[str, AttributeValue]:
    metric = {key: value for key, value in attributes.items() if is_known or key not in _TO_SPANS_ALONE}
    metric.pop("mcp.resource.uri", None)
    if not common.is_method(str(metric["mcp.method.name"])):
        metric["mcp.method.name"] = common.OTHER
    return metric


def _describe_connection(request: Request) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {}
    if request.id is not None:
        attributes["jsonrpc.request.id"] = shorten(str(request.id))
    peer = request.peer
    if peer is not None and peer.address is not None:
        attributes["client.address"], attributes["client.port"] = peer.address
    if peer is not None and peer.session is not None:
        attributes["mcp.session.id"] = common.hash_session(peer.session)
    return attributes


def _describe_error(error: BaseException) -> tuple[dict[str, AttributeValue], str]:
    """Return the attributes of an error, and its text."""
    if isinstance(error, ProtocolError):
        code = str(error.code)
        return {"error.type": code, "rpc.response.status_code": code}, error.message
    return {"error.type": "cancelled"}, "cancelled"


def _show(span: Span, tool: Tool, call_state: CallState) -> None:
    """Add the arguments and the result to a span if the manifest says so: without secrets, and if they are small."""
    arguments = call_state.arguments or {}
    values = {"gen_ai.tool.call.arguments": tool.redact(arguments)}
    if call_state.result is not None and call_state.ending == "completed":
        values["gen_ai.tool.call.result"] = dict(call_state.result)
    with tool.hide(arguments):
        for key, value in values.items():
            text = to_json(value, inf_nan_mode="constants").decode()
            if len(text) <= common.LARGEST:
                span.set_attribute(key, redact_text(text))
