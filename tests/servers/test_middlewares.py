"""A mounted server behind its host's middlewares, which change the headers of its responses.

The applications are called without a network; `test_real_hosts.py` has real servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import product
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import amounts
from conversations import READY, handshake, request, usual
from packages import generate, imported, manifest, tool

OLD, NEW = "2025-06-18", "2026-07-28"
ORIGIN = "http://localhost:3000"
TOOLS = [tool(name) for name in ("say", "talk")]


class Handlers:
    async def say(self, args: Any, ctx: Any) -> str:
        return "said"

    async def talk(self, args: Any, ctx: Any) -> str:
        await ctx.progress(1, 2, "half")
        return "talked"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("middlewares")
    with imported(folder, generate(folder, manifest(TOOLS, name="behind"))) as module:
        yield module


async def time_calls(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    response.headers["X-Process-Time"] = "0.1"
    response.set_cookie("visited", "yes")
    if "mcp-session-id" not in response.headers:
        del response.headers["content-type"]
        response.headers["content-type"] = "text/plain"
    return response


class AddingMiddleware:
    """Adds to the list of headers in place, as much of the field does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append((b"x-added", b"1"))
                message["headers"].insert(0, (b"x-first", b"1"))
            await send(message)

        await self._app(scope, receive, add)


STACKS: Mapping[str, tuple[Sequence[Middleware], Mapping[str, Sequence[str]]]] = {
    "plain": ([], {}),
    "gzip": ([Middleware(GZipMiddleware, minimum_size=1)], {}),
    "headers": (
        [Middleware(BaseHTTPMiddleware, dispatch=time_calls)],
        {"x-process-time": ["0.1"], "set-cookie": ["visited=yes; Path=/; SameSite=lax"]},
    ),
    "cors": (
        [Middleware(CORSMiddleware, allow_origins=[ORIGIN], allow_credentials=True)],
        {"access-control-allow-origin": [ORIGIN], "access-control-allow-credentials": ["true"]},
    ),
    "in place": ([Middleware(AddingMiddleware)], {"x-added": ["1"], "x-first": ["1"]}),
}
PLACES = {"alone": ("", "/mcp", ""), "prefix": ("/behind", "/behind/mcp", ""), "root_path": ("", "/api/mcp", "/api")}


class Answer(NamedTuple):
    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    def all_of(self, name: str) -> list[str]:
        return [value.decode() for key, value in self.headers if key.lower() == name.encode()]


class Client:
    """Calls an application, as a server does that reads `start` and `body` of each answer."""

    def __init__(self, app: ASGIApp, path: str, root_path: str) -> None:
        self.app, self._path, self._root_path = app, path, root_path

    async def post(self, message: Mapping[str, Any], headers: Sequence[tuple[str, str]], until: bytes = b"") -> Answer:
        return await self.ask("POST", headers, json.dumps(message).encode(), until)

    async def ask(
        self, method: str, headers: Sequence[tuple[str, str]], body: bytes = b"", until: bytes = b""
    ) -> Answer:
        """Ask, and leave when these bytes have come (or the start, if they are `START`)."""
        lines = {"host": "localhost", "origin": ORIGIN, "accept-encoding": "gzip", **dict(headers)}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "root_path": self._root_path,
            "headers": [(name.lower().encode(), value.encode()) for name, value in lines.items()],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        incoming: list[Message] = [{"type": "http.request", "body": body}]
        starts: list[Message] = []
        parts: list[bytes] = []
        is_left = asyncio.Event()

        async def receive() -> Message:
            if not incoming:
                await is_left.wait()
            return incoming.pop(0) if incoming else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                starts.append({**message, "headers": [*message["headers"]]})
                assert type(message["headers"]) is list
            else:
                parts.append(message.get("body", b""))
            if until == START or (until and until in b"".join(parts)):
                is_left.set()

        async with asyncio.timeout(60):
            await self.app(scope, receive, send)
        [start] = starts
        assert all(type(each) is bytes for pair in start["headers"] for each in pair)
        return Answer(start["status"], start["headers"], b"".join(parts))


