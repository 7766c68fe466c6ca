"""A new session in the place of one that the server no longer knows.

Takes what a connection over HTTP sends, and the requests that were refused with HTTP 404 because of their session;
shakes hands again, and sends those requests once more (MCP 2025-11-25, basic/transports, "Session Management"). A
request that was refused in this way was not run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from ...observability.logs import log
from ...values.terminal import to_one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCRequest, RequestId

    from .guarded import UnderWay
    from .refusals import Refusal

_SECONDS: Final = 30.0
"""The time limit in seconds for the new handshake and for subscribing again."""

_REPLACED: Final = 100
"""The number of replaced sessions that are remembered: late refusals name one of the last."""

_CHANGES_SESSION: Final = {"resources/subscribe": "uri", "resources/unsubscribe": "uri", "logging/setLevel": ""}
"""The requests that a server remembers for a session, and the parameter by which it tells them apart."""


class Renewal:
    """The sessions of one connection.

    Attributes:
        is_running: Whether requests wait for a session.
    """

    def __init__(
        self,
        send: Callable[[SessionMessage], Awaitable[None]],
        send_again: Callable[[UnderWay], Awaitable[None]],
        refuse: Callable[[UnderWay, Refusal], None],
    ) -> None:
        """Take functions that send a message, send a caller's request again, and give that caller an error."""
        self.is_running = False
        self._send = send
        self._send_again = send_again
        self._refuse = refuse
        self._initialize: JSONRPCRequest | None = None
        self._revision = ""
        self._remembered: dict[tuple[str, Any], SessionMessage] = {}
        self._waiting: dict[RequestId, UnderWay] = {}
        self._answers: dict[RequestId, asyncio.Future[tuple[SessionMessage, Refusal | None]]] = {}
        self._replaced: deque[str | None] = deque(maxlen=_REPLACED)
        self._lost: Refusal | None = None
        self._numbers = count(1)

    def note_success(self, request: UnderWay, result: dict[str, Any]) -> None:
        """Note a successful request whose effect the session remembers."""
        from mcp_types import JSONRPCRequest

        message = request.item.message
        if not isinstance(message, JSONRPCRequest):
            return
        if message.method == "initialize":
            self._initialize, self._revision = message, str(result.get("protocolVersion"))
        elif message.method in _CHANGES_SESSION:
            key = (message.params or {}).get(_CHANGES_SESSION[message.method])
            if message.method == "resources/unsubscribe":
                self._remembered.pop(("resources/subscribe", key), None)
            else:
                self._remembered[message.method, key] = request.item

    def forget(self, key: RequestId) -> bool:
        """Drop a request whose caller has given up; return whether it was waiting, so that no server runs it."""
        return self._waiting.pop(key, None) is not None

    def hold(self, key: RequestId, request: UnderWay) -> None:
        """Keep a new request until there is a session."""
        self._waiting[key] = request

    def accept(self, key: RequestId, request: UnderWay, refusal: Refusal) -> bool:
        """Accept a refused request to be sent again, once `run` is called, and tell whether it will be.

        Args:
            key: The request's id.
            request: The request.
            refusal: The refusal: the server does not know the session.
        """
        # A server that forgets each new session would be asked without end.
        if self._initialize is None or request.is_sent_again:
            return False
        self._waiting[key] = replace(request, is_sent_again=True)
        if refusal.session not in self._replaced:  # otherwise another request was refused first
            self._lost = refusal
        return True

    def take_answer(self, key: RequestId, item: SessionMessage, refusal: Refusal | None) -> bool:
        """Take the answer to a request of this class itself, and tell whether it was one."""
        answer = self._answers.pop(key, None)
        if answer is not None and not answer.done():
            answer.set_result((item, refusal))
        return answer is not None

    async def run(self) -> None:
        """Begin a session if the last one is lost, and send the requests that wait for it."""
        try:
            while self._waiting:
                if self._lost is None:
                    await self._send_again(self._waiting.pop(next(iter(self._waiting))))
                    continue
                refusal, self._lost = self._lost, None
                self._replaced.append(refusal.session)  # now, since more refusals of the same session come meanwhile
                if (wrong := await self._begin_session()) is not None:
                    self._replaced.remove(refusal.session)  # the next request tries again
                    why = f"no longer knows the session of this client, and begins no other: {wrong}"
                    waiting, self._waiting = self._waiting, {}
                    for request in waiting.values():
                        self._refuse(request, replace(refusal, why=why))
        finally:
            self.is_running = False

    async def _begin_session(self) -> str | None:
        """Shake hands, and have the server remember what it remembered; return why that failed."""
        import anyio
        from mcp_types import JSONRPCError

        has_begun = False
        with anyio.move_on_after(_SECONDS):
            wrong = await self._shake_hands()
            if wrong is not None:
                return wrong
            has_begun = True
            # A copy: answers that come meanwhile change what is remembered.
            for item in list(self._remembered.values()):
                answer, _ = await self._ask(item)
                if isinstance(answer.message, JSONRPCError):
                    why = to_one_line(answer.message.error.message)
                    log().warning("the server refused to subscribe again, in a new session: %s", why)
            return None
        return None if has_begun else f"the server did not answer in {_SECONDS:.0f} seconds"

    async def _shake_hands(self) -> str | None:
        from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
        from mcp.shared.message import ClientMessageMetadata, SessionMessage
        from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

        if self._initialize is None:
            return "there was no handshake"
        params = {**(self._initialize.params or {}), "protocolVersion": self._revision}
        answer, refusal = await self._ask(SessionMessage(self._initialize.model_copy(update={"params": params})))
        if refusal is not None:
            return refusal.why
        if isinstance(answer.message, JSONRPCError):
            return answer.message.error.message
        if not isinstance(answer.message, JSONRPCResponse):
            return "the server's answer is not what MCP says"
        revision = answer.message.result.get("protocolVersion")
        if revision != self._revision:  # what was agreed on, the SDK's session does not change any more
            return f"the server speaks {revision!r} now, and no longer {self._revision!r}"
        headers = {MCP_PROTOCOL_VERSION_HEADER: self._revision}
        ready = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
        await self._send(SessionMessage(ready, metadata=ClientMessageMetadata(headers=headers)))
        return None

    async def _ask(self, item: SessionMessage) -> tuple[SessionMessage, Refusal | None]:
        """Send a request with an id of its own, and wait for its answer."""
        key = f"session-{next(self._numbers)}"
        answer: asyncio.Future[tuple[SessionMessage, Refusal | None]] = asyncio.get_running_loop().create_future()
        self._answers[key] = answer
        await self._send(replace(item, message=item.message.model_copy(update={"id": key})))
        return await answer
