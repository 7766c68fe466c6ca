"""The errors for refused requests, and the revisions that the errors list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    ProtocolError,
)
from ...mcp.revisions import REVISIONS, Revision

if TYPE_CHECKING:
    from collections.abc import Mapping

STATELESS: Final = tuple(date for date in REVISIONS if Revision.from_date(date).has("stateless"))
"""The revisions without a handshake, which each request declares."""


def refuse_late_handshake(message: Mapping[str, Any]) -> ProtocolError:
    """Return the error for `initialize` on a connection that already uses a stateless revision.

    This is possible only over stdio.
    """
    requested = (message.get("params") or {}).get("protocolVersion")
    data = {"requested": requested} if type(requested) is str else {}
    return ProtocolError(
        UNSUPPORTED_PROTOCOL_VERSION,
        "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted",
        {"supported": [*STATELESS], **data},
    )


def refuse_unknown_method(method: str) -> ProtocolError:
    """Return the error for an unknown method (JSON-RPC 2.0, 5.1)."""
    return ProtocolError(METHOD_NOT_FOUND, "Method not found", method)


def refuse_parameters(error: str) -> ProtocolError:
    """Return the error for invalid parameters; `error` describes the first one."""
    return ProtocolError(INVALID_PARAMS, f"Invalid request parameters: {error}")


def refuse_before_handshake() -> ProtocolError:
    """Return the error for a request before the handshake (MCP 2025-11-25, basic/lifecycle, "Initialization")."""
    return ProtocolError(INVALID_PARAMS, "The connection is not initialized; send initialize first")


def refuse_id_in_use() -> ProtocolError:
    """Return the error for a request whose ID belongs to a pending request (JSON-RPC 2.0, 4)."""
    return ProtocolError(INVALID_REQUEST, "A request with this ID is in progress; use a unique ID for each request")
