"""Handles clients' lifecycle requests, such as the handshake, and encodes JSON-RPC responses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import INTERNAL_ERROR, UNWRITABLE, ProtocolError
from ...mcp.revisions import Revision, negotiate
from ...mcp.vocabulary import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from ...observability.logs import log
from ..app.core import LISTS
from ..core.request import Request
from ..protocol.client_subscriptions import ClientSubscriptions
from ..protocol.messages import encode_error, to_json
from ..protocol.refusals import STATELESS, refuse_before_handshake, refuse_unknown_method
from ..protocol.sender import MessageSender
from .channel import ClientChannel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...mcp.vocabulary import LogLevel
    from ..app.core import Core
    from ..core.call_state import Transport
    from ..core.request import Channel, Peer, Result
    from ..protocol.client_subscriptions import ChangeLog

_MAX_CACHED_PAGES: Final = 16


@dataclass(frozen=True, slots=True)
class Client:
    """A client, as it described itself in the handshake or, in MCP 2026-07-28 and later, in one request.

    Attributes:
        revision: The MCP revision that the client uses.
        info: The name and version that the client reported, if any.
        declared: The capabilities that the request declares.
        subscriptions: The connection's subscriptions; `None` in MCP 2026-07-28 and later.
        level: The minimum log level that the request sets (MCP 2026-07-28 and later); in earlier revisions,
            `subscriptions` contains the level.
        handshake: The handshake parameters as JSON, because parsed parameters would use many times the memory.
    """

    revision: Revision
    info: Mapping[str, Any] | None
    declared: Mapping[str, Any]
    subscriptions: ClientSubscriptions | None = field(default_factory=ClientSubscriptions)
    level: LogLevel | None = None
    handshake: bytes | None = None

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that the client declared."""
        if self.handshake is None:
            return self.declared
        capabilities: Mapping[str, Any] = json.loads(self.handshake)["capabilities"]
        return capabilities

    @property
    def name(self) -> tuple[str, str] | None:
        """The name and version that the client reported, if any."""
        return None if self.info is None else (self.info["name"], self.info["version"])

    @property
    def log_level(self) -> LogLevel | None:
        """The minimum level of the log messages to send to the client; `None` to send none."""
        return self.level if self.subscriptions is None else self.subscriptions.level

    @classmethod
    def from_handshake(cls, params: Mapping[str, Any], changes: ChangeLog) -> Client:
        """Return the client that sent a handshake (MCP 2025-11-25, basic/lifecycle).

        The client is subscribed to changes after the handshake.
        """
        subscriptions = ClientSubscriptions(since=changes.count)
        info = {key: params["clientInfo"][key] for key in ("name", "version")}
        handshake = json.dumps(params, ensure_ascii=False, separators=(",", ":")).encode()
        return cls(
            Revision.from_date(negotiate(params["protocolVersion"])), info, {}, subscriptions, handshake=handshake
        )

    @classmethod
    def from_request(cls, meta: Mapping[str, Any], *, logs: bool) -> Client:
        """Return the client that sent a request (MCP 2026-07-28, basic, "Per-request protocol fields").

        Args:
            meta: The request's `_meta`, which must be valid.
            logs: True if the server declares `logging`; if false, the client's log level is ignored
                (server/utilities/logging).
        """
        return cls(
            Revision.from_date(meta[PROTOCOL_VERSION_META_KEY]),
            meta.get(CLIENT_INFO_META_KEY),
            meta[CLIENT_CAPABILITIES_META_KEY],
            None,
            meta.get(LOG_LEVEL_META_KEY) if logs else None,
        )

    @classmethod
    def make_unknown(cls, revision: str, *, stateless: bool) -> Client:
        """Return a placeholder for a client whose request contains no valid information about it."""
        return cls(Revision.from_date(revision), None, {}, None if stateless else ClientSubscriptions())


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class ClientRequest(Request):
    """A message from a client over one of this package's transports.

    Attributes:
        client: The client that sent the message.
        error: The error if the request is invalid; unknown methods are detected later.
        is_initialized: True after the handshake, and always in MCP 2026-07-28 and later.
    """

    client: Client
    error: ProtocolError | None = None
    is_initialized: bool = True


