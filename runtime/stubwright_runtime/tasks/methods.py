"""The methods of tasks, and what the server says of itself, in both eras.

Takes messages, as a step of the server's core; answers `tasks/*` (MCP 2025-11-25, basic/utilities/tasks; the extension,
"Task Polling" and what follows) and passes on the others.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import anyio

from ..mcp.errors import INVALID_PARAMS, INVALID_REQUEST, ProtocolError
from ..mcp.revisions import Revision
from ..server.middlewares.expiry import count_own_seconds_left
from ..server.middlewares.in_flight import LISTENING
from ..server.protocol.requests import refuse_parameters, refuse_unknown_method
from ..state.budget import BudgetExceeded
from ..values.json import is_list, is_mapping
from ..values.nesting import is_too_deep
from . import wire
from .handshake_input import InputRequester
from .listening import TaskFeed
from .poll_rates import PER_SECOND, PollRates
from .service import declares_tasks, find_owner, refuse_without_tasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..server.core.core import Core
    from ..server.core.exchange import Exchange, Rest, Result
    from .connections import TaskConnection
    from .records import Task
    from .service import Tasks

    _Method: TypeAlias = Callable[[Exchange], Awaitable[dict[str, Any]]]

_PAGE_SIZE: Final = 50
"""Tasks on a page of the list."""

_MAX_SUBSCRIBED: Final = 1000
"""Tasks that one stream tells of, at most."""

_ID: Final = 100
"""Characters of a task's id that callers are told apart by."""

_POLL_INTERVAL: Final = 5.0
"""Seconds between two looks at a task that somebody waits for, where nothing is heard of it."""

_POSITION: Final = re.compile(r"(\d{13}\.\d{6}) ([0-9a-f]{64})", re.ASCII)

_CAPABILITY: Final[Mapping[str, Any]] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


