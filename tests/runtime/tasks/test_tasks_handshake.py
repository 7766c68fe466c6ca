"""Tasks in MCP 2025-11-25: each MUST of basic/utilities/tasks for servers, and most of its SHOULDs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import mcp
import pytest
from mcp.server.auth.provider import AccessToken

import prompt_ends
import tasked
from packages import generate, imported, manifest, tool
from server_fixture import exchange, opened
from serving import asgi
from task_wire import HANDSHAKE, RELATED, Wire, in_memory, over_http
from tasked import Clock, Gate, Handlers, call_params, first

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

package = tasked.package


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


FORMS: dict[str, Any] = {"elicitation": {}}
TASK: dict[str, Any] = {"task": {}}


def own_meta(params: Mapping[str, Any]) -> dict[str, Any]:
    """The `_meta` of a message without what a tracer of the process, which another test may have set, puts there."""
    return {key: value for key, value in (params.get("_meta") or {}).items() if key != "traceparent"}


def client(package: ModuleType, handlers: Any = None, answer: Any = None, revision: str = HANDSHAKE) -> Any:
    server = package.build_server(handlers or Handlers())
    Clock(server)  # otherwise a task of `few` expires on a busy machine
    return in_memory(server, revision, FORMS, answer)


async def made(wire: Wire, name: str, x: int = 1, **more: Any) -> str:
    """Create a task, and return its id."""
    said = await wire("tools/call", **call_params(name, x, **{**TASK, **more}))
    assert "task" in said, said
    found: str = said["task"]["taskId"]
    return found


def accepted(message: dict[str, Any]) -> dict[str, Any]:
    assert message["method"] == "elicitation/create"
    return {"action": "accept", "content": {"name": "Ada"}}


@pytest.mark.parametrize("revision", ["2025-06-18", HANDSHAKE])
async def test_the_capability_is_declared_in_this_revision_alone(package: ModuleType, revision: str) -> None:
    server = package.build_server(Handlers())
    async with in_memory(server, "2026-07-28", {}) as wire:
        assert "tasks" not in await wire.open()
    async with mcp.Client(server, mode="legacy") as connected:
        assert connected.server_capabilities.tasks is not None  # the SDK's newest handshake
    expected: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    async with in_memory(server, revision, {}) as wire:
        said = wire.offered
    assert said.get("tasks") == (expected if revision == HANDSHAKE else None)
    assert "extensions" not in said


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_older_revisions_have_no_tasks(package: ModuleType, revision: str) -> None:
    async with client(package, revision=revision) as wire:
        for method in ("tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update"):
            assert (await wire(method, taskId="x"))["error"]["code"] == -32601
        assert first(await wire("tools/call", **call_params("work", **TASK))) == "1"
        assert (await wire("tools/call", **call_params("must", **TASK)))["error"]["code"] == -32601


async def test_a_tool_that_must_run_as_a_task_does_nothing_else(package: ModuleType) -> None:
    handlers = Handlers()
    async with client(package, handlers) as wire:
        assert (await wire("tools/call", **call_params("must")))["error"]["code"] == -32601
        assert handlers.runs == []
        assert (await wire("tasks/result", taskId=await made(wire, "must", 7)))["content"][0]["text"] == "7"


async def test_a_tool_that_never_does_is_refused_as_one(package: ModuleType) -> None:
    handlers = Handlers()
    async with client(package, handlers) as wire:
        assert (await wire("tools/call", **call_params("never", **TASK)))["error"]["code"] == -32601
        assert first(await wire("tools/call", **call_params("never"))) == "1"
    assert handlers.runs == ["never"]


async def test_a_tool_that_may_runs_as_the_client_says(package: ModuleType) -> None:
    async with client(package) as wire:
        assert first(await wire("tools/call", **call_params("work", 3))) == "3"
        said = await wire("tools/call", **call_params("work", 3, **TASK))
        assert "content" not in said
        assert said["task"]["status"] == "working"


async def test_a_server_without_tasks_ignores_what_is_said_of_them(tmp_path: Path) -> None:
    with imported(tmp_path, generate(tmp_path, manifest([tool("plain")], name="plain"))) as package:
        server = package.build_server(type("H", (), {"plain": lambda self, args, ctx: "done"})())
        [called_, listed] = await exchange(
            server,
            HANDSHAKE,
            ("tools/call", {"name": "plain", "arguments": {}, "task": {"ttl": 1}}),
            ("tasks/list", {}),
        )
    assert first(called_) == "done"
    assert listed["error"]["code"] == -32601


async def test_ids_are_texts_that_nobody_guesses(package: ModuleType) -> None:
    async with client(package) as wire:
        found = [await made(wire, "work") for _ in range(20)]
    assert len({*found}) == 20
    assert all(isinstance(one, str) and len(one) * 6 >= 128 for one in found)


async def test_times_and_durations_are_said(package: ModuleType) -> None:
    gate = Gate()
    async with client(package, Handlers(work=gate.later)) as wire:
        name = await made(wire, "work")
        said = await wire("tasks/get", taskId=name)
        assert (said["ttl"], said["pollInterval"]) == (600_000, 50)
        begun, updated = (datetime.fromisoformat(said[key]) for key in ("createdAt", "lastUpdatedAt"))
        assert begun.tzinfo is not None
        gate.go.set()
        ended = await wire.until(name, "completed")
    assert datetime.fromisoformat(ended["lastUpdatedAt"]) >= updated >= begun
    assert ended["createdAt"] == said["createdAt"]


@pytest.mark.parametrize(("asked", "given"), [(None, 600_000), (5000, 5000), (10**12, 600_000), (1, 1000), (-5, 1000)])
async def test_a_client_asks_for_less_time(package: ModuleType, asked: int | None, given: int) -> None:
    async with client(package) as wire:
        task = {} if asked is None else {"ttl": asked}
        assert (await wire("tools/call", **call_params("work", task=task)))["task"]["ttl"] == given


async def test_a_result_is_waited_for(package: ModuleType) -> None:
    gate = Gate()
    async with client(package, Handlers(work=gate.later)) as wire:
        name = await made(wire, "work")
        waiting = wire.start("tasks/result", taskId=name)
        await asyncio.sleep(0.1)
        assert not waiting.done()
        assert (await wire("tasks/get", taskId=name))["status"] == "working"
        gate.go.set()
        said = await waiting
        assert first(said) == "let go"
        assert said["_meta"][RELATED] == {"taskId": name}
        assert await wire("tasks/result", taskId=name) == said  # it is kept


@pytest.mark.parametrize("style", ["as it is", "in a task"])
async def test_a_result_is_what_the_call_would_have_given(package: ModuleType, style: str) -> None:
    async with client(package) as wire:
        plain = await wire("tools/call", **call_params("typed", 4))
        said = await wire("tasks/result", taskId=await made(wire, "typed", 4))
        assert {key: value for key, value in said.items() if key != "_meta"} == plain
        assert plain["structuredContent"] == {"y": 4}


async def test_an_error_of_a_tool_is_a_failed_task_with_its_result(package: ModuleType) -> None:
    async def fails(_args: Any, _ctx: Any) -> str:
        raise package.ToolError("no more paper")

    async with client(package, Handlers(work=fails)) as wire:
        name = await made(wire, "work")
        said = await wire.until(name, "failed")
        assert said["statusMessage"] == "no more paper"
        result = await wire("tasks/result", taskId=name)
        assert (first(result), result["isError"]) == ("no more paper", True)


async def test_an_error_of_the_protocol_is_given_as_it_is(package: ModuleType) -> None:
    async def breaks(_args: Any, _ctx: Any) -> str:
        raise mcp.MCPError(-31999, "the line is cut", {"where": [1, 2]})

    async with client(package, Handlers(work=breaks)) as wire:
        name = await made(wire, "work")
        assert (await wire.until(name, "failed"))["statusMessage"] == "the line is cut"
        error = {"code": -31999, "message": "the line is cut", "data": {"where": [1, 2]}}
        assert await wire("tasks/result", taskId=name) == {"error": error}


async def test_any_other_exception_stays_in_the_log(package: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    async def breaks(_args: Any, _ctx: Any) -> str:
        raise KeyError("the safe's code")

    async with client(package, Handlers(work=breaks)) as wire:
        name = await made(wire, "work")
        said = await wire("tasks/result", taskId=name)
        assert "safe" not in json.dumps(said)
        assert first(said).startswith("Internal error in work (reference ")
        assert (await wire("tasks/get", taskId=name))["status"] == "failed"
    assert "the safe's code" in caplog.text


async def test_bad_arguments_make_no_task(package: ModuleType) -> None:
    async with client(package) as wire:
        said = await wire("tools/call", name="work", arguments={"x": "one"}, task={})
        assert said["isError"]
        assert first(said).startswith("Invalid arguments for work")
        assert (await wire("tasks/list"))["tasks"] == []


async def test_questions_come_with_the_result_and_name_their_task(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        who, pet = await asyncio.gather(ctx.ask.who(), ctx.ask.pet())
        again = await ctx.ask.who("Who else?")
        return f"{who.name} {pet.name} {again.name}"

    handlers = Handlers(ask=asks)
    async with client(package, handlers, accepted) as wire:
        name = await made(wire, "ask")
        assert (await wire.until(name, "input_required"))["pollInterval"] == 1000
        await asyncio.sleep(0.05)
        assert wire.asked == []
        assert first(await wire("tasks/result", taskId=name)) == "Ada Ada Ada"
        assert [one["params"]["message"] for one in wire.asked] == ["Who?", "Pet?", "Who else?"]
        assert all(own_meta(one["params"]) == {RELATED: {"taskId": name}} for one in wire.asked)
        statuses = [one["status"] for one in await wire.noted("notifications/tasks/status", 5)]
        assert statuses == ["input_required", "working", "input_required", "working", "completed"]
    assert handlers.runs == ["ask"] * 3


async def test_an_answer_that_does_not_fit_is_asked_for_again(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    answers = iter(["A", "Ada"])
    async with client(
        package, Handlers(ask=asks), lambda _: {"action": "accept", "content": {"name": next(answers)}}
    ) as wire:
        assert first(await wire("tasks/result", taskId=await made(wire, "ask"))) == "Ada"
        assert "is invalid" in wire.asked[1]["params"]["message"]


async def test_a_question_about_a_url_has_an_id(package: ModuleType) -> None:
    ids = []

    async def asks(_args: Any, ctx: Any) -> str:
        answer = await ctx.ask.sign_in("https://example.com/in")
        ids.append(answer.elicitation)
        await ctx.complete(answer.elicitation)
        return "signed in"

    server = package.build_server(Handlers(ask=asks))
    async with in_memory(server, HANDSHAKE, {"elicitation": {"url": {}}}, lambda _: {"action": "accept"}) as wire:
        name = await made(wire, "ask")
        assert first(await wire("tasks/result", taskId=name)) == "signed in"
        [asked] = wire.asked
        assert asked["params"]["elicitationId"] == ids[0]
        [told] = await wire.noted("notifications/elicitation/complete")
        assert told["elicitationId"] == ids[0]
        assert own_meta(told) == {RELATED: {"taskId": name}}


@pytest.mark.parametrize(
    ("capabilities", "method"),
    [({"elicitation": {"url": {}}}, "elicitation/create"), ({"sampling": {}}, "sampling/createMessage")],
)
async def test_clients_are_asked_only_what_they_support(
    package: ModuleType, capabilities: dict[str, Any], method: str
) -> None:
    """A server MUST NOT send a client questions that it does not support (client/elicitation, "Capabilities")."""

    async def asks(_args: Any, ctx: Any) -> str:
        who, *_ = await asyncio.gather(ctx.ask.who(), ctx.ask.sign_in("https://example.com/in"), ctx.sample("Hi"))
        return str(who.name)

    def answer(message: dict[str, Any]) -> dict[str, Any]:
        if message["method"] == "sampling/createMessage":
            return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi"}}
        return {"action": "accept"} if message["params"]["mode"] == "url" else accepted(message)

    server = package.build_server(Handlers(ask=asks))
    every: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
    async with (
        in_memory(server, HANDSHAKE, every, answer) as wire,
        in_memory(server, HANDSHAKE, capabilities, answer) as other,
    ):
        name = await made(wire, "ask")
        waiting = asyncio.ensure_future(other("tasks/result", taskId=name))
        await other.questioned()
        assert first(await wire("tasks/result", taskId=name)) == first(await waiting) == "Ada"
    [asked] = other.asked
    assert (asked["method"], asked["params"].get("mode", "url")) == (method, "url")


async def test_a_question_that_nobody_answers_ends_with_its_task(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    async with client(package, Handlers(ask=asks)) as wire:
        name = await made(wire, "ask")
        waiting = wire.start("tasks/result", taskId=name)
        await wire.questioned()
        await wire("tasks/cancel", taskId=name)
        assert (await waiting)["error"]["message"] == "The task was cancelled"


async def test_what_is_asked_before_a_task_is_asked_in_the_call(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return f"{(await ctx.ask.who()).name} {(await ctx.ask.pet('Your pet?')).name}"

    async with client(package, Handlers(before=asks), accepted) as wire:
        name = await made(wire, "before")
        assert sorted(one["params"]["message"] for one in wire.asked) == ["Pet?", "Who?"]
        assert all(own_meta(one["params"]) == {} for one in wire.asked)
        assert first(await wire("tasks/result", taskId=name)) == "Ada Ada"
        assert len(wire.asked) == 2


async def test_a_confirmation_is_asked_in_the_call(package: ModuleType) -> None:
    says = [{"action": "decline"}, {"action": "accept", "content": {"confirm": True}}]
    handlers = Handlers()
    async with client(package, handlers, lambda _: says.pop(0)) as wire:
        refused = await wire("tools/call", **call_params("pay", **TASK))
        assert first(refused) == "The user declined: pay did not run."
        assert handlers.runs == []
        assert first(await wire("tasks/result", taskId=await made(wire, "pay", 5))) == "5"
    assert handlers.runs == ["pay"]


async def test_metadata_of_another_task_is_ignored(package: ModuleType) -> None:
    async with client(package) as wire:
        one, other = await made(wire, "work", 1), await made(wire, "work", 2)
        said = await wire("tasks/result", taskId=one, _meta={RELATED: {"taskId": other}})
        assert (first(said), said["_meta"][RELATED]) == ("1", {"taskId": one})
        for method in ("tasks/get", "tasks/list"):
            assert "_meta" not in await wire(method, taskId=one)


@pytest.mark.parametrize(("count", "pages"), [(60, [50, 50, 20]), (25, [50])])
async def test_each_task_is_listed_once_page_by_page(package: ModuleType, count: int, pages: list[int]) -> None:
    async with client(package) as wire:
        made_ = [await made(wire, "must", number) for number in range(count)]
        made_ += [await made(wire, "again", number) for number in range(count)]
        found: list[str] = []
        cursor: dict[str, Any] = {}
        sizes = []
        while True:
            said = await wire("tasks/list", **cursor)
            sizes.append(len(said["tasks"]))
            found += [one["taskId"] for one in said["tasks"]]
            if "nextCursor" not in said:
                break
            assert not any(one in said["nextCursor"] for one in made_)
            cursor = {"cursor": said["nextCursor"]}
    assert sorted(found) == sorted(made_)
    assert sizes == pages


@pytest.mark.parametrize("cursor", ["x", "", "bnVsbA==", "WzEsMl0=", "é", "[]"])
async def test_a_cursor_that_no_list_gave_is_refused(package: ModuleType, cursor: str) -> None:
    async with client(package) as wire:
        said = await wire("tasks/list", cursor=cursor)
        assert said == {"error": {"code": -32602, "message": "Invalid cursor"}}


@pytest.mark.parametrize("style", ["later", "at_once"])
async def test_a_cancelled_task_stays_cancelled(package: ModuleType, style: str) -> None:
    gate = Gate()
    async with client(package, Handlers(work=getattr(gate, style))) as wire:
        name = await made(wire, "work")
        assert await asyncio.to_thread(gate.begun.wait, 60)
        said = await wire("tasks/cancel", taskId=name)
        assert said["status"] == "cancelled"
        assert await asyncio.to_thread(gate.cancelled.wait, 60)
        gate.go.set()
        await asyncio.sleep(0.05)
        assert (await wire("tasks/get", taskId=name))["status"] == "cancelled"
        refused = await wire("tasks/result", taskId=name)
        assert refused["error"] == {"code": -32600, "message": "The task was cancelled"}
        [told] = await wire.noted("notifications/tasks/status")
        assert told["status"] == "cancelled"
        assert "_meta" not in told


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
async def test_what_is_over_cannot_be_cancelled(package: ModuleType, status: str) -> None:
    gate = Gate()

    async def works(args: Any, ctx: Any) -> str:
        if status == "failed":
            raise package.ToolError("no")
        return await gate.later(args, ctx)

    async with client(package, Handlers(work=works)) as wire:
        name = await made(wire, "work")
        if status == "cancelled":
            await wire("tasks/cancel", taskId=name)
        gate.go.set()
        before = await wire.until(name, status)
        error = {"code": -32602, "message": f"Cannot cancel task: already in terminal status {status!r}"}
        assert await wire("tasks/cancel", taskId=name) == {"error": error}
        assert await wire("tasks/get", taskId=name) == before


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
async def test_unknown_and_expired_tasks_are_answered_alike(package: ModuleType, method: str) -> None:
    server = package.build_server(Handlers())
    clock = Clock(server)
    async with in_memory(server, HANDSHAKE, FORMS) as wire:
        name = await made(wire, "few")
        await wire.until(name, "completed")
        unknown = await wire(method, taskId="nobody-made-this")
        assert unknown == {"error": {"code": -32602, "message": "Task not found"}}
        assert (await wire(method))["error"]["code"] == -32602
        clock.now += 1.1
        assert await wire(method, taskId=name) == unknown
        assert (await wire("tasks/list"))["tasks"] == []


async def test_progress_is_told_as_long_as_the_task_lasts(package: ModuleType) -> None:
    gate = Gate()

    async def works(args: Any, ctx: Any) -> str:
        await ctx.progress(3, 10, "packing")
        await ctx.log("warning", {"left": 7})
        await ctx.log("debug", "nobody wants this")
        return await gate.later(args, ctx)

    async with client(package, Handlers(work=works)) as wire:
        name = await made(wire, "work", _meta={"progressToken": "p-1"})
        meta = {"_meta": {RELATED: {"taskId": name}}}
        [progress] = await wire.noted("notifications/progress")
        assert progress == {"progressToken": "p-1", "progress": 3, "total": 10, "message": "packing", **meta}
        [message] = await wire.noted("notifications/message")
        assert message == {"level": "warning", "data": {"left": 7}, **meta}
        assert (await wire("tasks/get", taskId=name))["statusMessage"] == "3 of 10: packing"
        gate.go.set()
        assert "statusMessage" not in await wire.until(name, "completed")


async def test_a_caller_has_so_many_under_way(package: ModuleType) -> None:
    gate = Gate()
    async with client(package, Handlers(few=gate.later)) as wire:
        both = [await made(wire, "few") for _ in range(2)]
        said = await wire("tools/call", **call_params("few", **TASK))
        assert said["isError"]
        assert first(said) == "few runs 2 tasks per caller at a time; try again when one has finished."
        await made(wire, "work")  # another tool has places of its own
        await wire("tasks/cancel", taskId=both[0])
        await made(wire, "few")


async def test_a_task_waits_for_a_place_where_a_call_is_refused(package: ModuleType) -> None:
    inside = []
    is_refused = asyncio.Event()

    async def works(args: Any, _ctx: Any) -> str:
        inside.append(args.x)
        await is_refused.wait()
        await asyncio.sleep(0.01)
        return f"alone {inside.pop() == args.x and not inside}"

    async with client(package, Handlers(slow=works)) as wire:
        names = [await made(wire, "slow", number) for number in range(4)]
        refused = await wire("tools/call", **call_params("slow"))
        assert "runs one call at a time" in first(refused)
        is_refused.set()
        assert [first(await wire("tasks/result", taskId=name)) for name in names] == ["alone True"] * 4


async def test_a_timeout_is_that_of_a_run(package: ModuleType) -> None:
    gate = Gate()
    async with client(package, Handlers(slow=gate.later)) as wire:
        said = await wire("tasks/result", taskId=await made(wire, "slow"))
        assert "took longer than 300ms" in first(said)
        assert gate.cancelled.is_set()


async def test_the_result_of_a_run_has_its_budget(package: ModuleType) -> None:
    async def lines(_args: Any, _ctx: Any) -> str:
        return "line\n" * 500

    async with client(package, Handlers(few=lines)) as wire:
        text = first(await wire("tasks/result", taskId=await made(wire, "few")))
        assert "of 500 lines are omitted" in text.rpartition("\n")[2]


async def test_sizes_and_rates_are_kept(package: ModuleType) -> None:
    async def much(_args: Any, _ctx: Any) -> str:
        return "x" * 500

    async with client(package, Handlers(big=much)) as wire:
        assert "is too large" in first(await wire("tasks/result", taskId=await made(wire, "big")))
        refused = await wire("tools/call", name="big", arguments={"x": 1, "more": "y" * 200}, task={})
        assert "arguments of a task of big are too large: 220 bytes; the limit is 100" in first(refused)
        names = [await made(wire, "rare") for _ in range(2)]
        assert [first(await wire("tasks/result", taskId=name)) for name in names] == ["1", "1"]
        assert "may be called 2 times in an hour" in first(await wire("tools/call", **call_params("rare", **TASK)))


async def test_a_result_that_breaks_its_schema_goes_nowhere(package: ModuleType) -> None:
    async def wrong(_args: Any, _ctx: Any) -> Any:
        return {"y": "four"}

    async with client(package, Handlers(typed=wrong)) as wire:
        said = await wire("tasks/result", taskId=await made(wire, "typed"))
        assert "does not match its output schema" in first(said)
        assert "structuredContent" not in said


async def test_once_is_once_in_all_runs(package: ModuleType) -> None:
    made_: list[int] = []

    def pays() -> int:
        made_.append(1)
        return len(made_)

    async def asks(_args: Any, ctx: Any) -> str:
        number = await ctx.once("pay", pays)
        return f"{(await ctx.ask.who()).name} {number} {ctx.task_id is not None}"

    async with client(package, Handlers(ask=asks), accepted) as wire:
        assert first(await wire("tasks/result", taskId=await made(wire, "ask"))) == "Ada 1 True"
    assert made_ == [1]


class Verifier:
    """Each token is its bearer's name."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, client_id="c", scopes=[], subject=token, claims={"iss": "https://issuer"})


