"""Task requests in MCP 2025-11-25 (basic/utilities/tasks) and in the 2026-07-28 extension.

Each extension request declares the extension in the client's capabilities (`io.modelcontextprotocol/tasks`, "Capability
Negotiation").
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    CallToolRequest,
    CallToolResult,
    CancelTaskRequest,
    CancelTaskRequestParams,
    EmptyResult,
    GetTaskPayloadRequest,
    GetTaskPayloadRequestParams,
    GetTaskRequest,
    GetTaskRequestParams,
    InputRequiredResult,
    InputResponses,
    ListTasksRequest,
    PaginatedRequestParams,
    PaginatedResult,
    Request,
)
from pydantic import BaseModel, ValidationError

from ...mcp.problems import describe_problems
from ...mcp.revisions import Revision, find_revision
from ...values.json import Json, is_mapping
from ..core.input_required import answer_input_requests
from ..core.session import allow_question
from ..features.list_pages import fetch_pages
from ..rpc.mcp_error import MCPError
from ..transports.bounds import MOST_BLOCKS
from .errors import TaskExpired, TasksUnsupported
from .states import WireTask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ...package import Tool
    from ..core.options import Options
    from ..core.session import Session

EXTENSION: Final = "io.modelcontextprotocol/tasks"
RELATED: Final = "io.modelcontextprotocol/related-task"

Started: TypeAlias = WireTask | CallToolResult
"""The result of a call that can become a task."""


class _Meta(dict[str, Any]):
    """The `_meta` of a request. When the SDK sets the client's capabilities, the extension is added to them."""

    def __setitem__(self, key: str, value: Any) -> None:
        if key == CLIENT_CAPABILITIES_META_KEY:
            extensions: Json = value.get("extensions")
            value = {**value, "extensions": {**(extensions if isinstance(extensions, dict) else {}), EXTENSION: {}}}
        super().__setitem__(key, value)


class _TaskRequest(BaseModel):
    """A request that declares the client's support for tasks."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        data = super().model_dump(**options)
        data["params"]["_meta"] = _Meta(data["params"].get("_meta") or {})
        return data


class _Call(_TaskRequest, CallToolRequest):
    """`tools/call`, which the server may run as a task."""


class _GetTask(_TaskRequest, Request[dict[str, Any], Literal["tasks/get"]]):
    name_param = "taskId"


class _Update(_TaskRequest, Request[dict[str, Any], Literal["tasks/update"]]):
    name_param = "taskId"


class _Cancel(_TaskRequest, Request[dict[str, Any], Literal["tasks/cancel"]]):
    name_param = "taskId"


class _Page(PaginatedResult):
    tasks: list[WireTask]


class TaskRequests:
    """Sends requests for one tool's tasks over one connection.

    Each method also raises:

    - `ResultTooLarge` if a response exceeds `max_result_bytes`;
    - `MCPError` if the request fails in any other way.
    """

    def __init__(self, session: Session, tool: Tool, options: Options) -> None:
        self.session = session
        self.options = replace(options, on_progress=None)
        self._tool = tool
        self._given = options

    async def start(self, arguments: dict[str, Any], ttl: float | None) -> Started:
        """Call the tool, and return a task, or the result if the server returns it immediately.

        Args:
            arguments: The arguments as JSON.
            ttl: The requested task lifetime in seconds (MCP 2025-11-25 and earlier).

        Raises:
            TasksUnsupported: The server does not support tasks or does not run this tool as a task.
        """
        if self.session.modern:
            return await self.session.call_with_input(self._tool, self._params(arguments), self._call, self._given)
        if not offers_tasks(self.session):
            raise TasksUnsupported(
                f"{self._tool.name!r} cannot run as a task: the server does not support tasks in {self._revision}; "
                "call it directly, not as a task"
            )
        params = {**self._params(arguments), "task": {} if ttl is None else {"ttl": math.ceil(ttl * 1000)}}
        try:
            return await self.session.call_with_input(self._tool, params, self._call_before, self._given)
        except MCPError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            raise TasksUnsupported(
                f"the server does not run {self._tool.name!r} as a task, although the compiled"
                f" `execution.taskSupport` allows it: {error.message}; regenerate the client, or call the method itself"
            ) from error

    async def get(self, task: str) -> WireTask:
        """Fetch a task's state from the server.

        Raises:
            TaskExpired: The task is unknown to the server.
        """
        with self.session.bound(self._tool):
            request: Request[Any, Any] = (
                _GetTask(method="tasks/get", params={"taskId": task})
                if self.session.modern
                else GetTaskRequest(params=GetTaskRequestParams(task_id=task))
            )
            try:
                task_state = await self.session.send(request, WireTask, self.options, allows_questions=False)
            except MCPError as error:
                if error.code != INVALID_PARAMS:
                    raise
                raise TaskExpired(self._tool.name, task, error.message) from error
        return task_state

    async def fetch_result(self, task: str, *, waits: bool) -> CallToolResult:
        """Wait for a task's result (MCP 2025-11-25 and earlier). The server may ask questions first.

        Args:
            task: The task's ID.
            waits: Whether to wait for a running task, without a timeout.
        """
        options = replace(self._given, timeout=None) if waits else self.options
        request = GetTaskPayloadRequest(params=GetTaskPayloadRequestParams(task_id=task))
        with self.session.bound(self._tool):
            result = await self.session.send(request, CallToolResult, options)
        related: Json = (result.meta or {}).get(RELATED)
        if is_mapping(related) and related.get("taskId") != task:
            raise MCPError(code=PARSE_ERROR, message="the server returned another task's result")
        return result

    async def ask_callbacks(self, asked: dict[str, Any]) -> InputResponses:
        """Return the callbacks' answers to a task's questions (MCP 2026-07-28 and later).

        Raises:
            MCPError: A question is invalid, or no callback accepts it.
            Exception: Any exception from a callback.
        """
        try:
            questions = InputRequiredResult.model_validate(
                {"resultType": "input_required", "inputRequests": asked}, by_name=False
            )
        except ValidationError as error:
            raise _make_invalid(describe_problems(error)) from None
        return await answer_input_requests(self.session.client, questions) or {}

    async def update(self, task: str, answers: InputResponses) -> None:
        """Send answers to a task's questions (MCP 2026-07-28 and later)."""
        wire = {
            key: (
                answer if isinstance(answer, dict) else answer.model_dump(mode="json", by_alias=True, exclude_none=True)
            )
            for key, answer in answers.items()
        }
        request = _Update(method="tasks/update", params={"taskId": task, "inputResponses": wire})
        await self.session.send(request, EmptyResult, self.options, allows_questions=False)

    async def cancel(self, task: str) -> None:
        """Request a task's cancellation. The next poll reports whether the task has ended or is unknown.

        Raises:
            TasksUnsupported: The server cannot cancel tasks.
        """
        request: Request[Any, Any] = _Cancel(method="tasks/cancel", params={"taskId": task})
        if not self.session.modern:
            tasks = self.session.client.server_capabilities.tasks
            if tasks is None or tasks.cancel is None:
                raise TasksUnsupported("the server cannot cancel tasks; this one continues")
            request = CancelTaskRequest(params=CancelTaskRequestParams(task_id=task))
        try:
            await self.session.send(request, EmptyResult, self.options, allows_questions=False)
        except MCPError as error:
            if error.code != INVALID_PARAMS:
                raise

    def read(self, result: dict[str, Any]) -> CallToolResult:
        """Parse the result in a finished task (MCP 2026-07-28 and later).

        Raises:
            MCPError: The result is invalid (`PARSE_ERROR`).
        """
        blocks: Json = result.get("content")
        if isinstance(blocks, list) and len(blocks) > MOST_BLOCKS:
            raise _make_invalid(f"its result has {len(blocks):,} blocks, more than {MOST_BLOCKS:,}")
        defaults = {"resultType": "complete", **({"content": []} if "structuredContent" in result else {})}
        try:
            answer = CallToolResult.model_validate({**defaults, **result}, by_name=False)
        except ValidationError as error:
            raise _make_invalid(describe_problems(error)) from None
        self.session.check_kind(answer)
        return answer

    @property
    def _revision(self) -> str:
        return self.session.client.protocol_version

    def _params(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"name": self._tool.name, "arguments": arguments}

    async def _call(self, params: Any) -> Started | InputRequiredResult:
        return await self.session.send(_Call(params=params), _STARTED, self._given)

    async def _call_before(self, params: Any) -> Started | InputRequiredResult:
        return await self.session.send(CallToolRequest(params=params), _STARTED, self._given, read=_read_created_task)


