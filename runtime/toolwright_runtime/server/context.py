"""What a handler knows about the call that it answers, and how it talks to the caller meanwhile.

Takes a channel, which the server's adapter to the protocol's library provides; gives a handler `ctx`. It holds no
state of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    get_args,
)

import anyio.from_thread

from ..hygiene import clean
from .cancellation import Cancellation, is_cancelled
from .occupancy import Occupancy
from .sanitizing import mirrored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .lists import ResourceSwitches, Switches
    from .principal import Principal

T = TypeVar("T")

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""How severe a message is, from least to most (RFC 5424, 6.2.1)."""

LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)


_FEATURES: Final = {
    "can": "elicitation",
    "complete": "elicitation",
    "once": "elicitation",
    "roots": "sampling",
    "sample": "sampling",
    "url_required": "elicitation",
}
"""What `ctx` has beside, where the package has these features."""


class Channel(Protocol):
    """The way to the caller of one request."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, where the caller asked for them."""

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message, where the caller wants messages of this level."""

    async def subscribe(self, uri: str) -> None:
        """Tell the caller's connection of changes of a resource, up to 2025-11-25."""

    async def release(self) -> None:
        """Close the stream that carries the response, where the caller can come back for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One request, seen from its handler.

    Attributes:
        request_id: The JSON-RPC id of the request.
        revision: The MCP revision that the caller speaks, such as `2025-11-25`.
        name: What was asked for: the name of a tool or a prompt on the wire, or the URI of a resource.
        principal: Who asks: whoever the access token is for; on standard input and output `local`.
        tools: The server's tools, to switch them on and off for all clients.
        prompts: The server's prompts, likewise.
        resources: The server's resources and resource templates, likewise, and to tell that one changed.
        task_id: The id of the task in which the call goes on; `None` where it is none.
        cancellation: Whom to tell when this request is cancelled; `on_cancel` is the way to be told.
        occupancy: What this request takes up while it runs.
    """

    request_id: str | int
    revision: str
    name: str
    principal: Principal
    tools: Switches
    prompts: Switches
    resources: ResourceSwitches
    _channel: Channel = field(repr=False)
    task_id: str | None = field(repr=False, default=None)
    cancellation: Cancellation = field(repr=False, default_factory=Cancellation)
    occupancy: Occupancy = field(repr=False, default_factory=Occupancy)
    _handles: Any = field(repr=False, default=None)

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

    def on_cancel(self, function: Callable[[], object]) -> None:
        """Have `function` called when this request is cancelled while its handler runs (MCP 2025-11-25, cancellation).

        An `async def` handler is cancelled itself; this is for a plain `def`, whose thread nobody can stop.

        Args:
            function: Is called on the event loop, so that it must not block; where the request is cancelled already, at
                once. What it raises is logged.

        Example:
            `ctx.on_cancel(stop.set)`, with `stop = threading.Event()`
        """
        self.cancellation.add(function)

    async def release_stream(self) -> None:
        """Close the stream of this request, so that nothing holds a connection open while the work goes on.

        The client comes back for the response (MCP 2025-11-25, basic/transports, "Resumability and Redelivery"). Where
        it cannot, as over stdio or with an older client, nothing happens.
        """
        await self._channel.release()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what the manifest lacks. Raises AttributeError."""
            if name in _FEATURES:
                message = f"`ctx.{name}` needs `python: {{features: [{_FEATURES[name]}]}}` in the manifest"
                raise AttributeError(message, name=name, obj=self)
            raise AttributeError(f"`ctx` has no `{name}`", name=name, obj=self)

    def leaves(self, error: BaseException) -> bool:
        """Whether what leaves the handler is no failure of its own: its request is being cancelled."""
        return is_cancelled(error)

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
