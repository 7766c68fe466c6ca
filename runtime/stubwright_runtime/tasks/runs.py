"""Runs tasks under a lease, which expires if the process crashes.

After a crash, the task is rerun if its tool has `idempotentHint`; otherwise it fails, because its effects are unknown.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from ..mcp.errors import INTERNAL_ERROR, MISSING_REQUIRED_CLIENT_CAPABILITY
from ..mcp.revisions import Revision
from ..observability.logs import log
from ..observability.scope import SCOPE
from ..server.core.call_state import CallState, make_reference
from ..server.core.outcomes import Outcome, refuse
from ..server.core.request import Request
from ..server.features.input_requests import MissingCapability, UrlNotVisitedError, find_mcp_error, settle
from ..server.protocol.messages import encode_json, repair_unicode
from ..state.budget import BudgetExceeded
from ..state.leases import RENEWAL, Lease, LeaseRenewer
from ..state.store import StateLost, describe_lost_state, find_state_lost
from ..values.sanitizing import clean
from .channel import TaskChannel
from .input_requests import TaskInputRequests
from .leases import find_duration
from .tracing import add_waiting, count_death, open_span, record_age

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..package import Tool
    from ..server.core.feature import ServerContext
    from ..server.core.request import Channel, Handle, Result
    from ..server.observability.audit import Recorder
    from ..state.store import Store
    from .connections import TaskConnections
    from .engines.turns import Turns
    from .records import Task
    from .store import TaskStore


MAX_DEATHS: Final = 3
"""The maximum number of processes that can die while running a task, since the task might be the cause."""

_CLAIM_TIMEOUT: Final = 10.0
"""Seconds to keep retrying to claim a task while the store is unavailable."""

_RETRY_INTERVAL: Final = 0.5
"""Seconds between attempts to store a task's final state."""

_MESSAGE_INTERVAL: Final = 1.0
"""The minimum time between saves of a task's message, in seconds."""

_MAX_CHARACTERS: Final = 200
"""The maximum length of an error in a task's message, in characters."""


@dataclass(slots=True)
class _Attempt:
    """One run of a task.

    Attributes:
        scope: The cancel scope that is cancelled with the task.
        message_saved_at: The time when a message was last saved.
        pending_message: A message to save later.
        is_ending: Whether the task's final state is being saved.
    """

    task: Task
    lease: Lease
    call_state: CallState
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    message_saved_at: float = 0.0
    pending_message: str | None = None
    is_ending: bool = False


