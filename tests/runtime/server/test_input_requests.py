"""Handlers that ask for input during a request: sequential code, in both eras."""

from __future__ import annotations

import asyncio
import importlib
import json
import time
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import mcp
import mcp_types as types
import pytest

import prompt_ends
from packages import generate, imported, manifest, tool
from server_fixture import HELLO, exchange, opened
from serving import pipe
from sink import Sink
from stubwright_runtime.server.features.input_requests import MissingCapability
from stubwright_runtime.server.features.truncation import truncate
from stubwright_runtime.server.transports.stdio.connection import Connection
from stubwright_runtime.server.transports.stdio.reader import Line
from stubwright_runtime.state.nonces import Nonces, make_nonce

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path
    from types import ModuleType

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "2026-07-28")
NAME = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 2}, "age": {"type": "integer", "default": 30}},
    "required": ["name"],
}
CHOICES = {
    "type": "object",
    "properties": {
        "one": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        "some": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}, {"const": "y", "title": "Y"}]}},
        "old": {"type": "string", "enum": ["k"], "enumNames": ["Kay"]},
    },
}
CLOSE = "Close {id} with {note}, {tags} for {who} {{sic}}?"
ASK = {
    "who": {"message": "Who are you?", "schema": NAME},
    "choose": {"message": "Choose", "schema": CHOICES},
    "sign_in": {"mode": "url", "message": "Please sign in"},
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("asking")
    value = manifest(
        [
            tool("ask", {"x": {"type": "integer"}}, stubwright={"ask": ASK}),
            tool("other", {"data": {}}, stubwright={"ask": ASK}),
            tool(
                "pay",
                {"card": {"type": "string"}, "sum": {"type": "integer"}},
                stubwright={"policy": {"confirm": True, "redact": ["/card"]}},
            ),
            tool("trust", stubwright={"policy": {"confirm": {"fallback": "allow"}}}),
            tool(
                "close",
                {"id": {"type": "integer"}, "note": {"type": "string"}, "tags": {"default": []}, "who": {}},
                title="Close a ticket",
                stubwright={"policy": {"confirm": {"message": CLOSE}, "redact": ["/who/password"]}},
            ),
        ],
        name="asking",
        python={"features": ["sampling"]},
        prompts=[{"name": "hello", "arguments": [{"name": "tone"}], "stubwright": {"ask": {"who": ASK["who"]}}}],
        resourceTemplates=[
            {"uriTemplate": "page://{name}", "name": "page", "stubwright": {"ask": {"who": ASK["who"]}}}
        ],
    )
    name = generate(folder, value)
    with imported(folder, name) as made:
        yield made


class Person:
    """A client's user, who gives these answers one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[types.ElicitRequestParams] = []

    async def __call__(self, _ctx: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params)
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            return types.ElicitResult.model_validate({"action": answer})
        return types.ElicitResult(action="accept", content=answer)


def server(package: ModuleType, ask: Callable[[Any, Any], Any], **methods: Any) -> Any:
    other = SimpleNamespace(
        ask=ask,
        other=ask,
        pay=lambda args, ctx: f"paid {args.sum}",
        trust=lambda args, ctx: "done",
        close=lambda args, ctx: "closed",
        prompt_hello=lambda args, ctx: "hello",
        read_page=lambda params, ctx: "page",
    )
    return package.build_server(SimpleNamespace(**{**vars(other), **methods}))


@asynccontextmanager
async def client(made: Any, era: str, person: Any = None, **callbacks: Any) -> AsyncIterator[mcp.Client]:
    async with mcp.Client(made, mode=era, elicitation_callback=person, **callbacks) as connected:
        yield connected


def text(result: Any) -> str:
    assert len(result.content) == 1
    assert isinstance(result.content[0], types.TextContent)
    return ("error: " if result.is_error else "") + result.content[0].text


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("style", ["async", "sync"])
async def test_a_straight_line(package: ModuleType, era: str, style: str) -> None:
    runs = []

    async def later(args: Any, ctx: Any) -> str:
        runs.append(args.x)
        who = await ctx.ask.who()
        choice = await ctx.ask.choose("Choose, " + who.name)
        assert isinstance(who, package.AskWhoAnswer)
        return f"{who.name} {who.age} {choice.one} {choice.some}"

    def at_once(args: Any, ctx: Any) -> str:
        who = ctx.wait(ctx.ask.who())
        choice = ctx.wait(ctx.ask.choose("Choose, " + who.name))
        return f"{who.name} {who.age} {choice.one} {choice.some}"

    person = Person({"name": "Ada"}, {"one": "a", "some": ["x", "y"]})
    async with client(server(package, later if style == "async" else at_once), era, person) as made:
        assert text(await made.call_tool("ask", {"x": 5})) == "Ada 30 a ['x', 'y']"
    assert [one.message for one in person.asked] == ["Who are you?", "Choose, Ada"]
    assert [getattr(one, "requested_schema", None) for one in person.asked] == [NAME, CHOICES]
    assert runs == ([] if style == "sync" else [5] if era == "legacy" else [5, 5, 5])


@pytest.mark.parametrize("era", ERAS)
async def test_no_and_nothing_are_answers(package: ModuleType, era: str) -> None:
    async def ask(args: Any, ctx: Any) -> str:
        first, second = await ctx.ask.who(), await ctx.ask.sign_in("https://example.com/in")
        assert not first
        return f"{type(first).__name__} {type(second).__name__}"

    said = []
    for answers in (["decline", "cancel"], ["cancel", "decline"], ["decline", "accept"]):
        person = Person(*answers)
        async with client(server(package, ask), era, person) as made:
            said.append(text(await made.call_tool("ask")))
        assert getattr(person.asked[1], "url", "") == "https://example.com/in"
        has_id = getattr(person.asked[1], "elicitation_id", None) is not None
        assert has_id == (era == "legacy")
    assert said == ["Declined Cancelled", "Cancelled Declined", "Declined Accepted"]


@pytest.mark.parametrize("era", ERAS)
async def test_what_does_not_fit_is_asked_again(package: ModuleType, era: str) -> None:
    async def ask(args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    person = Person({"name": "A"}, {"age": 3}, {"name": "Ada"})
    async with client(server(package, ask), era, person) as made:
        assert text(await made.call_tool("ask")) == "Ada"
    assert [asked.message.replace("Who are you?\n\nThe last answer is invalid: ", "…") for asked in person.asked] == [
        "Who are you?",
        '…name: expected at least 2 characters, got the string "A"',
        "…name: required, but missing",
    ]
    if era == "legacy":
        async with client(server(package, ask), era, Person(*[{"name": "A"}] * 3)) as made:
            told = text(await made.call_tool("ask"))
        assert told.startswith("error: the client's answer to elicitation/create is invalid: name: ")


@pytest.mark.parametrize("gather", ["gather", "tasks", "errors kept"])
async def test_questions_asked_together_are_one_round(package: ModuleType, gather: str) -> None:
    runs = []

    async def ask(args: Any, ctx: Any) -> str:
        runs.append(1)
        questions = [ctx.ask.who(), ctx.ask.who("And you?"), ctx.sample("Hi", max_tokens=5), ctx.roots()]
        if gather == "tasks":
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(question) for question in questions]
            one, two, said, roots = (task.result() for task in tasks)
        else:
            one, two, said, roots = await asyncio.gather(*questions, return_exceptions=gather != "gather")
        return f"{one.name} {two.name} {said.content.text} {roots[0].name}"

    async def sample(_ctx: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        assert params.max_tokens == 5
        return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text="Yo"), model="m")

    async def roots(_ctx: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///home", "name": "home"})])

    person = Person({"name": "Ada"}, {"name": "Bob"})
    async with client(
        server(package, ask), "2026-07-28", person, sampling_callback=sample, list_roots_callback=roots
    ) as made:
        assert text(await made.call_tool("ask")) == "Ada Bob Yo home"
    assert len(runs) == 2


@pytest.mark.parametrize("era", ERAS)
async def test_what_happens_once(package: ModuleType, era: str) -> None:
    charged = []

    async def charge() -> dict[str, int]:
        charged.append(1)
        return {"receipt": len(charged)}

    def again_charge() -> int:
        charged.append(1)
        return 7

    async def ask(args: Any, ctx: Any) -> str:
        receipt = await ctx.once("charge", charge)
        again = await ctx.once("sync", again_charge)
        who = await ctx.ask.who()
        return f"{who.name} {receipt['receipt']} {again} {await ctx.once('charge', charge)}"

    async with client(server(package, ask), era, Person({"name": "Ada"})) as made:
        assert text(await made.call_tool("ask")) == "Ada 1 7 {'receipt': 1}"
    assert len(charged) == 2


class Bank:
    def charge(self, key: str, amount: int = 1) -> str:
        return f"{key} {amount}"


@pytest.mark.parametrize("era", ERAS)
async def test_changes_to_values_do_not_outlive_the_round(package: ModuleType, era: str) -> None:
    async def ask(args: Any, ctx: Any) -> str:
        steps = await ctx.once("steps", lambda: ("first",))
        steps.append("second")
        args.data["sizes"].append(len(steps))
        await ctx.ask.who()
        return f"{steps} {args.data}"

    async with client(server(package, ask), era, Person({"name": "Ada"})) as made:
        assert text(await made.call_tool("other", {"data": {"sizes": []}})) == "['first', 'second'] {'sizes': [2]}"


async def _charge(key: str, /) -> str:
    return key


@pytest.mark.parametrize(
    ("function", "more"),
    [
        (_charge, ""),
        (lambda key: key, ""),
        (Bank().charge, " 1"),
        (partial(Bank.charge, Bank(), amount=2), " 2"),
    ],
)
async def test_a_step_that_requires_a_parameter_gets_its_idempotency_key(
    package: ModuleType, function: Any, more: str
) -> None:
    async def ask(_args: Any, ctx: Any) -> str:
        assert await ctx.once("default", lambda amount=7: amount) == 7
        assert await ctx.once("built in", dict) == {}  # has no signature
        return f"{await ctx.once('charge', function)} is {ctx.idempotency_key('charge')}{more}"

    async with client(server(package, ask), "2026-07-28") as made:
        got, expected = text(await made.call_tool("ask")).split(" is ")
    assert got == expected


@pytest.mark.parametrize("era", ERAS)
async def test_an_idempotency_key_belongs_to_one_call_in_all_its_rounds(package: ModuleType, era: str) -> None:
    keys: list[tuple[str, str]] = []

    async def ask(args: Any, ctx: Any) -> str:
        keys.append((ctx.idempotency_key("charge"), ctx.idempotency_key("ship")))
        await ctx.ask.who()
        keys.append((ctx.idempotency_key("charge"), ctx.idempotency_key("ship")))
        return "done"

    person = Person({"name": "Ada"}, {"name": "Ada"})
    async with client(server(package, ask), era, person) as made:
        for number in (1, 2):
            await made.call_tool("ask")
            assert len(set(keys)) == number
    assert len({key for pair in keys for key in pair}) == 4


@pytest.mark.parametrize("era", ERAS)
async def test_prompts_and_templates_ask_too(package: ModuleType, era: str) -> None:
    async def hello(args: Any, ctx: Any) -> str:
        return f"Hello {(await ctx.ask.who()).name}"

    async def page(params: Any, ctx: Any) -> str:
        return f"{params.name} for {(await ctx.ask.who()).name}"

    made = server(package, lambda args, ctx: "", prompt_hello=hello, read_page=page)
    async with client(made, era, Person({"name": "Ada"}, {"name": "Bob"})) as connected:
        [message] = (await connected.get_prompt("hello")).messages
        assert getattr(message.content, "text", "") == "Hello Ada"
        [contents] = (await connected.read_resource("page://a")).contents
        assert getattr(contents, "text", "") == "a for Bob"


async def test_once_is_once_also_beside_a_question(package: ModuleType) -> None:
    charged = []

    async def charge() -> int:
        await asyncio.sleep(0.05)
        charged.append(1)
        return len(charged)

    async def ask(args: Any, ctx: Any) -> str:
        who, first, second = await asyncio.gather(ctx.ask.who(), ctx.once("pay", charge), ctx.once("pay", charge))
        return f"{who.name} {first} {second}"

    for era in ERAS:
        charged.clear()
        async with client(server(package, ask), era, Person({"name": "Ada"})) as made:
            assert text(await made.call_tool("ask")) == "Ada 1 1"
        assert charged == [1]


async def test_once_after_once_is_once_although_a_question_has_ended_the_round(package: ModuleType) -> None:
    paid = []

    async def charge(name: str) -> str:
        for _ in range(50):
            await asyncio.sleep(0)
        paid.append(name)
        return name

    async def pay(ctx: Any) -> str:
        names = []
        for name in ("deposit", "rest", "tip"):
            names.append(await ctx.once(name, partial(charge, name)))
            await asyncio.sleep(0.01)  # until after the round's response
        return " ".join(names)

    async def ask(args: Any, ctx: Any) -> str:
        who, receipt = await asyncio.gather(ctx.ask.who(), pay(ctx))
        return f"{who.name} {receipt}"

    for era in ERAS:
        paid.clear()
        async with client(server(package, ask), era, Person({"name": "Ada"})) as made:
            assert text(await made.call_tool("ask")) == "Ada deposit rest tip"
        assert paid == ["deposit", "rest", "tip"]


async def test_what_goes_wrong_once_may_be_tried_again(package: ModuleType) -> None:
    tries = []

    async def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError
        return "done"

    async def ask(args: Any, ctx: Any) -> str:
        try:
            return str(await ctx.once("k", flaky))
        except ValueError:
            return f"again: {await ctx.once('k', flaky)}"

    async with client(server(package, ask), "2026-07-28") as made:
        assert text(await made.call_tool("ask")) == "again: done"


@pytest.mark.parametrize("era", ERAS)
async def test_a_missing_capability_is_told_out_of_a_group_of_tasks(package: ModuleType, era: str) -> None:
    async def ask(args: Any, ctx: Any) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.sample("Hi"))
        return ""

    async with client(server(package, ask), era) as made:
        if era == "legacy":
            assert (
                text(await made.call_tool("ask"))
                == "error: This request requires a client with the capability 'sampling'."
            )
        else:
            with pytest.raises(mcp.MCPError, match="capability 'sampling'"):
                await made.call_tool("ask")


ACCEPT = {"action": "accept", "content": {"name": "Ada"}}
MISFITS: dict[str, tuple[Any, str]] = {
    "who": ({"action": "maybe"}, "action: "),
    "sign_in": ({}, "action: it must be "),
    "sample": ({"role": "nobody"}, "role: "),
    "roots": ({"roots": 5}, "roots: "),
    "stubwright.confirm": ({"action": 1}, "action: "),
}
"""Answers that are none of MCP's: to a form, a URL, a model, the question for folders, and a confirmation."""

FITS: dict[str, Any] = {
    "who": ACCEPT,
    "sign_in": {"action": "accept"},
    "sample": {"role": "assistant", "content": {"type": "text", "text": "Yo"}, "model": "m"},
    "roots": {"roots": []},
    "stubwright.confirm": {"action": "accept", "content": {"confirm": True}},
}
ALL: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


async def asks_all(args: Any, ctx: Any) -> str:
    who, entered = await ctx.ask.who(), await ctx.ask.sign_in("https://example.com/in")
    return f"{who.name} {entered} {(await ctx.sample('Hi')).content.text} {await ctx.roots()}"


@pytest.mark.parametrize("name", ["ask", "pay"])
async def test_whatever_does_not_fit_is_asked_again_saying_why(package: ModuleType, name: str) -> None:
    keys = {"sampling/createMessage": "sample", "roots/list": "roots"}
    seen: list[str] = []
    async with opened(server(package, asks_all)) as (send, receive):
        await send(
            {
                "id": 1,
                "method": "initialize",
                "params": {**HELLO, "capabilities": ALL, "protocolVersion": "2025-11-25"},
            }
        )
        await receive()
        await send({"method": "notifications/initialized"})  # until then, a question waits
        await send({"id": 2, "method": "tools/call", "params": {"name": name, "arguments": {"sum": 3}}})
        while "method" in (message := await receive()):
            params = message.get("params") or {}
            told = params.get("message", "").partition("\n\nThe last answer is invalid: ")[2]
            told = told or params.get("_meta", {}).get("io.stubwright/refused", "")
            form = "stubwright.confirm" if name == "pay" else "who"
            key = keys.get(message["method"], "sign_in" if params.get("mode") == "url" else form)
            if told:
                seen.append(key)
                assert MISFITS[key][1] in told
                assert "pydantic" not in told
            await send({"id": message["id"], "result": FITS[key] if told else MISFITS[key][0]})
    assert "isError" not in message["result"], message
    assert seen == (["stubwright.confirm"] if name == "pay" else ["who", "sign_in", "sample", "roots"])


async def test_what_is_no_answer_is_refused_and_spends_nothing(package: ModuleType) -> None:
    made = server(package, asks_all)
    sent: dict[str, Any] = {"name": "ask", "_meta": {"io.modelcontextprotocol/clientCapabilities": ALL}}
    [result] = await exchange(made, "2026-07-28", ("tools/call", sent))
    for _ in range(4):
        [key] = result["inputRequests"]
        sent = {**sent, "requestState": result["requestState"], "inputResponses": {key: MISFITS[key][0]}}
        good = {**sent, "inputResponses": {key: FITS[key]}}
        refused, result = await exchange(made, "2026-07-28", ("tools/call", sent), ("tools/call", good))
        assert refused["error"]["code"] == types.INVALID_PARAMS
    assert result["content"] == [{"type": "text", "text": "Ada Accepted() Yo []"}]


async def test_a_client_that_fails_to_ask_is_told_so(package: ModuleType) -> None:
    async def broken(_ctx: Any, _params: Any) -> types.ErrorData:
        return types.ErrorData(code=-1, message="no screen")

    async with client(server(package, twice), "legacy", broken) as made:
        assert text(await made.call_tool("ask")) == "error: the client refused elicitation/create: no screen"
        assert text(await made.call_tool("pay", {"sum": 3})) == (
            "error: pay requires the user's confirmation. The client's answer was missing or invalid."
        )


async def test_leave_cannot_be_given_before_it_is_asked_for(package: ModuleType) -> None:
    answered = {"name": "pay", "inputResponses": {"stubwright.confirm": {"action": "accept"}}, **CAN}
    [asked] = await exchange(server(package, twice), "2026-07-28", ("tools/call", answered))
    assert list(asked["inputRequests"]) == ["stubwright.confirm"]


async def test_only_pages_of_the_web_are_opened(package: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    async def ask(args: Any, ctx: Any) -> str:
        return str(await ctx.ask.sign_in("javascript:alert(1)"))

    async with client(server(package, ask), "legacy", Person()) as made:
        assert text(await made.call_tool("ask")).startswith("error: Internal error in ask")
    assert "'javascript:alert(1)' is not an http or https URL" in caplog.text


# What clients cannot do


@pytest.mark.parametrize("era", ERAS)
async def test_a_missing_capability_is_told_as_the_revision_has_it(package: ModuleType, era: str) -> None:
    asked = {
        "elicitation": (lambda ctx: ctx.ask.who(), {"elicitation": {}}),
        "elicitation.url": (lambda ctx: ctx.ask.sign_in("https://a.b"), {"elicitation": {"url": {}}}),
        "sampling": (lambda ctx: ctx.sample("Hi"), {"sampling": {}}),
        "sampling.tools": (lambda ctx: ctx.sample("Hi", tools=[]), {"sampling": {"tools": {}}}),
        "roots": (lambda ctx: ctx.roots(), {"roots": {}}),
    }
    for name, (question, required) in asked.items():

        async def ask(args: Any, ctx: Any, name: str = name, question: Any = question) -> Any:
            assert not ctx.can(name)
            return await question(ctx)

        async with client(server(package, ask), era) as made:
            if era == "legacy":
                told = text(await made.call_tool("ask"))
                assert told == f"error: This request requires a client with the capability {name!r}."
            else:
                with pytest.raises(mcp.MCPError) as caught:
                    await made.call_tool("ask")
                assert caught.value.error.code == -32021
                assert caught.value.error.data == {"requiredCapabilities": required}


async def test_all_capabilities_are_told_that_questions_at_once_need(package: ModuleType) -> None:
    async def gathered(args: Any, ctx: Any) -> Any:
        return await asyncio.gather(ctx.ask.who(), ctx.ask.sign_in("https://a.b"), ctx.sample("Hi"), ctx.roots())

    async def grouped(args: Any, ctx: Any) -> None:
        async with asyncio.TaskGroup() as tasks:
            for question in (ctx.ask.who(), ctx.ask.sign_in("https://a.b"), ctx.sample("Hi"), ctx.roots()):
                tasks.create_task(question)

    async def one_by_one(args: Any, ctx: Any) -> Any:
        with suppress(MissingCapability):
            await ctx.sample("Hi")
        return await ctx.roots()

    for ask, required in (
        (gathered, {"elicitation": {"url": {}}, "sampling": {}, "roots": {}}),
        (grouped, {"elicitation": {"url": {}}, "sampling": {}, "roots": {}}),
        (one_by_one, {"roots": {}}),
    ):
        async with client(server(package, ask), "2026-07-28") as made:
            with pytest.raises(mcp.MCPError) as caught:
                await made.call_tool("ask")
            assert caught.value.error.data == {"requiredCapabilities": required}


@pytest.mark.parametrize(
    ("revision", "can"),
    [
        ("2024-11-05", []),
        ("2025-03-26", []),
        ("2025-06-18", ["elicitation", "elicitation.form"]),
        ("2025-11-25", ["elicitation", "elicitation.form", "elicitation.url"]),
        ("2026-07-28", ["elicitation", "elicitation.form", "elicitation.url"]),
    ],
)
async def test_no_client_is_asked_what_its_revision_does_not_have(
    revision: str, can: list[str], package: ModuleType
) -> None:
    """Whatever it declares: a form came with 2025-06-18, a URL with 2025-11-25."""
    seen = []

    async def ask(args: Any, ctx: Any) -> str:
        seen.extend([name for name in ("elicitation", "elicitation.form", "elicitation.url") if ctx.can(name)])
        for question, capability in (
            (ctx.ask.who(), "elicitation"),
            (ctx.ask.sign_in("https://a.b"), "elicitation.url"),
        ):
            if capability in can:
                question.close()
            else:
                with pytest.raises(MissingCapability, match=capability):
                    await question
        return "asked nothing"

    declared: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
    made = server(package, ask)
    call: dict[str, Any] = {"name": "ask"}
    if revision == "2026-07-28":
        call["_meta"] = {"io.modelcontextprotocol/clientCapabilities": declared}
        await exchange(made, revision, ("tools/call", call))
    else:
        hello = {"protocolVersion": revision, "capabilities": declared, "clientInfo": {"name": "x", "version": "1"}}
        core = made.core
        async with core.lifespan():
            sink: Any = Sink()
            connection = Connection(core, sink)
            for message in (
                {"id": 0, "method": "initialize", "params": hello},
                {"method": "notifications/initialized"},
                {"id": 1, "method": "tools/call", "params": call},
            ):
                await connection.handle(Line(json.dumps({"jsonrpc": "2.0", **message}).encode()))
            async with asyncio.timeout(60):
                await connection.wait_for_answers()
            await connection.close()
        assert "asked nothing" in str(sink.lines[-1])
    assert seen == can


async def test_a_handler_can_tell_what_a_client_can(package: ModuleType) -> None:
    seen = []

    async def ask(args: Any, ctx: Any) -> str:
        names = ("elicitation", "elicitation.form", "elicitation.url", "sampling", "sampling.tools", "roots", "x")
        seen.append([name for name in names if ctx.can(name)])
        return ""

    made = server(package, ask)
    declared: list[Any] = [{"elicitation": {}}, {"elicitation": {"url": {}}}, {"sampling": {"tools": {}}, "roots": {}}]
    for capabilities in declared:
        meta = {"io.modelcontextprotocol/clientCapabilities": capabilities}
        await exchange(made, "2026-07-28", ("tools/call", {"name": "ask", "_meta": meta}))
    assert seen == [
        ["elicitation", "elicitation.form"],
        ["elicitation.url"],
        ["sampling", "sampling.tools", "roots"],
    ]


# The state between rounds

CAN: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}


async def rounds(made: Any, *calls: dict[str, Any]) -> list[dict[str, Any]]:
    return await exchange(made, "2026-07-28", *[("tools/call", {"name": "ask", **CAN, **one}) for one in calls])


async def first_round(made: Any) -> dict[str, Any]:
    [asked] = await rounds(made, {})
    assert asked["resultType"] == "input_required"
    return asked


async def twice(args: Any, ctx: Any) -> str:
    one = await ctx.ask.who()
    two = await ctx.ask.who()
    return f"{one.name} {two.name}"


async def test_rounds_raw(package: ModuleType) -> None:
    made = server(package, twice)
    asked = await first_round(made)
    assert list(asked["inputRequests"]) == ["who"]
    assert asked["inputRequests"]["who"]["params"]["requestedSchema"] == NAME
    answers = {"who": ACCEPT, "who.2": {"action": "accept", "content": {"name": "Eve"}}}
    [again] = await rounds(made, {"inputResponses": answers, "requestState": asked["requestState"]})
    assert list(again["inputRequests"]) == ["who.2"]  # an answer before its question is ignored
    assert again["requestState"] != asked["requestState"]
    second = {"who.2": {"action": "accept", "content": {"name": "Bob"}}}
    [done] = await rounds(made, {"inputResponses": second, "requestState": again["requestState"]})
    assert done["content"] == [{"type": "text", "text": "Ada Bob"}]
    assert done["resultType"] == "complete"


async def test_state_that_is_not_ours_is_refused(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    made, elsewhere = server(package, twice), server(package, twice)
    state = (await first_round(made))["requestState"]
    foreign = (await first_round(elsewhere))["requestState"]
    answered = {"inputResponses": {"who": ACCEPT}}
    refused = await rounds(
        made,
        {**answered, "requestState": state + "x"},
        {**answered, "requestState": foreign},
        {**answered, "requestState": state, "arguments": {"x": 1}},
        {**answered, "requestState": state, "name": "other"},
    )
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3601)
    refused += await rounds(made, {**answered, "requestState": state})
    assert [answer["error"]["message"] for answer in refused] == ["Invalid or expired requestState"] * 5
    assert {answer["error"]["code"] for answer in refused} == {-32602}


PAY = {"name": "pay", "arguments": {"sum": 3}}
YES = {"stubwright.confirm": {"action": "accept", "content": {"confirm": True}}}


@pytest.mark.parametrize(
    ("call", "answers", "done"),
    [
        (PAY, YES, "paid 3"),
        ({"name": "other"}, {"who": ACCEPT}, "Ada"),
        ({"name": "other"}, {"who": {"action": "decline"}}, "nobody"),
    ],
)
async def test_an_answer_fits_one_call(
    package: ModuleType, caplog: pytest.LogCaptureFixture, call: dict[str, Any], answers: dict[str, Any], done: str
) -> None:
    async def other(args: Any, ctx: Any) -> str:
        return getattr(await ctx.ask.who(), "name", "nobody")

    made = server(package, twice, other=other)
    [asked] = await rounds(made, call)
    answered = {**call, "inputResponses": answers, "requestState": asked["requestState"]}
    first, *again = await rounds(made, answered, answered, {**call, "requestState": asked["requestState"]})
    again += await rounds(made, answered)  # over another connection
    assert first["content"] == [{"type": "text", "text": done}]
    [forged] = await rounds(made, {**answered, "requestState": asked["requestState"] + "x"})
    assert again == [forged] * 3
    assert forged["error"]["message"] == "Invalid or expired requestState"
    assert "rejected a requestState for tools/call: it was already used" in caplog.text


async def test_of_two_answers_at_once_one_counts(package: ModuleType) -> None:
    paid = []

    async def pay(args: Any, ctx: Any) -> str:
        await asyncio.sleep(0.05)
        paid.append(args.sum)
        return "paid"

    made = server(package, twice, pay=pay)
    [asked] = await rounds(made, PAY)
    answered = {**PAY, "inputResponses": YES, "requestState": asked["requestState"]}
    each = await asyncio.gather(*(rounds(made, answered) for _ in range(10)))
    assert sorted("error" in answer for [answer] in each) == [False] + [True] * 9
    assert paid == [3]


@pytest.mark.parametrize("given", [{}, {"who": {"action": "accept", "content": {}}}])
async def test_a_call_that_is_never_answered_does_not_run_for_ever(package: ModuleType, given: dict[str, Any]) -> None:
    """Rounds of one call count once against its rate, so that there are but a few of them."""
    ran = []

    async def other(args: Any, ctx: Any) -> str:
        ran.append(1)
        return getattr(await ctx.ask.who(), "name", "nobody")

    made = server(package, twice, other=other)
    call = {"name": "other"}
    [answer] = await rounds(made, call)
    for _ in range(20):
        if "requestState" not in answer:
            break
        [answer] = await rounds(made, {**call, "inputResponses": given, "requestState": answer["requestState"]})
    assert answer["isError"] is True
    assert "is invalid" in answer["content"][0]["text"]
    assert len(ran) == 4


async def test_an_answer_that_does_not_fit_is_spent_too(package: ModuleType) -> None:
    made = server(package, twice)
    asked = await first_round(made)
    wrong = {"inputResponses": {"who": {"action": "accept", "content": {}}}, "requestState": asked["requestState"]}
    again, refused = await rounds(made, wrong, {**wrong, "inputResponses": {"who": ACCEPT}})
    assert list(again["inputRequests"]) == ["who"]
    assert refused["error"]["message"] == "Invalid or expired requestState"
    [on] = await rounds(made, {"inputResponses": {"who": ACCEPT}, "requestState": again["requestState"]})
    assert list(on["inputRequests"]) == ["who.2"]


def test_what_is_remembered_of_states_is_bounded() -> None:
    now = 0.0
    states = Nonces(lambda: now, 10)
    nonces = [make_nonce() for _ in range(25)]
    assert nonces == sorted(nonces)
    for nonce in nonces[10:20]:
        assert states.use_nonce(nonce, 60)
    assert states.use_nonce(nonces[20], 60)  # and the older half is forgotten
    assert [states.use_nonce(nonce, 60) for nonce in nonces[:21]] == [False] * 21
    assert [states.use_nonce(nonce, 60) for nonce in nonces[21:]] == [True] * 4
    now = 61
    assert states.use_nonce(make_nonce(), 60)
    assert len(states) == 1


async def test_older_clients_cannot_answer_before_they_are_asked(package: ModuleType) -> None:
    answered = {"name": "ask", "inputResponses": {"who": ACCEPT}}
    [told] = await exchange(server(package, twice), "2025-11-25", ("tools/call", answered))
    assert told["content"][0]["text"] == "This request requires a client with the capability 'elicitation'."


async def test_answers_of_any_shape_do_no_harm(package: ModuleType) -> None:
    made = server(package, twice)
    content = {"action": "accept", "content": {"name": 1}}
    answers: list[Any] = [5, None, [], {"action": "maybe"}, {"action": "accept"}, content]
    for answer in answers:
        [asked] = await rounds(made, {"inputResponses": {"who": answer}})
        assert "error" in asked or list(asked["inputRequests"]) == ["who"]


# Leave to run a tool


@pytest.mark.parametrize("era", ERAS)
async def test_the_server_asks_before_it_runs_a_tool(package: ModuleType, era: str) -> None:
    made = server(package, twice)
    told = []
    answers: list[Any] = [{"confirm": True}, "decline", "cancel", {"confirm": False}]
    for answer in answers:
        person = Person(answer)
        async with client(made, era, person) as connected:
            told.append(text(await connected.call_tool("pay", {"card": "1234-5678", "sum": 3})))
        [question] = person.asked
        assert question.message == 'Run pay with {"card": "[redacted]", "sum": 3}?'
        assert isinstance(question, types.ElicitRequestFormParams)
        assert question.requested_schema == {
            "type": "object",
            "properties": {
                "confirm": {
                    "type": "boolean",
                    "title": "Run pay",
                    "description": "If unchecked, the tool does not run.",
                }
            },
            "required": ["confirm"],
        }
    assert told == [
        "paid 3",
        "error: The user declined: pay did not run.",
        "error: The user did not answer: pay did not run.",
        "error: The user declined: pay did not run.",
    ]
    person = Person()
    async with client(made, era, person) as connected:
        assert text(await connected.call_tool("pay", {"sum": "x"})).startswith("error: Invalid arguments for pay:")
        assert person.asked == []
    needs = "pay requires the user's confirmation, but this client does not support elicitation by form."
    async with client(made, era) as connected:
        if era == "legacy":
            assert text(await connected.call_tool("pay", {"sum": 3})) == f"error: {needs}"
        else:
            with pytest.raises(mcp.MCPError) as caught:
                await connected.call_tool("pay", {"sum": 3})
            data: dict[str, Any] = {"requiredCapabilities": {"elicitation": {}}}
            assert caught.value.error == types.ErrorData(code=-32021, message=needs, data=data)
        assert text(await connected.call_tool("trust")) == "done"


@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_without_the_box_is_asked_again(package: ModuleType, era: str) -> None:
    person = Person({}, {"confirm": "yes"}, {"confirm": True})
    async with client(server(package, twice), era, person) as connected:
        assert text(await connected.call_tool("pay", {"sum": 3})) == "paid 3"
    assert [question.message.count("is invalid: ") for question in person.asked] == [0, 1, 1]


NOTE = "\nNot shown: 13,210 of 14,210 characters at /note."
SHOWN: list[tuple[dict[str, Any], str]] = [
    ({"id": 7, "note": "all done"}, "Close 7 with all done, [] for (none) {sic}?"),
    ({"id": 7, "note": "a\n\n  b\x1b[31m\u202ec\x00\u200b\u3164\ufe0f"},
     r"Close 7 with a\n\n⟨2 spaces⟩b\u001b[31m\u202ec\u0000\u200b\u3164\ufe0f, [] for (none) {sic}?"),
    ({"note": "a\nAlso: {}"}, r"Close (none) with a\nAlso: {}, [] for (none) {sic}?"),
    ({"note": "x" * 14_000 + "DROP" + "y" * 206},
     f"Close (none) with {'x' * 667} ⟨13,210 characters⟩ {'x' * 123}DROP{'y' * 206}, [] for (none) {{sic}}?" + NOTE),
    ({"tags": ["a", 1], "who": {"id": 1, "password": "p"}},
     'Close (none) with (none), ["a", 1] for {"id": 1, "password": "[redacted]"} {sic}?'),
    ({"who": None, "tags": True}, "Close (none) with (none), true for null {sic}?"),
    ({"who": 10**100}, f"Close (none) with (none), [] for {10**100} {{sic}}?"),
    ({"note": "{id} {{", "id": 1}, "Close 1 with {id} {{, [] for (none) {sic}?"),
    ({"id": 1, "force": True, "a b": "x"},
     'Close 1 with (none), [] for (none) {sic}?\nAlso: {"force": true, "a b": "x"}'),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), SHOWN)
