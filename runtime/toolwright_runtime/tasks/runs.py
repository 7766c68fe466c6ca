"""The runs of tasks: who runs one has a lease on it, and whoever dies over one loses it.

Takes ids of tasks; runs their handlers, and keeps how that ends. A task whose runner died is run again where its tool
says `idempotentHint`, and has failed else: nobody knows how far it came.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from opentelemetry.propagate import extract
from opentelemetry.trace import StatusCode, get_tracer

from ..mcp.revisions import FIRST_STATELESS
from ..observability.logs import log
from ..observability.telemetry import describe_request
from ..server.core.call_state import CURRENT, Course, reference
from ..server.core.outcomes import Outcome, refusal
from ..server.core.parts import Request
from ..server.core.sanitizing import mirrored, whole
from ..server.core.steps import Call
from ..server.execution.slots import Occupancy
from ..server.features.input_requests import MissingCapability, NotVisited, inner
from ..state.budget import BudgetExceeded
from ..state.store import StateLost, lost, lost_message
from ..values.sanitizing import clean
from .channel import TaskChannel
from .input_requests import TaskRounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..package import Tool
    from ..server.core.parts import Host
    from ..server.core.steps import Proceed
    from ..server.observability.audit import Recorder
    from ..state.store import Store
    from .connections import Lines
    from .records import Task
    from .store import Ledger


LEASE: Final = 10.0
"""Seconds after which a runner counts as dead that has not renewed its lease."""

RENEWAL: Final = 3.0
"""Seconds between two renewals."""

DEATHS: Final = 3
"""Runners that may die over a task: more would say that it kills them."""

_RETRY: Final = 0.5
"""Seconds between two attempts to keep how a task ended."""

_SAYING: Final = 1.0
"""Seconds between two messages of a task that are kept, at least."""

_LONGEST: Final = 200
"""Characters of an error that are a task's message."""


@dataclass(slots=True)
class _Leg:
    """One run.

    Attributes:
        task: The task.
        holder: Who runs it.
        course: What is recorded of it.
        scope: What is cancelled with the task.
        said: When its message was kept last.
        saying: The message that waits for that.
        is_ending: Whether it is being kept how it ended.
    """

    task: Task
    holder: str
    course: Course
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    said: float = 0.0
    saying: str | None = None
    is_ending: bool = False