def offers_tasks(session: Session) -> bool:
    """Return whether an MCP 2025-11-25 server can run calls as tasks (tasks, "Capabilities")."""
    if not Revision.from_date(session.client.protocol_version).has("handshake_tasks"):
        return False
    tasks = session.client.server_capabilities.tasks
    calls = None if tasks is None or tasks.requests is None else tasks.requests.tools
    return calls is not None and calls.call is not None


async def list_tasks(session: Session, options: Options) -> AsyncIterator[WireTask]:
    """Yield this client's tasks on the server (`tasks/list`).

    Raises:
        TasksUnsupported: The revision or the server does not support listing tasks.
        MCPError: A request failed, or the list never ends.
    """
    if session.modern:
        raise TasksUnsupported(
            f"servers cannot list tasks since {find_revision('task_extension')}; "
            "store each task's `id`, and `resume` it"
        )
    tasks = session.client.server_capabilities.tasks
    if (
        not Revision.from_date(session.client.protocol_version).has("handshake_tasks")
        or tasks is None
        or tasks.list is None
    ):
        raise TasksUnsupported(f"the server does not list tasks (in {session.client.protocol_version})")

    async def fetch_page(cursor: str | None) -> _Page:
        request = ListTasksRequest(params=None if cursor is None else PaginatedRequestParams(cursor=cursor))
        return await session.send(request, _Page, options, allows_questions=False)

    async for listing in fetch_pages(fetch_page, options.max_result_bytes):
        for task in listing.tasks:
            yield task


class _StartResult:
    """A substitute for a result class that validates a task or a call's result."""

    @staticmethod
    def model_validate(value: Any, **options: Any) -> Any:
        if is_mapping(value) and value.get("resultType") == "task":
            return WireTask.model_validate(value, **options)
        return allow_question(CallToolResult).model_validate(value, **options)


_STARTED: Final[Any] = _StartResult


def _read_created_task(error: ValidationError) -> WireTask:
    """Return the task in a response (MCP 2025-11-25) that is not a valid call result, or raise the error again."""
    for problem in error.errors(include_url=False, include_context=False):
        result: Json = problem["input"]
        if problem["loc"] == ("content",) and is_mapping(result) and "content" not in result and "task" in result:
            return WireTask.model_validate(result["task"], by_name=False)
    raise error


def _make_invalid(wrong: str) -> MCPError:
    return MCPError(code=PARSE_ERROR, message=f"the server's response is not valid MCP: {wrong}")
