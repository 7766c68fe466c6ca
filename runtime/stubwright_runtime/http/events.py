"""Reads event streams from APIs, reports each event as progress, and joins the events into a result.

An endless stream is cut off shortly before the call's timeout.
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
    from .requests import Api, ReadEvents

_SHOWN: Final = 300
"""The maximum length of an event in a progress message, in characters."""

_EARLY: Final = 0.1
"""Fraction of a call's timeout reserved for returning the result of an endless stream."""


def make_event_reader(ctx: Context, api: Api, *, wants_json: bool) -> ReadEvents:
    """Return a function that reads a stream, reports each event to the caller, and returns the media type and body."""

    async def read_events(chunks: AsyncIterator[bytes], secrets: Sequence[str]) -> tuple[str, bytes]:
        async def report(number: int, data: str) -> None:
            # Redact first, because truncating could split a secret.
            await ctx.progress(number, None, conceal_text(data, secrets)[:_SHOWN])

        events = await read(chunks, api.most, api.timeout, report)
        return "application/json" if wants_json else "text/plain; charset=utf-8", join_events(
            events, wants_json=wants_json
        )

    return read_events


async def read(
    chunks: AsyncIterator[bytes], most: int, seconds: float, report: Callable[[int, str], Awaitable[None]]
) -> list[str]:
    """Return the data of all events in a stream.

    Args:
        chunks: The response body.
        most: The maximum body size in bytes.
        seconds: The call's timeout.
        report: Called with each event's number and data.

    Raises:
        ToolError: The stream is too large.
    """
    events: list[str] = []
    reader, size = EventReader(), 0
    with anyio.move_on_after(seconds * (1 - _EARLY)):
        async for chunk in chunks:
            size += len(chunk)
            if size > most:
                raise ToolError(f"The API's response is larger than {most:,} bytes; request less data.")
            for data in reader.feed(chunk):
                events.append(data.decode("utf-8", "replace"))
                await report(len(events), events[-1])
    return events


def join_events(events: list[str], *, wants_json: bool) -> bytes:
    """Return the last JSON event if the tool expects JSON, else the data of all events."""
    if wants_json:
        for event in reversed(events):
            try:
                json.loads(event)
            except (ValueError, RecursionError):
                continue
            return event.encode()
    return "\n".join(events).encode()