class Runs:
    """Runs one server's tasks."""

    def __init__(
        self,
        store: Store,
        task_store: TaskStore,
        connections: TaskConnections,
        turns: Turns,
        server: ServerContext,
        compile_run: Callable[[str], Handle],
        recorder: Recorder | None,
    ) -> None:
        self._store = store
        self._task_store = task_store
        self._connections = connections
        self._turns = turns
        self._server = server
        self._compile = lru_cache(None)(compile_run)
        self._recorder = recorder
        self._renewer = LeaseRenewer(store)
        self._running: set[str] = set()

    async def work(self, name: str) -> bool:
        """Run a task if it is due; see `TaskWork`."""
        if name in self._running:  # the limit applies even after a store outage that is longer than a lease
            return False
        self._running.add(name)
        try:
            return await self._work_in_turn(name)
        finally:
            self._running.discard(name)

    async def _work_in_turn(self, name: str) -> bool:
        task = await self._task_store.find(name)
        if task is None or task.status != "working":
            return True
        tool = self._server.package.tools.get(task.tool)
        places = math.inf if tool is None else tool.policy.get("concurrency", math.inf)
        # Unknown names must not become metric attributes.
        known = "" if tool is None else tool.name
        add_waiting(known, 1)
        try:
            is_turn = await self._turns.acquire(task.tool, task.owner, places)
        finally:
            add_waiting(known, -1)
        if not is_turn:
            return False
        try:
            return await self._work(name, task, known, find_duration(tool))
        finally:
            self._turns.release(task.tool)

    async def _work(self, name: str, before: Task, tool: str, seconds: float) -> bool:
        holder, lease_name = secrets.token_hex(8), f"task:{name}"
        if not await self._store.hold(lease_name, holder, seconds):
            return False
        try:
            with self._renewer.keep(lease_name, holder, seconds) as lease:
                task = await self._claim(name, holder)
                if task is not None and before.run is not None:
                    count_death(tool, is_retried=not task.is_terminal)
                    if task.is_abandoned:
                        log().error(
                            "abandoned a task of %s after its process died %d times; the `tasks` command lists it",
                            tool,
                            task.deaths,
                        )
                if task is not None and not task.is_terminal:
                    record_age(tool, task.updated - before.updated)
                    attempt = _Attempt(task, lease, _start_call_state(task, self._find_sent(task)))
                    await self._run(attempt, self._make_request(attempt))
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await self._store.release(lease_name, holder)
                except StateLost:
                    log().info("a task's lease could not be released and will expire")
        return True

    async def _claim(self, name: str, holder: str) -> Task | None:
        """Claim a task, or fail the task if the store has no room for the new record.

        Retry during an outage, because the claim may have succeeded.
        """
        end = time.monotonic() + _CLAIM_TIMEOUT
        while True:
            try:
                return await self._task_store.change(name, partial(self._mark_claimed, holder))
            except BudgetExceeded as error:
                return await self._task_store.change(name, partial(_refuse, error))
            except StateLost:
                if time.monotonic() > end:
                    raise
                await anyio.sleep(_RETRY_INTERVAL)

    def _mark_claimed(self, holder: str, task: Task) -> Task | None:
        if task.status != "working":
            return None
        # An earlier attempt succeeded, although its response was lost.
        if task.run == holder:
            return task
        tool = self._server.package.tools.get(task.tool)
        if tool is None:
            return _to_failed(task, INTERNAL_ERROR, "This tool no longer exists")
        if task.run is None:
            return replace(task, run=holder, attempt=task.attempt + 1)
        task = replace(task, deaths=task.deaths + 1)
        is_repeatable = _is_repeatable(tool)
        if is_repeatable and task.deaths < MAX_DEATHS:
            return replace(task, run=holder, attempt=task.attempt + 1)
        text = "The task's process died or was unresponsive for longer than its lease; the task's effects may persist"
        return replace(_to_failed(task, INTERNAL_ERROR, text), is_abandoned=is_repeatable)

    def _make_request(self, attempt: _Attempt) -> Request:
        """Create the request for a run. The client has already received the response to the call."""
        task = attempt.task

        def open_channel(_request: Request) -> Channel:
            return TaskChannel(task, self._connections, self._server.log, partial(self._save_message, attempt))

        return Request(
            package=self._server.package.name,
            secrets=[],
            method="tools/call",
            id=task.id,
            params={},
            revision=Revision.from_date(task.revision),
            transport=task.transport,
            threads=self._server.threads,
            open_channel=open_channel,
            call_next=_answer_nothing,
            principal=task.principal,
            record=attempt.call_state,
            task_id=task.id,
            attempt=task.attempt,
            patience=math.inf,  # the call was admitted when the task was created
        )

    async def _run(self, attempt: _Attempt, request: Request) -> None:
        async def watch() -> None:
            # anyio leaves a reference cycle with the frames of a cancelled task.
            with suppress(anyio.get_cancelled_exc_class()):
                await self._watch(attempt)

        token = SCOPE.set(request)
        start = time.perf_counter()
        try:
            with open_span(attempt.task, attempt.call_state):
                with attempt.scope:
                    async with anyio.create_task_group() as group:
                        group.start_soon(watch)
                        await self._run_handler(attempt, request)
                        group.cancel_scope.cancel()
                if attempt.scope.cancelled_caught and not attempt.is_ending:
                    attempt.call_state.status, attempt.call_state.reason = "cancelled", "cancelled"
        except anyio.get_cancelled_exc_class():
            attempt.call_state.status, attempt.call_state.reason = "cancelled", "stopped"
            with anyio.CancelScope(shield=True):
                await self._give_up(attempt)
            raise
        finally:
            SCOPE.reset(token)
            request.close()
            attempt.call_state.seconds = time.perf_counter() - start
            if attempt.call_state.status is not None and self._recorder is not None:
                self._recorder.record(attempt.call_state)

    async def _watch(self, attempt: _Attempt) -> None:
        """Renew the lease, and cancel the run if the task is cancelled, expires, or is claimed elsewhere."""
        lease = attempt.lease
        with self._task_store.watch([attempt.task.id]) as changed:
            while True:
                with anyio.move_on_after(lease.seconds * RENEWAL):
                    await changed.wait()
                changed.clear()
                try:
                    is_held = await self._store.hold(lease.name, lease.holder, lease.seconds)
                    task = await self._task_store.find(attempt.task.id)
                except StateLost:
                    continue
                # Storing the end changes the status, which must not cancel this run.
                if attempt.is_ending:
                    continue
                if not is_held or task is None or task.run != lease.holder or task.status != "working":
                    attempt.scope.cancel()
                    return
                if attempt.pending_message is not None:
                    await self._save_message(attempt, attempt.pending_message)

    def _find_sent(self, task: Task) -> dict[str, Any]:
        tool = self._server.package.tools.get(task.tool)
        bound: Mapping[str, Any] = {} if tool is None else tool.bound
        return {name: value for name, value in task.arguments.items() if name not in bound}

    async def _run_handler(self, attempt: _Attempt, request: Request) -> None:
        task = attempt.task
        tool = self._server.package.tools[task.tool]
        request.arguments, request.size = repair_unicode(dict(task.arguments))
        attempt.call_state.tool = tool
        attempt.call_state.arguments, attempt.call_state.size = repair_unicode(self._find_sent(task))
        input_requests = request.rounds = TaskInputRequests(task, request, partial(self._save, attempt))
        try:
            outcome = await settle(request, self._compile(tool.name))
        except UrlNotVisitedError as error:
            outcome = refuse(str(error), "denied", "not_visited")
        except MissingCapability as error:
            text, data = str(error), {"requiredCapabilities": error.required}
            if request.revision.has("stateless"):
                attempt.call_state.status, attempt.call_state.reason = "failed", "client_capability"
                await self._fail(attempt, MISSING_REQUIRED_CLIENT_CAPABILITY, text, data)
                return
            outcome = refuse(f"{text}.", "failed", "client_capability")
        except Exception as error:  # noqa: BLE001 - any exception ends the task
            await self._fail_with(attempt, error)
            return
        if outcome is not None:
            await self._end(attempt, outcome)
            return
        attempt.is_ending = True
        try:
            await self._change(
                attempt,
                lambda now: (
                    now.wait_for(input_requests.pending, **input_requests.state) if _is_run_by(now, attempt) else None
                ),
            )
        except BudgetExceeded as error:
            await self._fail_for_storage(
                attempt, f"{tool.name} cannot ask its questions because they cannot be stored. {error}"
            )

    async def _end(self, attempt: _Attempt, outcome: Outcome) -> None:
        attempt.is_ending = True
        attempt.call_state.record_outcome(outcome)
        is_error = bool(outcome.result.get("isError"))
        message = _find_text(outcome.result) if is_error else None

        def wait_for_end(now: Task, key: str) -> Task | None:
            if not _is_run_by(now, attempt):
                return None
            return now.move("completed", message, is_error=is_error, result=key)

        # The handler has finished, so retry until its result is stored.
        while True:
            try:
                await self._task_store.complete(attempt.task, outcome.result, wait_for_end)
            except StateLost:
                await anyio.sleep(_RETRY_INTERVAL)
            except BudgetExceeded as error:
                await self._fail_for_storage(
                    attempt, f"{attempt.task.tool} finished, but its result cannot be stored. {error}"
                )
                return
            else:
                return

    async def _fail_for_storage(self, attempt: _Attempt, text: str) -> None:
        attempt.call_state.status, attempt.call_state.reason = "limited", "storage"
        await self._fail(attempt, INTERNAL_ERROR, text)

    async def _fail_with(self, attempt: _Attempt, error: Exception) -> None:
        """Fail the task with the handler's protocol error. Log any other exception; clients get only a reference."""
        raised = find_mcp_error(error)
        if raised is not None:
            attempt.call_state.status, attempt.call_state.reason = "failed", "protocol_error"
            data = None if raised.error.data is None else encode_json(raised.error.data)[0]
            await self._fail(attempt, raised.error.code, clean(raised.error.message), data)
            return
        if find_state_lost(error) is not None:
            attempt.call_state.status, attempt.call_state.reason = "limited", "state_lost"
            await self._fail(attempt, INTERNAL_ERROR, describe_lost_state(is_unknown=True))
            return
        error_reference = make_reference()
        self._server.failures.add(error_reference, error)
        log().error("the task of %s failed (reference %s)", attempt.task.tool, error_reference, exc_info=error)
        attempt.call_state.status, attempt.call_state.reason, attempt.call_state.reference = (
            "failed",
            "internal_error",
            error_reference,
        )
        await self._fail(attempt, INTERNAL_ERROR, f"Internal error (reference {error_reference})")

    async def _fail(self, attempt: _Attempt, code: int, message: str, data: Any = None) -> None:
        attempt.is_ending = True
        await self._change(
            attempt, lambda now: _to_failed(now, code, message, data) if _is_run_by(now, attempt) else None
        )

    async def _give_up(self, attempt: _Attempt) -> None:
        """Release or fail a task when the server stops."""
        try:
            if _is_repeatable(self._server.package.tools[attempt.task.tool]):
                await self._task_store.change(
                    attempt.task.id, lambda now: replace(now, run=None) if _is_run_by(now, attempt) else None
                )
            else:
                text = "The server stopped while the task was running; its effects so far may persist"
                await self._task_store.change(
                    attempt.task.id,
                    lambda now: _to_failed(now, INTERNAL_ERROR, text) if _is_run_by(now, attempt) else None,
                )
        except StateLost:
            log().info("a task was stopped during a store outage; it counts as a task whose process died")

    async def _change(self, attempt: _Attempt, make: Callable[[Task], Task | None]) -> None:
        """Save a change that ends a run, retrying until the store is available."""
        while True:
            try:
                await self._task_store.change(attempt.task.id, make)
            except StateLost:
                await anyio.sleep(_RETRY_INTERVAL)
            else:
                return

    async def _save_message(self, attempt: _Attempt, text: str) -> None:
        """Save a message now or with the next lease renewal."""
        attempt.pending_message = text
        if time.monotonic() - attempt.message_saved_at < _MESSAGE_INTERVAL or attempt.is_ending:
            return
        attempt.message_saved_at, attempt.pending_message = time.monotonic(), None
        try:
            await self._task_store.change(
                attempt.task.id, lambda now: now.move("working", text) if _is_run_by(now, attempt) else None
            )
        except StateLost:
            attempt.pending_message = text
        except BudgetExceeded:
            log().warning("a task's message was not stored: the caller's storage budget is exhausted")

    async def _save(self, attempt: _Attempt, done: Mapping[str, Any]) -> None:
        await self._task_store.change(
            attempt.task.id, lambda now: replace(now, done={**now.done, **done}) if _is_run_by(now, attempt) else None
        )


