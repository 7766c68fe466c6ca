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
    Generic,
    Protocol,
    Self,
    TypeVar,
    overload,
)

from ...mcp.vocabulary import LOG_LEVELS, LogLevel
from ...observability.logs import log
from ...values.sanitizing import clean
from ..execution.cancellation import Cancellation, is_cancelled
from ..execution.slots import Slot
from .sanitizing import encode_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from mcp_types import (
        CreateMessageResult,
        CreateMessageResultWithTools,
        ModelPreferences,
        Root,
        SamplingMessage,
        Tool,
        ToolChoice,
    )

    from ..features.input_requests import InputRequests
    from ..features.url_elicitation import UrlRequired
    from .lists import ResourceSwitches, Switches
    from .principal import Principal

T = TypeVar("T")


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


class Progress:
    """How far a request is, as its caller was told."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        """Begin with nothing told."""
        self._done = -math.inf

    def grows(self, done: float) -> bool:
        """Note how far it is; whether that is further than before."""
        if done <= self._done:
            return False
        self._done = done
        return True


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
        slot: What this request takes up while it runs.
        rounds: The questions of this request and what was answered so far; `ask` is the way to put them.
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
    slot: Slot = field(repr=False, default_factory=Slot)
    rounds: InputRequests = field(repr=False)
    _questions: Mapping[str, Any] = field(repr=False, default_factory=dict[str, Any])
    _handles: Any = field(repr=False, default=None)
    _page: Any = field(repr=False, default=None)
    _progress: Progress = field(repr=False, default_factory=Progress)

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far the work is. Does nothing where the caller did not ask.

        Args:
            done: How much is done, in any unit; what does not grow is not sent (MCP 2025-11-25,
                basic/utilities/progress: it MUST increase).
            total: How much there is to do, in the same unit, where that is known.
            message: What is being done.

        Raises:
            ValueError: A number is not finite.
        """
        if not math.isfinite(done) or not math.isfinite(total or 0):
            raise ValueError(f"progress is {done} of {total}; both must be finite")
        if not self._progress.grows(done):
            log().debug("%s: progress %s is not sent, since it does not grow", self.name, done)
            return
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
            raise ValueError(f"{level!r} is not a log level; the levels are {', '.join(LOG_LEVELS)}")
        await self._channel.log(level, encode_json(data)[0], logger)

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

    def can(self, capability: str) -> bool:
        """Tell whether the client can do something, as it declared.

        Args:
            capability: `elicitation` (with a form), `elicitation.url`, `sampling`, `sampling.tools` or `roots`.
        """
        return self.rounds.can(capability)

    async def once(self, key: str, function: Callable[[], Awaitable[T] | T]) -> T:
        """Return what `function` gives, called once in the whole request.

        From 2026-07-28 a handler that asks runs again with each answer; what may happen only once, such as a payment,
        goes through here. What it gave travels, encrypted, with the question.

        Args:
            key: What to keep the result by.
            function: An `async def`, or a plain `def`, which runs in a worker thread; gives JSON.

        Raises:
            TypeError: What it gave is no JSON.
        """
        value: T = await self.rounds.once(key, function)
        return value

    async def complete(self, elicitation: str) -> bool:
        """Tell the client that all is done at the URL of a question (MCP 2025-11-25, client/elicitation).

        From 2026-07-28 on, where the client comes back by itself, nothing happens. After the request,
        `server.complete(elicitation)` does the same.

        Args:
            elicitation: The id that the question was asked with; it is also that of its answer, `Accepted`.

        Returns:
            Whether a client was told. Each question is told of once.
        """
        return await self.rounds.complete(elicitation)

    def url_required(
        self, name: str, url: str, message: str | None = None, *, elicitation: str | None = None
    ) -> UrlRequired:
        """Return what to raise where the request cannot go on before the user has been at a URL, such as to sign in.

        A client of 2025-11-25 gets the error -32042, and sends the request again when all is done there. From
        2026-07-28 on it is asked as by `ctx.ask`, and the handler runs again with its answer.

        Args:
            name: One of the questions with `mode: url` that the manifest has for this handler.
            url: An http or https URL.
            message: What the user reads, in place of the manifest's words.
            elicitation: An id for the question that nobody can guess; by default there is a new one.

        Raises:
            KeyError: There is no such question.
            ValueError: The URL is none of the web.
        """
        from ..features.input_requests import url_required

        question = self._questions.get(name, {})
        if question.get("mode") != "url":
            raise KeyError(f"the manifest has no question {name!r} with `mode: url`")
        return url_required(name, url, message or question["message"], elicitation)

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
        from ..features.sampling import conversation, sample

        request = conversation(messages, max_tokens, system, temperature, stop, model, tools, tool_choice)
        return await sample(self.rounds, key, request)

    async def roots(self, key: str = "roots") -> list[Root]:
        """Return the folders that the client lets the server work in (MCP 2025-11-25, client/roots).

        Raises:
            MissingCapability: The client has no folders to tell of.
        """
        from ..features.sampling import roots

        return await roots(self.rounds, key)

    def leaves(self, error: BaseException) -> bool:
        """Tell whether what leaves the handler is no failure of its own: it waits, or its request is being cancelled.

        That is also an `MCPError`, which is the answer, and with which a task fails.

        Raises:
            MissingCapability: It asked what the client cannot answer.
        """
        from ..features.input_requests import waits

        return is_cancelled(error) or waits(error)

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
            import anyio.from_thread

            return anyio.from_thread.run(_result_of, awaitable)
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise RuntimeError("ctx.wait is for plain `def` handlers; in an `async def` handler, use `await`")


async def _result_of(awaitable: Awaitable[T]) -> T:
    return await awaitable


class OfContext(Protocol):
    """What a request has of its own, such as the questions that its handler may ask."""

    @classmethod
    def of(cls, context: Context, /) -> Self:
        """Return that of a request."""
        ...


M = TypeVar("M", bound=OfContext)


class PerCall(Generic[M]):
    """A member of a generated context, such as `ctx.ask`, which is made of the request when it is read."""

    __slots__ = ("_kind",)

    def __init__(self, kind: type[M]) -> None:
        """Take the class of what the member is."""
        self._kind = kind

    @overload
    def __get__(self, context: None, owner: type, /) -> Self: ...

    @overload
    def __get__(self, context: Context, owner: type, /) -> M: ...

    def __get__(self, context: Context | None, owner: type, /) -> Self | M:
        """Return what the member is in a request; the descriptor itself on the class."""
        return self if context is None else self._kind.of(context)
