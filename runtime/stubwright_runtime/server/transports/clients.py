"""Client information from a handshake or a request."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...mcp.revisions import Revision, negotiate
from ...mcp.vocabulary import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from ..protocol.client_subscriptions import ClientSubscriptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...mcp.vocabulary import LogLevel
    from ..protocol.client_subscriptions import ChangeLog


@dataclass(frozen=True, slots=True)
class Client:
    """One client, for one connection or, in MCP 2026-07-28 and later, for one request.

    Attributes:
        revision: The MCP revision of the client's messages.
        info: The client's name and version.
        declared: The capabilities that the request declares.
        subscriptions: The connection's subscriptions; `None` in MCP 2026-07-28 and later.
        level: The request's minimum log level; `None` for the connection's level.
        handshake: The handshake parameters as JSON. Parsed, they would use many times the memory for the whole session.
    """

    revision: Revision
    info: Mapping[str, Any] | None
    declared: Mapping[str, Any]
    subscriptions: ClientSubscriptions | None = field(default_factory=ClientSubscriptions)
    level: LogLevel | None = None
    handshake: bytes | None = None

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The declared capabilities."""
        if self.handshake is None:
            return self.declared
        capabilities: Mapping[str, Any] = json.loads(self.handshake)["capabilities"]
        return capabilities

    @property
    def name(self) -> tuple[str, str] | None:
        """The reported name and version."""
        return None if self.info is None else (self.info["name"], self.info["version"])

    @property
    def log_level(self) -> LogLevel | None:
        """The minimum level of log messages to send; `None` to send none."""
        return self.level if self.subscriptions is None else self.subscriptions.level

    @classmethod
    def from_handshake(cls, params: Mapping[str, Any], changes: ChangeLog) -> Client:
        """Return the client that sent a handshake, which is subscribed to later changes (MCP 2025-11-25,
        basic/lifecycle).
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
            meta: The valid `_meta` of the request.
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
        """Return a placeholder for a client without valid information."""
        return cls(Revision.from_date(revision), None, {}, None if stateless else ClientSubscriptions())
