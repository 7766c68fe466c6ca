"""Recovers HTTP sessions: after a 404, the client starts a new session and resends the request (MCP 2025-11-25)."""

from __future__ import annotations

import asyncio
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp_types import INVALID_REQUEST

from ...observability.logs import log
from ...values.terminal import to_one_line
from ..rpc.mcp_error import MCPError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .http import HttpTransport
    from .refusals import Refusal

_SECONDS: Final = 30.0
"""The timeout for the handshake and for restoring the session, in seconds."""

_CHANGES_SESSION: Final = {"resources/subscribe": "uri", "resources/unsubscribe": "uri", "logging/setLevel": ""}
"""Requests that change a session's state, with the parameter that names what they change."""


class Sessions:
    """One connection's sessions.

    Attributes:
        session: The session ID, or `None`.
    """

    def __init__(self, transport: HttpTransport) -> None:
        self.session: str | None = None
        self._transport = transport
        self._initialize: Mapping[str, Any] | None = None
        self._remembered: dict[tuple[str, Any], Mapping[str, Any]] = {}
        self._renewal: asyncio.Task[None] | None = None
        self._numbers = count(1)

    def record_start(self, method: str, session: str | None) -> None:
        """Store the session ID from the response to `initialize`."""
        if method == "initialize":
            self.session = session

    async def send(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Send a request, and resend it in a new session if the server has lost the session.

        Raises:
            MCPError: The server sends no valid response.
        """
        from .http import SessionLostError

        if self._renewal is not None:
            await self._wait_for_renewal(self._renewal, message)
        deliver = self._transport.connection.receive_message
        if message["method"] == "initialize" or message["method"] in _CHANGES_SESSION:
            deliver = partial(self._deliver, message)
        try:
            await self._transport.exchange(message, headers, deliver)
        except SessionLostError as lost:
            # Otherwise another request has started a new session.
            if self._renewal is None and self.session == lost.refusal.session:
                self._renewal = asyncio.get_running_loop().create_task(self._renew(lost.refusal))
            if self._renewal is not None:
                await self._wait_for_renewal(self._renewal, message)
            try:
                await self._transport.exchange(message, headers, deliver)
            except SessionLostError as again:
                raise _make_error(again.refusal) from None

    def _deliver(self, message: Mapping[str, Any], received: dict[str, Any], size: int) -> None:
        if "result" in received:
            self._remember(message)
        self._transport.connection.receive_message(received, size)

    def _remember(self, message: Mapping[str, Any]) -> None:
        method = message["method"]
        if method == "initialize":
            self._initialize = message
        elif method in _CHANGES_SESSION:
            subject = (message.get("params") or {}).get(_CHANGES_SESSION[method])
            self._remembered.pop(("resources/subscribe", subject), None)
            if method != "resources/unsubscribe":
                self._remembered[method, subject] = message

    async def _wait_for_renewal(self, renewal: asyncio.Task[None], message: Mapping[str, Any]) -> None:
        try:
            await asyncio.shield(renewal)
        except asyncio.CancelledError:
            self._transport.connection.mark_unsent(message["id"])  # the server rejected the request
            raise
        except MCPError as error:
            raise copy(error) from None  # each waiting request raises its own copy

    async def _renew(self, lost: Refusal) -> None:
        """Start a new session. Raises MCPError if the session cannot be started."""
        try:
            if self._initialize is None:
                raise _make_error(lost)
            wrong = await self._begin(self._initialize)
            if wrong is not None:
                self.session = lost.session  # the next request starts another attempt
                why = f"no longer recognizes the client's session, and a new session could not be started: {wrong}"
                raise _make_error(replace(lost, why=why))
        finally:
            self._renewal = None

    def stop(self) -> None:
        """Cancel a renewal in progress."""
        if self._renewal is not None:
            self._renewal.cancel()

    async def _begin(self, initialize: Mapping[str, Any]) -> str | None:
        """Repeat the handshake and restore the session's state. Return the reason for a failure, or `None`."""
        has_begun = False
        revision = self._transport.connection.revision
        with anyio.move_on_after(_SECONDS):
            try:
                params = {**(initialize.get("params") or {}), "protocolVersion": revision}
                result = await self._ask({**initialize, "params": params})
            except MCPError as error:
                return getattr(error, "why", error.message)
            if result.get("protocolVersion") != revision:  # the revision of a connection cannot change
                return f"the server's revision changed from {revision!r} to {result.get('protocolVersion')!r}"
            await self._transport.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            has_begun = True
            # Iterate over a copy, because responses may change the dictionary in the meantime.
            for message in list(self._remembered.values()):
                try:
                    await self._ask(message)
                except MCPError as error:
                    why = to_one_line(error.message)
                    log().warning("a subscription could not be restored in the new session: %s", why)
            return None
        return None if has_begun else f"the server did not respond within {_SECONDS:.0f} seconds"

    async def _ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request under a new ID and return its result. Raises MCPError for an error response."""
        from .http import SessionLostError

        answers: list[dict[str, Any]] = []

        def deliver(received: dict[str, Any], size: int) -> None:
            if received.keys() & {"result", "error"}:
                answers.append(received)
            else:
                self._transport.connection.receive_message(received, size)

        try:
            await self._transport.exchange({**message, "id": f"session-{next(self._numbers)}"}, {}, deliver)
        except SessionLostError as lost:
            raise _make_error(lost.refusal) from None
        error = answers[-1].get("error")
        if error is not None:
            raise MCPError(code=error["code"], message=error["message"])
        result: dict[str, Any] = answers[-1]["result"]
        return result


def _make_error(refusal: Refusal) -> MCPError:
    return refusal.to_error(MCPError(code=INVALID_REQUEST, message=refusal.why))
