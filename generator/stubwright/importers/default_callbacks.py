"""The capabilities that an import declares while a server lists its entries, and the answers to its requests.

Some servers offer tools only to clients that can answer questions, sample a model or list roots. So all of these are
declared, and no request is granted: there is no user to ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import mcp_types

from stubwright_runtime.client.rpc.mcp_error import MCPError

CAPABILITIES: Final[Mapping[str, Any]] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}}

_REJECTED: Final = -1
"""The code of a sample that a person did not allow (MCP 2025-11-25, client/sampling, "Error Handling")."""


class DefaultCallbacks:
    """The client's side of a connection. It declines, and remembers the requests."""

    def __init__(self) -> None:
        self._asked: dict[str, None] = {}  # a set in the order of its items

    async def answer(self, _key: object, method: str, _params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Answer a request of the server: a ping succeeds, questions are declined, all else is an unknown method."""
        if method == "ping":
            return {}
        if method in ("elicitation/create", "roots/list", "sampling/createMessage"):
            self._asked[method] = None
        if method == "elicitation/create":
            return {"action": "decline"}
        if method == "roots/list":
            return {"roots": []}
        if method == "sampling/createMessage":
            raise MCPError(code=_REJECTED, message="User rejected sampling request")
        raise MCPError(code=mcp_types.METHOD_NOT_FOUND, message="Method not found")

    @property
    def notes(self) -> tuple[str, ...]:
        """The note about the server's requests; empty if it made none."""
        if not self._asked:
            return ()
        asked = ", ".join(f"`{method}`" for method in self._asked)
        note = (
            f"the server asked its client for {asked}, and was declined; "
            "sampling, elicitation and roots were declared, so that it offers all that it has"
        )
        return (note,)
