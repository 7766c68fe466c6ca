"""Tasks in generated clients: started, polled, asked for input, ended and resumed, in both eras."""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp
import mcp_types
import pytest

import amounts
import prompt_ends
from packages import generate, imported, manifest, tool
from serving import KINDS, asgi, reach, serve
from tasking import EXTENSION, FAILED, ORDER, RELATED, TaskServer, question

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

ERAS = ("memory", "pipe legacy")
OUTPUT = {
    "outputSchema": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
    "annotations": {"readOnlyHint": True},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A package with tools that may be tasks, which looks at them often."""
    folder = tmp_path_factory.mktemp("shop")
    order, secret = {"order_id": {"type": "string"}}, {"card": {"type": "string"}}
    tools = [
        tool("ship_order", order, execution={"taskSupport": "optional"}, **OUTPUT),
        tool("must", order, execution={"taskSupport": "required"}, **OUTPUT),
        tool("say", execution={"taskSupport": "optional"}, annotations={"readOnlyHint": True}),
        tool("pay", secret, execution={"taskSupport": "optional"}, stubwright={"policy": {"redact": ["/card"]}}),
        tool("old", execution={"taskSupport": "optional"}, stubwright={"deprecated": {"use": "say"}}),
        tool("plain"),
    ]
    value = manifest(tools, name="shop", emit=["client"], python={"features": ["elicitation"]})
    with imported(folder, generate(folder, value)) as package:
        states: Any = importlib.import_module("stubwright_runtime.client.tasks.states")
        states._SHORTEST = 0.01
        yield package


@asynccontextmanager
async def _connected(shop: Any, kind: str, server: TaskServer, **options: Any) -> AsyncIterator[Any]:
    with anyio.fail_after(60):
        async with reach(kind, server) as target, shop.ShopClient.connect(target, **options) as client:
            yield client


def _raised(error: Any) -> tuple[int, str]:
    return error.value.error.code, error.value.error.message


# --- the course of a task ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_task_is_started_followed_and_awaited(shop: Any, kind: str) -> None:
    server = TaskServer(["working", {"status": "working", "statusMessage": "2 of 3"}, "completed"], interval=10)
    events: list[Any] = []
    async with _connected(shop, kind, server, on_call=events.append) as client:
        task = await client.tasks.ship_order(order_id="7")
        assert (task.id, task.status, task.message, task.done()) == ("t1", "working", None, False)
        assert [event.phase for event in events] == ["start"]
        told = [(state.status, state.message) async for state in task.updates()]
        assert told == [("working", None), ("working", "2 of 3"), ("completed", None)]
        assert (await task).order == "7"
        assert await task is await task.wait()
        assert task.done()
    is_modern = not kind.endswith("legacy")
    ends = [] if is_modern else ["tasks/result"]
    assert server.methods() == ["tools/call", "tasks/get", "tasks/get", "tasks/get", *ends]
    assert [(event.phase, event.outcome, event.arguments) for event in events] == [
        ("start", None, {"order_id": "7"}),
        ("end", "ok", {"order_id": "7"}),
    ]
    assert server.seen[0][1].get("task") == (None if is_modern else {})
    assert (server.capabilities.get("extensions") == {EXTENSION: {}}) is is_modern
    if kind == "http":
        assert server.headers == ["ship_order", "t1", "t1", "t1"]


@pytest.mark.parametrize("kind", ERAS)
async def test_a_method_calls_as_before_and_a_required_one_runs_a_task(shop: Any, kind: str) -> None:
    server = TaskServer(interval=10)
    async with _connected(shop, kind, server) as client:
        assert (await client.ship_order(order_id="7")).order == "7"
        assert server.methods() == ["tools/call"]
        assert "task" not in server.seen[0][1]
        assert "extensions" not in server.capabilities
        assert (await client.must(order_id="7")).order == "7"
        assert server.methods()[1:4] == ["tools/call", "tasks/get", "tasks/get"]
        response = await client.with_raw_response.must(order_id="7")
        assert response.parse().order == "7"


async def test_a_required_tool_of_a_server_without_tasks_is_called(shop: Any) -> None:
    server = TaskServer()
    server.handler_server.offered = None
    async with _connected(shop, "pipe legacy", server) as client:
        assert (await client.must(order_id="7")).order == "7"
        with pytest.raises(shop.TasksUnsupported, match="the server does not support tasks in 2025-11-25"):
            await client.tasks.must(order_id="7")
    assert server.methods() == ["tools/call"]


async def test_a_server_that_makes_no_task_of_a_tool_is_told_apart(shop: Any) -> None:
    refusal = mcp.MCPError(code=mcp_types.METHOD_NOT_FOUND, message="no task support")
    async with _connected(shop, "pipe legacy", TaskServer(first=refusal)) as client:
        with pytest.raises(shop.TasksUnsupported, match="no task support; regenerate the client"):
            await client.tasks.ship_order(order_id="7")


class _Unknown(TaskServer):
    """A server with responses of an unknown kind about tasks."""

    def __init__(self, method: str, *states: Any, **options: Any) -> None:
        super().__init__([*states, "working"], interval=10, **options)
        self._method = method

    async def _update(self, ctx: Any) -> Any:
        return {**await super()._update(ctx), "resultType": "perhaps" if self._method == "update" else "complete"}

    async def _cancel(self, ctx: Any) -> Any:
        return {**await super()._cancel(ctx), "resultType": "perhaps" if self._method == "cancel" else "complete"}

    def _wire(self, ctx: Any, state: Any) -> dict[str, Any]:
        is_odd = self._method == "get" and len(self.seen) > 1
        return {**super()._wire(ctx, state), **({"resultType": "perhaps"} if is_odd else {})}


async def test_an_answer_about_a_task_of_an_unknown_kind_is_none(shop: Any) -> None:
    async with _connected(shop, "memory", _Unknown("get")) as client:
        with pytest.raises(mcp.MCPError, match="its resultType is 'perhaps'"):
            await (await client.tasks.ship_order(order_id="7"))
    async with _connected(shop, "memory", _Unknown("cancel")) as client:
        with pytest.raises(mcp.MCPError, match="its resultType is 'perhaps'"):
            await (await client.tasks.ship_order(order_id="7")).cancel()
    odd = {"resultType": "perhaps", **ORDER}
    async with _connected(shop, "memory", _Unknown("none", "completed", result=odd)) as client:
        with pytest.raises(mcp.MCPError, match="its resultType is 'perhaps'"):
            await (await client.tasks.ship_order(order_id="7"))


async def test_an_update_of_a_task_of_an_unknown_kind_is_none(shop: Any) -> None:
    asking = {"status": "input_required", "inputRequests": {"a": question()}}
    server = _Unknown("update", asking)
    async with _connected(shop, "memory", server, on_question=lambda _: {"name": "me"}) as client:
        with pytest.raises(mcp.MCPError, match="its resultType is 'perhaps'"):
            await (await client.tasks.ship_order(order_id="7"))


@pytest.mark.parametrize("kind", ERAS)
async def test_a_server_may_answer_at_once(shop: Any, kind: str) -> None:
    events: list[Any] = []
    async with _connected(shop, kind, TaskServer(first=ORDER), on_call=events.append) as client:
        task = await client.tasks.ship_order(order_id="7")
        assert (task.id, task.status, task.done()) == ("", "completed", True)
        assert [event.outcome for event in events] == [None, "ok"]
        assert [state.status async for state in task.updates()] == ["completed"]
        assert (await task).order == "7"
        with pytest.raises(ValueError, match="the task ID is empty"):
            client.tasks.ship_order.resume(task.id)


@pytest.mark.parametrize("kind", ERAS)
async def test_a_server_may_answer_at_once_that_the_call_failed(shop: Any, kind: str) -> None:
    failure = {"content": [{"type": "text", "text": "no store"}], "isError": True}
    async with _connected(shop, kind, TaskServer(first=failure)) as client:
        task = await client.tasks.ship_order(order_id="7")
        assert (task.id, task.status, task.done()) == ("", "failed", True)
        with pytest.raises(shop.ToolFailed, match="no store"):
            await task


@pytest.mark.parametrize("kind", ERAS)
async def test_a_tool_without_an_output_schema_gives_its_content(shop: Any, kind: str) -> None:
    async with _connected(shop, kind, TaskServer(interval=10)) as client:
        (block,) = await (await client.tasks.say())
        assert json.loads(block.text) == {"order": "7"}
        with pytest.warns(DeprecationWarning, match="use say"):
            task = await client.tasks.old()
        assert [block.type for block in await task] == ["text"]


def test_only_tools_that_may_be_tasks_are_there(shop: Any) -> None:
    client = importlib.import_module(f"{shop.__name__}.client")
    methods = {name for name in dir(client._Tasks) if not name.startswith("_")}
    assert methods == {"ship_order", "must", "say", "pay", "old", "list", "with_options"}
    assert client._Tasks.ship_order.__doc__ == shop.ShopClient.ship_order.__doc__


@pytest.mark.parametrize("kind", ERAS)
async def test_a_task_that_is_complete_when_it_is_made_is_looked_at_once(shop: Any, kind: str) -> None:
    made = {"taskId": "t1", "status": "completed", "createdAt": "x", "lastUpdatedAt": "x", "ttl": None, "ttlMs": None}
    first = {"resultType": "task", **made} if kind == "memory" else {"task": made}
    server = TaskServer(["completed"], first=first)
    async with _connected(shop, kind, server) as client:
        assert (await (await client.tasks.ship_order(order_id="7"))).order == "7"
    assert server.methods() == ["tools/call", "tasks/get" if kind == "memory" else "tasks/result"]


# --- ends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ERAS)
async def test_a_tool_that_fails_fails_as_in_a_call(shop: Any, kind: str) -> None:
    state = "completed" if kind == "memory" else "failed"
    events: list[Any] = []
    async with _connected(shop, kind, TaskServer([state], result=FAILED, interval=10), on_call=events.append) as client:
        task = await client.tasks.ship_order(order_id="7")
        lengths = set()
        for _ in range(2):
            with pytest.raises(shop.ToolFailed, match="out of stock") as error:
                await task
            lengths.add(len(error.traceback))
        assert len(lengths) == 1
        with pytest.raises(shop.ToolFailed, match="out of stock"):
            await client.must(order_id="7")
    assert [event.outcome for event in events] == [None, "failed"] * 2


@pytest.mark.parametrize("kind", ERAS)
async def test_the_whole_response_is_there_too(shop: Any, kind: str) -> None:
    state = "completed" if kind == "memory" else "failed"
    async with _connected(shop, kind, TaskServer([state], result=FAILED, interval=10)) as client:
        task = await client.tasks.ship_order(order_id="7")
        response = await task.response(timeout=5)
        assert (response.is_error, response.model, response.text) == (True, None, "out of stock")
    async with _connected(shop, kind, TaskServer(["completed"], interval=10)) as client:
        task = await client.tasks.ship_order(order_id="7")
        response = await task.response()
        assert response.structured == {"order": "7"}
        assert response.model == await task.wait(timeout=0)
    gone = mcp.MCPError(code=mcp_types.INVALID_PARAMS, message="Task not found")
    async with _connected(shop, kind, TaskServer([gone], interval=10)) as client:
        with pytest.raises(shop.TaskExpired):
            await (await client.tasks.ship_order(order_id="7")).response()


@pytest.mark.parametrize("kind", ERAS)
async def test_a_protocol_error_is_raised_as_in_a_call(shop: Any, kind: str) -> None:
    wrong: dict[str, Any] = {"code": -32603, "message": "internal failure", "data": {"a": 1}}
    state = {"status": "failed", "error": wrong} if kind == "memory" else "failed"
    server = TaskServer([state], result=mcp.MCPError(**wrong), interval=10)
    async with _connected(shop, kind, server) as client:
        task = await client.tasks.ship_order(order_id="7")
        with pytest.raises(mcp.MCPError) as error:
            await task
    assert (*_raised(error), error.value.error.data) == (-32603, "internal failure", {"a": 1})
    assert task.done()
    assert task.status == "failed"


async def test_a_failure_without_an_error_says_so(shop: Any) -> None:
    async with _connected(shop, "memory", TaskServer(["failed"], interval=10)) as client:
        with pytest.raises(mcp.MCPError, match="the task failed without a reason from the server"):
            await (await client.tasks.ship_order(order_id="7"))


@pytest.mark.parametrize("kind", ERAS)
async def test_a_task_is_cancelled(shop: Any, kind: str) -> None:
    server = TaskServer(["working"], interval=10)
    events: list[Any] = []
    async with _connected(shop, kind, server, on_call=events.append) as client:
        task = await client.tasks.ship_order(order_id="7")
        await task.cancel()
        assert task.status == "cancelled"
        with pytest.raises(shop.TaskCancelled, match="the task of 'ship_order' was cancelled") as cancelled:
            await task
        await task.cancel()
    assert (cancelled.value.tool, cancelled.value.task) == ("ship_order", "t1")
    assert server.methods() == ["tools/call", "tasks/cancel", "tasks/get"]
    assert [event.outcome for event in events] == [None, "cancelled"]


async def test_a_server_that_cannot_cancel_says_so(shop: Any) -> None:
    server = TaskServer(["working"])
    assert server.handler_server.offered is not None
    server.handler_server.offered = server.handler_server.offered.model_copy(update={"cancel": None})
    async with _connected(shop, "pipe legacy", server) as client:
        task = await client.tasks.ship_order(order_id="7")
        with pytest.raises(shop.TasksUnsupported, match="cannot cancel tasks; this one continues"):
            await task.cancel()


@pytest.mark.parametrize("kind", ERAS)
async def test_who_stops_waiting_for_a_method_cancels_its_task(shop: Any, kind: str) -> None:
    server = TaskServer(["working"], interval=10)
    async with _connected(shop, kind, server) as client:
        with anyio.move_on_after(0.2):
            await client.must(order_id="7")
    assert server.cancelled


@pytest.mark.parametrize("kind", ERAS)
async def test_a_task_that_is_not_known_any_more_has_expired(shop: Any, kind: str) -> None:
    gone = mcp.MCPError(code=mcp_types.INVALID_PARAMS, message="Task has expired")
    events: list[Any] = []
    async with _connected(shop, kind, TaskServer([gone], interval=10), on_call=events.append) as client:
        task = await client.tasks.ship_order(order_id="7")
        assert [state.status async for state in task.updates()] == ["working"]
        with pytest.raises(
            shop.TaskExpired, match=r"the task of 'ship_order' is unknown to the server, or has expired: Task has exp"
        ):
            await task
        again = client.tasks.ship_order.resume("t1")
        lengths = set()
        for _ in range(2):
            with pytest.raises(shop.TaskExpired) as expired:
                await again.refresh()
            lengths.add(len(expired.traceback))
        assert len(lengths) == 1
        with pytest.raises(shop.TaskExpired):
            await client.tasks.ship_order.resume("t1").cancel()
    assert [event.outcome for event in events[:2]] == [None, "error"]


@pytest.mark.parametrize("kind", ["memory", "http legacy"])
async def test_a_model_needs_no_content_beside_it(shop: Any, kind: str) -> None:
    bare = {"structuredContent": {"order": "7"}}
    async with _connected(shop, kind, TaskServer(["completed"], result=bare, interval=10)) as client:
        task = await client.tasks.ship_order(order_id="7")
        assert (await task).order == "7"


@pytest.mark.parametrize("kind", ERAS)
async def test_a_result_that_breaks_its_schema_is_refused(shop: Any, kind: str) -> None:
    odd = {"content": [], "structuredContent": {"order": 7}}
    events: list[Any] = []
    async with _connected(
        shop, kind, TaskServer(["completed"], result=odd, interval=10), on_call=events.append
    ) as client:
        task = await client.tasks.ship_order(order_id="7")
        with pytest.raises(shop.InvalidResult, match="order"):
            await task
    assert [event.outcome for event in events] == [None, "invalid"]


# --- taking up, listing, options -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ERAS)
async def test_a_task_is_taken_up_by_its_id(shop: Any, kind: str) -> None:
    server = TaskServer(["working", "completed"], interval=10)
    events: list[Any] = []
    async with _connected(shop, kind, server, on_call=events.append) as client:
        task = client.tasks.ship_order.resume("t1")
        assert (task.id, task.status, server.methods(), events) == ("t1", "working", [], [])
        assert (await task.refresh()).ttl == 60
        assert isinstance(await task, shop.ShipOrderOutput)
        (block,) = await client.tasks.say.resume("t1")
        assert block.type == "text"
    assert [(event.tool, event.phase, event.arguments) for event in events[:2]] == [
        ("ship_order", "start", {}),
        ("ship_order", "end", {}),
    ]


@pytest.mark.parametrize("kind", ERAS)
async def test_following_a_task_that_was_taken_up_begins_with_a_look(shop: Any, kind: str) -> None:
    async with _connected(
        shop, kind, TaskServer([{"status": "working", "statusMessage": "half"}, "completed"])
    ) as client:
        began = time.monotonic()
        told = [(state.status, state.message) async for state in client.tasks.ship_order.resume("t1").updates()]
    assert told == [("working", "half"), ("completed", None)]
    assert time.monotonic() - began < 5


async def test_tasks_are_listed_page_by_page(shop: Any) -> None:
    times: dict[str, Any] = {"createdAt": "x", "lastUpdatedAt": "x", "ttl": None}
    pages: list[dict[str, Any]] = [
        {"tasks": [{"taskId": "a", "status": "working", **times}], "nextCursor": "2"},
        {"tasks": [{"taskId": "b", "status": "completed", "statusMessage": "\x1b[31mdone", **times}]},
    ]
    server = TaskServer(pages=pages)
    async with _connected(shop, "pipe legacy", server) as client:
        found = [state async for state in client.tasks.list()]
    assert [(state.id, state.status, state.message, state.ended) for state in found] == [
        ("a", "working", None, False),
        ("b", "completed", "done", True),
    ]
    assert [(params or {}).get("cursor") for _, params in server.seen] == [None, "2"]


async def test_where_there_is_no_list_an_error_says_what_to_do(shop: Any) -> None:
    async with _connected(shop, "memory", TaskServer()) as client:
        with pytest.raises(shop.TasksUnsupported, match="store each task's `id`, and `resume` it"):
            [state async for state in client.tasks.list()]
    server = TaskServer()
    server.handler_server.offered = None
    async with _connected(shop, "pipe legacy", server) as client:
        with pytest.raises(shop.TasksUnsupported, match="the server does not list tasks"):
            [state async for state in client.tasks.list()]


async def test_a_server_is_asked_to_keep_a_task_for_a_time(shop: Any) -> None:
    server = TaskServer()
    async with _connected(shop, "pipe legacy", server) as client:
        await client.tasks.with_options(ttl=1.5).ship_order(order_id="7")
        await client.tasks.ship_order(order_id="7")
        for ttl in (0, -1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="ttl must be a positive number of seconds"):
                client.tasks.with_options(ttl=ttl)
    assert [params["task"] for _, params in server.seen] == [{"ttl": 1500}, {}]


@pytest.mark.parametrize("kind", ERAS)
async def test_a_call_that_is_not_confirmed_starts_nothing(shop: Any, kind: str) -> None:
    server = TaskServer()
    events: list[Any] = []
    async with _connected(shop, kind, server, confirm=lambda *_: False, on_call=events.append) as client:
        with pytest.raises(shop.CallRefused):
            await client.tasks.pay(card="4711")
        with pytest.raises(shop.CallRefused):
            await client.with_options(confirm_all=True).tasks.ship_order(order_id="7")
    assert server.methods() == []
    assert [(event.outcome, event.arguments) for event in events[:2]] == [
        (None, {"card": "[redacted]"}),
        ("refused", {"card": "[redacted]"}),
    ]


@pytest.mark.parametrize("kind", ERAS)
async def test_waiting_has_a_time_and_the_task_goes_on(shop: Any, kind: str) -> None:
    server = TaskServer(["working"] * 5 + ["completed"], interval=50)
    events: list[Any] = []
    async with _connected(shop, kind, server, on_call=events.append) as client:
        task = await client.tasks.ship_order(order_id="7")
        with pytest.raises(TimeoutError, match=r"did not finish within 0.1 seconds; it is still running"):
            await task.wait(timeout=0.1)
        assert len(events) == 1
        assert (await task.wait(timeout=10)).order == "7"


@pytest.mark.parametrize("kind", ERAS)
async def test_the_time_of_a_request_is_that_of_each_look(shop: Any, kind: str) -> None:
    server = TaskServer(["working"] * 30 + ["completed"], interval=10)
    async with _connected(shop, kind, server, timeout=0.25) as client:
        assert (await (await client.tasks.ship_order(order_id="7"))).order == "7"
        assert len(server.seen) > 25


@pytest.mark.parametrize("kind", ERAS)
async def test_several_may_wait_at_once(shop: Any, kind: str) -> None:
    server = TaskServer(["working"] * 4 + ["completed"], interval=20)
    done: list[Any] = []
    async with _connected(shop, kind, server) as client:
        task = await client.tasks.ship_order(order_id="7")

        async def wait() -> None:
            done.append(await task)

        async def follow() -> None:
            done.append([state.status async for state in task.updates()])

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait)
            group.start_soon(follow)
        assert done.count(await task) == 2
        assert ["working", "completed"] in done
    assert server.methods().count("tasks/get") == 5


async def test_a_task_shows_no_id_and_what_it_says_is_clean(shop: Any) -> None:
    said = {"status": "working", "statusMessage": "\x1b[2Jhalf\u202e"}
    async with _connected(shop, "memory", TaskServer([said], interval=10)) as client:
        task = await client.tasks.ship_order(order_id="7")
        assert repr(task) == "<ToolTask 'ship_order': working>"
        assert (await task.refresh()).message == "half"
        task = client.with_options(sanitize="none").tasks.ship_order.resume("t1")
        assert (await task.refresh()).message == said["statusMessage"]


# --- questions ---------------------------------------------------------------------------------------------------


def _asked(**questions: Any) -> dict[str, Any]:
    return {"status": "input_required", "inputRequests": questions}


async def test_a_question_is_put_once_however_often_it_comes(shop: Any) -> None:
    first, both = _asked(a=question("A?")), _asked(a=question("A?"), b=question("B?"))
    server = TaskServer([first, first, both, both, "working", "completed"], interval=10)
    put: list[str] = []

    def answer(asked: Any) -> dict[str, str]:
        put.append(asked.message)
        return {"name": asked.key}

    async with _connected(shop, "http", server, on_question=answer) as client:
        task = await client.tasks.ship_order(order_id="7")
        assert [state.status async for state in task.updates()] == [
            "working",
            "input_required",
            "working",
            "completed",
        ]
    assert put == ["A?", "B?"]
    assert server.answers == [
        {"a": {"action": "accept", "content": {"name": "a"}}},
        {"b": {"action": "accept", "content": {"name": "b"}}},
    ]
    assert set(server.headers[1:]) == {"t1"}


@pytest.mark.parametrize("kind", ["pipe legacy", "http legacy"])
async def test_before_2026_a_question_comes_on_the_stream_of_the_result(shop: Any, kind: str) -> None:
    server = TaskServer(["working", "input_required"], asks=[question("A?"), question("B?")], interval=10)
    put: list[str] = []

    async def answer(asked: Any) -> dict[str, str]:
        put.append(asked.message)
        await anyio.sleep(0.3)  # the clock rests
        return {"name": "Ada"}

    async with _connected(shop, kind, server, on_question=answer, timeout=0.5) as client:
        task = await client.tasks.ship_order(order_id="7")
        assert (await task).order == "7"
        assert task.status == "completed"
    assert put == ["A?", "B?"]
    assert [one["content"] for one in server.answers] == [{"name": "Ada"}] * 2
    assert server.methods()[:4] == ["tools/call", "tasks/get", "tasks/get", "tasks/result"]


async def test_before_2026_the_result_is_waited_for_again_where_a_task_goes_on(shop: Any) -> None:
    server = TaskServer(["input_required", "working", "working", "completed"], interval=30)

    async def waiting(ctx: Any) -> Any:
        if server.methods().count("tasks/result") == 1:
            await anyio.sleep_forever()
        return ORDER

    server._handlers["tasks/result"] = waiting
    async with _connected(shop, "pipe legacy", server) as client:
        task = await client.tasks.ship_order(order_id="7")
        told = [state.status async for state in task.updates()]
        assert (await task).order == "7"
    assert told == ["working", "input_required", "working", "completed"]
    assert server.methods().count("tasks/result") == 2


@pytest.mark.parametrize("kind", ERAS)
async def test_what_a_callback_raises_is_raised_where_one_waits(shop: Any, kind: str) -> None:
    states = [_asked(a=question())] if kind == "memory" else ["input_required"]
    server = TaskServer(states, asks=[question()], interval=10)
    given: list[Any] = [RuntimeError("no one there"), {"name": "Ada"}]

    def answer(_: Any) -> Any:
        one = given.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    async with _connected(shop, kind, server, on_question=answer) as client:
        task = await client.tasks.ship_order(order_id="7")
        with pytest.raises(RuntimeError, match="no one there"):
            await task
        assert not task.done()
        server._states = iter(["completed"] if kind == "memory" else ["input_required"])
        assert (await task).order == "7"


@pytest.mark.parametrize("kind", ERAS)
async def test_endless_questions_end(shop: Any, kind: str) -> None:
    if kind == "memory":
        server = TaskServer([_asked(**{f"q{number}": question()}) for number in range(99)], interval=10)
    else:
        server = TaskServer(["input_required", "working"] * 99, interval=10)

        async def ask_for_ever(ctx: Any) -> Any:
            await anyio.sleep_forever()

        server._handlers["tasks/result"] = ask_for_ever
    async with _connected(shop, kind, server, on_question=lambda _: {"name": "Ada"}) as client:
        with pytest.raises(mcp.MCPError, match="the server asked for input in more than 10 rounds"):
            await (await client.tasks.ship_order(order_id="7"))


async def test_an_answer_that_is_not_taken_is_sent_again_but_not_asked_for_again(shop: Any) -> None:
    both = _asked(a=question("A?"), b=question("B?"))
    server = TaskServer([both, *[_asked(b=question("B?"))] * 5, "completed"], interval=10)
    put: list[str] = []

    def answer(asked: Any) -> dict[str, str]:
        put.append(asked.key)
        return {"name": asked.key}

    async with _connected(shop, "memory", server, on_question=answer) as client:
        assert (await (await client.tasks.ship_order(order_id="7"))).order == "7"
    assert put == ["a", "b"]
    assert [list(answers) for answers in server.answers] == [["a", "b"], ["b"]]


async def test_answers_that_are_refused_are_an_error_and_the_task_is_no_other(shop: Any) -> None:
    server = TaskServer([_asked(a=question())], interval=10)

    async def refuse(ctx: Any) -> Any:
        raise mcp.MCPError(code=mcp_types.INVALID_PARAMS, message="name: too short")

    server._handlers["tasks/update"] = refuse
    async with _connected(shop, "memory", server, on_question=lambda _: {"name": "A"}) as client:
        task = await client.tasks.ship_order(order_id="7")
        with pytest.raises(mcp.MCPError, match="name: too short"):
            await task
        assert not task.done()


async def test_a_task_may_fail_with_the_code_of_one_that_is_unknown(shop: Any) -> None:
    own = mcp.MCPError(code=mcp_types.INVALID_PARAMS, message="no such order")
    for states in (["failed"], ["input_required", "failed"]):
        async with _connected(shop, "pipe legacy", TaskServer(states, result=own, interval=10)) as client:
            with pytest.raises(mcp.MCPError, match="no such order"):
                await (await client.tasks.ship_order(order_id="7"))
    async with _connected(shop, "pipe legacy", TaskServer(["completed"], result=own, interval=10)) as client:
        with pytest.raises(shop.TaskExpired, match="no such order"):
            await (await client.tasks.ship_order(order_id="7"))


async def test_a_task_that_nobody_asked_for_is_an_error(shop: Any) -> None:
    made = {"taskId": "t1", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": None}
    async with _connected(shop, "http", TaskServer(first={"resultType": "task", **made})) as client:
        with pytest.raises(mcp.MCPError):
            await client.plain()


async def test_a_question_that_nobody_can_be_asked_is_an_error(shop: Any) -> None:
    async with _connected(shop, "memory", TaskServer([_asked(a=question())], interval=10)) as client:
        with pytest.raises(mcp.MCPError, match="Elicitation not supported"):
            await (await client.tasks.ship_order(order_id="7"))
    odd = _asked(a={"method": "tools/list"})
    async with _connected(shop, "memory", TaskServer([odd], interval=10)) as client:
        with pytest.raises(mcp.MCPError, match="the server's response is not valid MCP"):
            await (await client.tasks.ship_order(order_id="7"))


# --- hostile servers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [(None, 1.0), (0, 0.01), (-5, 0.01), (250, 0.25), (10**12, 60.0), (1e300, 60.0)],
)
async def test_a_task_is_looked_at_neither_too_often_nor_never(
    shop: Any, interval: float | None, seconds: float
) -> None:
    async with _connected(shop, "memory", TaskServer(["working"], interval=interval)) as client:
        task = await client.tasks.ship_order(order_id="7")
    assert task.state.poll_interval == seconds


@pytest.mark.parametrize("kind", ERAS)
@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"status": "exploded"}, "status: Input should be"),
        ({"status": "completed", "taskId": "t2"}, "it belongs to another task"),
        ({"taskId": ""}, "taskId"),
        ({"status": "working", "statusMessage": 5}, "statusMessage"),
    ],
)
async def test_a_state_that_is_none_is_an_error(shop: Any, kind: str, state: Any, message: str) -> None:
    async with _connected(shop, kind, TaskServer([state], interval=10)) as client:
        task = await client.tasks.ship_order(order_id="7")
        with pytest.raises(mcp.MCPError, match="the server's response is not valid MCP") as error:
            await task
    assert error.value.error.code == mcp_types.PARSE_ERROR
    assert message in error.value.error.message


@pytest.mark.parametrize("kind", ERAS)
async def test_an_end_is_final(shop: Any, kind: str) -> None:
    async with _connected(shop, kind, TaskServer(["completed", "working"], interval=10)) as client:
        task = await client.tasks.ship_order(order_id="7")
        await task.refresh()
        assert (await task.refresh()).status == "completed"
        assert (await task).order == "7"


@pytest.mark.parametrize(
    "state",
    [
        {"status": "completed", "result": None},
        {"status": "completed", "result": {"content": "text"}},
        {"status": "completed", "result": {"content": [{"type": "text", "text": "x"}] * 10_001}},
    ],
)
async def test_a_result_that_is_none_ends_the_task(shop: Any, state: Any) -> None:
    events: list[Any] = []
    async with _connected(shop, "http", TaskServer([state], interval=10), on_call=events.append) as client:
        task = await client.tasks.ship_order(order_id="7")
        for _ in range(2):
            with pytest.raises(mcp.MCPError, match="the server's response is not valid MCP"):
                await task
    assert [event.outcome for event in events] == [None, "error"]


async def test_the_result_of_another_task_is_refused(shop: Any) -> None:
    odd = {**ORDER, "_meta": {RELATED: {"taskId": "t2"}}}
    async with _connected(shop, "pipe legacy", TaskServer(["completed"], result=odd, interval=10)) as client:
        with pytest.raises(mcp.MCPError, match="another task's result"):
            await (await client.tasks.ship_order(order_id="7"))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_result_may_not_be_too_large(shop: Any, kind: str) -> None:
    large = {"content": [{"type": "text", "text": "x" * 5_000}], "structuredContent": {"order": "7"}}
    events: list[Any] = []
    options = {"max_result_bytes": 2_000, "on_call": events.append}
    async with _connected(shop, kind, TaskServer(["completed"], result=large, interval=10), **options) as client:
        task = await client.tasks.ship_order(order_id="7")
        with pytest.raises(shop.ResultTooLarge, match="'ship_order' has"):
            await task
        assert task.done()
    assert [event.outcome for event in events] == [None, "too_large"]


# --- lost connections, and what comes unasked ------------------------------------------------------------------------


@pytest.mark.parametrize("handshake", amounts.sample([False, True], 1))
async def test_a_look_that_is_lost_is_made_again(shop: Any, handshake: bool) -> None:
    server = TaskServer(["working"] * 3 + ["completed"], interval=10)
    server.handshake = handshake
    app = server.server.streamable_http_app()
    lost: list[int] = []

    async def losing(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and len(server.seen) >= 2 and len(lost) < 3 and scope["method"] == "POST":
            lost.append(1)
            if len(lost) == 1:
                await send({"type": "http.response.start", "status": 502, "headers": []})
                await send({"type": "http.response.body", "body": b"bad gateway"})
                return
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
            )
            await send({"type": "http.response.body", "body": b": and that was it"})
            return
        await app(scope, receive, send)

    with asgi(losing) as url, anyio.fail_after(60):
        async with shop.ShopClient.connect(f"{url}/mcp") as client:
            task = await client.tasks.ship_order(order_id="7")
            assert (await task).order == "7"
    assert len(lost) == 3


async def test_a_server_that_starts_anew_is_found_again(shop: Any) -> None:
    server = TaskServer(["working", "working", "completed"], interval=100)
    with anyio.fail_after(60):
        before = serve(server.server)
        url = before.__enter__()
        async with shop.ShopClient.connect(url) as client:
            task = await client.tasks.ship_order(order_id="7")
            await task.refresh()
            await anyio.to_thread.run_sync(before.__exit__, None, None, None)
            with pytest.raises(mcp.MCPError):
                await client.ship_order(order_id="7")
            again = TaskServer(["working", "completed"], interval=100)

            async with anyio.create_task_group() as group:

                async def come_back() -> None:
                    await anyio.sleep(0.6)
                    await anyio.to_thread.run_sync(after.__enter__)

                after = serve(again.server, int(url.rpartition(":")[2].removesuffix("/mcp")))
                group.start_soon(come_back)
                assert (await task).order == "7"
            await anyio.to_thread.run_sync(after.__exit__, None, None, None)
    assert again.methods() == ["tasks/get", "tasks/get"]


async def test_a_server_that_stays_away_is_given_up(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = sys.modules["stubwright_runtime.client.tasks.runs"]
    monkeypatch.setattr(runs, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(runs, "_LONGEST_PAUSE", 0.05)
    trouble = mcp.MCPError(code=mcp_types.INTERNAL_ERROR, message="the store is lost")
    server = TaskServer([trouble], interval=10)
    async with _connected(shop, "http", server) as client:
        with pytest.raises(mcp.MCPError, match="the store is lost"):
            await (await client.tasks.ship_order(order_id="7"))
    assert server.methods().count("tasks/get") == 8


_TELLING = """
import json, sys
task = {"taskId": "t1", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttl": None, "pollInterval": 30000}
for line in sys.stdin:
    message = json.loads(line)
    method, told = message.get("method"), []
    if method == "initialize":
        tasks = {"requests": {"tools": {"call": {}}}}
        server = {"name": "telling", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": tasks}, "serverInfo": server}
    elif method == "tools/call":
        result = {"task": task}
        told = [
            {"taskId": "t1", "status": "nonsense"},
            {**task, "taskId": "t9", "status": "failed"},
            {**task, "statusMessage": "half"},
            {**task, "status": "completed"},
        ]
    elif method == "tasks/result":
        result = {"content": [], "structuredContent": {"order": "7"}}
    elif "id" in message:
        error = {"code": -32601, "message": "?"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    for params in told:
        sys.stderr.flush()
        import time; time.sleep(0.05)
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params}), flush=True)
"""


async def test_what_a_server_tells_by_itself_spares_looks(shop: Any) -> None:
    with anyio.fail_after(10):  # it would look after 30 seconds
        async with shop.ShopClient.connect([sys.executable, "-c", _TELLING]) as client:
            task = await client.tasks.ship_order(order_id="7")
            told = [(state.status, state.message) async for state in task.updates()]
            assert (await task).order == "7"
    assert told == [("working", None), ("working", "half"), ("completed", None)]


async def test_a_task_that_nobody_holds_is_forgotten(shop: Any) -> None:
    with anyio.fail_after(10):
        async with shop.ShopClient.connect([sys.executable, "-c", _TELLING]) as client:
            task = await client.tasks.ship_order(order_id="7")
            runs = client.raw.server.on_notification.runs
            assert list(runs) == ["t1"]
            del task
            gc.collect()
            assert list(runs) == []


# --- what a package carries ------------------------------------------------------------------------------------------


def test_a_package_without_such_tools_has_nothing_of_tasks(tmp_path: Path) -> None:
    forbidden = tool("a", execution={"taskSupport": "forbidden"})
    package = tmp_path / generate(tmp_path, manifest([forbidden, tool("b")], name="none"))
    assert "tasks" not in (package / "client.py").read_text()
