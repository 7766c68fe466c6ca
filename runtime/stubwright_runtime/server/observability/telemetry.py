"""What OpenTelemetry learns of the server: attributes on the spans that the SDK starts, and two metrics.

Takes requests as they come and end; adds to the current span what the semantic conventions for MCP have and the SDK
leaves out. Names that a caller invented are no names of spans, and no attributes of metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import StatusCode, get_current_span
from pydantic_core import to_json

from ...mcp.errors import ProtocolError
from ...observability import telemetry as common
from ...observability.logs import redact_text
from ...values.json import is_mapping
from ...values.terminal import shorten
from .audit import shows_arguments

if TYPE_CHECKING:
    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

    from ...package import Package, Tool
    from ...sdk.requests import ServerRequestContext
    from ..core.call_state import CallState, Transport

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
    """What is told of one message."""

    _telemetry: Telemetry
    _method: str
    _metric: dict[str, AttributeValue]

    def end(
        self, seconds: float, result: object, error: BaseException | None, call_state: CallState | None
    ) -> str | None:
        """Tell how it ended; gives the id of the trace that it belongs to."""
        if self._method != _INITIALIZED:
            self._telemetry.end(self._metric, seconds, result, error, call_state)
        elif error is not None:
            self._telemetry.end_session(self._metric, seconds)
        context = get_current_span().get_span_context()
        return f"{context.trace_id:032x}" if context.is_valid else None


class Telemetry:
    """What is told of one server's requests."""

    def __init__(self, package: Package) -> None:
        """Take the package."""
        self._package = package
        self._shows = shows_arguments(package)

    def begin(self, ctx: ServerRequestContext[Any, Any], transport: Transport) -> Observation:
        """Tell the span of a request or a notification; gives what tells how that ends."""
        return Observation(self, ctx.method, self._begin(ctx, transport))

    def _begin(self, ctx: ServerRequestContext[Any, Any], transport: Transport) -> dict[str, AttributeValue]:
        """Tell the span; gives what holds for the metric."""
        span = get_current_span()
        attributes = common.describe_request(ctx.method, ctx.params)
        attributes["mcp.protocol.version"] = ctx.protocol_version
        if transport != "memory":
            attributes |= common.PIPE if transport == "stdio" else common.HTTP
        if ctx.request is not None:
            attributes["network.protocol.version"] = str(ctx.request.scope.get("http_version", "1.1"))
        is_known = self._knows(attributes)
        if span.is_recording():
            span.set_attributes({**attributes, **_of_connection(ctx)})
            if not is_known:
                span.update_name(ctx.method if common.is_method(ctx.method) else common.OTHER)
        metric = {key: value for key, value in attributes.items() if is_known or key not in _TO_SPANS_ALONE}
        metric.pop("mcp.resource.uri", None)
        if not common.is_method(ctx.method):
            metric["mcp.method.name"] = common.OTHER
        return metric

    def end(
        self,
        metric: dict[str, AttributeValue],
        seconds: float,
        result: object,
        error: BaseException | None,
        call_state: CallState | None,
    ) -> None:
        """Tell the span and the metric how it ended."""
        span = get_current_span()
        if is_mapping(result):
            if metric["mcp.method.name"] == "initialize" and isinstance(result.get("protocolVersion"), str):
                metric["mcp.protocol.version"] = result["protocolVersion"]
                span.set_attribute("mcp.protocol.version", result["protocolVersion"])
            if metric["mcp.method.name"] == "tools/call" and result.get("isError") is True:
                metric["error.type"] = "tool_error"
        if error is not None:
            metric |= _of_error(error, span)
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
        """Whether a request is about what there is, so that its name is one of few."""
        tool, prompt = attributes.get("gen_ai.tool.name"), attributes.get("gen_ai.prompt.name")
        if (tool is not None and tool not in self._package.tools) or not common.is_method(
            str(attributes["mcp.method.name"])
        ):
            return False
        return prompt is None or prompt in self._package.prompts


def _of_connection(ctx: ServerRequestContext[Any, Any]) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {}
    if isinstance(ctx.request_id, str):
        attributes["jsonrpc.request.id"] = shorten(ctx.request_id)  # the SDK has it as long as it came
    if ctx.request is not None:
        if ctx.request.client is not None:
            attributes["client.address"], attributes["client.port"] = ctx.request.client
        if key := ctx.request.headers.get("mcp-session-id"):
            attributes["mcp.session.id"] = common.hash_session(key)
    return attributes


def _of_error(error: BaseException, span: Span) -> dict[str, AttributeValue]:
    """What an exception means; the SDK tells the span, but for a cancellation."""
    if isinstance(error, ProtocolError):
        code = str(error.code)
        return {"error.type": code, "rpc.response.status_code": code}
    span.set_attribute("error.type", "cancelled")
    span.set_status(StatusCode.ERROR, "cancelled")
    return {"error.type": "cancelled"}


def _show(span: Span, tool: Tool, call_state: CallState) -> None:
    """Tell a span the arguments and the result, where the manifest says so: without secrets, and if they are small."""
    arguments = call_state.arguments or {}
    values = {"gen_ai.tool.call.arguments": tool.shown(arguments)}
    if call_state.result is not None and call_state.ending == "completed":
        values["gen_ai.tool.call.result"] = dict(call_state.result)
    with tool.hiding(arguments):
        for key, value in values.items():
            text = to_json(value, inf_nan_mode="constants").decode()
            if len(text) <= common.LARGEST:
                span.set_attribute(key, redact_text(text))