async def test_a_task_is_its_principals_alone(package: ModuleType) -> None:
    gate = Gate()
    app = package.asgi_app(Handlers(work=gate.later), token_verifier=Verifier())
    with asgi(app) as url:
        ada, eve = ({"authorization": f"Bearer {name}"} for name in ("ada", "eve"))
        async with over_http(f"{url}/mcp", HANDSHAKE, {}, headers=ada) as wire:
            name = await made(wire, "work")
            assert (await wire("tasks/get", taskId=name))["status"] == "working"
        async with over_http(f"{url}/mcp", HANDSHAKE, {}, headers=eve) as wire:
            for method in ("tasks/get", "tasks/result", "tasks/cancel"):
                assert (await wire(method, taskId=name))["error"] == {"code": -32602, "message": "Task not found"}
            assert (await wire("tasks/list"))["tasks"] == []
        async with over_http(f"{url}/mcp", HANDSHAKE, {}, headers=ada) as wire:  # another session of hers
            assert [one["taskId"] for one in (await wire("tasks/list"))["tasks"]] == [name]
            gate.go.set()
            assert first(await wire("tasks/result", taskId=name)) == "let go"


async def test_without_tokens_each_session_has_its_own(package: ModuleType) -> None:
    with asgi(package.asgi_app(Handlers())) as url:
        async with (
            over_http(f"{url}/mcp", HANDSHAKE, {}) as one,
            over_http(f"{url}/mcp", HANDSHAKE, {}) as other,
        ):
            name = await made(one, "work", 9)
            assert first(await one("tasks/result", taskId=name)) == "9"
            assert (await other("tasks/get", taskId=name))["error"]["code"] == -32602
            assert (await other("tasks/list"))["tasks"] == []
            assert len((await one("tasks/list"))["tasks"]) == 1


