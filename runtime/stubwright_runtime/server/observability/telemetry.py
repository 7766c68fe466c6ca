"""OpenTelemetry for servers: one span per message, and two metrics.

Names that callers invent never become span names or metric attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry import context, propagate, trace
from opentelemetry.trace import SpanKind, StatusCode
from pydantic_core import to_json

from ...mcp.errors import ProtocolError
from ...mcp.vocabulary import REPLAY_META_KEY
from ...observability import telemetry as common
from ...observability.logs import redact_text
from ...observability.redaction import hide_secrets
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
"""The notification whose stream lasts until the session ends."""

_URI: Final = "mcp.resource.uri"

_NAMING: Final = ("tools/call", "prompts/get")
"""The methods whose `name` parameter is a tool or prompt."""

_DESCRIPTIONS: Final = 4096
"""The maximum number of cached descriptions, so that callers cannot fill memory."""

_TO_SPANS_ALONE: Final = frozenset({"gen_ai.tool.name", "gen_ai.prompt.name"})

_RESERVED: Final = ("io.modelcontextprotocol/", "progressToken")
"""MCP's own `_meta` keys, which propagators must not read (MCP 2026-07-28, basic, "`_meta`")."""


class _Description(NamedTuple):
    """The span name and the attributes that all messages of the same kind share.

    Attributes:
        name: The span name.
        span: The span attributes.
        metric: The metric attributes; never modified, because OpenTelemetry retains them.
    """

    name: str
    span: Mapping[str, AttributeValue]
    metric: Mapping[str, AttributeValue]


class Observation(NamedTuple):
    """A message in progress. Its span is current until `end`."""

    telemetry: Telemetry
    method: str
    span: Span
    token: Token[context.Context]
    metric: Mapping[str, AttributeValue]

    def end(self, seconds: float, result: object, error: BaseException | None, call_state: CallState | None) -> None:
        """End the span and record the message's duration in seconds."""
        try:
            if self.method != _INITIALIZED:
                self.telemetry.end(self, seconds, result, error, call_state)
            elif error is not None:
                self.telemetry.end_session(self.metric, seconds)
        finally:
            self.span.end()
            context.detach(self.token)

    def find_trace_id(self) -> str | None:
        """Return the span's trace ID in hexadecimal; `None` if the span is not valid."""
        of_trace = self.span.get_span_context()
        return f"{of_trace.trace_id:032x}" if of_trace.is_valid else None


class Telemetry:
    """The spans and metrics of one server's requests.

    Attributes:
        shows: True if spans contain the arguments and results of calls.
    """

    def __init__(self, package: Package) -> None:
        self.shows = shows_arguments(package)
        self._package = package
        self._tracer = trace.get_tracer("stubwright")
        self._descriptions: dict[tuple[str | None, ...], _Description] = {}

    def begin(self, request: Request) -> Observation:
        """Start a message's span, as a child of the span in the sender's `_meta`."""
        description = self._describe(request)
        attributes = {**description.span, **_describe_own(request)}
        span = self._tracer.start_span(description.name, _find_parent(request), SpanKind.SERVER, attributes)
        token = context.attach(trace.set_span_in_context(span))
        return Observation(self, request.method, span, token, description.metric)

    def begin_session(self, request: Request) -> Callable[[float], None]:
        """Return a function that records the duration, in seconds, of the session that a handshake starts."""
        metric = self._describe(request).metric
        return lambda seconds: self.end_session(metric, seconds)

    def _describe(self, request: Request) -> _Description:
        """Return a message's description, cached if the method and the named tool or prompt exist."""
        method, peer = request.method, request.peer
        name = request.params.get("name") if method in _NAMING else None
        key = (
            method,
            name if isinstance(name, str) else None,
            request.revision.date,
            request.transport,
            None if peer is None else peer.http_version,
        )
        description = self._descriptions.get(key)
        if description is None:
            description, is_known = self._make_description(request)
            if is_known and len(self._descriptions) < _DESCRIPTIONS:
                self._descriptions[key] = description
        return description

    def _make_description(self, request: Request) -> tuple[_Description, bool]:
        """Return a message's description, and whether the method and the named tool or prompt exist."""
        attributes = common.describe_request(request.method, request.params)
        attributes.pop(_URI, None)
        attributes["mcp.protocol.version"] = request.revision.date
        if request.transport != "memory":
            attributes |= common.PIPE if request.transport == "stdio" else common.HTTP
        if request.peer is not None:
            attributes["network.protocol.version"] = request.peer.http_version
        is_known = self._is_known_entry(attributes)
        name, metric = (
            _span_name(request, attributes, is_known=is_known),
            _metric_attributes(attributes, is_known=is_known),
        )
        return _Description(name, attributes, metric), is_known

    def end(
        self,
        observation: Observation,
        seconds: float,
        result: object,
        error: BaseException | None,
        call_state: CallState | None,
    ) -> None:
        """Record a message's outcome in its span, and its duration in the metric."""
        span, method = observation.span, observation.method
        ending: dict[str, AttributeValue] = {}
        if method == "initialize" and is_mapping(result) and isinstance(result.get("protocolVersion"), str):
            ending["mcp.protocol.version"] = result["protocolVersion"]
        if method == "tools/call" and is_mapping(result):
            if result.get("isError") is True:
                ending["error.type"] = "tool_error"
                span.set_status(StatusCode.ERROR)
            if REPLAY_META_KEY in (result.get("_meta") or ()):
                ending["stubwright.replayed"] = True
        if error is not None:
            of_error, text = _describe_error(error)
            ending |= of_error
            span.set_status(StatusCode.ERROR, text)
        if ending:
            span.set_attributes(ending)
        if (
            self.shows
            and call_state is not None
            and call_state.tool is not None
            and call_state.is_valid
            and span.is_recording()
        ):
            _add_arguments(span, call_state.tool, call_state)
        _OPERATIONS.record(seconds, {**observation.metric, **ending} if ending else observation.metric)

    def end_session(self, metric: Mapping[str, AttributeValue], seconds: float) -> None:
        """Record a session's duration in seconds in the metric."""
        _SESSIONS.record(seconds, {key: value for key, value in metric.items() if key != "mcp.method.name"})

    def _is_known_entry(self, attributes: Mapping[str, AttributeValue]) -> bool:
        """Return whether the method and the named tool or prompt exist. Callers can invent any number of names."""
        tool, prompt = attributes.get("gen_ai.tool.name"), attributes.get("gen_ai.prompt.name")
        if (
            tool is not None and self._package.resolve_alias(str(tool)) not in self._package.tools
        ) or not common.is_method(str(attributes["mcp.method.name"])):
            return False
        return prompt is None or prompt in self._package.prompts


