"""Task methods and capabilities, in all revisions."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio

from ..mcp.errors import INVALID_PARAMS, INVALID_REQUEST, ProtocolError
from ..mcp.revisions import Revision
from ..server.methods.subscriptions import LISTENING
from ..server.middlewares.expiry import token_lifetime
from ..server.protocol.refusals import refuse_parameters, refuse_unknown_method
from ..state.budget import BudgetExceeded
from ..values.json import is_list, is_mapping
from ..values.nesting import is_too_deep
from . import wire
from .handshake_input import InputRequester, find_question
from .poll_rates import PER_SECOND, PollRates
from .service import declares_tasks, find_connection, find_owner, refuse_without_tasks
from .task_feed import TaskFeed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..server.core.hub import Hub
    from ..server.core.request import Answer, Request, Result
    from ..server.methods.subscriptions import Listeners
    from .records import Task
    from .service import Tasks

    _Method: TypeAlias = Callable[[Request], Awaitable[dict[str, Any]]]

_PAGE_SIZE: Final = 50
"""The number of tasks per page of the list."""

_MAX_SUBSCRIBED: Final = 1000
"""The maximum number of tasks per stream."""

_ID: Final = 100
"""The number of task ID characters that distinguish anonymous callers."""

_POLL_INTERVAL: Final = 5.0
"""Seconds between polls for an awaited task."""

_POSITION: Final = re.compile(r"(\d{13}\.\d{6}) ([0-9a-f]{64})", re.ASCII)

_CAPABILITY: Final[Mapping[str, Any]] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


class Methods:
    """Middleware for task methods."""

    def __init__(self, hub: Hub, listeners: Listeners, tasks: Tasks) -> None:
        self._hub = hub
        self._listeners = listeners
        self._tasks = tasks
        self._asker = InputRequester(tasks)
        self._rates = PollRates()
        self._handshake: Mapping[str, _Method] = {
            "tasks/get": self._status,
            "tasks/result": self._result,
            "tasks/list": self._list,
            "tasks/cancel": self._cancel,
        }
        self._stateless: Mapping[str, _Method] = {
            "tasks/get": self._details,
            "tasks/update": self._update,
            "tasks/cancel": self._ask_to_stop,
        }

    def wrap(self, method: str, call_next: Answer) -> Answer:
        """Wrap a method to handle task requests, and to add tasks to the capabilities that the server reports."""
        if method.startswith("tasks/"):
            return partial(self._refuse_large_answers, partial(self._answer, call_next))
        if method == LISTENING:
            return partial(self._listen, call_next)
        if method not in ("initialize", "server/discover"):
            return call_next

        async def call(request: Request) -> Result:
            result = await call_next(request)
            return result if request.id is None or result is None else _add_tasks_capability(method, result)

        return call

    async def _refuse_large_answers(self, answer: Answer, request: Request) -> Result:
        try:
            return await answer(request)
        except BudgetExceeded as error:
            raise ProtocolError(INVALID_PARAMS, f"The answers were not accepted. {error}") from None

    async def _answer(self, call_next: Answer, request: Request) -> Result:
        if request.id is None:
            return await call_next(request)
        is_stateless = request.revision.has("task_extension")
        methods = self._stateless if is_stateless else self._handshake
        is_known = request.method in methods and (is_stateless or request.revision.has("handshake_tasks"))
        if (is_known or is_stateless) and not request.is_admissible:
            await call_next(request)  # this raises the error for an invalid request
        if not is_known:
            raise refuse_unknown_method(request.method)
        if not is_stateless:
            self._count(request)
            return await methods[request.method](request)
        _task_id(request)
        self._require(request)
        self._count(request)
        return await methods[request.method](request)

    def _count(self, request: Request) -> None:
        """Limit the rate of requests for each principal, or for each session and task of anonymous callers."""
        key = request.principal.key
        if request.principal.kind == "anonymous":
            key = f"{key} {find_connection(request).session} {str(request.params.get('taskId'))[:_ID]}"
        if wait := self._rates.count(key):
            data = {"retryAfter": math.ceil(wait)}
            text = f"More than {PER_SECOND} task requests per second; poll at the task's `pollInterval`"
            raise ProtocolError(INVALID_REQUEST, text, data)

    def _require(self, request: Request) -> None:
        if not declares_tasks(find_connection(request)):
            raise refuse_without_tasks()

    async def _find(self, request: Request, name: str | None = None) -> Task:
        task_id = _task_id(request) if name is None else name
        task = await self._tasks.task_store.find(task_id)
        if task is None or not self._may_see(request, task):
            # The error is the same for a missing task and for another caller's task.
            raise ProtocolError(INVALID_PARAMS, "Task not found")
        await self._tasks.revive(task)
        return task

    def _may_see(self, request: Request, task: Task) -> bool:
        if task.owner != find_owner(request.principal, find_connection(request), request.revision):
            return False
        scopes = self._hub.scopes
        return scopes is None or scopes.allows(scopes.widen(request.principal), "tools", task.tool)

    # 2025-11-25

    async def _status(self, request: Request) -> dict[str, Any]:
        return wire.to_handshake_task(await self._find(request))

    async def _result(self, request: Request) -> dict[str, Any]:
        """Wait for a task to finish, and ask its questions in the meantime.

        A client that cannot resume its stream waits only until its token expires.
        """
        left = None if find_connection(request).is_resumable else token_lifetime()
        task: Task | None = None
        with anyio.move_on_after(left):
            task = await self._end(request)
        if task is None:
            raise ProtocolError(INVALID_REQUEST, "The access token has expired. Repeat the request with a new one.")
        if task.status == "cancelled":
            raise ProtocolError(INVALID_REQUEST, "The task was cancelled")
        if task.error is not None:
            raise ProtocolError(task.error["code"], task.error["message"], task.error.get("data"))
        result = await self._tasks.task_store.get_result(task)
        if result is None:
            raise ProtocolError(INVALID_PARAMS, "Task not found")
        return wire.to_final_result(task, result, self._hub.package.tools[task.tool].definition, request.revision)

    async def _end(self, request: Request) -> Task:
        """Wait until a task has finished, and return the task."""
        task = await self._find(request)
        with self._tasks.task_store.watch([task.id]) as changed:
            while not task.is_terminal:
                if (key := find_question(request, task)) is not None:
                    await self._asker.ask(find_connection(request), task, key)
                else:
                    with anyio.move_on_after(_POLL_INTERVAL):
                        await changed.wait()
                changed.clear()
                task = await self._find(request)
        return task

    async def _list(self, request: Request) -> dict[str, Any]:
        cursor = request.params.get("cursor")
        if cursor is not None and not isinstance(cursor, str):
            raise refuse_parameters("`cursor` must be a string")
        principal, connection = request.principal, find_connection(request)
        if principal.kind == "anonymous" and connection.session is None:  # without a session, only the IDs grant access
            return {"tasks": []}
        tasks = await self._tasks.task_store.list_owned(find_owner(principal, connection, request.revision))
        after = ("", "") if cursor is None else _parse_cursor(cursor)
        left = [task for task in tasks if _position(task) > after and self._may_see(request, task)]
        page = [wire.to_handshake_task(task) for task in left[:_PAGE_SIZE]]
        return {"tasks": page, **({"nextCursor": _make_cursor(left[_PAGE_SIZE - 1])} if len(left) > _PAGE_SIZE else {})}

    async def _cancel(self, request: Request) -> dict[str, Any]:
        task = await self._find(request)
        if (cancelled := await self._mark_cancelled(task)) is None:
            status = wire.to_handshake_task(await self._find(request))["status"]
            raise ProtocolError(INVALID_PARAMS, f"Cannot cancel task: already in terminal status {status!r}")
        return wire.to_handshake_task(cancelled)

    # 2026-07-28

    async def _details(self, request: Request) -> dict[str, Any]:
        task = await self._find(request)
        return wire.to_detailed_task(task, await self._tasks.task_store.get_result(task))

    async def _update(self, request: Request) -> dict[str, Any]:
        task = await self._find(request)
        responses = request.params.get("inputResponses")
        if not is_mapping(responses):
            raise refuse_parameters("`inputResponses` must be an object")
        if is_too_deep(responses):
            raise ProtocolError(INVALID_PARAMS, "The answers are nested too deeply")
        await self._tasks.answer(task, responses)
        return {}

    async def _ask_to_stop(self, request: Request) -> dict[str, Any]:
        await self._mark_cancelled(await self._find(request))
        return {}

    async def _mark_cancelled(self, task: Task) -> Task | None:
        return await self._tasks.task_store.change(task.id, lambda now: now.move("cancelled", "Cancelled by request."))

    async def _listen(self, call_next: Answer, request: Request) -> Result:
        """Subscribe a client to its existing tasks (the extension, "Task Status Notifications")."""
        names = _list_task_ids(request.params)
        if not names or request.id is None or not request.is_admissible or not request.revision.has("task_extension"):
            return await call_next(request)
        self._require(request)
        if len(names) > _MAX_SUBSCRIBED:
            raise ProtocolError(INVALID_PARAMS, f"More than {_MAX_SUBSCRIBED} task IDs in a subscription")
        known: list[str] = []
        for name in names:
            try:
                known.append((await self._find(request, name)).id)
            except ProtocolError:  # ignore unknown tasks
                continue
        feed = TaskFeed(self._tasks.task_store, known)
        return await self._listeners.listen(request, feed)


def _task_id(request: Request) -> str:
    task_id = request.params.get("taskId")
    if not isinstance(task_id, str):
        raise refuse_parameters("`taskId` must be a string")
    return task_id


def _add_tasks_capability(method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Add the tasks capability to a result of `initialize` or `server/discover`, if the revision supports tasks."""
    capabilities: dict[str, Any] = {**result["capabilities"]}
    if method == "server/discover":
        extensions: dict[str, Any] = capabilities.get("extensions") or {}
        capabilities["extensions"] = {**extensions, wire.EXTENSION: {}}
    elif Revision.from_date(str(result.get("protocolVersion"))).has("handshake_tasks"):
        capabilities["tasks"] = _CAPABILITY
    return {**result, "capabilities": capabilities}


def _list_task_ids(params: object) -> list[str]:
    wanted = params.get("notifications") if is_mapping(params) else None
    names = wanted.get("taskIds") if is_mapping(wanted) else None
    return list(dict.fromkeys(name for name in names if isinstance(name, str))) if is_list(names) else []


def _position(task: Task) -> tuple[str, str]:
    """Return a task's position in the list, without revealing its ID."""
    # Pad the numbers, because positions are compared as strings.
    return f"{task.created:020.6f}", hashlib.sha256(task.id.encode()).hexdigest()


def _make_cursor(task: Task) -> str:
    return base64.urlsafe_b64encode(" ".join(_position(task)).encode()).decode()


def _parse_cursor(cursor: str) -> tuple[str, str]:
    try:
        match = _POSITION.fullmatch(base64.urlsafe_b64decode(cursor).decode())
    except ValueError:
        match = None
    if match is None:
        raise ProtocolError(INVALID_PARAMS, "Invalid cursor")
    return match[1], match[2]