START = b"the start"
TALK = {"name": "talk", "arguments": {}, "_meta": {"progressToken": "t"}}


async def ask_call(client: Client, revision: str, session: str | None) -> Answer:
    message = request(1, "tools/call", {"name": "say", "arguments": {}}, stateless=revision == NEW)
    answer = await client.post(message, usual(message, revision, session))
    assert answer.status == 200
    return answer


async def ask_stream(client: Client, revision: str, session: str | None) -> Answer:
    message = request(2, "tools/call", TALK, stateless=revision == NEW)
    answer = await client.post(message, usual(message, revision, session))
    assert answer.status == 200
    assert b"half" in answer.body
    assert b"talked" in answer.body
    return answer


async def ask_listen(client: Client, revision: str, session: str | None) -> Answer:
    if session is not None:
        headers = usual({}, revision, session)
        answer = await client.ask("GET", headers, until=START)
    else:
        params = {"notifications": {"toolsListChanged": True}}
        message = request("heard", "subscriptions/listen", params, stateless=True)
        answer = await client.post(message, usual(message, revision, None), until=b"subscriptions/acknowledged")
    assert answer.status == 200
    return answer


async def ask_handshake(client: Client, revision: str, _: str | None) -> Answer:
    message = request(3, "server/discover", {}, stateless=True) if revision == NEW else handshake(revision)
    answer = await client.post(message, usual(message, revision, None))
    assert answer.status == 200
    return answer


async def ask_wrong(client: Client, revision: str, session: str | None) -> Answer:
    message = request(4, "tools/call", {"name": "say", "arguments": {}}, stateless=revision == NEW)
    answer = await client.post(message, [*usual(message, revision, session), ("host", "evil.example.com")])
    assert answer.status == 421
    return answer


async def ask_accepted(client: Client, revision: str, session: str | None) -> Answer:
    message = READY if session is not None else {**READY, "method": "notifications/cancelled"}
    answer = await client.post(message, usual(message, revision, session))
    assert answer.status == 202
    return answer


async def ask_invalid(client: Client, revision: str, session: str | None) -> Answer:
    message = request(5, "no/such", {}, stateless=revision == NEW)
    answer = await client.post(message, usual(message, revision, session))
    assert answer.status == (404 if session is None else 200)
    return answer


ASKED = (ask_call, ask_stream, ask_listen, ask_handshake, ask_wrong, ask_accepted, ask_invalid)


