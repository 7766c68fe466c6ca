"""Calls that run as tasks. The methods on `client.tasks` start tasks or resume them by ID.

Like calls, tasks are confirmed and reported, and their results are validated.
"""

from __future__ import annotations

import copy
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    overload,
)

from pydantic import BaseModel

from ...observability.redaction import hide_secrets
from ..core.arguments import to_json, with_extra
from ..core.calls import Read, make_content_reader, make_reader, read_result
from ..core.confirmation import confirm_call
from ..core.content import ToolContent, check_result
from ..core.errors import InvalidResult, ToolFailed
from ..core.responses import CallResponse
from ..features.deprecation import report_deprecated, split_deprecated
from ..observability.audit import Record

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mcp_types import CallToolResult

    from ...package import Package, Tool, Tools
    from ..core.binding import Binding
    from ..core.options import Options
    from ..core.session import Session
    from .runs import TaskRun
    from .states import Status, ToolTaskState

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_Output = TypeVar("_Output", bound=BaseModel)


class ToolTask(Generic[T_co]):
    """A call that runs as a task; `await` returns the same value as the client's method.

    The task runs on the server. Cancelling `await` does not stop the task; use `cancel`. The server is polled, and its
    questions are answered, only during `await`, `updates` and `refresh`.
    """

    def __init__(self, run: TaskRun, call_state: _CallState[T_co]) -> None:
        """Do not call this; use the methods of `client.tasks`."""
        self._run = run
        self._call_state = call_state

    @property
    def id(self) -> str:
        """The ID for `resume`; `""` if the server returned a result immediately, without a task."""
        return self._run.state.id

    @property
    def state(self) -> ToolTaskState:
        """The last state that the server reported."""
        return self._run.state

    @property
    def status(self) -> Status:
        """The last status that the server reported; `working` for a resumed task before the first poll."""
        return self._run.state.status

    @property
    def message(self) -> str | None:
        """The server's last status message."""
        return self._run.state.message

    def done(self) -> bool:
        """Return whether the last known state is final."""
        return self._run.has_ended

    def __await__(self) -> Generator[Any, Any, T_co]:
        """Wait for the task to finish, like `wait` without a timeout."""
        return self.wait().__await__()

    async def wait(self, *, timeout: float | None = None) -> T_co:
        """Wait for the task to finish and return the method's value. Can be called repeatedly.

        Args:
            timeout: The maximum wait, in seconds; `None` for no limit. The task continues after a timeout.

        Raises:
            TimeoutError: The task did not finish in time.
            ToolFailed: The tool returned `isError`.
            TaskCancelled: The task was cancelled.
            TaskExpired: The task is unknown to the server or has expired.
            MCPError: The task failed with a protocol error (`done()` is true), or the server could not be polled or
                sent too many rounds of questions (the task can continue).
            Exception: As documented for the client's methods, or raised by a callback.
        """
        await self._end(timeout)
        return self._call_state.get_value()

    async def response(self, *, timeout: float | None = None) -> CallResponse[T_co]:
        """Return the whole response when the task finishes, even if the tool failed, like `with_raw_response`.

        Args:
            timeout: See `wait`.

        Raises the same exceptions as `wait`, except `ToolFailed`.
        """
        await self._end(timeout)
        return self._call_state.get_response()

    async def updates(self) -> AsyncIterator[ToolTaskState]:
        """Yield the current state, then each change until the task finishes; `await` returns the result.

        The client polls at the interval that the server requests, unless the server sends notifications.

        Raises:
            MCPError: The server cannot be polled, or sent too many rounds of questions.
            Exception: Any exception from a callback.
        """
        await self._call_state.begin()
        if self._call_state.is_resumed and not self._run.has_ended and self._run.changes == 0:
            await self.refresh()
        changes, is_repeated = self._run.changes, False
        while True:
            if not is_repeated:
                yield self._run.state
            if self._run.has_ended:
                break
            with self._call_state.hide():
                since, changes = changes, await self._run.wait_for_change(changes)
            is_repeated = since == changes
        with self._call_state.hide():
            await self._call_state.settle(await self._run.wait_for_outcome())

    async def refresh(self) -> ToolTaskState:
        """Poll the server once, unless the task has finished, and return the state.

        Raises:
            TaskExpired: The task is unknown to the server or has expired.
            MCPError: The server returns an error.
        """
        with self._call_state.hide():
            await self._call_state.begin()
            await self._run.poll()
            await self._settle()
        return self._run.state

    async def cancel(self) -> None:
        """Request cancellation. The task may still complete or fail; check `status` or await the task.

        Raises:
            TaskExpired: The task is unknown to the server or has expired.
            TasksUnsupported: The server cannot cancel tasks.
            MCPError: The server returns an error.
        """
        with self._call_state.hide():
            await self._call_state.begin()
            await self._run.cancel()
            await self._settle()

    def __repr__(self) -> str:
        """Show the tool and the status, but not the ID, because the ID grants access to the task."""
        return f"<ToolTask {self._call_state.tool.name!r}: {self.status}>"

    async def _end(self, seconds: float | None) -> None:
        import anyio

        if self._call_state.is_settled:
            return
        with anyio.move_on_after(math.inf if seconds is None else seconds), self._call_state.hide():
            await self._call_state.begin()
            await self._call_state.settle(await self._run.wait_for_outcome())
            return
        raise TimeoutError(
            f"the task for {self._call_state.tool.name!r} did not finish within {seconds} seconds; it is still running"
        )

    async def _settle(self) -> None:
        """If the task has ended, report its end, and raise `TaskExpired` if the server did not recognize its ID."""
        from .errors import TaskExpired

        if self._run.has_ended:
            failed = await self._call_state.settle(await self._run.wait_for_outcome())
            if isinstance(failed, TaskExpired):
                raise failed.with_traceback(None)


