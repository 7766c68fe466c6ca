"""The client's description of itself, from a handshake or from the request."""

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
    """One client, in one connection or, from 2026-07-28, in one request.

    Attributes:
        revision: The revision that it speaks.
        info: The name and version that it reports.
        declared: The capabilities that its request declares.
        wants: The wants of its connection.
        level: The least level of log messages that its request wants; `None` for the connection's.
        opening: The parameters of its handshake, as JSON: parsed, they would take many times as much memory, for as
            long as the session lasts.
    """

    revision: Revision
    info: Mapping[str, Any] | None
    declared: Mapping[str, Any]
    wants: ClientSubscriptions | None = field(default_factory=ClientSubscriptions)
    level: LogLevel | None = None
    opening: bytes | None = None

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that it declared."""
        if self.opening is None:
            return self.declared
        capabilities: Mapping[str, Any] = json.loads(self.opening)["capabilities"]
        return capabilities

    @property
    def name(self) -> tuple[str, str] | None:
        """The name and the version that it reports."""
        return None if self.info is None else (self.info["name"], self.info["version"])

    @property
    def listens_to(self) -> LogLevel | None:
        """The least level of log messages that it wants; `None` if it wants none."""
        return self.level if self.wants is None else self.wants.level

    @classmethod
    def from_handshake(cls, params: Mapping[str, Any], changes: ChangeLog) -> Client:
        """Return the client of a handshake; it is notified of changes from now on (MCP 2025-11-25, basic/lifecycle)."""
        wants = ClientSubscriptions(since=changes.count)
        info = {key: params["clientInfo"][key] for key in ("name", "version")}
        opening = json.dumps(params, ensure_ascii=False, separators=(",", ":")).encode()
        return cls(Revision.from_date(negotiate(params["protocolVersion"])), info, {}, wants, opening=opening)

    @classmethod
    def from_request(cls, meta: Mapping[str, Any], *, logs: bool) -> Client:
        """Return the client that a request describes (MCP 2026-07-28, basic, "Per-request protocol fields").

        Args:
            meta: The valid `_meta` of the request.
            logs: True if the server declares `logging`; otherwise it sends no log messages, whatever the client wants
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
        """Return a client that has not described itself validly."""
        return cls(Revision.from_date(revision), None, {}, None if stateless else ClientSubscriptions())
