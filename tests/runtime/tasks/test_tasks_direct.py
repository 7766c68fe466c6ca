"""Tasks without the SDK, in both eras."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

import amounts
import prompt_ends
import tasked
from packages import generate, manifest, tool
from server_fixture import opened
from serving import asgi
from stubwright_runtime.server.transports.stdio.connection import Connection
from stubwright_runtime.server.transports.stdio.reader import Line
from task_wire import EXTENSION, HANDSHAKE, STATELESS, Wire, in_memory, over_http, over_stdio
from tasked import Gate, Handlers, call_params, first

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

package = tasked.package


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


TASKS: dict[str, Any] = {"elicitation": {}, "extensions": {EXTENSION: {}}}
LISTENED = "io.modelcontextprotocol/subscriptionId"

SHOWS = """
import sys

class Handlers:
    async def shows(self, args, ctx):
        who = await ctx.ask.who()
        return " ".join([who.name, *(name for name in sys.modules if f"{name}.".startswith(("mcp.", "starlette.")))])
"""


def accepted(_message: dict[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": "Ada"}}


async def ended(wire: Wire, **call: Any) -> dict[str, Any]:
    """The result of a call that runs as a task, whose question is answered."""
    if wire.revision == HANDSHAKE:
        made = await wire("tools/call", task={}, **call)
        return await wire("tasks/result", taskId=made["task"]["taskId"])
    name = (await wire("tools/call", **call))["taskId"]
    waiting = await wire.until(name, "input_required")
    answers = {key: accepted(request) for key, request in waiting["inputRequests"].items()}
    assert (await wire("tasks/update", taskId=name, inputResponses=answers))["resultType"] == "complete"
    result: dict[str, Any] = (await wire.until(name, "completed"))["result"]
    return result


async def cancel(wire: Wire) -> None:
    """Cancel the last request."""
    number = max(key for key in wire._waiting if isinstance(key, int))
    await wire.transport.send({"method": "notifications/cancelled", "params": {"requestId": number}})


@pytest.mark.long
@pytest.mark.parametrize("revision", [amounts.mark_long(HANDSHAKE), STATELESS])
async def test_a_process_loads_no_sdk(tmp_path: Path, revision: str) -> None:
    ask = {"ask": {"who": {"message": "Who?", "schema": tasked.NAMED}}}
    tools = [tool("shows", **tasked.OPTIONAL, stubwright=ask)]
    generate(tmp_path, manifest(tools, name="shown", python={"handlers": "shown:Handlers"}))
    (tmp_path / "shown.py").write_text(SHOWS)
    async with over_stdio("shown_mcp", tmp_path, revision, TASKS, accepted, python=[sys.executable]) as wire:
        assert first(await ended(wire, name="shows", arguments={})) == "Ada"
        if revision == STATELESS:
            listening = wire.start("subscriptions/listen", notifications={"taskIds": ["nobody-made-this"]})
            [acknowledged] = await wire.noted("notifications/subscriptions/acknowledged")
            assert acknowledged["notifications"] == {"taskIds": []}
            await cancel(wire)
            listening.cancel()
        else:
            assert len((await wire("tasks/list"))["tasks"]) == 1
        assert first(await ended(wire, name="shows", arguments={})) == "Ada"


async def test_over_http_from_2026_on(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    gate = Gate()
    app = package.asgi_app(Handlers(ask=asks, work=gate.later))
    with asgi(app) as url:
        async with over_http(f"{url}/mcp", STATELESS, TASKS) as wire:
            assert (await wire.open())["extensions"] == {EXTENSION: {}}
            assert first(await ended(wire, **call_params("ask"))) == "Ada"
            name = (await wire("tools/call", **call_params("work")))["taskId"]
            listening = wire.start("subscriptions/listen", notifications={"taskIds": [name], "toolsListChanged": True})
            [acknowledged] = await wire.noted("notifications/subscriptions/acknowledged")
            assert acknowledged["notifications"] == {"taskIds": [name], "toolsListChanged": True}
            [state] = await wire.noted("notifications/tasks")
            assert (state["taskId"], state["status"]) == (name, "working")
            gate.go.set()
            states = await wire.noted("notifications/tasks", 2)
            assert (states[-1]["status"], first(states[-1]["result"])) == ("completed", "let go")
            assert {state["_meta"][LISTENED] for state in states} == {acknowledged["_meta"][LISTENED]}
            assert (await wire("tasks/cancel", taskId=name))["resultType"] == "complete"
            assert (await wire("tasks/list"))["error"]["code"] == -32601
            assert (await wire("tasks/get"))["error"]["code"] == -32602
            listening.cancel()


async def test_over_http_up_to_2025(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    with asgi(package.asgi_app(Handlers(ask=asks))) as url:
        async with over_http(f"{url}/mcp", HANDSHAKE, TASKS, accepted) as wire:
            assert first(await wire("tools/call", **call_params("never"))) == "1"
            assert first(await ended(wire, **call_params("ask"))) == "Ada"
            assert len((await wire("tasks/list"))["tasks"]) == 1


async def test_the_end_of_the_server_ends_a_stream_of_tasks_with_its_answer(package: ModuleType) -> None:
    server = package.build_server(Handlers())
    async with in_memory(server, STATELESS, TASKS) as wire:
        name = (await wire("tools/call", **call_params("work")))["taskId"]
        await wire.until(name, "completed")
        listening = wire.start("subscriptions/listen", notifications={"taskIds": [name]})
        [told] = await wire.noted("notifications/tasks")
        assert told["status"] == "completed"
        server.core.end_streams()
        answer = await listening
        assert answer["resultType"] == "complete"
        assert answer["_meta"][LISTENED] == told["_meta"][LISTENED]


async def test_a_question_of_a_task_is_taken_back_when_its_request_is_cancelled(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    server = package.build_server(Handlers(ask=asks))
    async with in_memory(server, HANDSHAKE, TASKS) as wire:
        name = (await wire("tools/call", **call_params("ask", task={})))["task"]["taskId"]
        waiting = wire.start("tasks/result", taskId=name)
        await wire.questioned()
        [question] = wire.asked
        assert question["params"]["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": name}
        await cancel(wire)
        [taken_back] = await wire.noted("notifications/cancelled")
        assert taken_back["requestId"] == question["id"]
        waiting.cancel()
        assert (await wire("tasks/get", taskId=name))["status"] == "input_required"
        again = wire.start("tasks/result", taskId=name)
        while len(wire.asked) < 2:  # noqa: ASYNC110 - what is asked is a list
            await asyncio.sleep(0.01)
        await wire.transport.send({"id": wire.asked[-1]["id"], "result": accepted(question)})
        assert first(await again) == "Ada"


class _Lines:
    """The lines of a connection on standard input and output."""

    is_full = False

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.connection: Connection

    async def send(self, message: Any) -> None:
        if isinstance(message, bytes):  # from the server
            await self._wire.heard(json.loads(message))
        else:
            await self.connection.handle(Line(json.dumps({"jsonrpc": "2.0", **message}).encode()))


async def test_a_question_of_a_task_fails_its_request_when_the_input_ends(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    core = package.build_server(Handlers(ask=asks)).core
    wire = Wire(HANDSHAKE, TASKS, None)
    async with core.lifespan():
        lines: Any = _Lines(wire)
        connection = lines.connection = Connection(core, lines)
        wire.transport = lines
        await wire.open()
        name = (await wire("tools/call", **call_params("ask", task={})))["task"]["taskId"]
        waiting = wire.start("tasks/result", taskId=name)
        await wire.questioned()
        await connection.disconnect()
        assert (await waiting)["error"]["code"] == -32000
        await connection.close()


@pytest.mark.parametrize("method", ["tasks/get", "tasks/list", "tasks/result", "tasks/cancel"])
async def test_before_the_handshake_requests_about_tasks_are_refused(package: ModuleType, method: str) -> None:
    server = package.build_server(Handlers())
    async with opened(server) as (send, receive):
        await send({"id": 1, "method": method, "params": {"taskId": "x"}})
        refused = (await receive())["error"]
        expected = "The connection is not initialized; send initialize first"
        assert (refused["code"], refused["message"]) == (-32602, expected)