class _CallState(Generic[T_co]):
    def __init__(
        self,
        tool: Tool,
        options: Options,
        read: Read[T_co],
        arguments: dict[str, Any],
        *,
        is_resumed: bool = False,
    ) -> None:
        self.tool = tool
        self.is_resumed = is_resumed
        self._options = options
        self._read = read
        self._arguments = arguments
        self._record = Record(tool, arguments, options.on_call)
        self._response: CallResponse[T_co] | None = None
        self._failure: Exception | None = None

    def hide(self) -> AbstractContextManager[None]:
        return hide_secrets(self.tool, self._arguments)

    async def begin(self) -> None:
        await self._record.begin()

    async def confirm(self) -> None:
        await confirm_call(self.tool, self._arguments, self._options)

    async def abort(self, error: BaseException) -> None:
        await self._record.end(error)

    @property
    def is_settled(self) -> bool:
        return self._response is not None or self._failure is not None

    def get_value(self) -> T_co:
        if self._response is None:
            raise self._get_failure()
        return self._response.parse()

    def get_response(self) -> CallResponse[T_co]:
        if isinstance(self._failure, ToolFailed):
            return CallResponse(None, check_result(self.tool, self._failure.result, self._options.sanitize)[0])
        if self._response is None:
            raise self._get_failure()
        return self._response

    def _get_failure(self) -> Exception:
        # An earlier raise may have added a traceback.
        return (self._failure or LookupError("the task has not finished")).with_traceback(None)

    async def settle(self, outcome: CallToolResult | Exception) -> Exception | None:
        """Read the outcome and report the end of the call, once. Return the call's exception, or `None`."""
        if not self.is_settled:
            if isinstance(outcome, Exception):
                self._failure = outcome
            else:
                try:
                    self._response = CallResponse(
                        *read_result(self.tool, outcome, self._options, self._read, self._record)
                    )
                except (ToolFailed, InvalidResult) as error:
                    self._failure = error
            await self._record.end(self._failure)
        return self._failure