class Runs:
    """What runs the tasks of one server."""

    def __init__(
        self, store: Store, ledger: Ledger, lines: Lines, host: Host, run: Proceed, recorder: Recorder | None
    ) -> None:
        """Take where tasks are, who hears of them, what handlers are given, the way of a run, and who records it."""
        self._store = store
        self._ledger = ledger
        self._lines = lines
        self._host = host
        self._proceed = run
        self._recorder = recorder
        self._under_way: set[str] = set()

    async def work(self, name: str) -> bool:
        """Run a task, if it is to be run: see `Work`."""
        if name in self._under_way:  # also where the store was away for longer than a lease lasts
            return False
        self._under_way.add(name)
        try:
            return await self._work(name)
        finally:
            self._under_way.discard(name)

    async def _work(self, name: str) -> bool:
        holder, lease = secrets.token_hex(8), f"task:{name}"
        if not await self._store.hold(lease, holder, LEASE):
            return False
        try:
            task = await self._take(name, holder)
            if task is not None and not task.is_over:
                await self._run(_Leg(task, holder, _course(task)))
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await self._store.release(lease, holder)
                except StateLost:
                    log().info("the lease on a task was not given back, and ends by itself")
        return True

    async def _take(self, name: str, holder: str) -> Task | None:
        """Take a task to run. Where the answer of the store is lost, it is asked again: it may have been taken."""
        end = time.monotonic() + LEASE
        while True:
            try:
                return await self._ledger.change(name, partial(self._taken, holder))
            except StateLost:
                if time.monotonic() > end:
                    raise
                await anyio.sleep(_RETRY)

    def _taken(self, holder: str, task: Task) -> Task | None:
        if task.status != "working":
            return None
        if task.run == holder:
            return task
        tool = self._host.package.tools.get(task.tool)
        if tool is None:
            return _failed(task, types.INTERNAL_ERROR, "There is no such tool any more")
        if task.run is None:
            return replace(task, run=holder)
        if _may_repeat(tool) and task.deaths < DEATHS:
            return replace(task, run=holder, deaths=task.deaths + 1)
        return _failed(task, types.INTERNAL_ERROR, "The process that ran it died; what it did until then may stay done")

    async def _run(self, leg: _Leg) -> None:
        token = CURRENT.set(leg.course)
        start = time.perf_counter()
        try:
            with _span(leg):
                with leg.scope:
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._guard, leg)
                        await self._go(leg)
                        group.cancel_scope.cancel()
                if leg.scope.cancelled_caught and not leg.is_ending:
                    leg.course.ending, leg.course.reason = "cancelled", "cancelled"
        except anyio.get_cancelled_exc_class():
            leg.course.ending, leg.course.reason = "cancelled", "stopped"
            with anyio.CancelScope(shield=True):
                await self._stopped(leg)
            raise
        finally:
            CURRENT.reset(token)
            leg.course.seconds = time.perf_counter() - start
            if leg.course.ending is not None and self._recorder is not None:
                self._recorder.record(leg.course)

    async def _guard(self, leg: _Leg) -> None:
        """Keep the lease, and end the run where it is no longer wanted: cancelled, expired, or somebody else's."""
        with self._ledger.watching([leg.task.id]) as woken:
            while True:
                with anyio.move_on_after(RENEWAL):
                    await woken.wait()
                woken.clear()
                try:
                    is_held = await self._store.hold(f"task:{leg.task.id}", leg.holder, LEASE)
                    task = await self._ledger.find(leg.task.id)
                except StateLost:
                    continue
                if leg.is_ending:
                    continue
                if not is_held or task is None or task.run != leg.holder or task.status != "working":
                    leg.scope.cancel()
                    return
                if leg.saying is not None:
                    await self._say(leg, leg.saying)

    async def _go(self, leg: _Leg) -> None:
        """Run the handler, and keep what comes of it."""
        task = leg.task
        tool = self._host.package.tools[task.tool]
        values, size = whole(dict(task.arguments))
        leg.course.tool, leg.course.arguments, leg.course.size = tool, values, size
        channel = TaskChannel(task, self._lines, self._host.log, partial(self._say, leg))
        occupancy = Occupancy(self._host.threads, patience=math.inf)  # it was let in when it was made
        request = Request("tools/call", task.id, {}, task.revision, channel, task.principal, occupancy)
        rounds = TaskRounds(task, channel, request.occupancy, partial(self._save, leg))
        request = replace(request, more={"rounds": rounds, "task_id": task.id})
        outcomes: list[Outcome] = []

        async def handle() -> Outcome:
            context = self._host.context(request, tool.name, tool.stem, tool.extension)
            outcomes.append(await self._proceed(Call(tool, values, size, context, is_run=True)))
            return outcomes[-1]

        try:
            outcome = await rounds.settled(handle)
        except NotVisited as error:
            outcome = refusal(str(error), "denied", "not_visited")
        except MissingCapability as error:
            text, data = str(error), {"requiredCapabilities": error.required}
            if task.revision >= FIRST_STATELESS:
                leg.course.ending, leg.course.reason = "failed", "client_capability"
                await self._fail(leg, types.MISSING_REQUIRED_CLIENT_CAPABILITY, text, data)
                return
            outcome = refusal(f"{text}.", "failed", "client_capability")
        except Exception as error:  # noqa: BLE001 - whatever it is, the task ends
            await self._broken(leg, error)
            return
        if outcome is not None:
            await self._end(leg, outcome)
            return
        leg.is_ending = True
        try:
            await self._change(leg, lambda now: now.waiting(rounds.pending, **rounds.kept) if _of(now, leg) else None)
        except BudgetExceeded as error:
            await self._overfull(leg, f"{tool.name} cannot ask its questions, which would be stored. {error}")

    async def _end(self, leg: _Leg, outcome: Outcome) -> None:
        leg.is_ending = True
        leg.course.ended(outcome)
        is_error = bool(outcome.result.get("isError"))
        message = _first_text(outcome.result) if is_error else None

        def ended(now: Task, key: str) -> Task | None:
            if not _of(now, leg):
                return None
            return now.moved("completed", message, is_error=is_error, result=key)

        while True:
            try:
                await self._ledger.complete(leg.task, outcome.result, ended)
            except StateLost:
                await anyio.sleep(_RETRY)
            except BudgetExceeded as error:
                await self._overfull(leg, f"{leg.task.tool} ran, but its result cannot be stored. {error}")
                return
            else:
                return

    async def _overfull(self, leg: _Leg, text: str) -> None:
        """Fail where there is no room for what comes next."""
        leg.course.ending, leg.course.reason = "limited", "storage"
        await self._fail(leg, types.INTERNAL_ERROR, text)

    async def _broken(self, leg: _Leg, error: Exception) -> None:
        """Fail with what the handler raised, where that is an error of the protocol; else only the log learns it."""
        raised = inner(error, MCPError)
        if raised is not None:
            leg.course.ending, leg.course.reason = "failed", "protocol_error"
            data = None if raised.error.data is None else mirrored(raised.error.data)[0]
            await self._fail(leg, raised.error.code, clean(raised.error.message), data)
            return
        if lost(error) is not None:
            leg.course.ending, leg.course.reason = "limited", "state_lost"
            await self._fail(leg, types.INTERNAL_ERROR, lost_message(is_unknown=True))
            return
        known_as = reference()
        log().error("the task of %s failed (reference %s)", leg.task.tool, known_as, exc_info=error)
        leg.course.ending, leg.course.reason, leg.course.reference = "failed", "internal_error", known_as
        await self._fail(leg, types.INTERNAL_ERROR, f"Internal error (reference {known_as})")

    async def _fail(self, leg: _Leg, code: int, message: str, data: Any = None) -> None:
        leg.is_ending = True
        await self._change(leg, lambda now: _failed(now, code, message, data) if _of(now, leg) else None)

    async def _stopped(self, leg: _Leg) -> None:
        """Hand a task back, or end it: the server stops."""
        try:
            if _may_repeat(self._host.package.tools[leg.task.tool]):
                await self._ledger.change(leg.task.id, lambda now: replace(now, run=None) if _of(now, leg) else None)
            else:
                text = "The server stopped while it ran; what it did until then may stay done"
                await self._ledger.change(
                    leg.task.id, lambda now: _failed(now, types.INTERNAL_ERROR, text) if _of(now, leg) else None
                )
        except StateLost:
            log().info("a task was stopped while the server had lost its state; it counts as one whose runner died")

    async def _change(self, leg: _Leg, make: Callable[[Task], Task | None]) -> None:
        """Keep how a run ended, however long the store is lost: the task is kept no longer than its time."""
        while True:
            try:
                await self._ledger.change(leg.task.id, make)
            except StateLost:
                await anyio.sleep(_RETRY)
            else:
                return

    async def _say(self, leg: _Leg, text: str) -> None:
        """Keep a message, now or with the next renewal."""
        leg.saying = text
        if time.monotonic() - leg.said < _SAYING or leg.is_ending:
            return
        leg.said, leg.saying = time.monotonic(), None
        try:
            await self._ledger.change(leg.task.id, lambda now: now.moved("working", text) if _of(now, leg) else None)
        except StateLost:
            leg.saying = text
        except BudgetExceeded:
            log().warning("a message of a task was not stored: the budget of its caller is used up")

    async def _save(self, leg: _Leg, done: Mapping[str, Any]) -> None:
        """Keep what `ctx.once` gave."""
        await self._ledger.change(
            leg.task.id, lambda now: replace(now, done={**now.done, **done}) if _of(now, leg) else None
        )


