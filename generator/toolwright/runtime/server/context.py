"""What a handler knows about the call that it answers, and how it talks to the caller meanwhile.

Takes a channel, which the server's adapter to the protocol's library provides; gives a handler `ctx`. It holds no
state of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar, get_args, overload

import anyio.from_thread
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ListRootsRequest,
    ListRootsResult,
    ModelPreferences,
    Root,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
)

from .cancellation import Cancellation
from .sanitizing import clean, mirrored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from .elicitation import Rounds
    from .lists import ResourceSwitches, Switches

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

    async def release(self) -> None:
        """Close the stream that carries the response, where the caller can come back for it."""


@dataclass(frozen=True, slots=True)
class Context:
    """One request, seen from its handler.

    Attributes:
        request_id: The JSON-RPC id of the request.
        revision: The MCP revision that the caller speaks, such as `2025-11-25`.
        name: What was asked for: the name of a tool or a prompt on the wire, or the URI of a resource.
        tools: The server's tools, to switch them on and off for all clients.
        prompts: The server's prompts, likewise.
        resources: The server's resources and resource templates, likewise, and to tell that one changed.
        rounds: The questions of this request and what was answered so far; `ask` is the way to put them.
        cancellation: Whom to tell when this request is cancelled; `on_cancel` is the way to be told.
    """

    request_id: str | int
    revision: str
    name: str
    tools: Switches
    prompts: Switches
    resources: ResourceSwitches
    rounds: Rounds = field(repr=False)
    _channel: Channel = field(repr=False)
    _questions: Mapping[str, Any] = field(repr=False, default_factory=dict)
    cancellation: Cancellation = field(repr=False, default_factory=Cancellation)

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

    def can(self, capability: str) -> bool:
        """Whether the client can do something, as it declared.

        Args:
            capability: `elicitation` (with a form), `elicitation.url`, `sampling`, `sampling.tools` or `roots`.
        """
        return self.rounds.can(capability)

    @overload
    async def sample(
        self,
        messages: str | Sequence[SamplingMessage],
        *,
        max_tokens: int = ...,
        system: str | None = ...,
        temperature: float | None = ...,
        stop: Sequence[str] | None = ...,
        model: ModelPreferences | None = ...,
        tools: None = None,
        tool_choice: None = None,
        key: str = ...,
    ) -> CreateMessageResult: ...

    @overload
    async def sample(
        self,
        messages: str | Sequence[SamplingMessage],
        *,
        max_tokens: int = ...,
        system: str | None = ...,
        temperature: float | None = ...,
        stop: Sequence[str] | None = ...,
        model: ModelPreferences | None = ...,
        tools: Sequence[Tool],
        tool_choice: ToolChoice | None = ...,
        key: str = ...,
    ) -> CreateMessageResultWithTools: ...

    async def sample(
        self,
        messages: str | Sequence[SamplingMessage],
        *,
        max_tokens: int = 1000,
        system: str | None = None,
        temperature: float | None = None,
        stop: Sequence[str] | None = None,
        model: ModelPreferences | None = None,
        tools: Sequence[Tool] | None = None,
        tool_choice: ToolChoice | None = None,
        key: str = "sample",
    ) -> CreateMessageResult | CreateMessageResultWithTools:
        """Have the client's model go on with a conversation (MCP 2025-11-25, client/sampling).

        Args:
            messages: The conversation; a text is one message of the user.
            max_tokens: How many tokens the model may write.
            system: A system prompt; the client may change it.
            temperature: How freely the model writes.
            stop: Texts that end the answer.
            model: Which models are preferred.
            tools: Tools that the model may ask to be called; needs the capability `sampling.tools`.
            tool_choice: Whether it may, or must.
            key: What this question is called among those of the request, where several are asked together.

        Raises:
            MissingCapability: The client has no model to offer.
        """
        said = (
            [SamplingMessage(role="user", content=TextContent(type="text", text=clean(messages)))]
            if isinstance(messages, str)
            else [*messages]
        )
        params = CreateMessageRequestParams(
            messages=said,
            max_tokens=max_tokens,
            system_prompt=system,
            temperature=temperature,
            stop_sequences=None if stop is None else [*stop],
            model_preferences=model,
            tools=None if tools is None else [*tools],
            tool_choice=tool_choice,
        )
        request = CreateMessageRequest(params=params)
        if tools is None:
            return await self.rounds.ask(key, request, CreateMessageResult, _same, "sampling")
        return await self.rounds.ask(key, request, CreateMessageResultWithTools, _same, "sampling.tools")

    async def roots(self, key: str = "roots") -> list[Root]:
        """The folders that the client lets the server work in (MCP 2025-11-25, client/roots).

        Raises:
            MissingCapability: The client has no folders to tell of.
        """
        return await self.rounds.ask(key, ListRootsRequest(), ListRootsResult, lambda result: result.roots, "roots")

    async def once(self, key: str, function: Callable[[], Awaitable[T] | T]) -> T:
        """What `function` gives, called once in the whole request.

        From 2026-07-28 a handler that asks runs again with each answer; what may happen only once, such as a payment,
        goes through here. What it gave travels, sealed, with the question.

        Args:
            key: What to keep the result by.
            function: An `async def`, or a plain `def`, which runs in a worker thread; gives JSON.

        Raises:
            TypeError: What it gave is no JSON.
        """
        value: T = await self.rounds.once(key, function)
        return value

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


def _same(result: T) -> T:
    return result