class Tasks:
    """The base class for a client's `tasks`, with a method for each tool that can run as a task."""

    _package: ClassVar[Package]

    def __init__(self, client: Binding) -> None:
        self._session, _, self._options = client.__stubwright__
        self._ttl: float | None = None

    def with_options(self, *, ttl: float | None) -> Self:
        """Return the same task methods with a different `ttl`. For other options, use `client.with_options(…).tasks`.

        Args:
            ttl: The requested lifetime of a task and its result, in seconds from the start; `None` for the server's
                default. The server may choose another lifetime (see `state.ttl`). In MCP 2026-07-28 and later, servers
                ignore `ttl`.

        Raises:
            ValueError: `ttl` is not a positive number of seconds.
        """
        if ttl is not None and not 0 < ttl < math.inf:
            raise ValueError(f"ttl must be a positive number of seconds, not {ttl!r}")
        other = copy.copy(self)
        other._ttl = ttl
        return other

    @property
    def __stubwright__(self) -> tuple[Session, Options, Tools]:
        """The session, options and package tools, for functions that resume tasks."""
        return self._session, self._options, self._package.tools

    async def list(self) -> AsyncIterator[ToolTaskState]:
        """Yield this client's tasks on the server, for all tools (MCP 2025-11-25 and earlier).

        Raises:
            TasksUnsupported: The server does not support listing tasks, which MCP 2026-07-28 removed.
            MCPError: A request failed, or the list never ends.
        """
        from .requests import list_tasks

        async for task in list_tasks(self._session, self._options):
            yield task.make_state(is_clean=self._options.sanitize != "none")

    async def _call(
        self,
        name: str,
        arguments: Mapping[str, object],
        output: type[_Output],
        extra: Mapping[str, object] | None = None,
    ) -> ToolTask[_Output]:
        tool = self._package.tools[name]
        return await self._start(tool, with_extra(tool, arguments, extra), make_reader(self._session, tool, output))

    async def _call_content(
        self, name: str, arguments: Mapping[str, object], extra: Mapping[str, object] | None = None
    ) -> ToolTask[ToolContent]:
        tool = self._package.tools[name]
        return await self._start(tool, with_extra(tool, arguments, extra), make_content_reader(tool))

    async def _start(self, tool: Tool, arguments: Mapping[str, object], read: Read[T]) -> ToolTask[T]:
        from .runs import TaskRun

        given = to_json(arguments)
        call_state = _CallState(tool, self._options, read, given)
        with call_state.hide():
            await call_state.begin()
            try:
                await call_state.confirm()
                run = await TaskRun.start(self._session, tool, given, self._options, self._ttl)
            except BaseException as error:
                await call_state.abort(error)
                raise
            if run.has_ended:
                await call_state.settle(await run.wait_for_outcome())
        return ToolTask(run, call_state)


class TaskMethod(Generic[P, T]):
    """The method for a tool that can run as a task. A call starts a task; `resume` continues an earlier task."""

    def __init__(
        self, method: Callable[..., Coroutine[Any, Any, Any]], tasks: Tasks, deprecation: str | None = None
    ) -> None:
        """Wrap a client method; `deprecation` is the method's deprecation warning, if any."""
        self._method = method
        self._deprecation = deprecation
        self._tasks = tasks
        update_wrapper(self, method)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, ToolTask[T]]:
        """Call the tool as a task, with the arguments of the client's method.

        Raises:
            TasksUnsupported: The server does not run this tool as a task.
            Exception: Any exception that the client's method raises before it sends the request.
        """
        report_deprecated(self._deprecation)
        return self._method(self._tasks, *args, **kwargs)

    def resume(self, id: str) -> ToolTask[T]:
        """Resume a task by its `id`, for instance after the client restarts. This sends no request.

        `on_call` is called again for the task's start and end, without the arguments, which are unknown.

        Raises:
            ValueError: The ID is empty.
        """
        from .runs import TaskRun

        if not id:
            raise ValueError("the task ID is empty, which means that the server returned a result without a task")
        session, options, tools = self._tasks.__stubwright__
        tool = next(tool for tool in tools.values() if tool.method == self._method.__name__)
        output: Any = tool.Output
        read: Read[Any] = make_content_reader(tool) if output is None else make_reader(session, tool, output)
        run = TaskRun.resume(session, tool, id, options)
        return ToolTask(run, _CallState(tool, options, read, {}, is_resumed=True))


class TaskMethodDescriptor(Generic[P, T]):
    """A descriptor for a tool's method in a tasks class."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self._method, self._deprecation = split_deprecated(method)
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[object]) -> TaskMethodDescriptor[P, T]: ...

    @overload
    def __get__(self, instance: Tasks, owner: type[object]) -> TaskMethod[P, T]: ...

    def __get__(self, instance: Tasks | None, owner: type[object]) -> TaskMethodDescriptor[P, T] | TaskMethod[P, T]:
        """Return the method bound to a client's `tasks`."""
        return self if instance is None else TaskMethod(self._method, instance, self._deprecation)


def starting(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> TaskMethodDescriptor[P, T]:
    """Wrap a client class's tool method for its tasks class."""
    return TaskMethodDescriptor(method)


def started(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, ToolTask[T]]]) -> TaskMethodDescriptor[P, T]:
    """Wrap a deprecated method that is defined in the tasks class itself."""
    itself: Callable[..., Coroutine[Any, Any, Any]] = method
    return TaskMethodDescriptor(itself)
