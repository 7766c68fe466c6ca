"""Batches over HTTP (MCP 2025-03-26, basic, "Batching"). Each message is handled like a separate HTTP request."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from ...mcp.revisions import Revision, find_revision
from ..protocol.messages import encode_error, to_json
from .http.events import encode_event, wait_until_closed
from .http.keys import WIRE
from .http.uploads import replay_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ..protocol.messages import ParsedMessage

_REVISION: Final = Revision.from_date(find_revision("batches"))

_STREAM: Final = b"text/event-stream"

_ANSWERED: Final = (200, 400)
"""Statuses that concern one message. Any other status, such as 404, concerns the whole batch."""

_CURSOR: Final = re.compile(rb"^(?:id|retry):[^\n]*\n", re.MULTILINE)
"""The event fields for resumption. They are removed, because they would resume only one message's stream."""


async def answer_batch(
    entries: Sequence[ParsedMessage], endpoint: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Handle the messages of a batch, and send one response for all.

    Args:
        entries: The parsed messages.
        endpoint: Handles an HTTP request that contains one message.
        scope: The request's ASGI scope; the body has been read.
        receive: Returns when the client disconnects.
        send: Sends the response.
    """
    replies = _Replies(send)
    disconnected = asyncio.Event()
    watching = asyncio.create_task(_await_disconnect(receive, disconnected))
    try:
        async with asyncio.TaskGroup() as tasks:
            for entry in entries:
                if entry.answer is not None:
                    await replies.add(encode_event(encode_error(entry.answer.id, entry.answer.error, _REVISION)))
                if entry.message is not None:
                    tasks.create_task(_post(to_json(entry.message), endpoint, scope, disconnected, replies))
        await replies.end()
    finally:
        watching.cancel()


async def _await_disconnect(receive: Receive, disconnected: asyncio.Event) -> None:
    await wait_until_closed(receive)
    disconnected.set()


async def _post(body: bytes, endpoint: ASGIApp, scope: Scope, disconnected: asyncio.Event, replies: _Replies) -> None:
    async def disconnect() -> Message:
        await disconnected.wait()
        return {"type": "http.disconnect"}

    headers = [each for each in scope["headers"] if each[0] not in (b"content-length", b"transfer-encoding")]
    headers.append((b"content-length", str(len(body)).encode()))
    single = {
        key: value for key, value in scope.items() if key != WIRE
    }  # this connection carries one response to the whole batch
    await endpoint({**single, "headers": headers}, replay_body(body, disconnect), _Reply(replies).send)


class _Replies:
    """The HTTP response to a whole batch."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_started = self._has_ended = False
        self._sending = asyncio.Lock()

    async def add(self, event: bytes) -> None:
        async with self._sending:
            if self._has_ended:
                return
            if not self._has_started:
                self._has_started = True
                await self._start(200, [(b"content-type", _STREAM), (b"cache-control", b"no-cache, no-transform")])
            await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def refuse(self, start: Message, body: bytes) -> None:
        """Respond to the whole batch with one message's error, unless the response has started."""
        async with self._sending:
            if not self._has_started and not self._has_ended:
                self._has_ended = True
                await self._send(start)
                await self._send({"type": "http.response.body", "body": body})

    async def end(self) -> None:
        """End the response. If no event was sent, respond with 202."""
        async with self._sending:
            if self._has_ended:
                return
            self._has_ended = True
            if not self._has_started:
                await self._start(202, [(b"content-length", b"0")])
            await self._send({"type": "http.response.body", "body": b""})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})


class _Reply:
    """The response to one message of a batch, added to the batch's response."""

    def __init__(self, replies: _Replies) -> None:
        self._replies = replies
        self._start: Message = {}
        self._body = b""

    async def send(self, message: Message) -> None:
        """Process one ASGI message of the response."""
        if message["type"] == "http.response.start":
            self._start = message
        elif dict(self._start["headers"]).get(b"content-type", b"").startswith(_STREAM):
            if event := _CURSOR.sub(b"", message.get("body", b"")):
                await self._replies.add(event)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._end()

    async def _end(self) -> None:
        if self._start["status"] in _ANSWERED:
            await self._replies.add(encode_event(self._body))
        elif self._start["status"] != 202:
            await self._replies.refuse(self._start, self._body)
