"""One server's tasks: creates them from calls and runs them."""

from __future__ import annotations

import asyncio
import json
import math
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from ..mcp.errors import METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY, ProtocolError
from ..mcp.revisions import find_revision
from ..observability.logs import log
from ..server.calls.invocation import compile_context
from ..server.core.call_state import record_status
from ..server.core.outcomes import Outcome, refuse
from ..server.features.input_requests import find_rounds
from ..state.budget import BudgetExceeded
from ..state.store import StateLost, describe_lost_state, mark_after_change
from ..values.sanitizing import clean
from ..values.units import parse_duration
from . import wire
from .connections import TaskConnections
from .engines.selection import choose_engine
from .engines.turns import SLOTS, Turns
from .leases import find_duration
from .records import Task
from .runs import Runs
from .store import TaskStore
from .tracing import make_trace_headers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from ..mcp.revisions import Revision
    from ..package import Package, Tool
    from ..server.core.feature import ServerContext
    from ..server.core.principal import Principal
    from ..server.core.request import Handle, Request
    from ..server.core.task_engine import TaskEngine
    from ..server.observability.audit import Recorder
    from ..state.store import Store
    from .connections import TaskConnection

TTL: Final = "1h"
POLL: Final = "1s"
MOST: Final = 100
"""The defaults of the manifest's `task`."""

_GRACE: Final = 5.0
"""The default seconds to wait for running tasks to finish."""

_CHECK_INTERVAL: Final = 30.0
"""Seconds between checks whether a process is running a task."""

_MIN_TTL: Final = 1.0
"""A task's minimum retention in seconds."""


@dataclass(frozen=True, slots=True)
class _TaskSettings:
    ttl: float
    poll: float
    most: int

    @classmethod
    def from_tool(cls, tool: Tool) -> _TaskSettings:
        settings: Mapping[str, Any] = tool.extension.get("task") or {}
        return cls(
            parse_duration(settings.get("ttl", TTL)),
            parse_duration(settings.get("pollInterval", POLL)),
            settings.get("most", MOST),
        )