class Methods:
    """The middleware."""

    def __init__(self, core: Core, tasks: Tasks) -> None:
        """Take the server, and its tasks."""
        self._core = core
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

    async def __call__(self, rest: Rest, exchange: Exchange) -> Result:
        """Answer a request about tasks; pass on any other message."""
        if exchange.id is None:
            return await rest(exchange)
        try:
            if exchange.method.startswith("tasks/"):
                return await self._answer(rest, exchange)
            if exchange.method == LISTENING and (names := _subscribed_task_ids(exchange.params)):
                return await self._listen(rest, exchange, names)
        except BudgetExceeded as error:
            raise ProtocolError(INVALID_PARAMS, f"The answers were not taken. {error}") from None
        result = await rest(exchange)
        if exchange.method in ("initialize", "server/discover") and result is not None:
            return _add_tasks_capability(exchange.method, result)
        return result

    async def _answer(self, rest: Rest, exchange: Exchange) -> Result:
        revision = Revision.from_date(exchange.revision)
        is_stateless = revision.has("task_extension")
        methods = self._stateless if is_stateless else self._handshake
        is_known = exchange.method in methods and (is_stateless or revision.has("handshake_tasks"))
        if (is_known or is_stateless) and not exchange.is_admissible:
            await rest(exchange)  # who refuses what is wrong with any request
        if not is_known:
            raise refuse_unknown_method(exchange.method)
        if not is_stateless:
            self._count(exchange)
            return await methods[exchange.method](exchange)
        _task_id(exchange)
        self._require(exchange)
        self._count(exchange)
        return self._core.stamp(await methods[exchange.method](exchange), exchange.revision)

    def _count(self, exchange: Exchange) -> None:
        """Refuse who asks too often. Who is not known by name is counted by the task."""
        principal = self._core.find_principal(over_http=exchange.over_http)
        key = principal.key
        if principal.kind == "anonymous":
            key = f"{key} {_connection(exchange).session} {str((exchange.params or {}).get('taskId'))[:_ID]}"
        if wait := self._rates.count(key):
            data = {"retryAfter": math.ceil(wait)}
            text = f"More than {PER_SECOND} requests about tasks in a second; ask as often as `pollInterval` says"
            raise ProtocolError(INVALID_REQUEST, text, data)

    def _require(self, exchange: Exchange) -> None:
        if not declares_tasks(_connection(exchange)):
            raise refuse_without_tasks()

    async def _find(self, exchange: Exchange, name: str | None = None) -> Task:
        """Return the task of a request. The error does not say whether it is over, another's, or never was."""
        task_id = _task_id(exchange) if name is None else name
        task = await self._tasks.task_store.find(task_id)
        if task is None or not self._may_see(exchange, task):
            raise ProtocolError(INVALID_PARAMS, "Task not found")
        await self._tasks.look(task)
        return task

    def _may_see(self, exchange: Exchange, task: Task) -> bool:
        principal = self._core.find_principal(over_http=exchange.over_http)
        if task.owner != find_owner(principal, _connection(exchange), exchange.revision):
            return False
        scopes = self._core.scopes
        return scopes is None or scopes.allows(principal, "tools", task.tool)

    # 2025-11-25

    async def _status(self, exchange: Exchange) -> dict[str, Any]:
        return wire.to_handshake_task(await self._find(exchange))

    async def _result(self, exchange: Exchange) -> dict[str, Any]:
        """Wait for the end, and ask meanwhile what the task waits for.

        A client that cannot come back for the answer does not wait for longer than its token holds.
        """
        left = None if _connection(exchange).is_resumable else count_own_seconds_left()
        task: Task | None = None
        with anyio.move_on_after(left):
            task = await self._end(exchange)
        if task is None:
            raise ProtocolError(INVALID_REQUEST, "The access token has expired. Ask again with another one.")
        if task.status == "cancelled":
            raise ProtocolError(INVALID_REQUEST, "The task was cancelled")
        if task.error is not None:
            raise ProtocolError(task.error["code"], task.error["message"], task.error.get("data"))
        result = await self._tasks.task_store.get_result(task)
        if result is None:
            raise ProtocolError(INVALID_PARAMS, "Task not found")
        return wire.to_final_result(task, result, self._core.package.tools[task.tool].definition, exchange.revision)

    async def _end(self, exchange: Exchange) -> Task:
        """Wait for the end of a task, and return it."""
        task = await self._find(exchange)
        with self._tasks.task_store.watch([task.id]) as changed:
            while not task.is_over:
                if task.pending:
                    await self._asker.ask(_connection(exchange), task)
                else:
                    with anyio.move_on_after(_POLL_INTERVAL):
                        await changed.wait()
                changed.clear()
                task = await self._find(exchange)
        return task

    async def _list(self, exchange: Exchange) -> dict[str, Any]:
        cursor = (exchange.params or {}).get("cursor")
        if cursor is not None and not isinstance(cursor, str):
            raise refuse_parameters("`cursor` must be a string")
        principal, connection = self._core.find_principal(over_http=exchange.over_http), _connection(exchange)
        if principal.kind == "anonymous" and connection.session is None:  # only ids give access
            return {"tasks": []}
        tasks = await self._tasks.task_store.list_owned(find_owner(principal, connection, exchange.revision))
        after = ("", "") if cursor is None else _parse_cursor(cursor)
        left = [task for task in tasks if _position(task) > after and self._may_see(exchange, task)]
        page = [wire.to_handshake_task(task) for task in left[:_PAGE_SIZE]]
        return {"tasks": page, **({"nextCursor": _make_cursor(left[_PAGE_SIZE - 1])} if len(left) > _PAGE_SIZE else {})}

    async def _cancel(self, exchange: Exchange) -> dict[str, Any]:
        task = await self._find(exchange)
        if (cancelled := await self._cancelled(task)) is None:
            status = wire.to_handshake_task(await self._find(exchange))["status"]
            raise ProtocolError(INVALID_PARAMS, f"Cannot cancel task: already in terminal status {status!r}")
        return wire.to_handshake_task(cancelled)

    # 2026-07-28

    async def _details(self, exchange: Exchange) -> dict[str, Any]:
        task = await self._find(exchange)
        return wire.to_detailed_task(task, await self._tasks.task_store.get_result(task))

    async def _update(self, exchange: Exchange) -> dict[str, Any]:
        task = await self._find(exchange)
        responses = (exchange.params or {}).get("inputResponses")
        if not is_mapping(responses):
            raise refuse_parameters("`inputResponses` must be an object")
        if is_too_deep(responses):
            raise ProtocolError(INVALID_PARAMS, "The answers are nested too deeply")
        await self._tasks.answer(task, responses)
        return {}

    async def _ask_to_stop(self, exchange: Exchange) -> dict[str, Any]:
        await self._cancelled(await self._find(exchange))
        return {}

    async def _cancelled(self, task: Task) -> Task | None:
        return await self._tasks.task_store.change(
            task.id, lambda now: now.move("cancelled", "It was cancelled by request.")
        )

    async def _listen(self, rest: Rest, exchange: Exchange, names: list[str]) -> Result:
        """Have a client hear of those of its tasks that there are (the extension, "Task Status Notifications")."""
        if (
            exchange.id is None
            or not exchange.is_admissible
            or not Revision.from_date(exchange.revision).has("task_extension")
        ):
            return await rest(exchange)
        self._require(exchange)
        if len(names) > _MAX_SUBSCRIBED:
            raise ProtocolError(INVALID_PARAMS, f"More than {_MAX_SUBSCRIBED} tasks")
        known: list[str] = []
        for name in names:
            try:
                known.append((await self._find(exchange, name)).id)
            except ProtocolError:  # the client is not told what is not there
                continue
        wanted, connection = (exchange.params or {})["notifications"], _connection(exchange)
        feed = TaskFeed(self._tasks.task_store, known)
        listening = self._core.listeners.listen(
            exchange.id, wanted, connection, over_http=exchange.over_http, feed=feed
        )
        return self._core.stamp(await listening, exchange.revision)


def _connection(exchange: Exchange) -> TaskConnection:
    """Return the way to the sender of a request, as tasks need it."""
    return cast("TaskConnection", exchange.make_channel())


def _task_id(exchange: Exchange) -> str:
    """Return the id of the task that a request is about. Raises ProtocolError if it names none."""
    task_id = (exchange.params or {}).get("taskId")
    if not isinstance(task_id, str):
        raise refuse_parameters("`taskId` must be a string")
    return task_id


def _add_tasks_capability(method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the server's description of itself, with its tasks, as far as the revision has them."""
    capabilities: dict[str, Any] = {**result["capabilities"]}
    if method == "server/discover":
        extensions: dict[str, Any] = capabilities.get("extensions") or {}
        capabilities["extensions"] = {**extensions, wire.EXTENSION: {}}
    elif Revision.from_date(str(result.get("protocolVersion"))).has("handshake_tasks"):
        capabilities["tasks"] = _CAPABILITY
    return {**result, "capabilities": capabilities}


def _subscribed_task_ids(params: object) -> list[str]:
    """Return the tasks that a client wants to be notified of."""
    wanted = params.get("notifications") if is_mapping(params) else None
    names = wanted.get("taskIds") if is_mapping(wanted) else None
    return list(dict.fromkeys(name for name in names if isinstance(name, str))) if is_list(names) else []


def _position(task: Task) -> tuple[str, str]:
    """Return the position of a task in the list, which reveals nothing of its id."""
    # Padded, since positions are compared as texts.
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
