"""Requests over HTTP that are no message of JSON-RPC: what is wrong with them, in the words that stdio has for it.

Takes and gives ASGI. The SDK answers such a request, up to 2025-11-25, with what its library for data says of its own
classes; of that answer only the message is changed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from starlette.datastructures import Headers, MutableHeaders

from ..framing import incoming

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BAD_REQUEST: Final = 400
_LONGEST: Final = 64 * 1024
"""Bytes of a request that are kept until it is answered."""

_OF_THE_SDK: Final = ("Parse error: ", "Validation error: ")


class BadRequests:
    """Passes requests on."""

    def __init__(self, app: ASGIApp) -> None:
        """Take the application that answers them."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and put its refusal into plain words."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        request_body, response_body = bytearray(), bytearray()
        start: Message | None = None

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request" and len(request_body) <= _LONGEST:
                request_body.extend(message.get("body", b"")[: _LONGEST + 1])
            return message

        async def sent(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_refusal(message):
                start = message
                return
            if start is None:
                request_body.clear()
                await send(message)
                return
            response_body.extend(message.get("body", b""))
            if message.get("more_body", False):
                return
            body = _reword(bytes(response_body), bytes(request_body))
            headers = MutableHeaders(raw=[*start["headers"]])
            headers["content-length"] = str(len(body))
            await send({**start, "headers": headers.raw})
            await send({**message, "body": body})

        await self._app(scope, received, sent)


def _is_refusal(start: Message) -> bool:
    kind = Headers(raw=start["headers"]).get("content-type", "")
    return start["status"] == _BAD_REQUEST and kind.startswith("application/json")


def _reword(response_body: bytes, request_body: bytes) -> bytes:
    """The answer, where it is one in the library's words, in ours; else as it is."""
    refusal: dict[str, Any] = json.loads(response_body)
    if not refusal["error"]["message"].startswith(_OF_THE_SDK):
        return response_body
    problems = (
        [entry.problem for entry in incoming(request_body) if entry.problem] if len(request_body) <= _LONGEST else []
    )
    refusal["error"]["message"] = f"The message {problems[0] if problems else 'is not a JSON-RPC 2.0 request'}"
    return json.dumps(refusal, ensure_ascii=False, separators=(",", ":")).encode()
