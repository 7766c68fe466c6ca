"""Requests over HTTP that are no message of JSON-RPC, or whose header contradicts them: they are refused.

Takes and gives ASGI. The SDK makes notifications of requests whose id is wrong, reads numbers that JSON does not have,
and says what its library for data says of its own classes; so what it gets is well-formed. What is not is refused as on
stdio, with the same codes and words. The SDK also picks the era of a request by its header alone, and looks into the
body only in the newer one. It knows no batches, so each of their messages comes by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers

from ....mcp.errors import INVALID_REQUEST, PARSE_ERROR, ProtocolError
from ....mcp.revisions import UNNAMED, Revision, negotiate
from ....observability.logs import Tally, log
from ...direct.keys import REVISION
from ...protocol.messages import Refusal, error_response, read
from ..batches import answer_batch
from .judging import find_other_revision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ...protocol.messages import Incoming

_LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a body; the SDK refuses what is larger."""


class BadRequests:
    """Passes requests on that are messages."""

    def __init__(self, app: ASGIApp, endpoint: ASGIApp, find_revision: Callable[[str | None, str], str | None]) -> None:
        """Take what answers them.

        Args:
            app: Answers them.
            endpoint: Answers each message of a batch.
            find_revision: Returns the revision of a session, if there is one; it also takes what the request names.
        """
        self._app = app
        self._endpoint = endpoint
        self._find_revision = find_revision
        self._refused = Tally(log(), "requests refused: %d; of the last: %s")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        messages = [await receive()]
        size = len(messages[0].get("body", b""))
        while messages[-1].get("more_body") and size <= _LARGEST:
            messages.append(await receive())
            size += len(messages[-1].get("body", b""))
        is_whole = messages[-1]["type"] == "http.request" and size <= _LARGEST
        body = b"".join(message.get("body", b"") for message in messages)
        if is_whole:
            entries = [*read(body)]
            is_batch = body.lstrip()[:1] == b"["
            if is_batch and any(entry.message for entry in entries) and self._takes_batches(scope):
                await answer_batch(entries, self._endpoint, scope, receive, send)
                return
            if (refusal := _refuse(entries, scope, is_batch=is_batch)) is not None:
                self._refused.count(refusal.error.message)
                await _answer(send, refusal)
                return
            if (revision := _find_handshake(entries)) is not None:
                scope = {**scope, REVISION: revision}
        waiting = iter(messages)

        async def again() -> Message:
            return next(waiting, None) or await receive()

        await self._app(scope, again, send)

    def _takes_batches(self, scope: Scope) -> bool:
        """Return whether a request is of a revision that has batches."""
        headers = Headers(scope=scope)
        named = headers.get("mcp-protocol-version", UNNAMED)
        revision = self._find_revision(headers.get("mcp-session-id"), named)
        return revision is not None and all(Revision.of(date).has("batches") for date in (named, revision))


def _find_handshake(entries: Sequence[Incoming]) -> str | None:
    """Return the revision that a handshake comes to, if the message is one."""
    message = entries[0].message or {}
    if "id" not in message or message.get("method") != "initialize":
        return None
    return negotiate(str((message.get("params") or {}).get("protocolVersion")))


def _refuse(entries: Sequence[Incoming], scope: Scope, *, is_batch: bool) -> Refusal | None:
    """Return what answers a body that is not one message, or not what its header says; `None` if it is."""
    if not entries:
        return _refusal(PARSE_ERROR, "is empty")
    if is_batch and not (entries[0].problem or "").startswith("is not valid JSON"):
        return _refusal(INVALID_REQUEST, "is a batch; send each message in a request of its own")
    [entry] = entries
    if entry.problem is None:
        message = entry.message or {}
        if message.keys() >= {"id", "method"} and (fault := find_other_revision(message, scope["headers"])) is not None:
            return Refusal(message["id"], fault)
        return None
    return entry.answer or _refusal(INVALID_REQUEST, entry.problem)


def _refusal(code: int, problem: str) -> Refusal:
    return Refusal(None, ProtocolError(code, f"The message {problem}"))


async def _answer(send: Send, refusal: Refusal) -> None:
    body = error_response(refusal.id, refusal.error)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