class Tasks:
    """The tasks of one server.

    Attributes:
        task_store: Stores the tasks and their results.
        engine: The engine that runs the tasks.
        works: Whether this process also runs tasks.
        grace: Seconds to wait for running tasks when the server stops.
    """

    def __init__(
        self, package: Package, store: Store, recorder: Recorder | None, engine: TaskEngine | None = None
    ) -> None:
        """Create the task service for a package.

        Raises:
            MissingExtraError: A package that the shared store's engine requires is not installed.
            StoreConfigurationError: An engine was passed for a store that is not shared.
        """
        self.task_store = TaskStore(store)
        self.engine: TaskEngine = choose_engine(store, engine)
        self.works = True
        self.grace = _GRACE
        self._connections = TaskConnections(self.task_store)
        self._turns = Turns(SLOTS if store.is_shared else math.inf)
        self._package = package
        self._store = store
        self._recorder = recorder
        self._runs: Runs | None = None
        self._server: ServerContext

    def serve(self, server: ServerContext, compile_run: Callable[[str], Handle]) -> None:
        """Set the server, and the function that returns the handler for a tool's runs, given the tool's name."""
        self._server = server
        self._runs = Runs(
            self._store, self.task_store, self._connections, self._turns, server, compile_run, self._recorder
        )

    async def work(self, task: str) -> bool:
        """Run a task; see `TaskWork`."""
        return self._runs is not None and await self._runs.work(task)

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None, None]:
        """Run tasks and notify clients during the block."""
        self._turns.open()
        async with self._connections.run(), self.engine.run(self.work if self.works else None, self.grace):
            try:
                yield
            finally:
                self.stop()

    def stop(self) -> None:
        """Stop starting tasks. Running tasks continue."""
        self._turns.close()
        self.engine.stop()

    async def answer(self, task: Task, responses: Mapping[str, Any]) -> None:
        """Store answers to a task's questions, ignoring other answers, and continue the task after the last one.

        Raises:
            StateLost: The answers may not have been stored.
        """
        changed = await self.task_store.change(task.id, lambda now: now.answer(responses))
        if changed is not None and changed.status == "working":
            with mark_after_change():
                await self.submit(task.id)

    async def revive(self, task: Task) -> None:
        """Resubmit a task if no process is running it because the process crashed or never started it.

        Raises:
            StateLost: The task may not have been submitted.
        """
        lease = find_duration(self._package.tools.get(task.tool))
        if task.status != "working" or self.task_store.now() - task.updated < lease:
            return
        holder = secrets.token_hex(8)
        # One check per interval is enough for all clients polling a task.
        if not await self._store.hold(f"task-look:{task.id}", holder, _CHECK_INTERVAL):
            return
        # If the lease is free, no process is running the task.
        if await self._store.hold(f"task:{task.id}", holder, lease):
            await self._store.release(f"task:{task.id}", holder)
            await self.submit(task.id)

    async def submit(self, task: str) -> None:
        """Submit a task to the engine. Raises StateLost if the engine might not have received it."""
        try:
            await self.engine.submit(task)
        except StateLost:
            raise
        except Exception as error:
            log().warning("the task engine did not accept a task: %s: %s", type(error).__name__, error)
            raise StateLost("the task engine did not accept a task", is_unknown=True) from error

    def find_starter(self, request: Request, tool: Tool) -> Handle | None:
        """Return the function that runs a call as a task, or `None` for a direct call.

        Raises:
            ProtocolError: The tool runs only as a task, or never as a task, contrary to the request.
        """
        support, is_stateless = tool.task_support, request.revision.has("task_extension")
        asked: Any = request.params.get("task") if request.revision.has("handshake_tasks") else None
        if support == "forbidden":
            if asked is not None:
                record_status("invalid", "task_support")
                raise ProtocolError(METHOD_NOT_FOUND, f"{clean(tool.name)} does not run as a task; omit `task`")
            return None
        if not (declares_tasks(find_connection(request)) if is_stateless else asked is not None):
            if support == "required":
                record_status("invalid", "task_support")
                raise _task_required(tool, is_stateless)
            return None

        return partial(self._begin, tool, asked)

    async def _begin(self, tool: Tool, asked: Any, request: Request) -> Outcome:
        """Ask any questions that precede the task, then create and submit the task."""
        terms, connection = _TaskSettings.from_tool(tool), find_connection(request)
        questions: Mapping[str, Any] = tool.extension.get("ask") or {}
        asked_first = [name for name, question in questions.items() if question.get("before") == "task"]
        if asked_first:
            context: Any = compile_context(self._server, tool.stem, tool.extension)(request, tool.name)
            # In MCP 2026-07-28 and later, concurrent questions are sent in one round.
            await asyncio.gather(*(context.ask.ask_ahead(name) for name in asked_first))
        state, now = find_rounds(request).state, self.task_store.now()
        task = Task(
            owner=find_owner(request.principal, connection, request.revision),
            tool=tool.name,
            # The run opens the cursor again.
            arguments=request.arguments if request.page is None else request.page.arguments,
            revision=request.revision.date,
            transport=request.transport,
            call_id=request.call_id,
            trace=make_trace_headers(),
            client=connection.client,
            principal=request.principal,
            capabilities=connection.capabilities,
            created=now,
            updated=now,
            ttl=_limit_ttl(terms.ttl, asked),
            poll=terms.poll,
            answers=state["answers"],
            done=state["done"],
            tries=state["tries"],
            called=request.params["name"],
        )
        try:
            if not await self.task_store.create(task, terms.most):
                allowed = "one task" if terms.most == 1 else f"{terms.most:,} tasks"
                text = f"{tool.name} runs {allowed} per caller at a time; try again when one has finished."
                return refuse(text, "limited", "tasks")
            if not request.revision.has("stateless"):
                self._connections.open(task, connection)
            try:
                await self.submit(task.id)
            # The caller gets an error without the ID, so delete the task.
            except BaseException:
                with mark_after_change():
                    await self.task_store.forget(task)
                raise
        except BudgetExceeded as error:
            return refuse(f"{tool.name} was not started. {error}", "limited", "storage")
        except StateLost as error:
            return refuse(describe_lost_state(is_unknown=error.is_unknown), "limited", "state_lost")
        if not request.revision.has("stateless"):
            return Outcome({"task": wire.to_handshake_task(task)})
        return Outcome({"resultType": "task", **wire.to_task(task)})


def find_connection(request: Request) -> TaskConnection:
    """Return the connection to a request's sender."""
    return cast("TaskConnection", request.channel)


def declares_tasks(connection: TaskConnection) -> bool:
    """Return whether a 2026-07-28 client declares support for tasks."""
    capabilities = connection.capabilities
    return capabilities is not None and wire.EXTENSION in (capabilities.get("extensions") or {})


def refuse_without_tasks() -> ProtocolError:
    """Return the error for a 2026-07-28 client without task support (the extension, "Capability Negotiation")."""
    return ProtocolError(
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"This request requires a client that supports the extension {wire.EXTENSION!r}",
        {"requiredCapabilities": {"extensions": {wire.EXTENSION: {}}}},
    )


def find_owner(principal: Principal, connection: TaskConnection, revision: Revision) -> str:
    """Return a task's owner: the principal, plus the session for anonymous callers of revisions with sessions."""
    if principal.kind != "anonymous" or revision.has("stateless"):
        return principal.key
    return json.dumps([principal.key, connection.session])


def _task_required(tool: Tool, is_stateless: bool) -> ProtocolError:
    if is_stateless:
        return refuse_without_tasks()
    return ProtocolError(
        METHOD_NOT_FOUND,
        f"{clean(tool.name)} runs only as a task; call it with `task` ({find_revision('handshake_tasks')})",
    )


def _limit_ttl(most: float, asked: Any) -> float:
    """Return a task's retention in seconds: the client's value, up to the manifest's limit."""
    wanted: float | None = None if asked is None else asked.get("ttl")
    return most if wanted is None else min(most, max(_MIN_TTL, wanted / 1000))