async def test_the_author_s_words_show_all_arguments(
    package: ModuleType, arguments: dict[str, Any], message: str
) -> None:
    person = Person({"confirm": True})
    async with client(server(package, twice), "legacy", person) as connected:
        assert text(await connected.call_tool("close", arguments)) == "closed"
    [question] = person.asked
    assert isinstance(question, types.ElicitRequestFormParams)
    assert question.message == message
    assert question.requested_schema["properties"]["confirm"]["title"] == "Run Close a ticket"


@pytest.mark.parametrize("era", ERAS)
async def test_the_message_of_nobody_says_what_it_does_not_show(package: ModuleType, era: str) -> None:
    person = Person({"confirm": True})
    more = {f"more{number}": number for number in range(20)}
    sent = {**more, "file": "A" * 400_000, "card": "c" * 9_000, "list": [[0] * 9], "sum": 1}
    async with client(server(package, twice), era, person) as connected:
        await connected.call_tool("pay", sent)
    shown = ", ".join(f'"{name}": {value}' for name, value in more.items())
    assert person.asked[0].message == (
        f'Run pay with {{"card": "[redacted]", "sum": 1, {shown}, "file": "{"A" * 667}" ⟨399,000 characters⟩ '
        f'"{"A" * 333}", "list": [[0, 0, 0, 0, 0, 0, 0, 0, 0]]}}?\nNot shown: 399,000 of 400,000 characters at /file.'
    )


