"""A server for client tests, with one tool that is a scripted task, in both eras."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import mcp_types
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata

from serving import ScriptedServer

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ORDER = {"content": [{"type": "text", "text": '{"order":"7"}'}], "structuredContent": {"order": "7"}}
FAILED = {"content": [{"type": "text", "text": "out of stock"}], "isError": True}


def question(message: str = "Who?") -> dict[str, Any]:
    """Return a question in the form of `inputRequests`."""
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": FORM}}


class _Server(Server[Any]):
    """A server with 2025-11-25 tasks. `offered` are its task capabilities."""

    offered: mcp_types.ServerTasksCapability | None = mcp_types.ServerTasksCapability(
        list=mcp_types.TasksListCapability(),
        cancel=mcp_types.TasksCancelCapability(),
        requests=mcp_types.ServerTasksRequestsCapability(
            tools=mcp_types.TasksToolsCapability(call=mcp_types.TasksCallCapability())
        ),
    )

    def get_capabilities(self, *args: Any, **more: Any) -> mcp_types.ServerCapabilities:
        made = super().get_capabilities(*args, **more)
        made.tasks = self.offered
        return made


class TaskServer(ScriptedServer):
    """The server. Its task advances through `states`, one for each poll; the last state repeats.

    A state is the response to `tasks/get` without the times: a status, a mapping, or an error to raise. `result` is the
    result of the call. States have the questions of the extension; `asks` has the questions of the earlier revision.

    Attributes:
        seen: The method and the parameters of each request about tools or tasks.
        headers: The `Mcp-Name` of each request, over HTTP.
        answers: The parameters of `tasks/update`, or the answers to `asks`.
    """

    def __init__(
        self,
        states: Sequence[Any] = ("working", "completed"),
        *,
        result: Mapping[str, Any] | Exception = ORDER,
        asks: Sequence[Mapping[str, Any]] = (),
        first: Mapping[str, Any] | Exception | None = None,
        interval: float | None = 100,
        pages: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(
            tools_call=self._call,
            tasks_get=self._get,
            tasks_result=self._result,
            tasks_update=self._update,
            tasks_cancel=self._cancel,
            tasks_list=self._list,
        )
        self.handler_server = _Server("tasking", version="1")
        self.handler_server.middleware.append(self._answer)
        self.server = self.handler_server
        for method in ("tools/call", "tasks/get", "tasks/result", "tasks/update", "tasks/cancel", "tasks/list"):
            self.server.add_request_handler(method, mcp_types.RequestParams, self._never)
        self.headers: list[str | None] = []
        self.answers: list[Mapping[str, Any]] = []
        self.cancelled = False
        self.interval = interval
        self._states: Iterator[Any] = iter(states)
        self._state: Any = "working"
        self._end = result
        self._asks = asks
        self._first = first
        self._pages = iter(pages)

    async def _never(self, _ctx: Any, _params: Any) -> Any:
        raise AssertionError

    async def _call(self, ctx: Any) -> Mapping[str, Any]:
        self._note(ctx)
        if isinstance(self._first, Exception):
            raise self._first
        if self._first is not None:
            return self._first
        if ctx.protocol_version < "2026-07-28":
            return {"task": self._wire(ctx, "working")} if "task" in (ctx.params or {}) else dict(ORDER)
        declared = EXTENSION in (self.capabilities.get("extensions") or {})
        return {"resultType": "task", **self._wire(ctx, "working")} if declared else dict(ORDER)

    async def _get(self, ctx: Any) -> Mapping[str, Any]:
        self._note(ctx)
        self._state = next(self._states, self._state)
        if self.cancelled:
            self._state = "cancelled"
        if isinstance(self._state, Exception):
            raise self._state
        return self._wire(ctx, self._state)

    async def _result(self, ctx: Any) -> Mapping[str, Any]:
        self._note(ctx)
        for asked in self._asks:
            params = {**asked["params"], "_meta": {RELATED: {"taskId": "t1"}}}
            answer = await ctx.session.send_request(
                mcp_types.ElicitRequest.model_validate({**asked, "params": params}),
                mcp_types.ElicitResult,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
            self.answers.append(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
        if isinstance(self._end, Exception):
            raise self._end
        return {"_meta": {RELATED: {"taskId": "t1"}}, **self._end}

    async def _update(self, ctx: Any) -> Mapping[str, Any]:
        self._note(ctx)
        self.answers.append(ctx.params["inputResponses"])
        return {}

    async def _cancel(self, ctx: Any) -> Mapping[str, Any]:
        self._note(ctx)
        if isinstance(self._state, Exception):
            raise self._state
        self.cancelled = True
        return {} if ctx.protocol_version >= "2026-07-28" else self._wire(ctx, "cancelled")

    async def _list(self, ctx: Any) -> Mapping[str, Any]:
        self._note(ctx)
        return next(self._pages)

    def _note(self, ctx: Any) -> None:
        self.headers.append(None if ctx.request is None else ctx.request.headers.get("mcp-name"))

    def _wire(self, ctx: Any, state: Any) -> dict[str, Any]:
        modern = ctx.protocol_version >= "2026-07-28"
        said = {"status": state} if isinstance(state, str) else dict(state)
        made: dict[str, Any] = {"taskId": "t1", "createdAt": "2026-01-01T00:00:00Z"}
        made |= {"lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs" if modern else "ttl": 60_000}
        if self.interval is not None:
            made["pollIntervalMs" if modern else "pollInterval"] = self.interval
        if modern and said.get("status") == "completed" and not isinstance(self._end, Exception):
            made["result"] = dict(self._end)
        return {**made, **said}

    def methods(self) -> list[str]:
        """Return the methods of the requests, without their common prefix."""
        return [method for method, _ in self.seen]
