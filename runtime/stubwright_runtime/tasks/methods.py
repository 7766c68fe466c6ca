"""The methods of tasks, and what the server says of itself, in both eras.

Takes messages, above the SDK's models, which know no task results; answers `tasks/*` (MCP 2025-11-25,
basic/utilities/tasks; the extension, "Task Polling" and what follows) and passes on the others.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value

from ..mcp.errors import ProtocolError
from ..mcp.revisions import Revision
from ..server.middlewares.expiry import own_seconds_left
from ..state.budget import BudgetExceeded
from ..values.json import is_list, is_mapping
from ..values.nesting import is_too_deep
from . import wire
from .handshake_input import InputRequester
from .listening import Listener
from .poll_rates import PER_SECOND, PollRates
from .service import declares_tasks, missing_tasks_extension, owner_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..sdk.requests import CallNext, HandlerResult, ServerRequestContext
    from ..server.server import PackageServer
    from .connections import TaskConnection
    from .records import Task
    from .service import Tasks

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


class _TaskRequest(types.RequestParams):
    """The parameters of a request about one task."""

    task_id: str


class _UpdateRequest(_TaskRequest):
    """The parameters of `tasks/update`."""

    input_responses: dict[str, Any]


class Methods:
    """The middleware of the SDK."""

    def __init__(
        self,
        server: PackageServer,
        tasks: Tasks,
        connection: Callable[[ServerRequestContext[Any, Any]], TaskConnection],
    ) -> None:
        """Take the server, its tasks, and what gives the way to the client of a request."""
        self._server = server
        self._tasks = tasks
        self._connection = connection
        self._asker = InputRequester(tasks)
        self._rates = PollRates()
        self._handshake: Mapping[str, Callable[[ServerRequestContext[Any, Any]], Awaitable[dict[str, Any]]]] = {
            "tasks/get": self._status,
            "tasks/result": self._result,
            "tasks/list": self._list,
            "tasks/cancel": self._cancel,
        }
        for method in self._handshake:
            server.add_request_handler(method, types.RequestParams, _placeholder_handler)
        self._stateless: Mapping[str, Callable[[ServerRequestContext[Any, Any]], Awaitable[dict[str, Any]]]] = {
            "tasks/get": self._details,
            "tasks/update": self._update,
            "tasks/cancel": self._ask_to_stop,
        }

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer a request about tasks; pass on any other message."""
        if ctx.request_id is None:
            return await call_next(ctx)
        try:
            if ctx.method.startswith("tasks/"):
                return await self._answer(ctx, call_next)
            if ctx.method == "subscriptions/listen" and (names := _subscribed_task_ids(ctx.params)):
                return await self._listen(ctx, call_next, names)
        except ProtocolError as error:
            raise MCPError(error.code, error.message, error.data) from None
        except BudgetExceeded as error:
            raise MCPError(types.INVALID_PARAMS, f"The answers were not taken. {error}") from None
        result = await call_next(ctx)
        if ctx.method in ("initialize", "server/discover") and is_mapping(result):
            return add_tasks_capability(ctx.method, result)
        return result

    async def _answer(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> dict[str, Any]:
        revision = Revision.of(ctx.protocol_version)
        is_stateless = revision.has("task_extension")
        methods = self._stateless if is_stateless else self._handshake
        if ctx.method not in methods or (not is_stateless and not revision.has("handshake_tasks")):
            raise ProtocolError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)
        if not is_stateless:
            if ctx.session.client_params is None:
                await call_next(ctx)  # the SDK refuses who has not shaken hands, where there are hands to shake
            self._count(ctx)
            return await methods[ctx.method](ctx)
        name = _TaskRequest.model_validate(ctx.params or {}, by_name=False).task_id
        if ctx.request is not None and decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != name:
            text = f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
            raise ProtocolError(types.HEADER_MISMATCH, text)
        self._require(ctx)
        self._count(ctx)
        result = await methods[ctx.method](ctx)
        return {
            "resultType": "complete",
            **result,
            "_meta": {types.SERVER_INFO_META_KEY: self._server.server_info_stamp},
        }

    def _count(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Refuse who asks too often. Who is not known by name is counted by the task."""
        principal = self._server.core.principal(over_http=ctx.request is not None)
        key = principal.key
        if principal.kind == "anonymous":
            key = f"{key} {self._connection(ctx).session} {str((ctx.params or {}).get('taskId'))[:_ID]}"
        if wait := self._rates.count(key):
            data = {"retryAfter": math.ceil(wait)}
            text = f"More than {PER_SECOND} requests about tasks in a second; ask as often as `pollInterval` says"
            raise ProtocolError(types.INVALID_REQUEST, text, data)

    def _require(self, ctx: ServerRequestContext[Any, Any]) -> None:
        if not declares_tasks(self._connection(ctx)):
            raise missing_tasks_extension()

    async def _find(self, ctx: ServerRequestContext[Any, Any], name: str | None = None) -> Task:
        """Return the task of a request. The error does not say whether it is over, another's, or never was."""
        task_id = _TaskRequest.model_validate(ctx.params or {}, by_name=False).task_id if name is None else name
        task = await self._tasks.task_store.find(task_id)
        if task is None or not self._may_see(ctx, task):
            raise ProtocolError(types.INVALID_PARAMS, "Task not found")
        await self._tasks.look(task)
        return task

    def _may_see(self, ctx: ServerRequestContext[Any, Any], task: Task) -> bool:
        principal = self._server.core.principal(over_http=ctx.request is not None)
        if task.owner != owner_of(principal, self._connection(ctx), ctx.protocol_version):
            return False
        scopes = self._server.core.scopes
        return scopes is None or scopes.allows(principal, "tools", task.tool)

    # 2025-11-25

    async def _status(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        return wire.to_handshake_task(await self._find(ctx))

    async def _result(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        """Wait for the end, and ask meanwhile what the task waits for.

        A client that cannot come back for the answer does not wait for longer than its token holds.
        """
        left = own_seconds_left() if ctx.close_sse_stream is None else None
        task: Task | None = None
        with anyio.move_on_after(left):
            task = await self._end(ctx)
        if task is None:
            raise ProtocolError(types.INVALID_REQUEST, "The access token has expired. Ask again with another one.")
        if task.status == "cancelled":
            raise ProtocolError(types.INVALID_REQUEST, "The task was cancelled")
        if task.error is not None:
            raise ProtocolError(task.error["code"], task.error["message"], task.error.get("data"))
        result = await self._tasks.task_store.result(task)
        if result is None:
            raise ProtocolError(types.INVALID_PARAMS, "Task not found")
        return wire.to_final_result(
            task, result, self._server.package.tools[task.tool].definition, ctx.protocol_version
        )

    async def _end(self, ctx: ServerRequestContext[Any, Any]) -> Task:
        """Wait for the end of a task, and return it."""
        task = await self._find(ctx)
        with self._tasks.task_store.watching([task.id]) as changed:
            while not task.is_over:
                if task.pending:
                    await self._asker.ask(ctx, task)
                else:
                    with anyio.move_on_after(_POLL_INTERVAL):
                        await changed.wait()
                changed.clear()
                task = await self._find(ctx)
        return task

    async def _list(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        cursor = types.PaginatedRequestParams.model_validate(ctx.params or {}, by_name=False).cursor
        principal, connection = self._server.core.principal(over_http=ctx.request is not None), self._connection(ctx)
        if principal.kind == "anonymous" and connection.session is None:  # only ids give access
            return {"tasks": []}
        tasks = await self._tasks.task_store.owned(owner_of(principal, connection, ctx.protocol_version))
        after = ("", "") if cursor is None else _parse_cursor(cursor)
        left = [task for task in tasks if _position(task) > after and self._may_see(ctx, task)]
        page = [wire.to_handshake_task(task) for task in left[:_PAGE_SIZE]]
        return {"tasks": page, **({"nextCursor": _make_cursor(left[_PAGE_SIZE - 1])} if len(left) > _PAGE_SIZE else {})}

    async def _cancel(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        task = await self._find(ctx)
        if (cancelled := await self._cancelled(task)) is None:
            status = wire.to_handshake_task(await self._find(ctx))["status"]
            raise ProtocolError(types.INVALID_PARAMS, f"Cannot cancel task: already in terminal status {status!r}")
        return wire.to_handshake_task(cancelled)

    # 2026-07-28

    async def _details(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        task = await self._find(ctx)
        return wire.to_detailed_task(task, await self._tasks.task_store.result(task))

    async def _update(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        task = await self._find(ctx)
        responses = _UpdateRequest.model_validate(ctx.params or {}, by_name=False).input_responses
        if is_too_deep(responses):
            raise ProtocolError(types.INVALID_PARAMS, "The answers are nested too deeply")
        await self._tasks.answer(task, responses)
        return {}

    async def _ask_to_stop(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        await self._cancelled(await self._find(ctx))
        return {}

    async def _cancelled(self, task: Task) -> Task | None:
        return await self._tasks.task_store.change(
            task.id, lambda now: now.move("cancelled", "It was cancelled by request.")
        )

    async def _listen(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext, names: list[str]
    ) -> HandlerResult:
        """Have a client hear of those of its tasks that there are (the extension, "Task Status Notifications")."""
        self._require(ctx)
        if len(names) > _MAX_SUBSCRIBED:
            raise ProtocolError(types.INVALID_PARAMS, f"More than {_MAX_SUBSCRIBED} tasks")
        known: list[str] = []
        for name in names:
            try:
                known.append((await self._find(ctx, name)).id)
            except ProtocolError:  # the client is not told what is not there
                continue
        listener = Listener(ctx, self._tasks.task_store, known)
        async with listener.sending():
            return await call_next(replace(ctx, session=listener.session))


async def _placeholder_handler(_ctx: object, _params: object) -> types.EmptyResult:
    return types.EmptyResult()


def add_tasks_capability(method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the server says of itself, with its tasks, as far as the revision has them."""
    capabilities: dict[str, Any] = {**result["capabilities"]}
    if method == "server/discover":
        extensions: dict[str, Any] = capabilities.get("extensions") or {}
        capabilities["extensions"] = {**extensions, wire.EXTENSION: {}}
    elif Revision.of(str(result.get("protocolVersion"))).has("handshake_tasks"):
        capabilities["tasks"] = _CAPABILITY
    return {**result, "capabilities": capabilities}


def _subscribed_task_ids(params: object) -> list[str]:
    """Return the tasks that a client wants to be notified of."""
    wanted = params.get("notifications") if is_mapping(params) else None
    names = wanted.get("taskIds") if is_mapping(wanted) else None
    return list(dict.fromkeys(name for name in names if isinstance(name, str))) if is_list(names) else []


def _position(task: Task) -> tuple[str, str]:
    """Return the position of a task in the list, which reveals nothing of its id."""
    return f"{task.created:020.6f}", hashlib.sha256(task.id.encode()).hexdigest()


def _make_cursor(task: Task) -> str:
    return base64.urlsafe_b64encode(" ".join(_position(task)).encode()).decode()


def _parse_cursor(cursor: str) -> tuple[str, str]:
    try:
        match = _POSITION.fullmatch(base64.urlsafe_b64decode(cursor).decode())
    except ValueError:
        match = None
    if match is None:
        raise ProtocolError(types.INVALID_PARAMS, "Invalid cursor")
    return match[1], match[2]
