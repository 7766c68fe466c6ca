"""Negotiates the revision with `server/discover` or the `initialize` handshake (MCP 2026-07-28, basic/lifecycle)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    DiscoverResult,
    InitializeResult,
    UnsupportedProtocolVersionErrorData,
)
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)
from pydantic import ValidationError

from .mcp_error import MCPError

if TYPE_CHECKING:
    from .connection import RpcConnection

_PROBE: Final = 10.0
"""The maximum timeout in seconds for `server/discover`, before falling back to the handshake."""


async def discover(
    connection: RpcConnection, info: dict[str, Any], capabilities: dict[str, Any], seconds: float | None
) -> tuple[str, DiscoverResult] | None:
    """Return the revision and the `server/discover` response, or `None` if the server requires a handshake.

    Args:
        connection: The connection.
        info: The client's name and version (`clientInfo`).
        capabilities: The client's capabilities.
        seconds: The timeout, at most ten seconds.

    Raises:
        MCPError: The server supports only newer revisions, or the connection failed.
    """
    revision = LATEST_MODERN_VERSION
    for is_last in (False, True):
        meta = {
            PROTOCOL_VERSION_META_KEY: revision,
            CLIENT_INFO_META_KEY: info,
            CLIENT_CAPABILITIES_META_KEY: capabilities,
        }
        connection.revision = revision
        try:
            raw = await connection.request(
                "server/discover", {"_meta": meta}, seconds=_PROBE if seconds is None else min(seconds, _PROBE)
            )
        except MCPError as error:
            if connection.failure is not None:
                raise
            supported = list_supported(error)
            mutual = find_mutual(supported)
            if mutual is not None and not is_last:
                revision = mutual
                continue
            if supported and not any(version in HANDSHAKE_PROTOCOL_VERSIONS for version in supported):
                raise
            return None
        floor_ttl(raw)
        try:
            answer = DiscoverResult.model_validate(raw, by_name=False)
        except ValidationError:
            return None
        mutual = find_mutual(answer.supported_versions)
        return None if mutual is None else (mutual, answer)
    return None


async def run_handshake(
    connection: RpcConnection, info: dict[str, Any], capabilities: dict[str, Any], seconds: float | None
) -> InitializeResult:
    """Run the `initialize` handshake and return its response. The arguments are the same as for `discover`.

    Raises:
        MCPError: The server responds with an error or selects an unknown revision (`UNSUPPORTED_PROTOCOL_VERSION`).
        pydantic.ValidationError: The response is invalid.
    """
    connection.revision = LATEST_HANDSHAKE_VERSION
    params = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": capabilities, "clientInfo": info}
    raw = await connection.request("initialize", params, seconds=seconds)
    answer = InitializeResult.model_validate(raw, by_name=False)
    if answer.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        message = f"Unsupported protocol version from the server: {answer.protocol_version}"
        raise MCPError(code=UNSUPPORTED_PROTOCOL_VERSION, message=message)
    connection.revision = answer.protocol_version
    await connection.notify("notifications/initialized")
    return answer


def list_supported(error: MCPError) -> list[str]:
    """Return the server's revisions from an `UNSUPPORTED_PROTOCOL_VERSION` error; an empty list for any other error."""
    if error.code != UNSUPPORTED_PROTOCOL_VERSION:
        return []
    try:
        return UnsupportedProtocolVersionErrorData.model_validate(error.error.data).supported
    except ValidationError:
        return []


def find_mutual(supported: list[str]) -> str | None:
    """Return the newest revision that both sides support without a handshake, or `None`."""
    return next((version for version in reversed(MODERN_PROTOCOL_VERSIONS) if version in supported), None)


def floor_ttl(result: dict[str, Any]) -> None:
    """Replace a negative `ttlMs` with 0 (MCP 2026-07-28, server/utilities/caching)."""
    seconds = result.get("ttlMs")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds < 0:
        result["ttlMs"] = 0
