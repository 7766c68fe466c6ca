"""Validates the era, method and parameters of well-formed requests (MCP 2025-11-25, basic/lifecycle; MCP 2026-07-28,
basic, "Per-request fields").
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    ProtocolError,
)
from ...mcp.revisions import REVISIONS, Revision
from ...mcp.vocabulary import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from .parameters import find_shape

if TYPE_CHECKING:
    from collections.abc import Mapping

STATELESS: Final = tuple(date for date in REVISIONS if Revision.from_date(date).has("stateless"))
"""The revisions without a handshake, which each request declares."""

_MAX_HANDSHAKE: Final = 64 * 1024
"""The maximum size of handshake parameters as JSON, in bytes; the connection retains them."""

_SHORT_HANDSHAKE: Final = 16 * 1024
_MAX_HANDSHAKE_PARTS: Final = 250
"""The maximum number of objects and arrays in a long handshake; each takes about a hundred bytes when parsed."""


def get_meta(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `_meta` of a request; an empty object if it is not an object."""
    meta = (message.get("params") or {}).get("_meta")
    return meta if isinstance(meta, dict) else {}


def is_stateless_request(message: Mapping[str, Any]) -> bool:
    """Return whether a request declares its revision in `_meta` (MCP 2026-07-28); `initialize` never does."""
    return message["method"] != "initialize" and PROTOCOL_VERSION_META_KEY in get_meta(message)


def find_stateless_error(message: Mapping[str, Any], *, has_tasks: bool = False) -> ProtocolError | None:
    """Return the error for an invalid request in MCP 2026-07-28 and later; `None` if the request is valid, even if its
    method is unknown.

    Args:
        message: The request.
        has_tasks: True if the server has tasks.
    """
    params = message.get("params") or {}
    return _find_envelope_error(params.get("_meta")) or _find_error(message, stateless=True, has_tasks=has_tasks)


def refuse_late_handshake(message: Mapping[str, Any]) -> ProtocolError:
    """Return the error for a handshake on a stateless connection, which can occur only over stdio."""
    requested = (message.get("params") or {}).get("protocolVersion")
    data = {"requested": requested} if type(requested) is str else {}
    return ProtocolError(
        UNSUPPORTED_PROTOCOL_VERSION,
        "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted",
        {"supported": [*STATELESS], **data},
    )


def find_handshake_error(
    message: Mapping[str, Any], *, is_initialized: bool, has_tasks: bool = False
) -> ProtocolError | None:
    """Return the error for an invalid request in MCP 2025-11-25 and earlier; `None` if it is valid, even if its method
    is unknown.

    Args:
        message: The request.
        is_initialized: True after the handshake.
        has_tasks: True if the server has tasks.
    """
    if message["method"] == "initialize":
        if (error := find_size_error(message.get("params"))) is not None:
            return error
        return ProtocolError(INVALID_REQUEST, _ALREADY_INITIALIZED) if is_initialized else _find_error(message)
    if is_stateless_request(message):
        return ProtocolError(INVALID_REQUEST, _OTHER_ERA)
    return _find_error(message, has_tasks=has_tasks)


def find_unknown_revision(revision: str) -> ProtocolError | None:
    """Return the error for a revision that is unsupported without a handshake; `None` if it is supported."""
    if revision in STATELESS:
        return None
    data = {"supported": [*STATELESS], "requested": revision}
    return ProtocolError(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)


def refuse_unknown_method(method: str) -> ProtocolError:
    """Return the error for an unknown method (JSON-RPC 2.0, 5.1)."""
    return ProtocolError(METHOD_NOT_FOUND, "Method not found", method)


def refuse_parameters(error: str) -> ProtocolError:
    """Return the error for invalid parameters, with a description of one error."""
    return ProtocolError(INVALID_PARAMS, f"Invalid request parameters: {error}")


def refuse_before_handshake() -> ProtocolError:
    """Return the error for a request before the handshake (MCP 2025-11-25, basic/lifecycle, "Initialization")."""
    return ProtocolError(INVALID_PARAMS, "The connection is not initialized; send initialize first")


def refuse_id_in_use() -> ProtocolError:
    """Return the error for a request with a pending request's ID (JSON-RPC 2.0, 4)."""
    return ProtocolError(INVALID_REQUEST, "A request with this ID is in progress; use a unique ID for each request")


_ALREADY_INITIALIZED: Final = "The connection is already initialized; send initialize once, as its first request"
_OTHER_ERA: Final = (
    "This connection started with `initialize`; it does not accept requests with revision 2026-07-28 in `_meta`"
)


def _find_error(
    message: Mapping[str, Any], *, stateless: bool = False, has_tasks: bool = False
) -> ProtocolError | None:
    shape = find_shape(message["method"], stateless=stateless, has_tasks=has_tasks)
    if shape is None:
        return refuse_unknown_method(message["method"])
    params = message.get("params") or {}
    return None if shape.fits(params) else refuse_parameters(shape.explain(params, ""))


def find_size_error(params: object) -> ProtocolError | None:
    """Return the error for handshake parameters that are too large; `None` if they are not."""
    text = json.dumps(params, ensure_ascii=False, separators=(",", ":"))
    parts = text.count("{") + text.count("[")
    if len(text) <= _SHORT_HANDSHAKE or (len(text) <= _MAX_HANDSHAKE and parts <= _MAX_HANDSHAKE_PARTS):
        return None
    most = f"{_MAX_HANDSHAKE:,} bytes of JSON with {_MAX_HANDSHAKE_PARTS:,} objects and arrays"
    return ProtocolError(INVALID_PARAMS, f"The parameters of initialize are too large. Send at most {most}.")


def _find_envelope_error(meta: object) -> ProtocolError | None:
    """Return the error in a request's `_meta`: a missing key or unknown revision; `None` if it is valid."""
    keys = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
    if not isinstance(meta, dict):
        text = f"params._meta must be an object carrying the required {keys[0]!r} and {keys[1]!r} envelope keys"
        return ProtocolError(INVALID_PARAMS, text)
    if missing := [key for key in keys if key not in meta]:
        text = f"params._meta is missing the required envelope key(s): {', '.join(missing)}"
        return ProtocolError(INVALID_PARAMS, text)
    revision = meta[PROTOCOL_VERSION_META_KEY]
    if type(revision) is not str:
        return ProtocolError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    return find_unknown_revision(revision)
