"""OpenTelemetry for clients: request spans and two metrics (semantic conventions for MCP)."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mcp_types import PROTOCOL_VERSION_META_KEY, REQUEST_TIMEOUT
from opentelemetry.propagate import inject
from opentelemetry.trace import SpanKind, StatusCode, get_current_span, get_tracer

from ...observability import telemetry as common
from ..rpc.mcp_error import MCPError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from mcp_types import RequestId
    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

_TRACER: Final = get_tracer("stubwright")

_OPERATIONS: Final = common.create_histogram(
    "mcp.client.operation.duration",
    "The duration of the MCP request or notification as observed on the sender from the time it was sent until the "
    "response or ack is received.",
)
_SESSIONS: Final = common.create_histogram(
    "mcp.client.session.duration", "The duration of the MCP session as observed on the MCP client."
)


@dataclass(frozen=True, slots=True)
class _RequestSpan:
    began: float
    span: Span
    metric: dict[str, AttributeValue]


class Telemetry:
    """One connection's telemetry."""

    def __init__(self, address: tuple[str, int] | None) -> None:
        """Start telemetry for a connection to a host and port over HTTP, or, with `None`, to a command."""
        self._began = time.perf_counter()
        self._network = dict(common.PIPE if address is None else common.HTTP)
        if address is not None:
            self._network["server.address"], self._network["server.port"] = address
        self._revision: str | None = None
        self._sent: dict[RequestId, _RequestSpan] = {}

    @contextmanager
    def observe(self, key: RequestId, method: str, params: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        """Trace a request that the block sends. Yield the request's parameters with the trace context in `_meta`."""
        target = params.get("name")
        name = f"{method} {target}" if isinstance(target, str) else method
        with _TRACER.start_as_current_span(name, kind=SpanKind.CLIENT) as span:
            span.set_attributes({"jsonrpc.request.id": str(key)})
            meta = dict(params.get("_meta") or {})
            inject(meta)
            try:
                self.record_request(key, method, params)
                yield {**params, "_meta": meta} if meta else params
            except asyncio.CancelledError:
                self.record_cancellation(key, "cancelled")
                raise
            except MCPError as error:
                if error.code == REQUEST_TIMEOUT:
                    self.record_cancellation(key, "timeout")
                self.record_error(key, error)
                raise

    def record_request(self, key: RequestId, method: str, params: Mapping[str, Any]) -> None:
        """Record a request's start in the current span."""
        if method == "initialize":
            self._revision = params.get("protocolVersion")
        meta: Mapping[str, Any] = params.get("_meta") or {}
        revision = meta.get(PROTOCOL_VERSION_META_KEY, self._revision)
        attributes = common.describe_request(method, params) | self._network
        if isinstance(revision, str):
            self._revision = attributes["mcp.protocol.version"] = revision
        span = get_current_span()
        if span.is_recording():
            span.set_attributes(attributes)
            target = attributes.get("gen_ai.tool.name", attributes.get("gen_ai.prompt.name"))
            span.update_name(method if target is None else f"{method} {target}")
        attributes.pop("mcp.resource.uri", None)
        self._sent[key] = _RequestSpan(time.perf_counter(), span, attributes)

    def record_error(self, key: RequestId, error: MCPError) -> None:
        """Record an error response in the request's span."""
        sent = self._sent.pop(key, None)
        if sent is not None:
            code = str(error.error.code)
            sent.span.set_attributes({"error.type": code, "rpc.response.status_code": code})
            self._record(sent, {"error.type": code, "rpc.response.status_code": code})

    def record_result(self, key: RequestId, result: Mapping[str, Any]) -> None:
        """Record a successful response in the request's span."""
        sent = self._sent.pop(key, None)
        if sent is None:
            return
        if sent.metric["mcp.method.name"] == "initialize" and isinstance(result.get("protocolVersion"), str):
            self._revision = sent.metric["mcp.protocol.version"] = result["protocolVersion"]
            sent.span.set_attribute("mcp.protocol.version", result["protocolVersion"])
        if sent.metric["mcp.method.name"] == "tools/call" and result.get("isError") is True:
            sent.span.set_attribute("error.type", "tool_error")
            sent.span.set_status(StatusCode.ERROR)
            self._record(sent, {"error.type": "tool_error"})
            return
        self._record(sent, {})

    def record_cancellation(self, key: RequestId, kind: str) -> None:
        """Record that a request ended without a response: `timeout` or `cancelled`."""
        sent = self._sent.pop(key, None)
        if sent is not None:
            self._record(sent, {"error.type": kind})

    def record_end(self, *, failed: bool) -> None:
        """Record that the connection has ended."""
        failure: dict[str, AttributeValue] = {"error.type": "connection_closed"} if failed else {}
        for sent in self._sent.values():
            self._record(sent, {"error.type": "connection_closed"})
        self._sent.clear()
        about = self._network if self._revision is None else {**self._network, "mcp.protocol.version": self._revision}
        _SESSIONS.record(time.perf_counter() - self._began, {**about, **failure})

    @staticmethod
    def _record(sent: _RequestSpan, ending: dict[str, AttributeValue]) -> None:
        _OPERATIONS.record(time.perf_counter() - sent.began, sent.metric | ending)