def _span_name(request: Request, attributes: Mapping[str, AttributeValue], *, is_known: bool) -> str:
    if not common.is_method(request.method):
        return common.OTHER
    target = attributes.get("gen_ai.tool.name", attributes.get("gen_ai.prompt.name"))
    return f"{request.method} {target}" if is_known and target else request.method


def _find_parent(request: Request) -> context.Context | None:
    """Return the parent context of a request's span, or `None` if there is no valid context.

    The context is in `_meta` (W3C Trace Context), or in the `traceparent` header if there is no current span.
    """
    meta = request.params.get("_meta")
    carried = None
    if is_mapping(meta) and not all(key.startswith(_RESERVED) for key in meta):
        carried = _extract(meta)
    if carried is None and request.traceparent is not None and not trace.get_current_span().get_span_context().is_valid:
        return _extract({"traceparent": request.traceparent})
    return carried


def _extract(carrier: Mapping[str, Any]) -> context.Context | None:
    try:
        carried = propagate.extract(carrier)
    except (TypeError, ValueError):  # some propagators raise for malformed values
        return None
    return carried if trace.get_current_span(carried).get_span_context().is_valid else None


def _metric_attributes(attributes: Mapping[str, AttributeValue], *, is_known: bool) -> dict[str, AttributeValue]:
    metric = {key: value for key, value in attributes.items() if is_known or key not in _TO_SPANS_ALONE}
    if not common.is_method(str(metric["mcp.method.name"])):
        metric["mcp.method.name"] = common.OTHER
    return metric


def _describe_own(request: Request) -> dict[str, AttributeValue]:
    """Return the span attributes that differ between messages of the same kind."""
    attributes: dict[str, AttributeValue] = {}
    if request.method.startswith("resources/") and isinstance(uri := request.params.get("uri"), str):
        attributes[_URI] = shorten(uri)
    if request.id is not None:
        attributes["jsonrpc.request.id"] = shorten(str(request.id))
    peer = request.peer
    if peer is not None and peer.address is not None:
        attributes["client.address"], attributes["client.port"] = peer.address
    if peer is not None and peer.session is not None:
        attributes["mcp.session.id"] = common.hash_session(peer.session)
    return attributes


def _describe_error(error: BaseException) -> tuple[dict[str, AttributeValue], str]:
    if isinstance(error, ProtocolError):
        code = str(error.code)
        return {"error.type": code, "rpc.response.status_code": code}, error.message
    return {"error.type": "cancelled"}, "cancelled"


def _add_arguments(span: Span, tool: Tool, call_state: CallState) -> None:
    """Add a call's redacted arguments and its result to a span, each only if its text is not too large."""
    arguments = call_state.arguments or {}
    values = {"gen_ai.tool.call.arguments": tool.redact(arguments)}
    if call_state.result is not None and call_state.status == "completed":
        values["gen_ai.tool.call.result"] = dict(call_state.result)
    with hide_secrets(tool, arguments):
        for key, value in values.items():
            text = to_json(value, inf_nan_mode="constants").decode()
            if len(text) <= common.LARGEST:
                span.set_attribute(key, redact_text(text))
