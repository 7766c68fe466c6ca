"""HTTP streams end when their caller's access token expires, and their number per caller is bounded."""

from __future__ import annotations

import asyncio
import importlib
import json
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken

import amounts
import prompt_ends
from packages import generate, imported
from server_fixture import ENVELOPE, HELLO
from serving import asgi
from task_wire import EXTENSION, HANDSHAKE, STATELESS, in_memory
from tasked import MANIFEST, Gate, Handlers, call_params

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from types import ModuleType

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

OLDER = "2025-06-18"
EXPIRES = 4_000_000_000
LISTEN: dict[str, Any] = {"notifications": {"toolsListChanged": True}}
SOON = 0.3
"""Seconds that a token holds where a test waits for its end."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("streams")
    with imported(folder, generate(folder, MANIFEST)) as made:
        yield made


class Verifier:
    """Accepts each token for the user of that name; a token that ends with `-forever` never expires."""

    async def verify_token(self, token: str) -> AccessToken | None:
        name, _, forever = token.partition("-")
        expires = None if forever else EXPIRES
        return AccessToken(token=token, client_id="c", scopes=[], subject=name, expires_at=expires)


class Server:
    """A server of the package over HTTP, and clients that write and read its messages by hand."""

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self.url = f"{url}/mcp"
        self.http = http

    def headers(self, revision: str, token: str, session: str | None = None, **more: str) -> dict[str, str]:
        found = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {token}"}
        found |= {"mcp-protocol-version": revision, **{name.replace("_", "-"): value for name, value in more.items()}}
        return found if session is None else {**found, "mcp-session-id": session}

    async def session(self, revision: str, token: str) -> str:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**HELLO, "protocolVersion": revision}}
        response = await self.http.post(self.url, json=hello, headers=self.headers(revision, token))
        session: str = response.headers["mcp-session-id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.http.post(self.url, json=ready, headers=self.headers(revision, token, session))
        return session

    def ask(
        self,
        revision: str,
        token: str,
        method: str,
        params: Mapping[str, Any],
        session: str | None = None,
        number: int = 7,
    ) -> asyncio.Task[httpx2.Response]:
        """A request, whose response comes when its stream has ended."""
        more: dict[str, str] = {}
        if revision >= STATELESS:
            params = {**params, "_meta": ENVELOPE}
            more = {"mcp_method": method, **({"mcp_name": params["name"]} if "name" in params else {})}
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        headers = self.headers(revision, token, session, **more)
        return asyncio.ensure_future(self.http.post(self.url, json=body, headers=headers))

    def get(self, token: str, session: str, **more: str) -> asyncio.Task[httpx2.Response]:
        headers = self.headers(HANDSHAKE, token, session, **more)
        return asyncio.ensure_future(self.http.get(self.url, headers=headers))


@asynccontextmanager
async def served(package: ModuleType, handlers: Any = None, **options: Any) -> AsyncIterator[Server]:
    app = package.asgi_app(handlers or Handlers(), token_verifier=Verifier(), **options)
    with asgi(app) as url:
        async with httpx2.AsyncClient(timeout=60) as http:
            yield Server(url, http)


@contextmanager
def held(package: ModuleType, seconds: float) -> Iterator[None]:
    """Limit tokens during the block to this many seconds from its start."""
    expiry: Any = importlib.import_module("stubwright_runtime.server.middlewares.expiry")
    start, before = time.time(), expiry.clock
    expiry.clock = lambda: EXPIRES - seconds + time.time() - start
    try:
        yield
    finally:
        expiry.clock = before


def messages(response: httpx2.Response) -> list[dict[str, Any]]:
    """The messages of a response."""
    text = response.text
    if not response.headers["content-type"].startswith("text/event-stream"):
        return [json.loads(text)]
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]


def last_id(response: httpx2.Response) -> str:
    return [line[3:].strip() for line in response.text.splitlines() if line.startswith("id:")][-1]


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what holds is no event
            await asyncio.sleep(0.01)


# Streams that end with the token


async def test_a_stream_that_listens_ends_with_the_token_and_says_so(package: ModuleType) -> None:
    async with served(package) as server:
        with held(package, SOON):
            for_ever = server.ask(STATELESS, "alice-forever", "subscriptions/listen", LISTEN)
            said = messages(await server.ask(STATELESS, "alice", "subscriptions/listen", LISTEN))
        assert [one.get("method") for one in said] == ["notifications/subscriptions/acknowledged", None]
        assert said[1]["id"] == 7
        assert "result" in said[1]
        assert not for_ever.done()
        for_ever.cancel()


async def test_the_stream_of_a_session_ends_with_the_token(package: ModuleType) -> None:
    async with served(package) as server:
        session = await server.session(HANDSHAKE, "alice")
        other = await server.session(HANDSHAKE, "alice-forever")
        with held(package, SOON):
            for_ever = server.get("alice-forever", other)
            response = await server.get("alice", session)
        assert (response.status_code, messages(response)) == (200, [])
        assert not for_ever.done()
        for_ever.cancel()
        with held(package, SOON):
            assert (await server.get("alice", session)).status_code == 200, "the session goes on with the next token"


@pytest.mark.parametrize("kept", ["memory", "redis"])
async def test_a_call_goes_on_and_its_answer_is_there_for_the_next_token(
    package: ModuleType, kept: str, request: pytest.FixtureRequest
) -> None:
    gate = Gate()
    state = "memory://" if kept == "memory" else request.getfixturevalue("redis_url")
    async with (
        served(package, Handlers(never=gate.later), state=state) as server,
        served(package, state=state) as other,
    ):
        session = await server.session(HANDSHAKE, "alice")
        with held(package, SOON):
            response = await server.ask(HANDSHAKE, "alice", "tools/call", call_params("never"), session)
            assert (response.status_code, messages(response)) == (200, [])
            if kept == "redis":
                waiting = await other.get("alice", session, last_event_id=last_id(response))
                assert (waiting.status_code, messages(waiting)) == (200, []), "neither does it wait at another process"
        back = (other if kept == "redis" else server).get("alice", session, last_event_id=last_id(response))
        await asyncio.sleep(0.1)
        gate.go.set()
        if kept == "redis":
            [answer] = messages(await back)
        else:
            async with asyncio.timeout(60):
                answer = await _first(server, session, last_id(response))
            back.cancel()
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (7, "let go")


async def test_calls_whose_token_expires_have_a_budget(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[str] = []

    async def waiting(args: Any, ctx: Any) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("cancelled")
        return "never"

    storage = {"maxBytesPerPrincipal": "20KiB"}  # one call takes 16 KiB and its message
    monkeypatch.setitem(package.TOOLS["never"].package.manifest, "storage", storage)
    async with served(package, Handlers(never=waiting)) as server:
        session = await server.session(HANDSHAKE, "alice")
        with held(package, SOON):
            calls = [server.ask(HANDSHAKE, "alice", "tools/call", call_params("never"), session, n) for n in (7, 8)]
            responses = await asyncio.gather(*calls)
        assert [messages(response) for response in responses] == [[], []], "both streams end with the token"
        await until(lambda: ends)
        assert ends == ["cancelled"], "there is room for one to go on"


@pytest.mark.parametrize("kept", amounts.sample(["memory", "redis"], 1))
async def test_a_stream_goes_on_though_what_was_told_on_it_is_not_kept(
    package: ModuleType, kept: str, request: pytest.FixtureRequest
) -> None:
    telling: list[asyncio.Task[None]] = []

    async def busy(args: Any, ctx: Any) -> str:
        for number in range(600):  # a session stores 512 messages
            await ctx.progress(number)

        async def tell() -> None:  # after the answer, and so on the stream of the session
            await asyncio.sleep(0.1)
            await ctx.log("info", "later")

        if not telling:
            telling.append(asyncio.create_task(tell()))
        return "done"

    state = "memory://" if kept == "memory" else request.getfixturevalue("redis_url")
    async with served(package, Handlers(never=busy), state=state) as server:
        session = await server.session(HANDSHAKE, "alice-forever")
        params = {**call_params("never"), "_meta": {"progressToken": 1}}
        headers = server.headers(HANDSHAKE, "alice-forever", session)
        async with server.http.stream("GET", server.url, headers=headers) as stream:
            await server.ask(HANDSHAKE, "alice-forever", "tools/call", params, session)
            known = await anext(line async for line in stream.aiter_lines() if line.startswith("id:"))
        await server.ask(HANDSHAKE, "alice-forever", "tools/call", params, session)  # now "later" is not kept any more
        back = server.get("alice-forever", session, last_event_id=known[3:].strip())
        assert await asyncio.wait([back], timeout=0.5) == (set(), {back}), "it waits for the next message"
        back.cancel()


@pytest.mark.parametrize("kept", ["memory", "redis"])
async def test_an_odd_event_id_ends_a_stream_and_no_session(
    package: ModuleType, kept: str, request: pytest.FixtureRequest
) -> None:
    """After a 404 clients must start a new session (MCP 2025-11-25, basic/transports, "Session Management")."""

    async def telling(args: Any, ctx: Any) -> str:
        await ctx.progress(1)
        return "done"

    state = "memory://" if kept == "memory" else request.getfixturevalue("redis_url")
    async with served(package, Handlers(never=telling), state=state) as server:
        session, other = [await server.session(HANDSHAKE, "alice-forever") for _ in range(2)]
        params = {**call_params("never"), "_meta": {"progressToken": 1}}
        answered = await server.ask(HANDSHAKE, "alice-forever", "tools/call", params, other)
        for odd in ("nowhere", "/", "9999/1", last_id(answered)):
            response = await server.get("alice-forever", session, last_event_id=odd)
            assert (response.status_code, messages(response)) == (200, [])
            assert response.headers["content-type"] == "text/event-stream"
        assert messages(await server.ask(HANDSHAKE, "alice-forever", "ping", {}, session))[0]["result"] == {}
        assert (await server.get("alice-forever", "gone", last_event_id="nowhere")).status_code == 404


async def _first(server: Server, session: str, last: str) -> dict[str, Any]:
    """The first message after that."""
    while True:
        headers = server.headers(HANDSHAKE, "alice", session, last_event_id=last)
        async with server.http.stream("GET", server.url, headers=headers) as response:
            async for line in response.aiter_lines():
                if line.startswith("data:") and line[5:].strip():
                    found: dict[str, Any] = json.loads(line[5:])
                    return found


@pytest.mark.parametrize("way", [OLDER, STATELESS, "stateless"])
async def test_a_call_whose_client_cannot_come_back_is_answered(package: ModuleType, way: str) -> None:
    gate = Gate()
    async with served(package, Handlers(never=gate.later), stateless=way == "stateless") as server:
        revision = HANDSHAKE if way == "stateless" else way
        session = await server.session(revision, "alice") if way == OLDER else None
        with held(package, 0.05):
            call = server.ask(revision, "alice", "tools/call", call_params("never"), session)
            await until(gate.begun.is_set)
            await asyncio.sleep(0.1)
            gate.go.set()
            [answer] = messages(await call)
        assert answer["result"]["content"][0]["text"] == "let go"


@pytest.mark.parametrize("stateless", [False, True])
async def test_nobody_waits_for_a_result_longer_than_the_token_holds(package: ModuleType, stateless: bool) -> None:
    gate = Gate()
    async with served(package, Handlers(work=gate.later), stateless=stateless) as server:
        session = None if stateless else await server.session(HANDSHAKE, "alice")
        call = {**call_params("work"), "task": {}}
        [made] = messages(await server.ask(HANDSHAKE, "alice", "tools/call", call, session))
        asked = {"taskId": made["result"]["task"]["taskId"]}
        with held(package, SOON):
            found = messages(await server.ask(HANDSHAKE, "alice", "tasks/result", asked, session))
        error = {"code": -32600, "message": "The access token has expired. Repeat the request with a new one."}
        assert found == ([{"jsonrpc": "2.0", "id": 7, "error": error}] if stateless else [])
        gate.go.set()
        [answer] = messages(await server.ask(HANDSHAKE, "alice", "tasks/result", asked, session, 8))
        assert answer["result"]["content"][0]["text"] == "let go"


# How many there may be


async def test_one_caller_listens_so_often_and_all_together_do(package: ModuleType) -> None:
    async with served(package, max_listeners=3, max_listeners_each=2) as server:
        listening = []
        for name in ("alice", "alice", "bob"):
            headers = server.headers(STATELESS, name, mcp_method="subscriptions/listen")
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "subscriptions/listen",
                "params": {**LISTEN, "_meta": ENVELOPE},
            }
            opened = server.http.stream("POST", server.url, json=body, headers=headers)
            response = await opened.__aenter__()
            lines = response.aiter_lines()
            assert await anext(lines)
            listening.append((opened, lines))
        for name, status, message in (
            ("alice", 429, "You have 2 open streams. Close one, or try again later."),
            ("bob", 503, "The server has too many open streams. Try again later."),
        ):
            refused = await server.ask(STATELESS, name, "subscriptions/listen", LISTEN)
            assert (refused.status_code, refused.headers["retry-after"]) == (status, "5")
            assert refused.json() == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": message}}
        async with (
            httpx2.AsyncClient(headers={"authorization": "Bearer alice"}) as http,
            mcp.Client(streamable_http_client(server.url, http_client=http)) as client,
        ):
            with pytest.raises(mcp.MCPError, match="You have 2 open streams"):
                await client.listen(tools_list_changed=True).__aenter__()
        for opened, _ in listening:
            await opened.__aexit__(None, None, None)
        async with asyncio.timeout(60):
            while True:  # until the server has seen that they have left
                again = server.ask(STATELESS, "alice", "subscriptions/listen", LISTEN)
                if not (await asyncio.wait([again], timeout=0.2))[0]:
                    break
        again.cancel()


async def test_a_client_without_http_listens_so_often(package: ModuleType) -> None:
    server = package.build_server(Handlers())
    streams = importlib.import_module("stubwright_runtime.server.core.streams")
    assert (streams.LISTENERS, streams.LISTENERS_EACH) == (1000, 100)
    server.core.listeners.streams = streams.Streams(10, 2)
    async with in_memory(server, STATELESS, {}) as wire:
        open_ = [wire.start("subscriptions/listen", **LISTEN) for _ in range(2)]
        await wire.noted("notifications/subscriptions/acknowledged", 2)
        said = await wire("subscriptions/listen", **LISTEN)
        assert said["error"]["message"] == "You have 2 open streams. Close one, or try again later."
        assert not any(one.done() for one in open_)
        for one in open_:
            one.cancel()


async def test_one_caller_comes_back_for_so_many_streams(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = importlib.import_module("stubwright_runtime.server.transports.http.endpoint")
    assert (endpoint._RESUMED, endpoint._RESUMED_EACH) == (500, 16)
    monkeypatch.setattr(endpoint, "_RESUMED_EACH", 2)
    gate = Gate()
    async with served(package, Handlers(never=gate.later)) as server:
        lost: list[tuple[str, str]] = []
        for _ in range(3):
            session = await server.session(HANDSHAKE, "alice")
            with held(package, 0.05):
                response = await server.ask(HANDSHAKE, "alice", "tools/call", call_params("never"), session)
            lost.append((session, last_id(response)))
        back = [server.get("alice-forever", session, last_event_id=last) for session, last in lost[:2]]
        await asyncio.sleep(0.2)
        session, last = lost[2]
        refused = await server.get("alice-forever", session, last_event_id=last)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        message = "You have 2 open streams. Close one, or try again later."
        assert refused.json() == {"jsonrpc": "2.0", "error": {"code": -32603, "message": message}}
        gate.go.set()
        assert [messages(await one)[-1]["id"] for one in back] == [7, 7]
        async with asyncio.timeout(60):  # until the server has seen that the others have left
            while (  # noqa: ASYNC110 - it is in another thread
                response := await server.get("alice-forever", session, last_event_id=last)
            ).status_code != 200:
                await asyncio.sleep(0.05)
        assert messages(response)[-1]["id"] == 7


@pytest.mark.parametrize(
    ("uris", "message"),
    [
        ([f"a://{number}" for number in range(1001)], "More than 1000 subscriptions"),
        (["a://" + "x" * 300_000], "The subscribed URIs have more than 262144 characters in total"),
    ],
)
async def test_one_stream_listens_to_so_much(package: ModuleType, uris: list[str], message: str) -> None:
    async with in_memory(package.build_server(Handlers()), STATELESS, {}) as wire:
        said = await wire("subscriptions/listen", notifications={"resourceSubscriptions": uris})
        assert said == {"error": {"code": -32602, "message": message}}


async def test_one_stream_tells_of_so_many_tasks(package: ModuleType) -> None:
    async with in_memory(package.build_server(Handlers()), STATELESS, {"extensions": {EXTENSION: {}}}) as wire:
        said = await wire("subscriptions/listen", notifications={"taskIds": [str(number) for number in range(1001)]})
        assert said == {"error": {"code": -32602, "message": "More than 1000 task IDs in a subscription"}}