async def test_without_sessions_nobody_is_listed(package: ModuleType) -> None:
    with asgi(package.asgi_app(Handlers(), stateless=True)) as url:
        async with over_http(f"{url}/mcp", HANDSHAKE, {}) as wire:
            name = await made(wire, "work", 9)
            assert first(await wire("tasks/result", taskId=name)) == "9"
            assert await wire("tasks/list") == {"tasks": []}


async def test_before_the_handshake_there_are_no_tasks(package: ModuleType) -> None:
    async with opened(package.build_server(Handlers())) as (send, receive):
        await send({"id": 1, "method": "tasks/list", "params": {}})
        assert (await receive())["error"]["code"] == -32602


async def test_who_lacks_the_scopes_of_a_tool_sees_none_of_its_tasks(tmp_path: Path) -> None:
    limited = tool("work", execution={"taskSupport": "optional"}, stubwright={"policy": {"scopes": ["films"]}})
    auth = {"issuer": "https://issuer.example", "audience": "https://films.example"}

    class Scoped:
        """Each token is its scopes; all are of one person."""

        async def verify_token(self, token: str) -> AccessToken:
            return AccessToken(token=token, client_id="c", scopes=token.split(","), subject="ada")

    with imported(tmp_path, generate(tmp_path, manifest([limited], name="scoped", auth=auth))) as package:
        handlers = type("H", (), {"work": lambda self, args, ctx: "done"})()
        with asgi(package.asgi_app(handlers, token_verifier=Scoped())) as url:
            films, books = ({"authorization": f"Bearer {scope}"} for scope in ("films", "books"))
            async with over_http(f"{url}/mcp", HANDSHAKE, {}, headers=films) as wire:
                name = await made(wire, "work")
                assert first(await wire("tasks/result", taskId=name)) == "done"
            async with over_http(f"{url}/mcp", HANDSHAKE, {}, headers=books) as wire:
                assert (await wire("tasks/result", taskId=name))["error"]["code"] == -32602
                assert (await wire("tasks/list"))["tasks"] == []


async def test_questions_come_over_http_on_the_stream_of_the_result(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    with asgi(package.asgi_app(Handlers(ask=asks))) as url:
        async with over_http(f"{url}/mcp", HANDSHAKE, FORMS, accepted) as wire:
            name = await made(wire, "ask")
            assert first(await wire("tasks/result", taskId=name)) == "Ada"
            assert own_meta(wire.asked[0]["params"]) == {RELATED: {"taskId": name}}
