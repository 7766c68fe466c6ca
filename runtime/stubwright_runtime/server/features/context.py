"""The context of a handler: the call that it answers, and the way to talk to the caller meanwhile.

It holds no state of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

from ...mcp.vocabulary import LOG_LEVELS, LogLevel
from ...observability.logs import log
from ...values.sanitizing import clean
from ..core.sanitizing import encode_json

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

    from ..core.lists import Lists, ResourceVisibility, Visibility
    from ..core.principal import Principal
    from ..core.request import Request
    from .input_requests import InputRequests
    from .url_elicitation import UrlRequired

T = TypeVar("T")


class Context:
    """One request, seen from its handler.

    Attributes:
        name: The name of the tool or the prompt on the wire, or the URI of the resource.
    """

    __slots__ = ("_lists", "_questions", "_request", "name")

    def __init__(self, request: Request, name: str, lists: Lists, questions: Mapping[str, Any]) -> None:
        """Take the request, the lists of the server, and the questions that the manifest has for the handler."""
        self._request = request
        self.name = name
        self._lists = lists
        self._questions = questions

    def __repr__(self) -> str:
        """Show the request in a few words."""
        return (
            f"{type(self).__name__}(request_id={self.request_id!r}, revision={self.revision!r}, name={self.name!r}, "
            f"principal={self.principal!r})"
        )

    @property
    def request_id(self) -> str | int:
        """The JSON-RPC id of the request."""
        return cast("str | int", self._request.id)

    @property
    def revision(self) -> str:
        """The MCP revision that the caller speaks, such as `2025-11-25`."""
        return self._request.revision.date

    @property
    def principal(self) -> Principal:
        """The caller: the subject of the access token; on standard input and output `local`."""
        return self._request.principal

    @property
    def tools(self) -> Visibility:
        """The server's tools, to switch them on and off for all clients."""
        return self._lists.tools

    @property
    def prompts(self) -> Visibility:
        """The server's prompts, to switch them on and off for all clients."""
        return self._lists.prompts

    @property
    def resources(self) -> ResourceVisibility:
        """The server's resources and resource templates, to switch them on and off, and to report changes."""
        return self._lists.resources

    @property
    def task_id(self) -> str | None:
        """The id of the task in which the call goes on; `None` outside of tasks."""
        return self._request.task_id

    @property
    def attempt(self) -> int:
        """The number of the run of that task, from 1, which grows with each run; 1 outside of tasks.

        A database that has seen a larger one can reject what a run does that was replaced by another.
        """
        return self._request.attempt

    @property
    def rounds(self) -> InputRequests:
        """The questions of this request and the answers so far; `ask` adds one."""
        from .input_requests import find_rounds

        return find_rounds(self._request)

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller the progress of the work. Does nothing if the caller did not ask for it.

        Args:
            done: The amount done, in any unit; a value that does not grow is not sent (MCP 2025-11-25,
                basic/utilities/progress: it MUST increase).
            total: The amount to do, in the same unit, if it is known.
            message: The work that is being done.

        Raises:
            ValueError: A number is not finite.
        """
        if not math.isfinite(done) or not math.isfinite(total or 0):
            raise ValueError(f"progress is {done} of {total}; both must be finite")
        if self._request.has_ended:  # after the answer none is sent (MCP 2025-11-25, basic/utilities/progress)
            return
        if done <= self._request.progress:
            log().debug("%s: progress %s is not sent, since it does not grow", self.name, done)
            return
        self._request.progress = done
        await self._request.channel.send_progress(done, total, None if message is None else clean(message))

    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send a message to the caller's log, if the caller wants messages of this level.

        Up to 2025-11-25 the last `logging/setLevel` of the connection sets the level (`info` before the first); from
        2026-07-28 each request sets its own, and messages are sent only if the manifest declares `logging`.

        Args:
            level: From `debug` to `emergency`.
            data: Text, or any JSON value.
            logger: The part of the server that speaks.

        Raises:
            ValueError: There is no such level, or `data` holds an infinite number.
            TypeError: `data` is not JSON.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"{level!r} is not a log level; the levels are {', '.join(LOG_LEVELS)}")
        await self._request.channel.log(level, encode_json(data)[0], logger)

    def on_cancel(self, function: Callable[[], object]) -> None:
        """Have `function` called when this request is cancelled while its handler runs (MCP 2025-11-25, cancellation).

        An `async def` handler is cancelled itself; this is for a plain `def`, whose thread cannot be stopped.

        Args:
            function: Is called on the event loop, so it must not block; if the request is cancelled already, it is
                called immediately. An exception that it raises is logged.

        Example:
            `ctx.on_cancel(stop.set)`, with `stop = threading.Event()`
        """
        self._request.cancellation.add(function)

    async def release_stream(self) -> None:
        """Close the stream of this request, so that nothing holds a connection open while the work goes on.

        The client comes back for the response (MCP 2025-11-25, basic/transports, "Resumability and Redelivery"). If it
        cannot, as over stdio or with an older client, this does nothing; nor does it if too many calls of the
        caller go on without their client.
        """
        await self._request.channel.release()

    def can(self, capability: str) -> bool:
        """Return whether the client can do something, as it declared.

        Args:
            capability: `elicitation` (with a form), `elicitation.url`, `sampling`, `sampling.tools` or `roots`.
        """
        return self.rounds.can(capability)

    @overload
    async def once(self, key: str, function: Callable[[], Awaitable[T]]) -> T: ...
    @overload
    async def once(self, key: str, function: Callable[[], T]) -> T: ...
    @overload
    async def once(self, key: str, function: Callable[[str], Awaitable[T]]) -> T: ...
    @overload
    async def once(self, key: str, function: Callable[[str], T]) -> T: ...
    async def once(self, key: str, function: Callable[..., Awaitable[T] | T]) -> T:
        """Return the result of `function`, called until it has returned once in the whole request.

        From 2026-07-28 a handler that asks runs again with each answer; an effect that may happen only once, such as a
        payment, goes through here. The result travels, encrypted, with the question, or is stored with the task.

        If the process dies after the effect and before its result is stored, the next run of the task calls `function`
        again. A service that must not see the effect twice needs its key: a `function` that requires a parameter is
        called with `idempotency_key(key)`, which is the same in each run.

        Args:
            key: The key to keep the result under.
            function: An `async def`, or a plain `def`, which runs in a worker thread; returns JSON. A parameter with a
                default keeps it.

        Raises:
            TypeError: The result is not JSON.
        """
        value: T = await self.rounds.run_once(key, function)
        return value

    def idempotency_key(self, key: str) -> str:
        """Return a key for an effect, which is the same in all runs of this request or task, and in no other.

        If the tool's policy has `once`, it is also the same in later calls with the same key: they may run again after
        an interruption (`onUnknown: run`).

        Services that know the header `Idempotency-Key`, or a field for such a key, make the effect once for each key.

        Args:
            key: The name of the effect, such as the key for `once`.

        Returns:
            32 hexadecimal digits; they do not reveal the id of the task.
        """
        return self.rounds.make_idempotency_key(key)

    async def once_in(self, connection: Any, key: str) -> bool:
        """Record an effect in the open transaction of a database; return whether this run is to make it.

        If the effect is a change in the same transaction, it happens once, also if the process dies at any point. The
        database has the table `stubwright_once (key TEXT PRIMARY KEY)`.

        Args:
            connection: A connection of `sqlite3`, `aiosqlite`, `psycopg` or `asyncpg`.
            key: The name of the effect, as for `idempotency_key`.

        Raises:
            TypeError: The connection is none of these.
        """
        from .transactions import record_effect

        return await record_effect(connection, self.idempotency_key(key))

    async def complete(self, elicitation: str) -> bool:
        """Notify the client that the URL of a question is completed (MCP 2025-11-25, client/elicitation).

        From 2026-07-28 on, the client retries without a notification, and this has no effect. After the request,
        `server.complete(elicitation)` does the same.

        Args:
            elicitation: The id of the question, which its answer `Accepted` has, too.

        Returns:
            True if a client was notified. A client gets one notification for each question.
        """
        return await self.rounds.complete(elicitation)

    def url_required(
        self, name: str, url: str, message: str | None = None, *, elicitation: str | None = None
    ) -> UrlRequired:
        """Return the error to raise if the user must visit a URL before the request can go on, such as to sign in.

        A client of 2025-11-25 gets the error -32042, and sends the request again after completion. From
        2026-07-28 on it is asked as by `ctx.ask`, and the handler runs again with its answer.

        Args:
            name: One of the questions with `mode: url` that the manifest has for this handler.
            url: An http or https URL.
            message: The text for the user, in place of the manifest's words.
            elicitation: An id for the question that cannot be guessed; by default a new one.

        Raises:
            KeyError: There is no such question.
            ValueError: The URL is not an http or https URL.
        """
        from .input_requests import require_url

        question = self._questions.get(name, {})
        if question.get("mode") != "url":
            raise KeyError(f"the manifest has no question {name!r} with `mode: url`")
        return require_url(name, url, message or question["message"], elicitation)

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
            max_tokens: The maximum number of tokens that the model may write.
            system: A system prompt; the client may change it.
            temperature: The sampling temperature.
            stop: Texts that end the answer.
            model: The preferences for a model.
            tools: Tools that the model may ask to be called; needs the capability `sampling.tools`.
            tool_choice: The tool choice: may the model call tools, or must it.
            key: The name of this question, if the request asks several together.

        Raises:
            MissingCapability: The client has no model to offer.
        """
        from .sampling import make_request, sample

        request = make_request(messages, max_tokens, system, temperature, stop, model, tools, tool_choice)
        return await sample(self.rounds, key, request)

    async def roots(self, key: str = "roots") -> list[Root]:
        """Return the folders that the client lets the server work in (MCP 2025-11-25, client/roots).

        Raises:
            MissingCapability: The client does not share folders.
        """
        from .sampling import roots

        return await roots(self.rounds, key)

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
            awaitable.close()  # Python warns if it is never awaited
        raise RuntimeError("ctx.wait is for plain `def` handlers; in an `async def` handler, use `await`")


async def _result_of(awaitable: Awaitable[T]) -> T:
    return await awaitable


class OfContext(Protocol):
    """A class with one instance for each request, such as the questions that its handler may ask."""

    @classmethod
    def from_context(cls, context: Context, /) -> Self:
        """Return the instance of a request."""
        ...


M = TypeVar("M", bound=OfContext)


class PerCall(Generic[M]):
    """A member of a generated context, such as `ctx.ask`, made from the request when it is read."""

    __slots__ = ("_kind",)

    def __init__(self, kind: type[M]) -> None:
        """Take the class of the member."""
        self._kind = kind

    @overload
    def __get__(self, context: None, owner: type, /) -> Self: ...

    @overload
    def __get__(self, context: Context, owner: type, /) -> M: ...

    def __get__(self, context: Context | None, owner: type, /) -> Self | M:
        """Return the member of a request; on the class, the descriptor itself."""
        return self if context is None else self._kind.from_context(context)