@contextlib.contextmanager
def no_task_left_behind(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Fail if an exception of a task or a future is retrieved by nothing."""
    complaints: list[str] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
    try:
        yield
        gc.collect()
    finally:
        loop.set_exception_handler(None)
    assert complaints == []


@contextlib.asynccontextmanager
async def mounted(package: ModuleType, stack: Sequence[Middleware], place: str, handlers: Any = None) -> Any:
    """Return a client of the server, mounted at a path behind the outer application's middlewares."""
    prefix, path, root_path = PLACES[place]
    mcp = package.asgi_app(handlers or Handlers())
    app = Starlette(routes=[Mount(prefix, mcp)], middleware=stack, lifespan=lambda _: mcp.router.lifespan_context(mcp))
    with no_task_left_behind(asyncio.get_running_loop()):
        async with app.router.lifespan_context(app):
            yield Client(app, path, root_path)


@pytest.mark.parametrize(("stack", "place", "revision"), amounts.sample(product(STACKS, PLACES, (OLD, NEW)), 11))
def test_answers_behind_middlewares(stack: str, place: str, revision: str, package: ModuleType) -> None:
    """Each answer twice: what a middleware does to the first must not be seen in the second."""
    middlewares, expected = STACKS[stack]

    async def converse() -> None:
        async with mounted(package, middlewares, place) as client:
            hello = await ask_handshake(client, revision, None)
            session = next(iter(hello.all_of("mcp-session-id")), None)
            for ask, _ in product(ASKED, range(2)):
                answer = await ask(client, revision, session)
                assert {name: answer.all_of(name) for name in expected} == expected, ask
                assert len(answer.all_of("content-type")) == 1
                if stack == "gzip" and ask in (ask_call, ask_handshake):
                    assert answer.all_of("content-encoding") == ["gzip"]

    asyncio.run(converse())


class FailingMiddleware:
    """Fails at messages of answers after so many."""

    def __init__(self, app: ASGIApp, number: int, error: type[Exception] = LookupError) -> None:
        self._app, self._number, self._error = app, number, error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = self._number

        async def fail(message: Message) -> None:
            nonlocal left
            if not left:
                raise self._error("the middleware failed")
            left -= 1
            await send(message)

        await self._app(scope, receive, fail)


@pytest.mark.parametrize(
    ("revision", "number"), [(OLD, 0), (NEW, 1), amounts.mark_long((OLD, 1)), amounts.mark_long((NEW, 0))]
)
def test_middlewares_that_fail(revision: str, number: int, package: ModuleType) -> None:
    """The host gets the exception once; no task remains, and the server continues."""

    async def converse() -> None:
        async with mounted(package, [], "alone") as client:
            hello = await ask_handshake(client, revision, None)
            session = next(iter(hello.all_of("mcp-session-id")), None)
            failing = Client(FailingMiddleware(client.app, number), "/mcp", "")
            for ask in (ask_call, ask_stream, ask_listen, ask_invalid, ask_wrong):
                if (ask, session is None, number) == (ask_listen, False, 1):
                    continue  # no message is sent after the start
                with pytest.raises(LookupError, match="the middleware failed"):
                    await ask(failing, revision, session)
            await ask_call(client, revision, session)
            await ask_stream(client, revision, session)

    asyncio.run(converse())


def test_a_connection_that_the_host_finds_lost(package: ModuleType) -> None:
    """ASGI has `send` raise an OSError then ("Disconnected Client"); handlers go on, as where the client just left."""
    ended: list[str] = []

    class Going(Handlers):
        async def talk(self, args: Any, ctx: Any) -> str:
            await super().talk(args, ctx)
            ended.append("talk")
            return "talked"

    async def converse() -> None:
        async with mounted(package, [], "alone", Going()) as client:
            session = next(iter((await ask_handshake(client, OLD, None)).all_of("mcp-session-id")), None)
            lost = Client(FailingMiddleware(client.app, 1, ConnectionResetError), "/mcp", "")
            message = request(2, "tools/call", TALK, stateless=False)
            assert (await lost.post(message, usual(message, OLD, session))).body == b""

    asyncio.run(converse())
    assert ended == ["talk"]


@pytest.mark.parametrize("revision", [OLD, NEW])
def test_streams_end_when_the_server_is_stopped(revision: str, package: ModuleType) -> None:
    """Also new streams of clients that reconnect, until the application is started again."""
    mcp = package.asgi_app(Handlers())
    client = Client(mcp, "/mcp", "")

    async def listen() -> Answer:
        session = next(iter((await ask_handshake(client, revision, None)).all_of("mcp-session-id")), None)
        if session is not None:
            return await client.ask("GET", usual({}, revision, session))
        message = request("heard", "subscriptions/listen", {"notifications": {}}, stateless=True)
        return await client.post(message, usual(message, revision, None))

    async def converse() -> None:
        async with mcp.router.lifespan_context(mcp):
            early = asyncio.create_task(listen())
            for _ in range(20):
                await asyncio.sleep(0)
            assert not early.done()
            mcp.state.server.stop()
            answers = [await early, await listen()]
            assert [(answer.status, b"complete" in answer.body) for answer in answers] == [(200, revision == NEW)] * 2
        async with mcp.router.lifespan_context(mcp):
            again = asyncio.create_task(listen())
            for _ in range(20):
                await asyncio.sleep(0)
            assert not again.done()
            mcp.state.server.stop()
            await again

    asyncio.run(converse())
