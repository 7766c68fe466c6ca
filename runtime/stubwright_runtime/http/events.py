"""Answers that come as events: told as they arrive, and a result when they end.

A stream that does not end is cut a little before the call's time has ended, with what came until then.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import anyio

from ..errors import ToolError
from ..values.event_streams import EventReader
from .responses import conceal_text

if TYPE_CHECKING:
    from ..server.features.context import Context
    from .requests import Api, Hear

_SHOWN: Final = 300
"""Characters of an event that progress shows."""

_EARLY: Final = 0.1
"""The fraction of a call's time that is retained for the result of a stream that does not end."""


def make_listener(ctx: Context, api: Api, *, wants_json: bool) -> Hear:
    """Return a function that makes a media type and a body of a stream, and reports each event to the caller."""

    async def listen(chunks: AsyncIterator[bytes], secrets: Sequence[str]) -> tuple[str, bytes]:
        async def tell(number: int, data: str) -> None:
            # Cut afterwards: the start of a secret would not be found.
            await ctx.progress(number, None, conceal_text(data, secrets)[:_SHOWN])

        events = await read(chunks, api.most, api.timeout, tell)
        return "application/json" if wants_json else "text/plain; charset=utf-8", join_events(
            events, wants_json=wants_json
        )

    return listen


async def read(
    chunks: AsyncIterator[bytes], most: int, seconds: float, tell: Callable[[int, str], Awaitable[None]]
) -> list[str]:
    """Return the data of the events of a stream.

    Args:
        chunks: The bytes.
        most: The most bytes in all.
        seconds: How long the call may take.
        tell: Called for each event with its number and its data.

    Raises:
        ToolError: The stream has more bytes.
    """
    events: list[str] = []
    reader, size = EventReader(), 0
    with anyio.move_on_after(seconds * (1 - _EARLY)):
        async for chunk in chunks:
            size += len(chunk)
            if size > most:
                raise ToolError(f"The API's answer is larger than {most:,} bytes; ask for less.")
            for data in reader.feed(chunk):
                events.append(data.decode("utf-8", "replace"))
                await tell(len(events), events[-1])
    return events


def join_events(events: list[str], *, wants_json: bool) -> bytes:
    """Join the events of a stream: the last JSON event if the tool expects JSON; otherwise the data of all."""
    if wants_json:
        for event in reversed(events):
            try:
                json.loads(event)
            except (ValueError, RecursionError):
                continue
            return event.encode()
    return "\n".join(events).encode()
