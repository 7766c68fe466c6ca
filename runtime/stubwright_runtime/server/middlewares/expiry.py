"""The expiry of a caller's access token, and the end of the streams that depend on it.

Takes the verifier's `expires_at`, with the leeway that it gives; a token without one never expires.
Streams end as if their server had closed them, so that their client comes back, with another token.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from ..core.principal import find_access_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ...sdk.auth import AccessToken
    from ...sdk.requests import CallNext, HandlerResult, ServerRequestContext

clock = time.time


def count_seconds_left(token: AccessToken | None) -> float | None:
    """Return the seconds until a token expires; `None` if it does not expire."""
    return None if token is None or token.expires_at is None else max(0.0, token.expires_at - clock())


def count_own_seconds_left() -> float | None:
    """Return the same for the token of the request that is being answered."""
    return count_seconds_left(find_access_token())


async def end_stream_in_time(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """End the stream of a request with its caller's token, as a middleware, if its client can come back for the answer.

    The call goes on, and its answer is kept for the client. If a client cannot come back, the stream stays.
    """
    left, close = count_own_seconds_left(), ctx.close_sse_stream
    if left is None or close is None:
        return await call_next(ctx)

    async def end() -> None:
        await asyncio.sleep(left)
        await close()

    ending = asyncio.create_task(end())
    try:
        return await call_next(ctx)
    finally:
        ending.cancel()


async def pass_while_valid(token: AccessToken, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass on a request whose answer is an endless stream, which ends with the token."""
    left = count_seconds_left(token)
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
