"""Tasks in MCP 2026-07-28: each MUST of the extension `io.modelcontextprotocol/tasks` for servers, and its SHOULDs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2
import mcp
import pytest
from mcp.server.auth.provider import AccessToken

import prompt_ends
import tasked
from server_fixture import ENVELOPE
from serving import asgi
from task_wire import EXTENSION, HANDSHAKE, RELATED, STATELESS, Wire, in_memory, over_http
from tasked import Clock, Gate, Handlers, call_params, first

if TYPE_CHECKING:
    from types import ModuleType

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

package = tasked.package


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


TASKS: dict[str, Any] = {"elicitation": {}, "extensions": {EXTENSION: {}}}
REQUIRED: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
UNKNOWN = {"error": {"code": -32602, "message": "Task not found"}}


def client(package: ModuleType, handlers: Any = None, capabilities: Any = None) -> Any:
    return in_memory(
        package.build_server(handlers or Handlers()), STATELESS, TASKS if capabilities is None else capabilities
    )


async def made(wire: Wire, name: str, x: int = 1) -> str:
    """Create a task, and return its id."""
    said = await wire("tools/call", **call_params(name, x))
    assert said["resultType"] == "task", said
    found: str = said["taskId"]
    return found


async def asks_both(_args: Any, ctx: Any) -> str:
    who, pet = await asyncio.gather(ctx.ask.who(), ctx.ask.pet())
    return f"{who.name} {pet.name}"


def given(name: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


async def test_the_extension_is_declared(package: ModuleType) -> None:
    async with client(package) as wire:
        said = await wire.open()
    assert said["extensions"] == {EXTENSION: {}}
    assert "tasks" not in said


async def test_a_task_is_made_where_the_client_declares_it(package: ModuleType) -> None:
    async with client(package) as wire:
        said = await wire("tools/call", **call_params("work", 3))
        assert said["status"] == "working"
        assert (said["ttlMs"], said["pollIntervalMs"]) == (600_000, 50)
        assert not {"task", "ttl", "pollInterval", "result", "error", "inputRequests", "requestState"} & {*said}
        assert (await wire("tasks/get", taskId=said["taskId"]))["taskId"] == said["taskId"]  # it exists immediately


async def test_no_task_is_made_where_it_does_not(package: ModuleType) -> None:
    handlers = Handlers()
    async with client(package, handlers, {}) as wire:
        said = await wire("tools/call", **call_params("work", 3))
        assert (said["resultType"], first(said)) == ("complete", "3")
        assert "taskId" not in said
        refused = (await wire("tools/call", **call_params("must")))["error"]
        assert (refused["code"], refused["data"]) == (-32021, REQUIRED)
    assert handlers.runs == ["work"]


async def test_what_a_client_of_2025_would_say_is_ignored(package: ModuleType) -> None:
    async with client(package) as wire:
        said = await wire("tools/call", **call_params("never", 3, task={"ttl": 5}))
        assert (said["resultType"], first(said)) == ("complete", "3")
        assert (await wire("tools/call", **call_params("work", 3, task={"ttl": 5})))["ttlMs"] == 600_000


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
async def test_there_are_methods_no_more(package: ModuleType, method: str) -> None:
    async with client(package) as wire:
        assert (await wire(method, taskId="x"))["error"]["code"] == -32601


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_a_client_that_does_not_declare_it_is_refused(package: ModuleType, method: str) -> None:
    server = package.build_server(Handlers())
    async with in_memory(server, STATELESS, TASKS) as wire, in_memory(server, STATELESS, {}) as other:
        name = await made(wire, "work")
        for task in (name, "nobody-made-this"):
            refused = (await other(method, taskId=task, inputResponses={}))["error"]
            assert (refused["code"], refused["data"]) == (-32021, REQUIRED)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_unknown_and_expired_tasks_are_answered_alike(package: ModuleType, method: str) -> None:
    server = package.build_server(Handlers())
    clock = Clock(server)
    async with in_memory(server, STATELESS, TASKS) as wire:
        name = await made(wire, "few")
        await wire.until(name, "completed")
        assert await wire(method, taskId="nobody-made-this", inputResponses={}) == UNKNOWN
        clock.now += 1.1
        assert await wire(method, taskId=name, inputResponses={}) == UNKNOWN
        assert (await wire(method))["error"]["code"] == -32602


async def test_each_status_has_what_belongs_to_it(package: ModuleType) -> None:
    gate = Gate()

    async def breaks(_args: Any, _ctx: Any) -> str:
        raise mcp.MCPError(-31999, "the line is cut", [1])

    async with client(package, Handlers(work=gate.later, must=breaks, ask=asks_both)) as wire:
        name = await made(wire, "work", 3)
        working = await wire("tasks/get", taskId=name)
        assert (working["status"], working["resultType"]) == ("working", "complete")
        gate.go.set()
        completed = await wire.until(name, "completed")
        assert first(completed["result"]) == "let go"
        assert RELATED not in completed["result"].get("_meta", {})
        failed = await wire.until(await made(wire, "must"), "failed")
        assert failed["error"] == {"code": -31999, "message": "the line is cut", "data": [1]}
        assert failed["statusMessage"] == "the line is cut"
        waiting = await wire.until(await made(wire, "ask"), "input_required")
        assert [one["params"]["message"] for one in waiting["inputRequests"].values()] == ["Who?", "Pet?"]
        await wire("tasks/cancel", taskId=waiting["taskId"])
        cancelled = await wire("tasks/get", taskId=waiting["taskId"])
        extra = ("result", "error", "inputRequests")
        kept = {
            said["status"]: [key for key in extra if key in said]
            for said in (working, completed, failed, waiting, cancelled)
        }
    assert kept == {
        "working": [],
        "completed": ["result"],
        "failed": ["error"],
        "input_required": ["inputRequests"],
        "cancelled": [],
    }


@pytest.mark.parametrize("kind", ["ToolError", "KeyError"])
async def test_what_is_no_error_of_the_protocol_completes(package: ModuleType, kind: str) -> None:
    async def fails(_args: Any, _ctx: Any) -> str:
        raise package.ToolError("no more paper") if kind == "ToolError" else KeyError("a code")

    async with client(package, Handlers(work=fails)) as wire:
        said = await wire.until(await made(wire, "work"), "completed")
        assert said["result"]["isError"]
        assert "a code" not in first(said["result"])


async def test_a_result_is_what_the_call_would_have_given(package: ModuleType) -> None:
    async with client(package) as wire, client(package, capabilities={}) as other:
        plain = await other("tools/call", **call_params("typed", 4))
        said = (await wire.until(await made(wire, "typed", 4), "completed"))["result"]
        assert said == {key: value for key, value in plain.items() if key != "_meta"}


async def test_answers_may_come_one_by_one(package: ModuleType) -> None:
    handlers = Handlers(ask=asks_both)
    async with client(package, handlers) as wire:
        name = await made(wire, "ask")
        one, other = (await wire.until(name, "input_required"))["inputRequests"]
        said = await wire("tasks/update", taskId=name, inputResponses={one: given("Ada"), "unknown": {"ignored": True}})
        assert {*said} == {"resultType", "_meta"}
        assert said["resultType"] == "complete"
        still = await wire("tasks/get", taskId=name)
        assert (still["status"], [*still["inputRequests"]]) == ("input_required", [other])
        await wire("tasks/update", taskId=name, inputResponses={one: given("Eve")})  # it is answered already
        await wire("tasks/update", taskId=name, inputResponses={other: given("Bo")})
        assert first((await wire.until(name, "completed"))["result"]) == "Ada Bo"
        await wire("tasks/update", taskId=name, inputResponses={other: given("Cy")})
        assert first((await wire("tasks/get", taskId=name))["result"]) == "Ada Bo"
    assert handlers.runs == ["ask", "ask"]


async def test_no_key_stands_for_two_requests(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return f"{(await ctx.ask.who()).name} {(await ctx.ask.who()).name}"

    async with client(package, Handlers(ask=asks)) as wire:
        name = await made(wire, "ask")
        keys: list[str] = []
        for answer in ("A", "Ada", "B", "Bob"):
            async with asyncio.timeout(60):
                said = await wire.until(name, "input_required")
                while said["inputRequests"].keys() & {*keys}:
                    said = await wire.until(name, "input_required")
            [key] = said["inputRequests"]
            keys.append(key)
            await wire("tasks/update", taskId=name, inputResponses={key: given(answer)})
        assert first((await wire.until(name, "completed"))["result"]) == "Ada Bob"
    assert len({*keys}) == 4


async def test_an_answer_that_never_fits_is_an_error_of_the_tool(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    async with client(package, Handlers(ask=asks)) as wire:
        name = await made(wire, "ask")
        for _ in range(3):
            said = await wire.until(name, "input_required")
            await wire("tasks/update", taskId=name, inputResponses={key: {"what": 1} for key in said["inputRequests"]})
            await asyncio.sleep(0.02)
        assert "is invalid" in first((await wire.until(name, "completed"))["result"])


async def test_a_client_that_cannot_be_asked_fails_the_task(package: ModuleType) -> None:
    async with client(package, Handlers(ask=asks_both), {"extensions": {EXTENSION: {}}}) as wire:
        said = await wire.until(await made(wire, "ask"), "failed")
        assert said["error"]["code"] == -32021
        assert said["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}


async def test_what_is_asked_before_a_task_is_asked_in_rounds(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return f"{(await ctx.ask.who()).name} {(await ctx.ask.pet()).name}"

    handlers = Handlers(before=asks)
    async with client(package, handlers) as wire:
        round_ = await wire("tools/call", **call_params("before"))
        assert round_["resultType"] == "input_required"
        assert {*round_["inputRequests"]} == {"who", "pet"}
        assert "taskId" not in round_
        assert handlers.runs == []
        answers: dict[str, Any] = {"inputResponses": {"who": given("Ada"), "pet": given("B")}}
        round_ = await wire("tools/call", **call_params("before", requestState=round_["requestState"], **answers))
        assert {*round_["inputRequests"]} == {"pet"}  # which did not fit
        answers = {"inputResponses": {"pet": given("Bo")}}
        said = await wire("tools/call", **call_params("before", requestState=round_["requestState"], **answers))
        assert said["resultType"] == "task"
        assert "requestState" not in said
        assert first((await wire.until(said["taskId"], "completed"))["result"]) == "Ada Bo"
    assert handlers.runs == ["before"]


async def test_a_confirmation_is_asked_in_rounds(package: ModuleType) -> None:
    handlers = Handlers()
    async with client(package, handlers) as wire:
        round_ = await wire("tools/call", **call_params("pay"))
        [key] = round_["inputRequests"]
        answer = {"action": "accept", "content": {"confirm": True}}
        said = await wire(
            "tools/call", **call_params("pay", requestState=round_["requestState"], inputResponses={key: answer})
        )
        assert first((await wire.until(said["taskId"], "completed"))["result"]) == "1"
    assert handlers.runs == ["pay"]


@pytest.mark.parametrize("style", ["later", "at_once"])
async def test_a_cancelled_task_reaches_its_handler(package: ModuleType, style: str) -> None:
    gate = Gate()
    async with client(package, Handlers(work=getattr(gate, style))) as wire:
        name = await made(wire, "work")
        assert await asyncio.to_thread(gate.begun.wait, 60)
        said = await wire("tasks/cancel", taskId=name)
        assert (said["resultType"], {*said}) == ("complete", {"resultType", "_meta"})
        assert (await wire("tasks/get", taskId=name))["status"] == "cancelled"
        assert await asyncio.to_thread(gate.cancelled.wait, 60)
        assert (await wire("tasks/cancel", taskId=name))["resultType"] == "complete"  # also after its end
        gate.go.set()
        await asyncio.sleep(0.05)
        assert (await wire("tasks/get", taskId=name))["status"] == "cancelled"


async def test_progress_is_a_message_and_nothing_else_is_sent(package: ModuleType) -> None:
    gate = Gate()

    async def works(args: Any, ctx: Any) -> str:
        await ctx.progress(1, None, "unpacking\x1b[31m")
        await ctx.log("error", "for the log")
        return await gate.later(args, ctx)

    async with client(package, Handlers(work=works)) as wire:
        name = await made(wire, "work")
        assert await asyncio.to_thread(gate.begun.wait, 60)
        assert (await wire("tasks/get", taskId=name))["statusMessage"] == "1: unpacking"
        assert wire.notes == []


async def test_a_client_hears_of_its_tasks(package: ModuleType) -> None:
    gate = Gate()
    async with client(package, Handlers(work=gate.later, ask=asks_both)) as wire:
        work, ask = await made(wire, "work"), await made(wire, "ask")
        listening = wire.start("subscriptions/listen", notifications={"taskIds": [work, "nobody-made-this", ask]})
        [acknowledged] = await wire.noted("notifications/subscriptions/acknowledged")
        assert acknowledged["notifications"]["taskIds"] == [work, ask]
        assert wire.notes[0]["method"] == "notifications/subscriptions/acknowledged"
        await wire.until(ask, "input_required")
        gate.go.set()
        await wire.until(work, "completed")
        await asyncio.sleep(0.05)
        told = await wire.noted("notifications/tasks")
        last = {one["taskId"]: one for one in told}
        for name in (work, ask):
            now = await wire("tasks/get", taskId=name)
            keep = {key: value for key, value in now.items() if key not in ("resultType", "_meta")}
            assert {key: value for key, value in last[name].items() if key != "_meta"} == keep
        assert {note["method"] for note in wire.notes} == {
            "notifications/subscriptions/acknowledged",
            "notifications/tasks",
        }
        assert {str(one["_meta"]["io.modelcontextprotocol/subscriptionId"]) for one in told} == {
            str(acknowledged["_meta"]["io.modelcontextprotocol/subscriptionId"])
        }
        listening.cancel()


async def test_who_does_not_declare_it_hears_of_no_tasks(package: ModuleType) -> None:
    async with client(package, capabilities={}) as wire:
        refused = (await wire("subscriptions/listen", notifications={"taskIds": ["x"]}))["error"]
        assert (refused["code"], refused["data"]) == (-32021, REQUIRED)


async def test_a_stream_tells_of_at_most_a_thousand_tasks(package: ModuleType) -> None:
    async with client(package) as wire:
        name = await made(wire, "work")
        several = [name, *(f"nobody-made-{number}" for number in range(1000))]
        listening = wire.start("subscriptions/listen", notifications={"taskIds": several[:1000]})
        [acknowledged] = await wire.noted("notifications/subscriptions/acknowledged")
        assert acknowledged["notifications"]["taskIds"] == [name]
        refused = await wire("subscriptions/listen", notifications={"taskIds": several})
        assert refused["error"] == {"code": -32602, "message": "More than 1000 task IDs in a subscription"}
        listening.cancel()


class Verifier:
    """Each token is its bearer's name."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, client_id="c", scopes=[], subject=token, claims={"iss": "https://issuer"})


