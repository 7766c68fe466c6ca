"""Clients whose server loses their session start a new session and repeat the rejected request once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

import mcp
import mcp_types
import pytest

import amounts
import prompt_ends
from answers import say, say_result, serve
from packages import generate, imported, manifest, tool
from serving import asgi
from stubwright_runtime.client.core.binding import Binding
from stubwright_runtime.client.core.connect_errors import ConnectError, SessionLost
from stubwright_runtime.client.core.errors import ResultTooLarge
from stubwright_runtime.client.features.changes import ResourceUpdated
from stubwright_runtime.client.features.subscriptions import changes
from stubwright_runtime.client.transports.sessions import Sessions
from stubwright_runtime.package import Package, Tool

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

REVISIONS: Final = ("2025-06-18", "2025-11-25")
URI: Final = "notes://today"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Handlers:
    async def ping(self, args: Any, ctx: Any) -> str:
        return "pong"

    async def touch(self, args: Any, ctx: Any) -> str:
        await ctx.resources.updated(URI)
        return "touched"

    async def read_today(self, ctx: Any) -> str:
        return "rain"


class Restarting:
    """A generated server over HTTP, of one revision, which can be started again on its port."""

    def __init__(self, package: Any, revision: str) -> None:
        self.url = ""
        self.requests: Counter[str] = Counter()
        self.without_session: list[str] = []
        self._package = package
        self._revision = revision
        self._running = ExitStack()
        self._port = 0

    def start(self) -> None:
        """Start it, on the same port as before."""
        root = self._running.enter_context(asgi(self._speak(self._package.asgi_app(Handlers())), self._port))
        self._port = int(root.rpartition(":")[2])
        self.url = f"{root}/mcp"

    def stop(self) -> None:
        """Stop it."""
        self._running.close()

    async def restart(self) -> None:
        """Forget all sessions."""
        await asyncio.to_thread(self.stop)
        self.requests.clear()
        self.without_session.clear()
        self.start()

    def _speak(self, app: Any) -> Callable[[Any, Any, Any], Any]:
        """The application, but it knows one revision, and counts what it is asked."""

        async def speak(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http" or scope["method"] != "POST":
                await app(scope, receive, send)
                return
            body, more = b"", True
            while more:
                part = await receive()
                body, more = body + part.get("body", b""), part.get("more_body", False)
            message = json.loads(body)
            method = message.get("method", "")
            self.requests[method] += 1
            if b"mcp-session-id" not in dict(scope["headers"]):
                self.without_session.append(method)
            if method == "server/discover":
                await send({"type": "http.response.start", "status": 404, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
            if method == "initialize":
                message["params"]["protocolVersion"] = self._revision
                body = json.dumps(message).encode()
            headers = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
            scope = {**scope, "headers": [*headers, (b"content-length", str(len(body)).encode())]}
            parts = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def read() -> Any:
                return next(parts, None) or await receive()

            await app(scope, read, send)

        return speak


@pytest.fixture(params=amounts.sample(REVISIONS, 1))
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Restarting]:
    wanted = manifest([tool("ping"), tool("touch")], resources=[{"uri": URI, "name": "today"}])
    with imported(tmp_path, generate(tmp_path, wanted)) as package:
        restarting = Restarting(package, request.param)
        restarting.start()
        try:
            yield restarting
        finally:
            restarting.stop()


@pytest.fixture
async def client(server: Restarting) -> AsyncIterator[Any]:
    async with server._package.SampleClient.connect(server.url) as client:
        assert client.raw.protocol_version == server._revision
        yield client


def text(content: list[mcp_types.ContentBlock]) -> str:
    (block,) = content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


async def test_a_server_that_was_restarted_gets_a_new_session(server: Restarting, client: Any) -> None:
    assert text(await client.ping()) == "pong"
    for _ in range(2):
        await server.restart()
        assert text(await client.ping()) == "pong"
        assert text(await client.ping()) == "pong"
        assert server.requests == {"initialize": 1, "notifications/initialized": 1, "tools/call": 3}
        assert server.without_session == ["initialize"]


async def test_calls_at_the_same_time_share_one_handshake(server: Restarting, client: Any) -> None:
    await server.restart()
    contents = await asyncio.gather(*(client.ping() for _ in range(20)))
    assert [text(content) for content in contents] == ["pong"] * 20
    assert server.requests["initialize"] == 1
    assert 20 <= server.requests["tools/call"] <= 40


async def test_requests_of_all_kinds_begin_a_session(server: Restarting, client: Any) -> None:
    await server.restart()
    assert await client.read_today()
    await server.restart()
    assert (await client.raw.list_tools()).tools
    assert server.requests["initialize"] == 1


async def test_what_was_subscribed_is_subscribed_again(server: Restarting, client: Any) -> None:
    async with changes(client, lists=False, resources=[URI]) as told:
        await server.restart()
        await client.ping()
        assert server.requests["resources/subscribe"] == 1
        await client.touch()
        assert await asyncio.wait_for(anext(told), 60) == ResourceUpdated(URI)
    await server.restart()
    await client.ping()
    assert server.requests["resources/subscribe"] == 0


async def test_bounds_of_a_call_hold_when_it_is_sent_again(server: Restarting, client: Any) -> None:
    await server.restart()
    with pytest.raises(ResultTooLarge):
        await client.with_options(max_result_bytes=10).ping()


PACKAGE: Final = Package("echo_mcp", tools=[Tool("ping")])
PACKAGE.manifest = {"tools": [{"name": "ping", "inputSchema": {"type": "object"}}]}


class EchoClient(Binding):
    _package = PACKAGE

    async def ping(self) -> list[mcp_types.ContentBlock]:
        return await self._call_content("ping", {})


# --- Servers that give no session that lasts ------------------------------------------------------------------------


@contextmanager
def forgetting(again: Callable[[BaseHTTPRequestHandler, dict[str, Any]], bool]) -> Iterator[tuple[str, list[str]]]:
    """Run a server that loses every session; after the first handshake, `again` may answer instead."""
    methods: list[str] = []

    def answer(handler: BaseHTTPRequestHandler, message: dict[str, Any]) -> None:
        method = message.get("method", "")
        methods.append(method)
        if methods.count("initialize") > 1 and again(handler, message):
            return
        if method == "tools/call":
            body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}'
            say(handler, 404, body, Content_Type="application/json")
        elif method == "initialize":
            say_session(handler, message, f"session-{methods.count('initialize')}")
        else:
            say_result(handler, message)

    with serve(answer) as url:
        yield url, methods


def say_session(
    handler: BaseHTTPRequestHandler, message: dict[str, Any], session: str, revision: str = "2025-11-25"
) -> None:
    result = {"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    say(handler, 200, body, Content_Type="application/json", Mcp_Session_Id=session)


async def test_sessions_that_always_vanish_are_an_error() -> None:
    with forgetting(lambda *_: False) as (url, methods):
        async with EchoClient.connect(url) as client:
            for number in (1, 2):
                with pytest.raises(SessionLost) as raised:
                    await client.ping()
                assert isinstance(raised.value, ConnectError)
                assert (raised.value.target, raised.value.status) == (url, 404)
                assert raised.value.why == (
                    "no longer recognizes the client's session: it returns HTTP 404 Not Found: Session not found"
                )
                assert (methods.count("initialize"), methods.count("tools/call")) == (1 + number, 2 * number)
            errors = await asyncio.gather(*(client.ping() for _ in range(5)), return_exceptions=True)
            assert {type(error) for error in errors} == {SessionLost}
            assert methods.count("initialize") <= 3 + 5


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("refused", "returns HTTP 503 Service Unavailable"),
        ("error", "no more sessions"),
        ("revision", "the server's revision changed from '2025-11-25' to '2025-03-26'"),
    ],
)
async def test_a_handshake_that_fails_is_an_error_of_all_that_wait_for_it(way: str, why: str) -> None:
    is_terminal = False

    def again(handler: BaseHTTPRequestHandler, message: dict[str, Any]) -> bool:
        if is_terminal and message["method"] == "tools/call":
            say_result(handler, message)
            return True
        if message["method"] != "initialize" or is_terminal:
            return False
        if way == "refused":
            say(handler, 503)
        elif way == "error":
            error = {"code": -32603, "message": "no more sessions"}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
            say(handler, 200, body, Content_Type="application/json")
        else:
            say_session(handler, message, "another", "2025-03-26")
        return True

    with forgetting(again) as (url, methods):
        async with EchoClient.connect(url) as client:
            errors = await asyncio.gather(*(client.ping() for _ in range(3)), return_exceptions=True)
            for error in errors:
                assert isinstance(error, SessionLost)
                lost = "no longer recognizes the client's session, and a new session could not be started"
                assert error.why == f"{lost}: {why}"
            is_terminal = True
            assert await client.ping() == []  # the next call tries again
        assert "tools/call" in methods


async def test_a_call_that_is_cancelled_while_there_is_no_session_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    held: asyncio.Queue[Any] = asyncio.Queue()
    wait = Sessions._wait_for_renewal

    async def tell_and_wait(sessions: Sessions, renewal: Any, message: Any) -> None:
        held.put_nowait(message["id"])
        await wait(sessions, renewal, message)

    monkeypatch.setattr(Sessions, "_wait_for_renewal", tell_and_wait)
    begins = asyncio.Event()
    may_answer = asyncio.Event()
    loop = asyncio.get_running_loop()

    def again(handler: BaseHTTPRequestHandler, message: dict[str, Any]) -> bool:
        if message["method"] == "initialize":
            loop.call_soon_threadsafe(begins.set)
            asyncio.run_coroutine_threadsafe(may_answer.wait(), loop).result(20)
            return False
        if message["method"] == "tools/call":
            say_result(handler, message)
            return True
        return False

    with forgetting(again) as (url, methods):
        async with EchoClient.connect(url) as client:
            first = asyncio.create_task(client.ping())
            await begins.wait()
            await held.get()
            given_up = asyncio.create_task(client.ping())
            await held.get()
            first.cancel()
            given_up.cancel()
            await asyncio.wait([first, given_up])
            waiting = asyncio.create_task(client.ping())
            await held.get()
            may_answer.set()
            assert await waiting == []
    assert methods.count("initialize") == 2
    assert methods.count("tools/call") == 2
    assert "notifications/cancelled" not in methods


async def test_an_unknown_method_is_not_a_lost_session() -> None:
    def answer(handler: BaseHTTPRequestHandler, message: dict[str, Any]) -> None:
        if message.get("method") == "initialize":
            say_session(handler, message, "one")
        elif message.get("method") == "tools/call":
            error = {"code": -32601, "message": "Method not found"}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
            say(handler, 404, body, Content_Type="application/json")
        else:
            say_result(handler, message)

    with serve(answer) as url:
        async with EchoClient.connect(url) as client:
            with pytest.raises(mcp.MCPError, match="Method not found") as raised:
                await client.ping()
    assert not isinstance(raised.value, ConnectError)
