"""Messages of the SDK as requests, and the channel back to a client through the SDK.

Takes the SDK's context of a message; has the core answer a request, whose channel uses the SDK's session.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.methods import validate_client_request
from pydantic import RootModel, ValidationError

from ...mcp.errors import INVALID_PARAMS, ProtocolError
from ...mcp.revisions import Revision
from ...mcp.vocabulary import LOG_LEVELS, LogLevel
from ...sdk.requests import MCP_SESSION_ID_HEADER
from ..core.request import Peer, Request
from ..features.input_requests import refuse_misfit
from ..protocol.outgoing import UnreachableError
from .connections import Notification

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...sdk.requests import CallNext, HandlerResult, ServerRequestContext
    from ..app.core import Core
    from ..core.request import Result
    from ..features.url_elicitation import UrlQuestions
    from .connections import Connections


class _Request(types.Request[Any, str]):
    """A request to a client as it goes on the wire."""


class _Response(RootModel[dict[str, Any]]):
    """The answer of a client as it came."""


class Adapter:
    """The SDK's middleware that answers the methods of the server's parts."""

    def __init__(self, core: Core, connections: Connections) -> None:
        """Take the server, and the connections of its clients."""
        self._core = core
        self._connections = connections

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer a request; the SDK and the middlewares below answer methods that no part serves."""
        sent: Mapping[str, Any] = ctx.params or {}

        async def answer_other(request: Request) -> Result:
            try:
                result = await call_next(ctx if request.params is sent else replace(ctx, params=request.params))
            except MCPError as error:
                raise ProtocolError(error.error.code, error.error.message, error.error.data) from error
            except ValidationError as error:  # in the SDK's own words for it
                raise ProtocolError(INVALID_PARAMS, "Invalid request parameters", "") from error
            return cast("Result", result)

        http, urls = ctx.request, self._core.input_requests.urls
        request = Request(
            package=self._core.package.name,
            method=ctx.method,
            id=ctx.request_id,
            params=sent,
            revision=Revision.from_date(ctx.protocol_version),
            transport="memory" if http is None else "http",
            threads=self._core.threads,
            open_channel=lambda _: SdkChannel(ctx, self._connections, urls),
            call_next=answer_other,
            is_admissible=self._admits(ctx),
            traceparent=None if http is None else http.headers.get("traceparent"),
            peer=_find_peer(ctx),
        )
        try:
            return cast("HandlerResult", await self._core.answer(request))
        except ProtocolError as error:
            raise MCPError(error.code, error.message, error.data) from None

    def _admits(self, ctx: ServerRequestContext[Any, Any]) -> bool:
        """Tell whether the sender of a request has shaken hands, if it must, and its parameters are well-formed."""
        if ctx.request_id is None:
            return False
        shakes_hands = Revision.from_date(ctx.protocol_version).has("handshake") and self._core.has_sessions
        if shakes_hands and ctx.session.client_params is None:
            return False
        try:
            validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
        except (KeyError, ValueError):
            return False
        return True


def _find_peer(ctx: ServerRequestContext[Any, Any]) -> Peer | None:
    """Return the sender over HTTP; `None` over other transports."""
    request = ctx.request
    if request is None:
        return None
    address = None if request.client is None else (request.client.host, request.client.port)
    session = request.headers.get(MCP_SESSION_ID_HEADER)
    return Peer(address, session, str(request.scope.get("http_version", "1.1")))


def identify_client(ctx: ServerRequestContext[Any, Any]) -> tuple[str, str] | None:
    """Return the name and the version that a client program reports."""
    params = ctx.session.client_params
    return None if params is None else (params.client_info.name, params.client_info.version)


@dataclass(frozen=True, slots=True)
class SdkChannel:
    """The way to the caller of one request, on the stream that carries its response."""

    _ctx: ServerRequestContext[Any, Any]
    _connections: Connections
    _urls: UrlQuestions | None = None

    @property
    def capabilities(self) -> Mapping[str, Any] | None:
        """The capabilities that the client declared."""
        declared = self._ctx.session.client_capabilities
        return None if declared is None else declared.model_dump(by_alias=True, mode="json", exclude_none=True)

    @property
    def client(self) -> tuple[str, str] | None:
        """The name and the version that it reports."""
        return identify_client(self._ctx)

    @property
    def session(self) -> str | None:
        """The id of its session over HTTP."""
        return None if self._ctx.request is None else self._ctx.request.headers.get(MCP_SESSION_ID_HEADER)

    @property
    def token(self) -> str | int | None:
        """The progress token."""
        return (self._ctx.meta or {}).get("progress_token")

    @property
    def is_resumable(self) -> bool:
        """True if it can come back for the answer when the stream has ended."""
        return self._ctx.close_sse_stream is not None

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Tell it something on the stream of the request."""
        notification = cast("types.ServerNotification", Notification(method=method, params=params))
        await self._ctx.session.send_notification(notification, related_request_id=self._ctx.request_id)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell it something on its connection."""
        await self._ctx.session.send_notification(
            cast("types.ServerNotification", Notification(method=method, params=params))
        )

    async def request(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Ask it something, on the stream of the request. Raises ProtocolError."""
        request = cast("types.ServerRequest", _Request(method=method, params=params))
        related = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        try:
            answer = await self._ctx.session.send_request(request, _Response, metadata=related)
        except ValidationError as error:  # the SDK refuses answers that do not fit its own types
            raise refuse_misfit(error) from error
        except MCPError as error:
            raised = UnreachableError if isinstance(error, NoBackChannelError) else ProtocolError
            raise raised(error.error.code, error.error.message, error.error.data) from error
        return answer.root

    async def note_visit(self, elicitation: str) -> None:
        """Remember that it was asked to open a URL."""
        if self._urls is not None:
            self._urls.add(elicitation, self._ctx.session)

    async def notify_visited(self, elicitation: str) -> bool:
        """Tell it that all is done at a URL."""
        return self._urls is not None and await self._urls.complete(elicitation, self._ctx.request_id)

    async def subscribe(self, uri: str) -> None:
        """Tell it of changes of a resource, too."""
        self._connections.subscribe(self._ctx, uri)

    async def send_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification."""
        await self._ctx.session.report_progress(done, total, message)

    def wants(self, level: LogLevel) -> bool:
        """Tell whether it wants messages of this level."""
        wanted = self._connections.find_level(self._ctx)
        return wanted is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message."""
        if not self.wants(level):
            return
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=logger)
        await self._ctx.session.send_notification(
            types.LoggingMessageNotification(params=params), related_request_id=self._ctx.request_id
        )

    async def release(self) -> None:
        """Close the stream of the request."""
        if self._ctx.close_sse_stream is not None:
            await self._ctx.close_sse_stream()
