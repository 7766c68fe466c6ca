"""Follows one task: polls its state, answers its questions, and fetches its result."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import anyio
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    InputResponses,
)
from pydantic import ValidationError

from ..core.errors import ResultTooLarge, make_safe_to_show
from ..core.session import find_connection
from ..rpc.mcp_error import MCPError
from .errors import TaskCancelled, TaskExpired, TasksUnsupported
from .requests import TaskRequests, offers_tasks
from .states import ToolTaskState, WireTask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_types import CallToolResult, JSONRPCNotification

    from ...package import Tool
    from ..core.options import Options
    from ..core.session import Session

_LOST: Final = 7
"""The maximum number of consecutive polls without a response; one more raises an error."""

_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 15.0
"""Seconds to wait after a poll without a response, doubled each time."""

_CUT_OFF: Final = frozenset({CONNECTION_CLOSED})
_OUT_OF_REACH: Final = frozenset({CONNECTION_CLOSED, INTERNAL_ERROR})
"""Error codes for a lost response. Overloaded servers and proxies send `INTERNAL_ERROR`."""

_WRONG: Final = "the server's response is not valid MCP"
_AGAIN: Final = 4
"""The number of polls after which an answer is resent if the server still asks the question."""

_NOTIFICATIONS: Final = frozenset({"notifications/tasks/status", "notifications/tasks"})


def choose_call(session: Session, tool: Tool) -> Callable[[Tool, dict[str, Any], Options], Awaitable[CallToolResult]]:
    """Return the function that calls a tool, as a task if the tool requires it and the server supports tasks."""
    is_task = tool.task_support == "required" and (session.modern or offers_tasks(session))

    async def call(tool: Tool, arguments: dict[str, Any], options: Options) -> CallToolResult:
        run = await TaskRun.start(session, tool, arguments, options)
        try:
            outcome = await run.wait_for_outcome()
        except anyio.get_cancelled_exc_class():
            # Do not make a cancelled caller wait long for an unresponsive server.
            with anyio.move_on_after(1, shield=True):
                await run.give_up()
            raise
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return call if is_task else session.call


class TaskRun:
    """Follows one task until it ends.

    Attributes:
        state: The last state from the server.
    """

    def __init__(
        self,
        requests: TaskRequests,
        tool: Tool,
        state: ToolTaskState,
        result: CallToolResult | None = None,
        *,
        is_known: bool = True,
    ) -> None:
        """Start from the first state, or from a result that the server returned immediately, without a task.

        If both are `None`, the task was resumed by its ID and is polled immediately.
        """
        self.state = state
        self._requests = requests
        self._tool = tool
        self._result = result
        self._failure: Exception | None = None
        self._changes = 0
        self._due = time.monotonic() + (state.poll_interval if is_known else 0)
        self._lost = 0
        self._input_rounds = 0
        self._questions: dict[str, Any] = {}
        self._answers: InputResponses = {}
        self._sent: dict[str, int] = {}
        self._polls = 0
        self._lock = anyio.Lock()
        self._woken = anyio.Event()
        if not self.has_ended:
            _listen(requests.session, self)

    @classmethod
    async def start(
        cls, session: Session, tool: Tool, arguments: dict[str, Any], options: Options, ttl: float | None = None
    ) -> TaskRun:
        """Call a tool as a task; raises the same exceptions as `TaskRequests.start`."""
        requests = TaskRequests(session, tool, options)
        started = await requests.start(arguments, ttl)
        if not isinstance(started, WireTask):
            return cls(requests, tool, ToolTaskState("", "failed" if started.is_error else "completed"), started)
        state = started.make_state(is_clean=options.sanitize != "none")
        if session.modern and state.ended:  # the first poll returns the task's result
            return cls(requests, tool, replace(state, status="working"), is_known=False)
        return cls(requests, tool, state)

    @classmethod
    def resume(cls, session: Session, tool: Tool, task: str, options: Options) -> TaskRun:
        """Resume a task by its ID without sending a request."""
        return cls(TaskRequests(session, tool, options), tool, ToolTaskState(task, "working"), is_known=False)

    @property
    def has_ended(self) -> bool:
        """True if the state is final, even if the result is not yet fetched."""
        return self._result is not None or self._failure is not None or self.state.ended

    async def wait_for_outcome(self) -> CallToolResult | Exception:
        """Wait for the task to finish and return the unmodified result or the call's exception.

        The exception is `TaskCancelled`, `TaskExpired`, `ResultTooLarge`, or the call's `MCPError`.

        Raises:
            MCPError: The server cannot be polled, or sent too many rounds of questions; the task may continue.
            Exception: Any exception from a callback.
        """
        changes = self._changes
        while not self.has_ended:
            changes = await self.wait_for_change(changes)
        async with self._lock:
            return await self._read_ending()

    @property
    def changes(self) -> int:
        """The number of state changes so far."""
        return self._changes

    async def wait_for_change(self, since: int) -> int:
        """Wait until the number of changes differs from `since` or the task finishes, and return the number.

        Raises the same exceptions as `wait_for_outcome`.
        """
        while self._changes == since and not self.has_ended:
            async with self._lock:
                if self._changes == since and not self.has_ended:
                    await self._step()
        return self._changes

    async def poll(self) -> None:
        """Poll the server now; raises the same exceptions as `wait_for_outcome`."""
        if not self.has_ended:
            await self._poll()
            self._woken.set()

    async def cancel(self) -> None:
        """Request cancellation and poll; raises the same exceptions as `wait_for_outcome`, or `TasksUnsupported`."""
        if self.has_ended:
            return
        await self._requests.cancel(self.state.id)
        await self.poll()

    async def give_up(self) -> None:
        """Request cancellation, ignoring errors because the caller is no longer waiting."""
        if not self.has_ended:
            with suppress(MCPError, TasksUnsupported):
                await self._requests.cancel(self.state.id)

    def on_notification(self, task: WireTask) -> None:
        """Update the state from a notification."""
        with suppress(MCPError):  # the next poll raises it
            self._update(task)
            self._woken.set()

    async def _step(self) -> None:
        """Answer questions, then wait for a notification, or poll when the interval has passed."""
        if self.state.status == "input_required":
            changes = self._changes
            await (self._answer() if self._requests.session.modern else self._wait_for_questions())
            if self._changes != changes or self.has_ended:
                return
        with anyio.move_on_after(max(0.0, self._due - time.monotonic())) as pause:
            await self._woken.wait()
        self._woken = anyio.Event()
        if pause.cancelled_caught:
            await self._poll()

    async def _poll(self) -> None:
        self._polls += 1
        try:
            task = await self._requests.get(self.state.id)
        except (TaskExpired, ResultTooLarge) as error:
            self._failure = error
        except MCPError as error:
            self._retry_later(error, _OUT_OF_REACH)
        else:
            self._lost = 0
            self._update(task)

    def _update(self, task: WireTask) -> None:
        """Update the state from the server, unless the task has ended.

        Raises:
            MCPError: The state belongs to another task (`PARSE_ERROR`).
        """
        if self.has_ended:
            return
        if task.id != self.state.id:
            raise MCPError(code=PARSE_ERROR, message=f"{_WRONG}: it belongs to another task")
        state = task.make_state(is_clean=self._requests.options.sanitize != "none")
        self._due = time.monotonic() + state.poll_interval
        if self._requests.session.modern:
            self._read_task(task)
        self._changes += (state.status, state.message) != (self.state.status, self.state.message)
        self.state = state

    def _read_task(self, task: WireTask) -> None:
        """Store the questions, the result or the error of a task of the extension."""
        if task.status == "input_required":
            self._questions = task.input_requests or {}
        elif task.status == "failed":
            self._failure = _read_failure(task.error or {})
        elif task.status == "completed":
            try:
                self._result = self._requests.read(task.result or {})
            except MCPError as error:
                self._failure = error

    async def _answer(self) -> None:
        """Answer each question once, and send the answers (MCP 2026-07-28 and later).

        Servers can ignore some answers, and ignore repeated answers. If the server still asks a question some polls
        after the answer, send the answer again.
        """
        new = {key: question for key, question in self._questions.items() if key not in self._answers}
        if new:
            self._count_input_round()
            self._answers = {**self._answers, **await self._requests.ask_callbacks(new)}
        waiting = {
            key: self._answers[key] for key in self._questions if self._polls >= self._sent.get(key, -_AGAIN) + _AGAIN
        }
        if not waiting:
            return
        try:
            await self._requests.update(self.state.id, waiting)
        except MCPError as error:
            self._retry_later(error, _CUT_OFF)
        else:
            self._sent.update(dict.fromkeys(waiting, self._polls))

    async def _wait_for_questions(self) -> None:
        """Request the task's result.

        In MCP 2025-11-25 and earlier, the server sends a task's questions on the stream of this request.
        """
        if not self._lost:
            self._count_input_round()
        refused: MCPError | ResultTooLarge | None = None

        async def watch() -> None:
            nonlocal refused
            try:
                while self.state.status == "input_required" and not self.has_ended:
                    await anyio.sleep(max(0.0, self._due - time.monotonic()))
                    if self._requests.session.in_flight.is_asking:
                        self._due = time.monotonic() + self.state.poll_interval
                    else:
                        await self._poll()
            except MCPError as error:
                refused = error
            group.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                try:
                    self._result = await self._requests.fetch_result(self.state.id, waits=True)
                except (MCPError, ResultTooLarge) as error:
                    refused = error
                group.cancel_scope.cancel()
        except ExceptionGroup as raised:  # raised by a callback and wrapped by the group
            raise raised.exceptions[0] from None
        if self._result is not None:
            self._changes += 1
            self.state = replace(self.state, status="failed" if self._result.is_error else "completed", message=None)
        elif isinstance(refused, MCPError):
            await self._check_error(refused)
        elif refused is not None:
            self._failure = refused

    async def _check_error(self, error: MCPError) -> None:
        """Delay the next poll if the response was lost. Otherwise, poll to detect a task that ended with an error."""
        if self._is_lost(error, _CUT_OFF):
            self._retry_later(error, _CUT_OFF)
            return
        await self._poll()
        if self.state.status == "failed":
            self._failure = error
        elif not self.has_ended:
            raise error

    def _count_input_round(self) -> None:
        self._input_rounds += 1
        most = self._requests.session.client.input_required_max_rounds
        if self._input_rounds > most:
            raise MCPError(code=INVALID_REQUEST, message=f"the server asked for input in more than {most} rounds")

    def _is_lost(self, error: MCPError, codes: frozenset[int]) -> bool:
        """Return whether a response over HTTP was lost while its connection still works."""
        client = self._requests.session.client
        connection = find_connection(client)
        is_usable = connection is not None and connection.over_http and connection.failure is None
        return error.code in codes and is_usable

    def _retry_later(self, error: MCPError, codes: frozenset[int]) -> None:
        """Delay the next poll if the response was lost. Raise any other error, and any error after `_LOST` losses."""
        if self._lost >= _LOST or not self._is_lost(error, codes):
            raise error
        pause = min(_FIRST_PAUSE * 2**self._lost, _LONGEST_PAUSE)
        self._lost += 1
        self._due = time.monotonic() + max(pause, self.state.poll_interval)

    async def _read_ending(self) -> CallToolResult | Exception:
        task, status = self.state.id, self.state.status
        if self._failure is None and self._result is None and status == "cancelled":
            self._failure = TaskCancelled(self._tool.name, task, self.state.message)
        while (outcome := self._failure or self._result) is None:
            try:
                self._result = await self._requests.fetch_result(task, waits=False)
            except ResultTooLarge as error:
                self._failure = error
            except MCPError as error:
                if self._is_lost(error, _CUT_OFF):
                    self._retry_later(error, _CUT_OFF)
                    await anyio.sleep(max(0.0, self._due - time.monotonic()))
                elif status == "failed":  # this is the call's own error, which can have any code
                    self._failure = error
                elif error.code == INVALID_PARAMS:
                    self._failure = TaskExpired(self._tool.name, task, error.message)
                else:
                    raise
        return outcome


class _TaskNotifications:
    """Passes task notifications on one connection to the runs of the tasks that they concern."""

    def __init__(self) -> None:
        # Use weak references, because callers can discard tasks.
        self.runs: WeakValueDictionary[str, TaskRun] = WeakValueDictionary()

    def __call__(self, notification: JSONRPCNotification) -> None:
        if notification.method not in _NOTIFICATIONS:
            return
        try:
            task = WireTask.model_validate(notification.params or {}, by_name=False)
        except ValidationError:
            return
        run = self.runs.get(task.id)
        if run is not None:
            run.on_notification(task)


def _listen(session: Session, run: TaskRun) -> None:
    """Pass the server's notifications about a task to its run."""
    connection = find_connection(session.client)
    if connection is not None:
        if not isinstance(connection.on_notification, _TaskNotifications):
            connection.on_notification = _TaskNotifications()
        connection.on_notification.runs[run.state.id] = run


def _read_failure(error: dict[str, Any]) -> MCPError:
    code, message = error.get("code"), error.get("message")
    if isinstance(code, int) and isinstance(message, str):
        return make_safe_to_show(MCPError(code=code, message=message, data=error.get("data")))
    return MCPError(code=INTERNAL_ERROR, message="the task failed without a reason from the server")
