# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""An HTTP client for the SDK's transport to which a failing network is an answer, and not the end of everything.

Takes requests and gives responses, as `httpx2.AsyncClient` does. An exception would end the SDK's whole transport, and
with it every other call and the caller's block; as an answer it fails the one call that it belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httpx2
from mcp_types import CONNECTION_CLOSED

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS: Final = 30.0
"""For connecting and for writing a request. How long an answer may take, the call's own timeout says."""


class NetworkClient(httpx2.AsyncClient):
    """Sends as its base does, and answers HTTP 503 with a JSON-RPC error where there is no response."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        """Take the headers that every request has."""
        super().__init__(headers=dict(headers), timeout=httpx2.Timeout(_SECONDS, read=None))

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; never raises `httpx2.TransportError`."""
        try:
            return await super().send(request, **options)
        except httpx2.TransportError as error:
            place = request.url.copy_with(userinfo=b"", query=None, fragment=None)  # these may be secret
            message = f"no answer from {place}: {str(error) or type(error).__name__}"
            body = {"jsonrpc": "2.0", "id": None, "error": {"code": CONNECTION_CLOSED, "message": message}}
            return httpx2.Response(503, json=body, request=request)