ABRIDGED: list[tuple[Any, str, str]] = [
    ({}, "{}", ""),
    ({"a": ["", {}, [], None, True, 1.5]}, '{"a": ["", {}, [], null, true, 1.5]}', ""),
    ([*range(5000)], "⟨4,940 items⟩", "4,940 of 5,000 items of the arguments"),
    ({"a/b": {"c": [*range(5000)]}}, "⟨4,940 items⟩, 4985,", "4,940 of 5,000 items at /a~1b/c"),
    ({"a": [[[0] * 400] * 40] * 40}, "[⟨400 items⟩]", "all 400 items at /a/0/0; all 400 items at /a/0/1; "),
    ({"a": [[[0] * 400] * 40] * 40}, "[⟨400 items⟩]", ", and "),
    ({"k" * 2000: 1}, "⟨1,000 characters⟩", "1,000 of 2,000 characters of a key of the arguments"),
    ({"\u202e\n" * 50: "x" * 2000}, '⟨1,000 characters⟩', "1,000 of 2,000 characters at /" + r"\u202e\n" * 20 + "…."),
    ({"a": '" ⟨5 characters⟩ "'}, r'"\" ⟨5 characters⟩ \""', ""),
    ({"a": "C:\\new"}, r'"C:\\new"', ""),
]  # fmt: skip


