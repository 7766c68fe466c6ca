"""OpenTelemetry for clients: attributes on the spans that the SDK starts, and two metrics.

Takes the messages of one connection; adds to the span of each request the attributes of the semantic conventions for
MCP that the SDK leaves out. It changes no message, except that it removes secrets from a server's text about a failure.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mcp_types import (
    PROTOCOL_VERSION_META_KEY,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
)
from opentelemetry.trace import StatusCode, get_current_span

from ...observability import telemetry as common
from ...observability.logs import redact_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_types import RequestId
    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

_OPERATIONS: Final = common.create_histogram(
    "mcp.client.operation.duration",
    "The duration of the MCP request or notification as observed on the sender from the time it was sent until the "
    "response or ack is received.",
)
_SESSIONS: Final = common.create_histogram(
    "mcp.client.session.duration", "The duration of the MCP session as observed on the MCP client."
)


@dataclass(frozen=True, slots=True)
class _Sent:
    began: float
    span: Span
    metric: dict[str, AttributeValue]


class Telemetry:
    """The telemetry of one connection."""

    def __init__(self, address: tuple[str, int] | None) -> None:
        """Take the host and the port of a server over HTTP; `None` for a command."""
        self._began = time.perf_counter()
        self._network = dict(common.PIPE if address is None else common.HTTP)
        if address is not None:
            self._network["server.address"], self._network["server.port"] = address
        self._revision: str | None = None
        self._sent: dict[RequestId, _Sent] = {}

    def record_request(self, message: JSONRPCRequest) -> None:
        """Record that a request is sent, within its span."""
        params: Mapping[str, Any] = message.params or {}
        if message.method == "initialize":
            self._revision = params.get("protocolVersion")
        meta: Mapping[str, Any] = params.get("_meta") or {}
        revision = meta.get(PROTOCOL_VERSION_META_KEY, self._revision)
        attributes = common.describe_request(message.method, params) | self._network
        if isinstance(revision, str):
            self._revision = attributes["mcp.protocol.version"] = revision
        span = get_current_span()
        if span.is_recording():
            span.set_attributes(attributes)
            target = attributes.get("gen_ai.tool.name", attributes.get("gen_ai.prompt.name"))
            span.update_name(message.method if target is None else f"{message.method} {target}")
        attributes.pop("mcp.resource.uri", None)
        self._sent[message.id] = _Sent(time.perf_counter(), span, attributes)

    def record_answer(self, key: RequestId, message: JSONRPCResponse | JSONRPCError) -> None:
        """Record the answer to a request; its span has not ended."""
        sent = self._sent.pop(key, None)
        if sent is None:
            return
        if isinstance(message, JSONRPCError):
            message.error.message = redact_text(message.error.message)  # the SDK puts it into the span
            code = str(message.error.code)
            self._record(sent, {"error.type": code, "rpc.response.status_code": code})
            return
        result: dict[str, Any] = message.result
        if sent.metric["mcp.method.name"] == "initialize" and isinstance(result.get("protocolVersion"), str):
            self._revision = sent.metric["mcp.protocol.version"] = result["protocolVersion"]
            sent.span.set_attribute("mcp.protocol.version", result["protocolVersion"])
        if sent.metric["mcp.method.name"] == "tools/call" and result.get("isError") is True:
            sent.span.set_attribute("error.type", "tool_error")
            sent.span.set_status(StatusCode.ERROR)
            self._record(sent, {"error.type": "tool_error"})
            return
        self._record(sent, {})

    def record_cancellation(self, params: Mapping[str, Any]) -> None:
        """Record that the client no longer waits for an answer, as a notification says; the span has ended."""
        sent = self._sent.pop(params.get("requestId", ""), None)
        if sent is not None:
            is_late = str(params.get("reason")).startswith("timed out")
            self._record(sent, {"error.type": "timeout" if is_late else "cancelled"})

    def record_end(self, *, failed: bool) -> None:
        """Record the end of the connection."""
        failure: dict[str, AttributeValue] = {"error.type": "connection_closed"} if failed else {}
        for sent in self._sent.values():
            self._record(sent, {"error.type": "connection_closed"})
        self._sent.clear()
        about = self._network if self._revision is None else {**self._network, "mcp.protocol.version": self._revision}
        _SESSIONS.record(time.perf_counter() - self._began, {**about, **failure})

    @staticmethod
    def _record(sent: _Sent, ending: dict[str, AttributeValue]) -> None:
        _OPERATIONS.record(time.perf_counter() - sent.began, sent.metric | ending)