class Lifecycle:
    """Handles one server's lifecycle requests and encodes its responses.

    Attributes:
        package: The package name.
        threads: The thread pool for plain `def` handlers.
        has_tasks: True if the server has tasks.
    """

    def __init__(self, core: Core) -> None:
        """Create the lifecycle handler of one server."""
        self.package = core.package.name
        self.threads = core.threads
        self.has_tasks = core.tasks is not None
        self._core = core
        self._texts: dict[int, tuple[Result, bytes]] = {}

    async def answer(self, request: Request) -> Result | ProtocolError:
        """Handle a request and return its result or error."""
        try:
            return await self._core.answer(request)
        except ProtocolError as error:
            # The traceback's frames refer to the message and the error, a cycle that only the garbage collector frees.
            error.__traceback__ = error.__context__ = None
            return error
        finally:
            request.has_ended = True

    async def observe_notification(
        self, message: Mapping[str, Any], client: Client, transport: Transport, peer: Peer | None = None
    ) -> None:
        """Pass a notification to telemetry; the transport has already processed it."""
        notification = ClientRequest(
            package=self.package,
            method=message["method"],
            id=None,
            params=message.get("params") or {},
            revision=client.revision,
            transport=transport,
            threads=self.threads,
            open_channel=_open_no_channel,
            call_next=self.answer_default,
            peer=peer,
            client=client,
        )
        await self._core.answer(notification)

    def encode_response(self, request: Request, result: Result | ProtocolError) -> bytes:
        """Return a JSON-RPC response that contains a result or error."""
        if isinstance(result, ProtocolError):
            return encode_error(request.id, result)
        try:
            if request.method in LISTS:
                return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (to_json(request.id), self._encode_page(result))
            return to_json({"jsonrpc": "2.0", "id": request.id, "result": result})
        except (TypeError, ValueError):
            log().exception(UNWRITABLE)
            return encode_error(request.id, ProtocolError(INTERNAL_ERROR, UNWRITABLE))

    def _encode_page(self, result: Result) -> bytes:
        """Encode a page of a list. Pages are cached, because every client reads the first pages."""
        entry = self._texts.get(id(result))
        # A new object can have the same `id` as a deleted one.
        if entry is not None and entry[0] is result:
            return entry[1]
        text = to_json(result)
        self._texts = dict([*self._texts.items()][1 - _MAX_CACHED_PAGES :])
        self._texts[id(result)] = (result, text)
        return text

    async def answer_default(self, request: Request) -> Result:
        """Handle a lifecycle request, or raise the error for an invalid or unknown request."""
        if request.id is None or not isinstance(request, ClientRequest):
            return None
        if request.error is not None:
            raise request.error
        params = request.params
        match request.method:
            case "ping":
                return {}
            case "initialize":
                return self._initialize(params)
            case "server/discover":
                return self._discover()
        if not self._serves(request.method):
            raise refuse_unknown_method(request.method)
        if not request.is_initialized:
            raise refuse_before_handshake()
        if request.client.subscriptions is not None:
            if request.method == "logging/setLevel":
                request.client.subscriptions.level = params["level"]
            else:
                request.client.subscriptions.uris.discard(params["uri"])
        return {}

    def _serves(self, method: str) -> bool:
        """Return whether the server supports a method (MCP 2025-11-25 and earlier)."""
        return (
            method == "logging/setLevel"
            or (method == "resources/unsubscribe" and "resources" in self._core.lists)
            or self._core.serves(method)
            or (self.has_tasks and method.startswith("tasks/"))
        )

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the handshake result (MCP 2025-11-25, basic/lifecycle, "Initialization")."""
        return {
            "protocolVersion": negotiate(params["protocolVersion"]),
            "capabilities": self._capabilities(announces=self._core.has_sessions, logs=True),
            "serverInfo": self._core.identity,
            **self._instructions,
        }

    def _discover(self) -> Result:
        """Return the server's identity and capabilities (MCP 2026-07-28, server/discover)."""
        return {
            "supportedVersions": list(STATELESS),
            "capabilities": self._capabilities(announces=True, logs=self._core.logs),
            **self._instructions,
            "ttlMs": 0,
            "cacheScope": "private",
        }

    @property
    def _instructions(self) -> dict[str, str]:
        instructions = self._core.package.manifest["server"].get("instructions")
        return {} if instructions is None else {"instructions": instructions}

    def _capabilities(self, *, announces: bool, logs: bool) -> dict[str, Any]:
        """Return the server's capabilities.

        Args:
            announces: True if the server can send change notifications to the client.
            logs: True if the server can send log messages to the client.
        """
        core = self._core
        listed: dict[str, dict[str, bool]] = {
            name: {"listChanged": announces} for name in ("prompts", "resources", "tools") if name in core.lists
        }
        if "resources" in listed:
            listed["resources"]["subscribe"] = announces
        completes: dict[str, Any] = {"completions": {}} if "completion/complete" in core.methods else {}
        announced: dict[str, Any] = {"extensions": core.extensions} if core.extensions else {}
        return {**completes, **announced, **({"logging": {}} if logs else {}), **listed}


def _open_no_channel(request: ClientRequest) -> Channel:
    return ClientChannel(request.client, {}, MessageSender(_drop))


async def _drop(_message: bytes) -> None:
    pass  # a notification receives no response
