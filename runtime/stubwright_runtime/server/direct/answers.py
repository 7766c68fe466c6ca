"""Requests, answered by the server's core.

Takes requests, with their sender and their fault, if any; gives JSON-RPC responses. Requests that no part of the server
serves, such as the handshake, are answered here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import INTERNAL_ERROR, UNWRITABLE, ProtocolError
from ...mcp.revisions import negotiate
from ...observability.logs import log
from ..core.core import LISTS
from ..protocol.messages import encode_error, to_json
from ..protocol.outgoing import Outgoing
from ..protocol.requests import STATELESS, refuse_before_handshake, refuse_unknown_method
from .runs import DirectChannel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.context import Channel
    from ..core.core import Core
    from ..core.exchange import Exchange, Peer, Result
    from .clients import Client

_TEXTS: Final = 16
"""Texts of pages that are kept."""


@dataclass(frozen=True, slots=True)
class DirectExchange:
    """One request.

    Attributes:
        fault: The fault of the request, apart from an unknown method, if any.
        is_shaken: True if its sender has shaken hands, or need not.
        traceparent: The header `traceparent` of a request over HTTP.
    """

    method: str
    params: Mapping[str, Any] | None
    id: str | int | None
    over_http: bool
    sender: Client
    way: DirectChannel
    peer: Peer | None = None
    fault: ProtocolError | None = None
    is_shaken: bool = True
    traceparent: str | None = None

    @property
    def revision(self) -> str:
        """The revision that the sender speaks."""
        return self.sender.revision

    @property
    def client(self) -> tuple[str, str] | None:
        """The name and the version that the client program reports."""
        return self.sender.name

    @property
    def is_admissible(self) -> bool:
        """True if it is valid, and its sender may send it now."""
        return self.fault is None and self.is_shaken

    def make_channel(self) -> Channel:
        """Return the way to its sender."""
        return self.way

    def with_params(self, params: Mapping[str, Any]) -> DirectExchange:
        """Return a copy with other parameters."""
        return replace(self, params=params)


class Direct:
    """The direct path of requests to the core of one server."""

    def __init__(self, core: Core) -> None:
        """Take the core of the server."""
        self._core = core
        self._texts: dict[int, tuple[Result, bytes]] = {}
        self._answer = core.make_answerer(self._rest)

    @property
    def has_tasks(self) -> bool:
        """True if the server has tasks."""
        return self._core.tasks is not None

    async def answer(self, exchange: DirectExchange) -> Result | ProtocolError:
        """Return the result of a request, or the error that it is answered with."""
        try:
            return await self._answer(exchange)
        except ProtocolError as error:
            # Frames hold the message, and the error. With them, both would stay until Python next looks for cycles.
            error.__traceback__ = error.__context__ = None
            return error
        finally:
            exchange.way.end_progress()

    async def note(self, message: Mapping[str, Any], sender: Client, *, peer: Peer | None = None) -> None:
        """Have a notification observed that needs no other answer."""
        params = message.get("params")
        channel = DirectChannel(sender, params, Outgoing(_drop))
        exchange = DirectExchange(message["method"], params, None, peer is not None, sender, channel, peer)
        await self._answer(exchange)

    def encode_response(self, exchange: DirectExchange, result: Result | ProtocolError) -> bytes:
        """Return the response with a result, or an error, as JSON."""
        if isinstance(result, ProtocolError):
            return encode_error(exchange.id, result)
        try:
            text = self._listed(result) if exchange.method in LISTS else to_json(result)
        except (TypeError, ValueError):
            log().exception(UNWRITABLE)
            return encode_error(exchange.id, ProtocolError(INTERNAL_ERROR, UNWRITABLE))
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (to_json(exchange.id), text)

    def _listed(self, result: Result) -> bytes:
        """Return the text of a page; those of first pages are kept, as the core keeps these pages: every client reads
        them.
        """
        entry = self._texts.get(id(result))
        # The `id` of an object that is gone may be that of a new one.
        if entry is not None and entry[0] is result:
            return entry[1]
        text = to_json(result)
        self._texts = dict([*self._texts.items()][1 - _TEXTS :])
        self._texts[id(result)] = (result, text)
        return text

    async def _rest(self, exchange: Exchange) -> Result:
        """Answer the requests that no part serves, and refuse those that are not admissible."""
        if exchange.id is None or not isinstance(exchange, DirectExchange):
            return None
        if exchange.fault is not None:
            raise exchange.fault
        params = exchange.params or {}
        match exchange.method:
            case "ping":
                return {}
            case "initialize":
                return self._initialize(params)
            case "server/discover":
                return self._discover(exchange.revision)
        if not self._serves(exchange.method):
            raise refuse_unknown_method(exchange.method)
        if not exchange.is_shaken:
            raise refuse_before_handshake()
        if exchange.sender.wants is not None:
            if exchange.method == "logging/setLevel":
                exchange.sender.wants.level = params["level"]
            else:
                exchange.sender.wants.uris.discard(params["uri"])
        return {}

    def _serves(self, method: str) -> bool:
        """Tell whether a method of the handshake's era is served, by a part or here."""
        is_ours = method == "logging/setLevel" or (
            method == "resources/unsubscribe" and "resources" in self._core.lists
        )
        return is_ours or self._core.serves(method) or (self.has_tasks and method.startswith("tasks/"))

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the server's half of the handshake (MCP 2025-11-25, basic/lifecycle, "Initialization")."""
        return {
            "protocolVersion": negotiate(params["protocolVersion"]),
            "capabilities": self._capabilities(announces=self._core.has_sessions),
            "serverInfo": self._core.identity,
            **self._instructions,
        }

    def _discover(self, revision: str) -> dict[str, Any]:
        """Return the server's identity and capabilities (MCP 2026-07-28, server/discover)."""
        result = {
            "supportedVersions": list(STATELESS),
            "capabilities": self._capabilities(announces=True),
            **self._instructions,
            "ttlMs": 0,
            "cacheScope": "private",
        }
        return self._core.stamp(result, revision)

    @property
    def _instructions(self) -> dict[str, str]:
        instructions = self._core.package.manifest["server"].get("instructions")
        return {} if instructions is None else {"instructions": instructions}

    def _capabilities(self, *, announces: bool) -> dict[str, Any]:
        """Return the server's capabilities; `announces` says whether it tells of changes of its lists."""
        core = self._core
        listed: dict[str, dict[str, bool]] = {
            name: {"listChanged": announces} for name in ("prompts", "resources", "tools") if name in core.lists
        }
        if "resources" in listed:
            listed["resources"]["subscribe"] = announces
        completes: dict[str, Any] = {"completions": {}} if "completion/complete" in core.methods else {}
        announced: dict[str, Any] = {"extensions": core.extensions} if core.extensions else {}
        return {**completes, **announced, "logging": {}, **listed}


async def _drop(_message: bytes) -> None:
    """Say nothing: a notification has no answer."""
