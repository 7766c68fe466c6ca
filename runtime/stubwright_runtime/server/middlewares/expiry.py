"""Closes a stream when the caller's access token expires, so that the client reconnects with a new token."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from ..core.principal import find_access_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ..core.access_tokens import VerifiedToken

clock = time.time


def lifetime(token: VerifiedToken | None) -> float | None:
    """Return the seconds until a token expires; `None` if it does not expire."""
    return None if token is None or token.expires_at is None else max(0.0, token.expires_at - clock())


def token_lifetime() -> float | None:
    """Return the seconds until the current request's token expires; `None` if it does not expire."""
    return lifetime(find_access_token())


async def pass_while_valid(token: VerifiedToken, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run a streaming ASGI application, and end its response when the token expires."""
    left = lifetime(token)
    if left is None:
        await app(scope, receive, send)
        return
    end = asyncio.get_running_loop().time() + left
    is_open = False

    async def pass_received() -> Message:
        try:
            async with asyncio.timeout_at(end):
                return await receive()
        except TimeoutError:
            return {"type": "http.disconnect"}

    async def pass_sent(message: Message) -> None:
        nonlocal is_open
        is_open = message["type"] == "http.response.start" or bool(message.get("more_body"))
        await send(message)

    await app(scope, pass_received, pass_sent)
    if is_open:
        await send({"type": "http.response.body", "body": b""})