def _is_run_by(task: Task, attempt: _Attempt) -> bool:
    """Return whether an attempt is still the task's current run."""
    return task.run == attempt.lease.holder and task.status == "working"


def _is_repeatable(tool: Tool) -> bool:
    annotations: Mapping[str, Any] = tool.definition.get("annotations") or {}
    return annotations.get("idempotentHint") is True


def _to_failed(task: Task, code: int, message: str, data: Any = None) -> Task:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return task.move("failed", message[:_MAX_CHARACTERS], error=error)


def _refuse(error: BudgetExceeded, task: Task) -> Task | None:
    if task.status != "working":
        return None
    return _to_failed(task, INTERNAL_ERROR, f"{task.tool} cannot start because its run cannot be stored. {error}")


def _find_text(result: Mapping[str, Any]) -> str | None:
    texts = [block["text"] for block in result["content"] if block["type"] == "text"]
    return texts[0][:_MAX_CHARACTERS] if texts else None


async def _answer_nothing(_request: Request) -> Result:
    # A run has no next middleware.
    return None


def _start_call_state(task: Task, sent: Mapping[str, Any]) -> CallState:
    call_state = CallState(time.time(), task.transport, task.revision, known_id=task.call_id, principal=task.principal)
    call_state.client = task.client
    call_state.record_parameters({"name": task.called or task.tool, "arguments": sent})
    return call_state
