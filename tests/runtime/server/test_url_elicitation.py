"""Elicitation by URL: completion, and requests that wait for it; server and client."""

from __future__ import annotations

import asyncio
import importlib
import time
from contextlib import ExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import mcp
import mcp_types as types
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

import prompt_ends
from packages import generate, imported, manifest, tool
from server_fixture import HELLO, exchange, opened
from serving import asgi, pipe
from stubwright_runtime import UrlElicitationRequired
from stubwright_runtime.server.package_server import PackageServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import ModuleType

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

CAN: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
HERE = "https://example.com/in"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("visits")
    ask = {"ask": {"sign_in": {"mode": "url", "message": "Please sign in"}, "who": {"message": "?", "schema": FORM}}}
    value = manifest(
        [tool("files", stubwright=ask)],
        name="visits",
        prompts=[{"name": "hello", "arguments": [{"name": "a"}], "stubwright": ask}],
        python={"features": ["changes"]},
    )
    name = generate(folder, value)
    with imported(folder, name) as made:
        yield made


FORM: dict[str, Any] = {"type": "object", "properties": {}}


class Desk:
    """Handlers that require a login, and record it."""

    def __init__(self) -> None:
        self.signed_in: set[str] = set()
        self.asked: list[str] = []

    async def files(self, args: Any, ctx: Any) -> str:
        if not self.signed_in:
            raise self.needed(ctx)
        return "a.txt"

    async def prompt_hello(self, args: Any, ctx: Any) -> str:
        return await self.files(args, ctx)

    def needed(self, ctx: Any) -> Exception:
        needed: Exception = ctx.url_required("sign_in", f"{HERE}?n={len(self.asked)}")
        self.asked.append(getattr(needed, "elicitation", ""))
        return needed


async def hello(send: Any, receive: Any, revision: str = "2025-11-25") -> None:
    await send({"id": 1, "method": "initialize", "params": {**HELLO, "capabilities": CAN, "protocolVersion": revision}})
    assert (await receive())["result"]["protocolVersion"] == revision
    await send({"method": "notifications/initialized"})


# Servers


async def test_the_client_that_was_asked_is_told_once_that_all_is_done(package: ModuleType) -> None:
    seen: list[Any] = []

    async def files(args: Any, ctx: Any) -> str:
        answer = await ctx.ask.sign_in(HERE, elicitation="mine")
        assert answer == package.Accepted()
        seen.append((answer.elicitation, await ctx.complete("mine"), await ctx.complete("mine")))
        other = await ctx.ask.sign_in(HERE)
        seen.append(other.elicitation)
        return "done"

    server = package.build_server(SimpleNamespace(files=files, prompt_hello=files))
    async with opened(server) as (send, receive), opened(server) as (send_other, receive_other):
        await hello(send, receive)
        await hello(send_other, receive_other)
        await send({"id": 2, "method": "tools/call", "params": {"name": "files"}})
        asked = await receive()
        assert (asked["params"]["mode"], asked["params"]["elicitationId"]) == ("url", "mine")
        await send({"id": asked["id"], "result": {"action": "accept"}})
        told = await receive()
        assert told == {
            "jsonrpc": "2.0",
            "method": "notifications/elicitation/complete",
            "params": {"elicitationId": "mine"},
        }
        asked = await receive()
        await send({"id": asked["id"], "result": {"action": "accept"}})
        assert (await receive())["result"]["content"][0]["text"] == "done"
        assert seen[0] == ("mine", True, False)
        assert len(seen[1]) == 32
        assert await server.complete(seen[1])  # after the request
        assert (await receive())["params"] == {"elicitationId": seen[1]}
        assert [await server.complete(one) for one in (seen[1], "mine", "unknown")] == [False] * 3
        await send_other({"id": 9, "method": "ping"})
        assert (await receive_other())["id"] == 9  # and nothing before it