@pytest.mark.parametrize(("value", "shown", "left_out"), ABRIDGED)
def test_what_is_left_out_is_said(value: Any, shown: str, left_out: str) -> None:
    text = truncate(lambda showing: showing.format_json(value))
    assert shown in text
    line = text.partition("\nNot shown: ")[2]
    assert left_out in line if left_out else line == ""
    assert len(text) < 3500


def test_both_ends_of_all_that_is_long_are_shown() -> None:
    hidden = {f"key{number}": f"start{'x' * 20_000}end{number}" for number in range(1000)}
    text = truncate(lambda showing: showing.format_json(hidden))
    assert '"key0": "start' in text
    assert 'end0"' in text
    assert 'end999"' in text
    assert "988 of 1,000 keys of the arguments" in text
    assert len(text) < 3500
    started = time.process_time()
    truncate(lambda showing: showing.format_json([[[[]] * 100] * 100] * 300))
    assert time.process_time() - started < 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_generated_client_says_yes(package: ModuleType, era: str) -> None:
    target = server(package, twice)
    answers: list[Any] = [package.Accepted(), {"confirm": True}]
    answers += [package.Declined(), {"confirm": False}, package.Cancelled()]
    told = []
    for answer in answers:
        way = pipe(target, era == "legacy")
        async with package.AskingClient.connect(way, on_question=lambda _, answer=answer: answer) as made:
            try:
                [block] = await made.pay(sum=3)
                told.append(block.text)
            except package.ToolFailed as error:
                told.append(error.result.content[0].text)
    declined = "The user declined: pay did not run."
    assert told == ["paid 3", "paid 3", declined, declined, "The user did not answer: pay did not run."]


