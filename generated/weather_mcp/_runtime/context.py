# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""What a handler knows about the call that it answers, and how it talks to the caller meanwhile.

Takes a channel, which the server's adapter to the protocol's library provides; gives a handler `ctx`. It holds no
state of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar, get_args

import anyio.from_thread

from .hygiene import clean, mirrored

if TYPE_CHECKING:
    from collections.abc import Awaitable

T = TypeVar("T")

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""How severe a message is, from least to most (RFC 5424, 6.2.1)."""

LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)


class Channel(Protocol):
    """The way to the caller of one request."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, where the caller asked for them."""

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message, where the caller wants messages of this level."""


@dataclass(frozen=True, slots=True)
class Context:
    """One call, seen from its handler.

    Attributes:
        request_id: The JSON-RPC id of the request.
        revision: The MCP revision that the caller speaks, such as `2025-11-25`.
        tool: The tool's name on the wire.
    """

    request_id: str | int
    revision: str
    tool: str
    _channel: Channel = field(repr=False)

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far the work is. Does nothing where the caller did not ask.

        Args:
            done: How much is done, in any unit; it must grow from call to call.
            total: How much there is to do, in the same unit, where that is known.
            message: What is being done.

        Raises:
            ValueError: A number is not finite.
        """
        if not math.isfinite(done) or not math.isfinite(total or 0):
            raise ValueError(f"progress is {done} of {total}; both must be finite")
        await self._channel.progress(done, total, None if message is None else clean(message))

    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send a message to the caller's log, where the caller wants messages of this level.

        Up to 2025-11-25 that is what `logging/setLevel` said last on the connection (`info` before it said anything);
        from 2026-07-28 each request says it for itself.

        Args:
            level: From `debug` to `emergency`.
            data: Text, or any JSON value.
            logger: Which part of the server speaks.

        Raises:
            ValueError: There is no such level, or `data` holds an infinite number.
            TypeError: `data` is no JSON.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"there is no log level {level!r}; the levels are {', '.join(LOG_LEVELS)}")
        await self._channel.log(level, mirrored(data)[0], logger)

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for `awaitable` in a plain `def` handler, as `await` does in an `async def` one.

        Example:
            `ctx.wait(ctx.progress(1, 3))`

        Raises:
            RuntimeError: The caller is not a plain `def` handler.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return anyio.from_thread.run(_result_of, awaitable)
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise RuntimeError("ctx.wait is for plain `def` handlers; in an `async def` one, use `await`")


async def _result_of(awaitable: Awaitable[T]) -> T:
    return await awaitable
