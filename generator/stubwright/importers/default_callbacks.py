"""Client capabilities declared by imports, and responses to the server's requests.

Some servers offer certain tools only to clients with elicitation, sampling or roots. So imports declare all three, but
decline the requests, since there is no user to ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import mcp_types

from stubwright_runtime.client.rpc.mcp_error import MCPError

CAPABILITIES: Final[Mapping[str, Any]] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}}

_REJECTED: Final = -1
"""The error code for a rejected sampling request (MCP 2025-11-25, client/sampling, "Error Handling")."""


class DefaultCallbacks:
    """Declines the server's requests and records their methods."""

    def __init__(self) -> None:
        self._requested: dict[str, None] = {}  # an ordered set

    async def answer(self, _key: object, method: str, _params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Respond to a ping, decline elicitation and sampling, and reject unknown methods."""
        if method == "ping":
            return {}
        if method in ("elicitation/create", "roots/list", "sampling/createMessage"):
            self._requested[method] = None
        if method == "elicitation/create":
            return {"action": "decline"}
        if method == "roots/list":
            return {"roots": []}
        if method == "sampling/createMessage":
            raise MCPError(code=_REJECTED, message="User rejected sampling request")
        raise MCPError(code=mcp_types.METHOD_NOT_FOUND, message="Method not found")

    @property
    def notes(self) -> tuple[str, ...]:
        """A note on declined requests, if any."""
        if not self._requested:
            return ()
        methods = ", ".join(f"`{method}`" for method in self._requested)
        note = (
            f"requests from the server were declined: {methods}; "
            "the import declares sampling, elicitation and roots, so that the server lists everything"
        )
        return (note,)