async def test_the_policy_of_all_tools_holds_where_one_says_nothing_else(tmp_path: Path) -> None:
    tools = [
        tool("pay", {"card": {"type": "string"}}),
        tool("look", stubwright={"policy": {"confirm": False}}),
        tool("tell", {"card": {"type": "string"}}, stubwright={"policy": {"redact": []}}),
    ]
    value = manifest(tools, name="guarded", policy={"confirm": True, "redact": ["/card"]})

    class Handlers:
        def pay(self, args: Any, ctx: Any) -> str:
            return "paid"

        look = tell = pay

    with imported(tmp_path, generate(tmp_path, value)) as made:
        assert "``pay``. The server first asks the user for permission. Never logged: ``/card``." in (
            made.GuardedHandlers.pay.__doc__
        )
        assert made.GuardedHandlers.look.__doc__.rstrip().endswith("Tool ``look``.")
        assert [made.TOOLS[name].redacted for name in ("pay", "look", "tell")] == [["/card"], ["/card"], []]
        built = made.build_server(Handlers())
        asked = []
        for name in ("pay", "look", "tell"):
            person = Person({"confirm": True})
            async with client(built, "legacy", person) as connected:
                assert text(await connected.call_tool(name, {"card": "12"})) == "paid"
            asked.append([question.message for question in person.asked])
    assert asked == [['Run pay with {"card": "[redacted]"}?'], [], ['Run tell with {"card": "12"}?']]


