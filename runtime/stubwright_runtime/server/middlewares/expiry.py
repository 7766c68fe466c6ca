"""Until when a caller's access token holds, and the end of what goes on that long.

Takes what the token's verifier says (`expires_at`, with the leeway that it gives); a token without is good for ever.
Streams end as if their server had closed them, so that their client comes back, with another token.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from ..core.principal import access_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ...sdk.auth import AccessToken
    from ...sdk.requests import CallNext, HandlerResult, ServerRequestContext

clock = time.time


def seconds_left(token: AccessToken | None) -> float | None:
    """Return how long a token still holds; `None` if it does not say."""
    return None if token is None or token.expires_at is None else max(0.0, token.expires_at - clock())


def own_seconds_left() -> float | None:
    """Return the same for the token of the request that is being answered."""
    return seconds_left(access_token())


async def end_stream_in_time(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """End the stream of a request with its caller's token, as a middleware, if its client can come back for the answer.

    What was called goes on, and its answer is kept for the client. Where a client cannot come back, the stream stays.
    """
    left, close = own_seconds_left(), ctx.close_sse_stream
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


async def while_it_holds(token: AccessToken, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass a request on whose answer is a stream without an end: that ends with the token."""
    left = seconds_left(token)
    if left is None:
        await app(scope, receive, send)
        return
    end = asyncio.get_running_loop().time() + left
    is_open = False

    async def received() -> Message:
        try:
            async with asyncio.timeout_at(end):
                return await receive()
        except TimeoutError:
            return {"type": "http.disconnect"}

    async def sent(message: Message) -> None:
        nonlocal is_open
        is_open = message["type"] == "http.response.start" or bool(message.get("more_body"))
        await send(message)

    await app(scope, received, sent)
    if is_open:
        await send({"type": "http.response.body", "body": b""})