@contextmanager
def _span(leg: _Leg) -> Generator[None, None, None]:
    """The length of a run, as OpenTelemetry hears of it: a span of the trace in which the task was made."""
    task, tracer = leg.task, get_tracer("toolwright")
    found = {**describe_request("tools/call", {"name": task.tool}), "mcp.protocol.version": task.revision}
    with tracer.start_as_current_span(
        f"task {task.tool}",
        extract(task.trace),
        attributes=found,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        context = span.get_span_context()
        leg.course.trace = f"{context.trace_id:032x}" if context.is_valid else None
        yield
        if leg.course.ending not in (None, "completed"):
            span.set_attribute("error.type", leg.course.reason or "failed")
            span.set_status(StatusCode.ERROR)


def _of(task: Task, leg: _Leg) -> bool:
    """Whether a task is still run by this run."""
    return task.run == leg.holder and task.status == "working"


def _may_repeat(tool: Tool) -> bool:
    annotations: Mapping[str, Any] = tool.definition.get("annotations") or {}
    return annotations.get("idempotentHint") is True


def _failed(task: Task, code: int, message: str, data: Any = None) -> Task:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return task.moved("failed", message[:_LONGEST], error=error)


def _first_text(result: Mapping[str, Any]) -> str | None:
    texts = [block["text"] for block in result["content"] if block["type"] == "text"]
    return texts[0][:_LONGEST] if texts else None


def _course(task: Task) -> Course:
    course = Course(time.time(), task.transport, task.revision, id=task.course, principal=task.principal)
    course.client = task.client
    course.called({"name": task.tool, "arguments": task.arguments})
    return course