async def test_a_task_is_its_principals_alone(package: ModuleType) -> None:
    gate = Gate()

    async def works(args: Any, ctx: Any) -> str:
        await gate.later(args, ctx)
        return f"for {ctx.principal.subject}"

    with asgi(package.asgi_app(Handlers(work=works), token_verifier=Verifier())) as url:
        ada, eve = ({"authorization": f"Bearer {name}"} for name in ("ada", "eve"))
        async with (
            over_http(f"{url}/mcp", STATELESS, TASKS, headers=ada) as wire,
            over_http(f"{url}/mcp", STATELESS, TASKS, headers=eve) as other,
            over_http(f"{url}/mcp", HANDSHAKE, {}, headers=ada) as older,
        ):
            name = await made(wire, "work")
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                assert await other(method, taskId=name, inputResponses={}) == UNKNOWN
            assert (await older("tasks/get", taskId=name))["status"] == "working"  # hers in either era
            gate.go.set()
            assert first((await wire.until(name, "completed"))["result"]) == "for ada"


@pytest.mark.parametrize(
    ("named", "status", "code"), [("right", 200, None), ("wrong", 400, -32020), (None, 400, -32020)]
)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_the_header_names_the_task(
    package: ModuleType, method: str, named: str | None, status: int, code: int | None
) -> None:
    with asgi(package.asgi_app(Handlers())) as url:
        async with over_http(f"{url}/mcp", STATELESS, TASKS) as wire:
            name = await made(wire, "work")
        meta = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": TASKS}
        params = {"taskId": name, "inputResponses": {}, "_meta": meta}
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": STATELESS,
            "mcp-method": method,
        }
        if named is not None:
            headers["mcp-name"] = name if named == "right" else "another"
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with httpx2.AsyncClient() as http:
            response = await http.post(f"{url}/mcp", json=message, headers=headers)
        assert response.status_code == status
        assert response.json().get("error", {}).get("code") == code


async def test_many_at_once_each_end_once(package: ModuleType) -> None:
    async def works(args: Any, _ctx: Any) -> str:
        await asyncio.sleep(0.001 * (args.x % 7))
        return str(args.x)

    async def one(number: int) -> str:
        name = await made(wire, "again", number)
        return first((await wire.until(name, "completed", seconds=20))["result"])

    handlers = Handlers(again=works)
    async with client(package, handlers) as wire:
        found = await asyncio.gather(*(one(number) for number in range(90)))
    assert found == [str(number) for number in range(90)]
    assert len(handlers.runs) == 90
