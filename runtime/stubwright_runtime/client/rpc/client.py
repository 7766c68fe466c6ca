"""The untyped client: MCP requests over one connection, with `mcp_types` models.

The methods match the methods of `mcp.Client`, so a typed client works with either client.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

import mcp_types as types
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ...mcp.parameter_headers import encode_value, find_invalid_keyword, list_mirrored, make_headers
from ...observability.logs import log
from ..transports.leniency import complete_result, find_crowded, repair_fields
from ..transports.unreadable import UnreadableError
from .connection import RpcConnection
from .mcp_error import MCPError
from .negotiation import discover, find_mutual, floor_ttl, list_supported, run_handshake
from .requests import Requests

if TYPE_CHECKING:
    from types import TracebackType

    from mcp.client.session import (
        ElicitationFnT,
        ListRootsFnT,
        LoggingFnT,
        MessageHandlerFnT,
        SamplingFnT,
    )
    from pydantic import BaseModel

    from ..core.options import ProgressCallback
    from ..transports.bounds import Bounds
    from .connection import Transport

_Result = TypeVar("_Result", bound="BaseModel")

_LATER: Final = ("ttlMs", "cacheScope")
"""Result fields that handshake revisions do not define."""

_LARGE: Final = 32 * 1024
"""The size in bytes above which validating a result can be expensive."""

MOST_ROUNDS: Final = 10
"""The default limit of `input_required` rounds for one request."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A callback's context.

    Attributes:
        session: The client.
        request_id: The server request's ID, or the input request's key.
        meta: The request's `_meta`.
    """

    session: RpcClient
    request_id: types.RequestId
    meta: Any


class RpcClient(Requests):
    """An untyped MCP client.

    Attributes:
        server: The connection.
        mode: `auto`, or `legacy` to skip `server/discover`.
        read_timeout_seconds: The default request timeout; `None` for no timeout.
        input_required_max_rounds: The limit of `input_required` rounds for one request.
        message_handler: Called with each notification.
        server_info: The server's name and version, or `None` if unknown.
        instructions: The server's instructions for models, or `None`.
        server_capabilities: The server's capabilities.
    """

    def __init__(
        self,
        transport: Transport,
        bounds: Bounds,
        *,
        read_timeout_seconds: float | None = None,
        revision: str | None = None,
        client_info: types.Implementation | None = None,
        message_handler: MessageHandlerFnT | None = None,
        elicitation_callback: ElicitationFnT | None = None,
        sampling_callback: SamplingFnT | None = None,
        list_roots_callback: ListRootsFnT | None = None,
        logging_callback: LoggingFnT | None = None,
        log_level: types.LoggingLevel | None = None,
        address: tuple[str, int] | None = None,
    ) -> None:
        """Prepare a client. Each callback makes the client declare the corresponding capability.

        If `revision` has a handshake, the connection starts with `initialize` instead of `server/discover`.
        """
        self.server = RpcConnection(
            transport, bounds, self._answer, self._handle_notification, address, self._read_result
        )
        self.mode: Literal["auto", "legacy"] = "auto"
        self.read_timeout_seconds = read_timeout_seconds
        self.input_required_max_rounds = MOST_ROUNDS
        self.message_handler = message_handler
        self.server_info: types.Implementation | None = None
        self.instructions: str | None = None
        self.server_capabilities = types.ServerCapabilities()
        self._elicit = elicitation_callback
        self._sample = sampling_callback
        self._list_roots = list_roots_callback
        self._log = logging_callback
        self._info = client_info or types.Implementation(name="stubwright", version="0")
        self._stamp: dict[str, Any] = {}
        self._log_level = log_level
        self._prefers_handshake = revision in HANDSHAKE_PROTOCOL_VERSIONS
        self._mirrored: dict[str, Any] = {}

    @property
    def session(self) -> RpcClient:
        """The client itself; only `mcp.Client` has a separate session."""
        return self

    @property
    def protocol_version(self) -> str:
        """The negotiated revision."""
        return self.server.revision

    async def __aenter__(self) -> Self:
        """Open the connection and negotiate a revision.

        Raises:
            MCPError: The server responds with an error or not at all.
            pydantic.ValidationError: The response to the handshake is invalid.
        """
        try:
            await self.server.open()
            await self._negotiate()
        except BaseException:
            await self.server.close(self.read_timeout_seconds)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self.server.close(self.read_timeout_seconds)

    async def _negotiate(self) -> None:
        info = self._info.model_dump(by_alias=True, mode="json", exclude_none=True)
        capabilities = self._declare_capabilities()
        seconds = self.read_timeout_seconds
        for is_last in (False, True):
            is_skipped = self.mode == "legacy" or (self._prefers_handshake and not is_last)
            found = None if is_skipped else await discover(self.server, info, capabilities, seconds)
            if found is not None:
                self._adopt(*found, info, capabilities)
                return
            try:
                answer = await run_handshake(self.server, info, capabilities, seconds)
            except MCPError as error:
                if is_last or find_mutual(list_supported(error)) is None:
                    raise self.server.explain_silence(error, seconds) from None
                continue  # the server started slowly and has accepted the probe in the meantime
            self.server_info, self.instructions = answer.server_info, answer.instructions
            self.server_capabilities = answer.capabilities
            return

    def _adopt(
        self, revision: str, answer: types.DiscoverResult, info: dict[str, Any], capabilities: dict[str, Any]
    ) -> None:
        self.server.revision = revision
        self.instructions, self.server_capabilities = answer.instructions, answer.capabilities
        try:
            stamped = (answer.meta or {}).get(types.SERVER_INFO_META_KEY)
            self.server_info = None if stamped is None else types.Implementation.model_validate(stamped)
        except ValidationError:
            self.server_info = None  # `server_info` is only for display
        self._stamp = {
            types.PROTOCOL_VERSION_META_KEY: revision,
            types.CLIENT_INFO_META_KEY: info,
            types.CLIENT_CAPABILITIES_META_KEY: capabilities,
        }

    def _declare_capabilities(self) -> dict[str, Any]:
        capabilities: dict[str, Any] = {}
        if self._elicit is not None:
            capabilities["elicitation"] = {"form": {}, "url": {}}
        if self._list_roots is not None:
            capabilities["roots"] = {"listChanged": True}
        if self._sample is not None:
            capabilities["sampling"] = {}
        return capabilities

    def stamp(self, params: dict[str, Any]) -> dict[str, Any]:
        """Add the client's `_meta` to parameters (MCP 2026-07-28, basic, "`_meta`")."""
        if not self._stamp:
            return params
        meta = params.setdefault("_meta", {})
        for name, value in self._stamp.items():
            meta[name] = value  # item by item: requests of the tasks extension override `__setitem__`
        if self._log_level is not None:
            meta.setdefault(types.LOG_LEVEL_META_KEY, self._log_level)
        return params

    def _read_result(self, method: str, result: dict[str, Any], size: int) -> dict[str, Any]:
        """Add missing defaults to a result, and reduce a large invalid result to a sample."""
        complete_result(result)
        if size < _LARGE:
            return result
        if wrong := find_crowded(result):
            raise UnreadableError(wrong)
        return repair_fields(result, method, self.server.revision)

    async def send_request(
        self,
        request: types.Request[Any, Any],
        result_type: type[_Result],
        request_read_timeout_seconds: float | None = None,
        *,
        progress_callback: ProgressCallback | None = None,
    ) -> _Result:
        """Send a request and return its result.

        Args:
            request: The request.
            result_type: The result's model class.
            request_read_timeout_seconds: The timeout; infinity for no timeout. Defaults to the client's.
            progress_callback: Called with progress notifications.

        Raises:
            MCPError: The server responds with an error or times out.
            pydantic.ValidationError: The result is invalid.
        """
        data = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        seconds = request_read_timeout_seconds
        if seconds is None:
            seconds = self.read_timeout_seconds
        method, params = data["method"], data.get("params") or {}
        raw = await self.server.request(
            method,
            self.stamp(params),
            seconds=None if seconds is None or seconds == math.inf else seconds,
            on_progress=progress_callback,
            headers=self._mirror(type(request).name_param, method, params) if self.server.over_http else None,
        )
        floor_ttl(raw)
        if not self._stamp and not raw.keys().isdisjoint(_LATER):
            raw = {name: value for name, value in raw.items() if name not in _LATER}
        return result_type.model_validate(raw, by_name=False)

    async def list_tools(self, *, cursor: str | None = None) -> types.ListToolsResult:
        """Fetch a page of the tool list."""
        page = await super().list_tools(cursor=cursor)
        if self._stamp:
            page.tools = [tool for tool in page.tools if self._learn_headers(tool)]
        return page

    def _learn_headers(self, tool: types.Tool) -> bool:
        """Store which parameters of a tool are mirrored in headers. Return False if an `x-mcp-header` is invalid.

        Clients must drop a tool whose `x-mcp-header` is invalid (MCP 2026-07-28, basic/transports).
        """
        wrong = find_invalid_keyword(tool.input_schema)
        if wrong is not None:
            log().warning("dropping tool %r: invalid x-mcp-header (%s)", tool.name, wrong)
            self._mirrored.pop(tool.name, None)
            return False
        self._mirrored[tool.name] = list_mirrored(tool.input_schema)
        return True

    def _mirror(self, name: str | None, method: str, params: dict[str, Any]) -> dict[str, str] | None:
        """Return the headers that mirror the `name` parameter and the arguments of a listed tool."""
        if not self._stamp:
            return None
        headers = {} if name is None else {"mcp-name": encode_value(str(params[name]))}
        header_map = self._mirrored.get(params.get("name", "")) if method == "tools/call" else None
        return headers if header_map is None else headers | make_headers(header_map, params.get("arguments") or {})

    async def send_ping(self) -> types.EmptyResult:
        """Ping the server (MCP 2025-11-25 and earlier)."""
        return await self.send_request(types.PingRequest(), types.EmptyResult)

    async def dispatch_input_request(
        self, context: RequestContext, request: types.InputRequest
    ) -> types.InputResponse | types.ErrorData:
        """Return a callback's response to an input request, or an error if no callback handles the request."""
        given: Any = context
        if isinstance(request, types.ElicitRequest) and self._elicit is not None:
            return await self._elicit(given, request.params)
        if isinstance(request, types.CreateMessageRequest) and self._sample is not None:
            return await self._sample(given, request.params)
        if isinstance(request, types.ListRootsRequest) and self._list_roots is not None:
            return await self._list_roots(given)
        what = {"elicitation/create": "Elicitation", "sampling/createMessage": "Sampling"}.get(
            request.method, "List roots"
        )
        return types.ErrorData(code=types.INVALID_REQUEST, message=f"{what} not supported")

    async def _answer(self, key: types.RequestId, method: str, params: dict[str, Any] | None) -> dict[str, Any]:
        from mcp_types import methods  # this import is slow

        revision = self.server.revision
        try:
            request: Any = methods.parse_server_request(method, revision, params)
        except KeyError:
            raise MCPError(code=types.METHOD_NOT_FOUND, message="Method not found", data=method) from None
        if isinstance(request, types.PingRequest):
            return {}
        context = RequestContext(self, key, request.params.meta if request.params else None)
        answer = await self.dispatch_input_request(context, request)
        if isinstance(answer, types.ErrorData):
            raise MCPError.from_error_data(answer)
        dumped = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            methods.validate_client_result(method, revision, dumped)
        except ValidationError:
            log().exception("a callback returned an invalid result for %r", method)
            raise MCPError(code=types.INTERNAL_ERROR, message="Client callback returned an invalid result") from None
        return dumped

    async def _handle_notification(self, method: str, params: dict[str, Any] | None) -> None:
        if method == "notifications/cancelled":
            return
        from mcp_types import methods  # this import is slow

        try:
            notification: Any = methods.parse_server_notification(method, self.server.revision, params)
        except KeyError:
            return  # this revision does not define the notification
        except ValidationError as error:
            log().warning("skipping an invalid notification: %s: %s", method, error)
            return
        try:
            if isinstance(notification, types.LoggingMessageNotification) and self._log is not None:
                await self._log(notification.params)
            if self.message_handler is not None:
                await self.message_handler(notification)
        except Exception:  # noqa: BLE001 - a caller's callback can raise anything
            log().exception("the callback for %r failed", method)