async def test_two_questions_never_have_one_id(package: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    async def files(args: Any, ctx: Any) -> str:
        await ctx.ask.sign_in(HERE, elicitation="same")
        await ctx.ask.sign_in(HERE, elicitation="same")
        return "done"

    async def accept(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept")

    server = package.build_server(SimpleNamespace(files=files, prompt_hello=files))
    async with mcp.Client(server, mode="legacy", elicitation_callback=accept) as made:
        assert (await made.call_tool("files")).is_error
    assert "the elicitation ID 'same' is already in use" in caplog.text


async def test_a_request_that_needs_a_url_is_refused_with_it(package: ModuleType) -> None:
    desk, records = Desk(), list[Any]()
    server = package.build_server(desk, audit=records.append)
    async with opened(server) as (send, receive):
        await hello(send, receive)
        for number, (method, name) in enumerate([("tools/call", "files"), ("prompts/get", "hello")], 2):
            await send({"id": number, "method": method, "params": {"name": name}})
            error = (await receive())["error"]
            assert error["code"] == -32042
            assert error["data"] == {
                "elicitations": [
                    {
                        "mode": "url",
                        "message": "Please sign in",
                        "url": f"{HERE}?n={number - 2}",
                        "elicitationId": desk.asked[-1],
                    }
                ]
            }
    assert len(set(desk.asked)) == 2
    server.core.recorder.flush()
    assert [(record.tool, record.outcome, record.reason) for record in records] == [("files", "denied", "not_visited")]


async def test_older_clients_and_those_without_a_browser_are_told(package: ModuleType) -> None:
    server = package.build_server(Desk())
    async with opened(server) as (send, receive):
        await hello(send, receive, "2025-06-18")
        await send({"id": 2, "method": "tools/call", "params": {"name": "files"}})
        result = (await receive())["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"] == "This request requires a client with the capability 'elicitation.url'."
    [told] = await exchange(server, "2025-11-25", ("tools/call", {"name": "files"}))
    assert told == result
    [refused] = await exchange(server, "2026-07-28", ("tools/call", {"name": "files"}))
    assert refused["error"]["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}


async def test_from_2026_on_it_is_a_question_like_any_other(package: ModuleType) -> None:
    desk = Desk()
    server = package.build_server(desk)
    call = {"name": "files", "_meta": {"io.modelcontextprotocol/clientCapabilities": CAN}}
    [asked] = await exchange(server, "2026-07-28", ("tools/call", call))
    assert asked["resultType"] == "input_required"
    params = asked["inputRequests"]["sign_in"]["params"]
    assert (params["url"], "elicitationId" in params) == (f"{HERE}?n=0", False)
    yes = {"sign_in": {"action": "accept"}}
    answered = {**call, "requestState": asked["requestState"], "inputResponses": yes}
    [again] = await exchange(server, "2026-07-28", ("tools/call", answered))  # and no user signed in
    assert again["inputRequests"]["sign_in"]["params"]["url"] == f"{HERE}?n=1"
    no = {"sign_in": {"action": "decline"}}
    refused = {**call, "requestState": again["requestState"], "inputResponses": no}
    [told] = await exchange(server, "2026-07-28", ("tools/call", refused))
    assert told["isError"] is True
    assert told["content"][0]["text"] == "The user did not open the URL that this request requires."
    [asked] = await exchange(server, "2026-07-28", ("tools/call", call))
    desk.signed_in.add("me")
    answered = {**call, "requestState": asked["requestState"], "inputResponses": yes}
    [done] = await exchange(server, "2026-07-28", ("tools/call", answered))
    assert done["content"] == [{"type": "text", "text": "a.txt"}]


@pytest.mark.parametrize(
    ("name", "url", "logged"),
    [
        ("who", HERE, "the manifest has no question 'who' with `mode: url` for this handler"),
        ("x", HERE, "the manifest has no question 'x'"),
        ("sign_in", "javascript:alert(1)", "is not an http or https URL"),
    ],
)
async def test_what_cannot_be_required(
    package: ModuleType, caplog: pytest.LogCaptureFixture, name: str, url: str, logged: str
) -> None:
    async def files(args: Any, ctx: Any) -> str:
        raise ctx.url_required(name, url)

    server = package.build_server(SimpleNamespace(files=files, prompt_hello=files))
    [told] = await exchange(server, "2025-11-25", ("tools/call", {"name": "files"}))
    assert told["isError"] is True
    assert logged in caplog.text


# Typed clients


class Soon(Desk):
    """Where a person is done at the URL a while after it was asked for."""

    server: Any = None

    def needed(self, ctx: Any) -> Exception:
        needed = super().needed(ctx)
        self.task = asyncio.ensure_future(self.sign_in(self.asked[-1]))
        return needed

    async def sign_in(self, elicitation: str) -> None:
        await asyncio.sleep(0.3)
        self.signed_in.add("me")
        await self.server.complete(elicitation)


@pytest.mark.parametrize("way", ["legacy", "http", "2026-07-28"])
async def test_a_client_goes_there_and_calls_again(package: ModuleType, way: str) -> None:
    desk = Soon()
    asked: list[Any] = []

    async def visit(question: Any) -> Any:
        asked.append(question)
        if way == "2026-07-28":
            await asyncio.sleep(0.4)
            with pytest.raises(ValueError, match="does not report this question's completion"):
                await question.completed()
        return package.Accepted()

    with ExitStack() as stack:
        app = package.asgi_app(desk)
        desk.server = app.state.server
        server = PackageServer(app.state.server)
        target: Any = pipe(server, way == "legacy")
        if way == "http":
            target = handshaking(f"{stack.enter_context(asgi(app))}/mcp")
        async with package.VisitsClient.connect(target, on_question=visit) as made:
            started = time.monotonic()
            [block] = await made.files()
            assert block.text == "a.txt"
            assert 0.25 < time.monotonic() - started < 60
            [message] = await made.prompt_hello()
            assert message.content.text == "a.txt"
    assert [question.url for question in asked] == [f"{HERE}?n=0"]
    assert (asked[0].elicitation is None) == (way == "2026-07-28")


@asynccontextmanager
async def handshaking(url: str) -> AsyncIterator[Any]:
    """Open a transport to an HTTP server that hides discovery, so that the client initializes."""
    give, given = anyio.create_memory_object_stream[Any](10)
    send, sent = anyio.create_memory_object_stream[Any](10)

    async def outwards(write: Any) -> None:
        async for item in sent:
            if getattr(item.message, "method", None) == "server/discover":
                error = types.ErrorData(code=types.METHOD_NOT_FOUND, message="Method not found")
                await give.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=item.message.id, error=error)))
            else:
                await write.send(item)

    async def inwards(read: Any) -> None:
        async for item in read:
            await give.send(item)

    async with streamable_http_client(url) as (read, write), anyio.create_task_group() as tasks:
        tasks.start_soon(outwards, write)
        tasks.start_soon(inwards, read)
        yield given, send
        tasks.cancel_scope.cancel()