# A typed client, whose callbacks answer


@pytest.mark.parametrize("era", ERAS)
async def test_a_generated_client_answers_a_generated_server(package: ModuleType, era: str) -> None:
    async def ask(args: Any, ctx: Any) -> str:
        who, choice = await ctx.ask.who(), await ctx.ask.choose()
        said = await ctx.sample("Hi")
        [root] = await ctx.roots()
        return f"{who.name} {who.age} {choice} {said.content.text} {root.uri}"

    def answer(question: Any) -> Any:
        return package.AskWhoAnswer(name="Ada") if question.message == "Who are you?" else package.Declined()

    target = server(package, ask)
    async with package.AskingClient.connect(
        target, on_question=answer, on_sample=lambda params: "Yo", roots=["/home"]
    ) as asking:
        [block] = await asking.ask()
        assert block.text == "Ada 30 Declined() Yo file:///home"
        [message] = await asking.prompt_hello()
        assert message.content.text == "hello"
        [contents] = await asking.read_page(name="a b")
        assert (contents.uri, contents.text) == ("page://a%20b", "page")


async def test_a_context_has_the_questions_as_methods(package: ModuleType) -> None:
    assert package.AskContext.__mro__[1] is package.Context
    contexts = importlib.import_module(f"{package.__name__}.contexts")
    assert [name for name in vars(contexts.AskAsk) if not name.startswith("_")] == list(ASK)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("is_grouped", [False, True])
