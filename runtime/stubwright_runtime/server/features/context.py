"""The context that a handler receives: its request, and methods to send messages to the client."""

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
from ..protocol.messages import encode_json

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
    """A handler's access to its request, its client and the server's lists. A context has no state of its own.

    Attributes:
        name: The name of the tool or prompt, or the resource's URI.
    """

    __slots__ = ("_lists", "_questions", "_request", "name")

    def __init__(self, request: Request, name: str, lists: Lists, questions: Mapping[str, Any]) -> None:
        """Create the context of a request; `questions` are the handler's questions in the manifest."""
        self._request = request
        self.name = name
        self._lists = lists
        self._questions = questions

    def __repr__(self) -> str:
        """Return the request's main attributes."""
        return (
            f"{type(self).__name__}(request_id={self.request_id!r}, revision={self.revision!r}, name={self.name!r}, "
            f"principal={self.principal!r})"
        )

    @property
    def request_id(self) -> str | int:
        """The request's JSON-RPC ID."""
        return cast("str | int", self._request.id)

    @property
    def revision(self) -> str:
        """The request's MCP revision, such as `2025-11-25`."""
        return self._request.revision.date

    @property
    def principal(self) -> Principal:
        """The caller: the access token's subject, or the local user over stdio."""
        return self._request.principal

    @property
    def tools(self) -> Visibility:
        """Shows and hides the server's tools for all clients."""
        return self._lists.tools

    @property
    def prompts(self) -> Visibility:
        """Shows and hides the server's prompts for all clients."""
        return self._lists.prompts

    @property
    def resources(self) -> ResourceVisibility:
        """Shows and hides the server's resources and templates for all clients, and reports resource updates."""
        return self._lists.resources

    @property
    def task_id(self) -> str | None:
        """The ID of the task that this call runs; `None` outside a task."""
        return self._request.task_id

    @property
    def attempt(self) -> int:
        """The number of this run of the task, from 1; 1 outside a task.

        It can serve as a fencing token: a database can reject writes from a run that was replaced.
        """
        return self._request.attempt

    @property
    def rounds(self) -> InputRequests:
        """The questions and answers of this request."""
        from .input_requests import find_rounds

        return find_rounds(self._request)

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Send a progress notification, if the client requested progress.

        Args:
            done: The progress so far, in any unit. A value that does not increase is not sent (MCP 2025-11-25,
                basic/utilities/progress: it MUST increase).
            total: The total, in the same unit as `done`; `None` if unknown.
            message: A description of the current work.

        Raises:
            ValueError: `done` or `total` is not finite.
        """
        if not math.isfinite(done) or not math.isfinite(total or 0):
            raise ValueError(f"progress must be finite, not {done} of {total}")
        # MUST stop after completion (MCP 2025-11-25, basic/utilities/progress)
        if not self._request.has_ended:
            if done <= self._request.progress:
                log().debug("%s: progress %s is not sent, because it does not increase", self.name, done)
            else:
                self._request.progress = done
                await self._request.channel.send_progress(done, total, None if message is None else clean(message))
        await _yield_to_loop()

    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send a log message, if the client accepts its level.

        In MCP 2025-11-25 and earlier, `logging/setLevel` sets a connection's minimum level (`info` by default). In MCP
        2026-07-28 and later, each request sets its own minimum level, and messages are sent only if the manifest
        declares `logging`.

        Args:
            level: One of MCP's levels, from `debug` to `emergency`.
            data: A string, or any JSON value.
            logger: The logger's name, if any.

        Raises:
            ValueError: The level is unknown, or `data` contains a number that is not finite.
            TypeError: `data` is not JSON.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"unknown log level {level!r}; expected one of {', '.join(LOG_LEVELS)}")
        await self._request.channel.log(level, encode_json(data)[0], logger)
        await _yield_to_loop()

    def on_cancel(self, function: Callable[[], object]) -> None:
        """Call `function` if this request is cancelled while its handler runs (MCP 2025-11-25, cancellation).

        For plain `def` handlers, because their threads cannot be stopped. `async def` handlers are cancelled.

        Args:
            function: Called on the event loop, so it must not block. It is called immediately if the request is already
                cancelled. Exceptions are logged.

        Example:
            `ctx.on_cancel(stop.set)`, with `stop = threading.Event()`
        """
        self._request.cancellation.add(function)

    async def release_stream(self) -> None:
        """Close this request's response stream, so that long-running work does not keep a connection open.

        The client reconnects to receive the response (MCP 2025-11-25, basic/transports, "Resumability and Redelivery").
        Without effect if the client cannot reconnect, as over stdio, or if too many of the caller's calls already run
        without a connected client.
        """
        await self._request.channel.release()

    def can(self, capability: str) -> bool:
        """Return whether the client declared a capability.

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
        """Return the result of `function`. Once it has returned, `function` is not called again in this request.

        In MCP 2026-07-28 and later, a handler that asks questions runs again after each answer. Use `once` for effects
        that must happen only once, such as payments. The result is encrypted and sent with the question, or stored with
        the task.

        If the process dies after the effect and before the result is stored, the task's next run calls `function`
        again. To let an external service detect the duplicate, declare a required parameter: `function` is then called
        with `idempotency_key(key)`, which is the same in each run.

        Args:
            key: A name for the effect, unique in the handler.
            function: An `async def`, or a plain `def`, which runs in a worker thread. It returns JSON. Parameters with
                defaults are not passed.

        Raises:
            TypeError: The result is not JSON.
        """
        value: T = await self.rounds.run_once(key, function)
        return value

    def idempotency_key(self, key: str) -> str:
        """Return a key for an effect: the same key in all runs of this request or task, and another key in others.

        If the tool's policy has `once`, later calls with the same `once` key get the same idempotency key, because they
        can run again after an interruption (`onUnknown: run`).

        Services that accept an `Idempotency-Key` header or a similar field perform an effect once per key.

        Args:
            key: A name for the effect, such as the key passed to `once`.

        Returns:
            32 hexadecimal digits, which do not reveal the task ID.
        """
        return self.rounds.make_idempotency_key(key)

    async def once_in(self, connection: Any, key: str) -> bool:
        """Record an effect in a database's open transaction, and return whether this run should perform it.

        An effect in the same transaction happens exactly once, even if the process dies at any point. The database
        needs the table `stubwright_once (key TEXT PRIMARY KEY)`.

        Args:
            connection: A `sqlite3`, `aiosqlite`, `psycopg` or `asyncpg` connection.
            key: A name for the effect, as for `idempotency_key`.

        Raises:
            TypeError: `connection` is not one of these types.
            RuntimeError: No transaction is open, and the connection commits after each statement.
        """
        from .transactions import record_effect

        return await record_effect(connection, self.idempotency_key(key))

    async def complete(self, elicitation: str) -> bool:
        """Notify the client that the user completed a URL elicitation (MCP 2025-11-25, client/elicitation).

        Without effect in MCP 2026-07-28 and later, where the client repeats the request without a notification. After
        the request has ended, use `server.complete(elicitation)`.

        Args:
            elicitation: The elicitation ID, also in the `Accepted` answer.

        Returns:
            True if a client was notified, which happens at most once per elicitation.
        """
        return await self.rounds.complete(elicitation)

    def url_required(
        self, name: str, url: str, message: str | None = None, *, elicitation: str | None = None
    ) -> UrlRequired:
        """Return the error to raise if the user must first visit a URL, for example to sign in.

        In MCP 2025-11-25, the client receives error -32042 and repeats the request after the user has completed the
        visit. In 2026-07-28 and later, the URL becomes a question as from `ctx.ask`, and the handler runs again with
        the answer.

        Args:
            name: One of the handler's questions in the manifest that has `mode: url`.
            url: An http or https URL.
            message: The message to the user; by default the question's `message`.
            elicitation: An unguessable elicitation ID; by default a new one.

        Raises:
            KeyError: The manifest has no URL question with this name for the handler.
            ValueError: The URL is not an http or https URL.
        """
        from .input_requests import require_url

        question = self._questions.get(name, {})
        if question.get("mode") != "url":
            raise KeyError(f"the manifest has no question {name!r} with `mode: url` for this handler")
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
        """Request a message from the client's model (MCP 2025-11-25, client/sampling).

        Args:
            messages: The conversation; a string is one user message.
            max_tokens: The maximum number of generated tokens.
            system: The system prompt, which the client may change.
            temperature: The sampling temperature.
            stop: Sequences at which the model stops.
            model: Preferences for the client's choice of model.
            tools: Tools that the model can call; requires the `sampling.tools` capability.
            tool_choice: Whether the model can, must or must not call tools.
            key: A name for this question, required if the request has several at the same time.

        Raises:
            MissingCapability: The client does not support sampling.
        """
        from .sampling import make_request, sample

        request = make_request(messages, max_tokens, system, temperature, stop, model, tools, tool_choice)
        return await sample(self.rounds, key, request)

    async def roots(self, key: str = "roots") -> list[Root]:
        """Return the client's roots (MCP 2025-11-25, client/roots).

        Raises:
            MissingCapability: The client does not support roots.
        """
        from .sampling import roots

        return await roots(self.rounds, key)

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for `awaitable` in a plain `def` handler, as `await` does in an `async def` handler.

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
        raise RuntimeError("ctx.wait works only in plain `def` handlers; in an `async def` handler, use `await`")


async def _yield_to_loop() -> None:
    """Let other requests run. A message that is written or dropped immediately does not suspend its handler, so a
    handler that only sends messages could not be cancelled and would block the server.
    """
    await asyncio.sleep(0)


async def _result_of(awaitable: Awaitable[T]) -> T:
    return await awaitable


class ContextMember(Protocol):
    """A member of generated contexts, such as `ctx.ask`, with one instance per request."""

    @classmethod
    def from_context(cls, context: Context, /) -> Self:
        """Return the instance for the request of a context."""
        ...


M = TypeVar("M", bound=ContextMember)


class PerCall(Generic[M]):
    """A descriptor that creates a generated context's member, such as `ctx.ask`, on access."""

    __slots__ = ("_kind",)

    def __init__(self, kind: type[M]) -> None:
        self._kind = kind

    @overload
    def __get__(self, context: None, owner: type, /) -> Self: ...

    @overload
    def __get__(self, context: Context, owner: type, /) -> M: ...

    def __get__(self, context: Context | None, owner: type, /) -> Self | M:
        """Return the member for the context's request; on the class, return the descriptor."""
        return self if context is None else self._kind.from_context(context)