async def test_a_question_in_the_middle_knows_when_it_is_complete(package: ModuleType) -> None:
    async def files(args: Any, ctx: Any) -> str:
        async def later() -> None:
            await asyncio.sleep(0.1)
            assert await server.complete("it")

        task = asyncio.ensure_future(later())
        await ctx.ask.sign_in(HERE, elicitation="it")
        await task
        return "done"

    async def visit(question: Any) -> Any:
        async with asyncio.timeout(60):
            await question.completed()
            await question.completed()  # it stays so
        return package.Accepted()

    server = package.build_server(SimpleNamespace(files=files, prompt_hello=files))
    async with package.VisitsClient.connect(pipe(server, True), on_question=visit) as made:
        assert [block.text for block in await made.files()] == ["done"]


@pytest.mark.parametrize("answer", ["Declined", "Cancelled", "Accepted", None])
async def test_a_client_that_does_not_go_there_gets_the_typed_error(package: ModuleType, answer: str | None) -> None:
    desk = Desk()
    server = package.build_server(desk)
    asked: list[Any] = []

    async def visit(question: Any) -> Any:
        asked.append(question)
        assert await server.complete(question.elicitation)
        assert answer is not None
        return getattr(package, answer)()

    async def connected() -> None:
        on_question = None if answer is None else visit
        async with package.VisitsClient.connect(pipe(server, True), on_question=on_question) as made:
            await made.files()

    if answer is None:
        with pytest.raises(package.ToolFailed, match=r"capability 'elicitation\.url'"):
            await connected()
        return
    with pytest.raises(UrlElicitationRequired) as caught:
        await connected()
    assert caught.value.elicitations[0].elicitation_id == desk.asked[-1]
    assert len(asked) == (3 if answer == "Accepted" else 1)


async def test_a_word_that_never_comes_is_waited_for_a_while(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk()
    server = package.build_server(desk)
    monkeypatch.setattr(
        importlib.import_module("stubwright_runtime.client.features.url_elicitation"), "_PATIENCE", 0.05
    )

    def visit(_question: Any) -> Any:
        desk.signed_in.add("me")
        return package.Accepted()

    async with package.VisitsClient.connect(pipe(server, True), on_question=visit) as made:
        assert [block.text for block in await made.files()] == ["a.txt"]