async def test_an_error_of_the_protocol_is_the_answer_of_a_call(
    package: ModuleType, era: str, is_grouped: bool
) -> None:
    """As it is of a task, so that a call gives the same both ways (MCP 2025-11-25, basic/utilities/tasks)."""

    async def ask(args: Any, ctx: Any) -> str:
        error = mcp.MCPError(-31999, "the line is \x1b[31mcut", {"where": [1, 2]})
        raise ExceptionGroup("both", [error]) if is_grouped else error

    async with client(server(package, ask), era) as made:
        with pytest.raises(mcp.MCPError) as caught:
            await made.call_tool("ask")
    assert caught.value.error == types.ErrorData(code=-31999, message="the line is cut", data={"where": [1, 2]})


@pytest.mark.parametrize("era", ERAS)
async def test_progress_that_does_not_grow_is_not_sent(package: ModuleType, era: str) -> None:
    """Progress MUST increase (MCP 2025-11-25, basic/utilities/progress, "Behavior Requirements")."""
    heard = []

    async def ask(args: Any, ctx: Any) -> str:
        for done in (0, 1, 1, 0.5, 2, -1, 3):
            await ctx.progress(done)
        return "done"

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with client(server(package, ask), era) as made:
        assert text(await made.call_tool("ask", progress_callback=on_progress)) == "done"
        await asyncio.sleep(0.05)
    assert heard == [0, 1, 2, 3]
