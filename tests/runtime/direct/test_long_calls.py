"""Slow calls whose client disconnects, cancels them, or ends its session."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx2
import pytest

import amounts
import prompt_ends
from conversations import READY, handshake, request, usual
from packages import generate, imported, manifest, tool
from serving import WAYS, asgi
from sink import Sink
from stubwright_runtime.server.app.builder import build_core
from stubwright_runtime.server.transports.http import events
from stubwright_runtime.server.transports.http.asgi import asgi_app
from stubwright_runtime.server.transports.lifecycle import Lifecycle
from stubwright_runtime.server.transports.stdio import connection as connection_module
from stubwright_runtime.server.transports.stdio.connection import Connection
from stubwright_runtime.server.transports.stdio.reader import Line

ends_are_prompt = prompt_ends.ends_are_prompt

REVISION = "2025-11-25"
LARGE = 100_000


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("handed")
    with imported(folder, generate(folder, manifest([tool("wait")], name="handed"))) as module:
        yield module


class Handlers:
    def __init__(self, seconds: float = 0.3) -> None:
        self.seconds = seconds
        self.starts = 0
        self.ends: list[str] = []

    async def wait(self, args: Any, ctx: Any) -> str:
        self.starts += 1
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise
        self.ends.append("done")
        return "x" * LARGE


async def shaken(http: httpx2.AsyncClient, url: str) -> str:
    first = handshake(REVISION)
    response = await http.post(url, json=first, headers=dict(usual(first, REVISION, None)))
    session: str = response.headers["mcp-session-id"]
    await http.post(url, json=READY, headers=dict(usual(READY, REVISION, session)))
    return session


def line_of(message: Any) -> Line:
    return Line(json.dumps(message).encode())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


CALL = request(7, "tools/call", {"name": "wait", "arguments": {}}, stateless=False)


EVERY_WAY = pytest.mark.parametrize("way", [*WAYS[:2], amounts.mark_long(WAYS[2])], ids=["asgi", "httptools", "h11"])


class Late:
    """Goes on after its answer."""

    def __init__(self) -> None:
        self.later: asyncio.Task[None] | None = None

    async def wait(self, args: Any, ctx: Any) -> str:
        async def go_on() -> None:
            await asyncio.sleep(0.2)
            await ctx.progress(2)
            await ctx.log("info", "after the answer")

        await ctx.progress(1)
        self.later = asyncio.create_task(go_on())
        return "done"


@EVERY_WAY
def test_no_progress_is_told_after_the_answer(way: Any, package: ModuleType) -> None:
    call = request(7, "tools/call", {"name": "wait", "_meta": {"progressToken": "t"}}, stateless=False)

    async def use(url: str) -> str:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = await shaken(http, url)
            answer = await http.post(url, json=call, headers=dict(usual(call, REVISION, session)))
            assert answer.text.count('"progressToken":"t"') == 1
            listening = {"mcp-session-id": session, "accept": "text/event-stream"}
            async with http.stream("GET", url, headers=listening) as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("data: {"):
                        return line
        return ""

    with way(package.asgi_app(Late())) as url:
        assert "after the answer" in asyncio.run(use(f"{url}/mcp")), "the first message after the answer"


@EVERY_WAY
def test_a_session_is_told_on_the_stream_that_came_last(way: Any, package: ModuleType) -> None:
    """A client whose connection broke unnoticed comes again, while the server still has the old stream."""
    call = request(7, "tools/call", {"name": "wait"}, stateless=False)

    async def use(url: str) -> None:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = await shaken(http, url)
            listening = {"mcp-session-id": session, "accept": "text/event-stream"}
            get = partial(http.stream, "GET", url, headers=listening)
            async with get() as first, get() as second:
                assert [first.status_code, second.status_code] == [200, 200]
                assert "data: {" not in (await first.aread()).decode(), "it has ended"
                await http.post(url, json=call, headers=dict(usual(call, REVISION, session)))
                async for line in second.aiter_lines():
                    if line.startswith("data: {"):
                        assert "after the answer" in line
                        return
        pytest.fail("the second stream ended, too")

    with way(package.asgi_app(Late())) as url:
        asyncio.run(use(f"{url}/mcp"))


@EVERY_WAY
@pytest.mark.parametrize("revision", [REVISION, "2026-07-28"])
def test_a_slow_call_runs_once(revision: str, way: Any, package: ModuleType) -> None:
    handlers = Handlers()

    async def use(url: str) -> httpx2.Response:
        async with httpx2.AsyncClient(timeout=60) as http:
            stateless = revision != REVISION
            session = None if stateless else await shaken(http, url)
            call = request(7, "tools/call", {"name": "wait", "arguments": {}}, stateless=stateless)
            return await http.post(url, json=call, headers=dict(usual(call, revision, session)))

    with way(package.asgi_app(handlers)) as url:
        response = asyncio.run(use(f"{url}/mcp"))
    text = [line for line in response.text.splitlines() if line.startswith(("data: {", "{"))][-1]
    answer = json.loads(text.removeprefix("data: "))
    assert answer["result"]["content"][0]["text"] == "x" * LARGE
    assert (handlers.starts, handlers.ends) == (1, ["done"])


@EVERY_WAY
def test_a_call_of_a_session_that_ends_is_cancelled(
    way: Any, package: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = Handlers(30)

    async def use(url: str) -> list[int]:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = await shaken(http, url)
            call = asyncio.create_task(http.post(url, json=CALL, headers=dict(usual(CALL, REVISION, session))))
            while not handlers.starts:  # noqa: ASYNC110 - it is in another thread
                await asyncio.sleep(0.005)
            ended = await http.delete(url, headers={"mcp-session-id": session})
            cancelled = await call
            async with asyncio.timeout(60):
                while not handlers.ends:  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.01)
            return [ended.status_code, cancelled.status_code]

    with way(package.asgi_app(handlers)) as url:
        statuses = asyncio.run(use(f"{url}/mcp"))
    assert statuses == [200, 200], "404 would say that nothing was done"
    assert handlers.ends == ["cancelled"]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@EVERY_WAY
@pytest.mark.parametrize(("revision", "end"), [(REVISION, "done"), ("2026-07-28", "cancelled")])
@pytest.mark.parametrize("moment", [0.02, 0.2], ids=["at once", "on a stream"])
def test_a_client_that_leaves(revision: str, end: str, moment: float, way: Any, package: ModuleType) -> None:
    """Up to 2025-11-25 a request goes on without its client (MCP 2025-11-25, basic/transports, "Sending Messages")."""
    handlers = Handlers(0.6)
    stateless = revision != REVISION

    async def use(url: str) -> None:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = None if stateless else await shaken(http, url)
            call = request(7, "tools/call", {"name": "wait", "arguments": {}}, stateless=stateless)
            asked = asyncio.create_task(http.post(url, json=call, headers=dict(usual(call, revision, session))))
            while not handlers.starts:  # noqa: ASYNC110 - it is in another thread
                await asyncio.sleep(0.005)
            await asyncio.sleep(moment)
            asked.cancel()
            async with asyncio.timeout(60):
                while not handlers.ends:  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.01)
            ping = request(8, "tools/list", None, stateless=stateless)
            assert (await http.post(url, json=ping, headers=dict(usual(ping, revision, session)))).status_code == 200

    with way(package.asgi_app(handlers)) as url:
        asyncio.run(use(f"{url}/mcp"))
    assert (handlers.starts, handlers.ends) == (1, [end])


class Telling(Handlers):
    async def wait(self, args: Any, ctx: Any) -> str:
        result = await super().wait(args, ctx)
        await ctx.progress(1)
        await ctx.log("error", "half")
        await ctx.release_stream()
        self.ends.append("told")
        return result


@EVERY_WAY
@pytest.mark.parametrize("moment", [0.02, 0.2], ids=["at once", "on a stream"])
def test_a_handler_goes_on_that_tells_a_client_which_has_left(moment: float, way: Any, package: ModuleType) -> None:
    handlers = Telling(0.4)

    async def use(url: str) -> None:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = await shaken(http, url)
            call = {**CALL, "params": {**CALL["params"], "_meta": {"progressToken": "t"}}}
            asked = asyncio.create_task(http.post(url, json=call, headers=dict(usual(call, REVISION, session))))
            while not handlers.starts:  # noqa: ASYNC110 - it is in another thread
                await asyncio.sleep(0.005)
            await asyncio.sleep(moment)
            asked.cancel()
            async with asyncio.timeout(60):
                while len(handlers.ends) < 2:  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.01)

    with way(package.asgi_app(handlers)) as url:
        asyncio.run(use(f"{url}/mcp"))
    assert (handlers.starts, handlers.ends) == (1, ["done", "told"])


@EVERY_WAY
@pytest.mark.parametrize("moment", [0.02, 0.2], ids=["at once", "on a stream"])
def test_a_call_that_is_cancelled(moment: float, way: Any, package: ModuleType) -> None:
    handlers = Handlers(30)

    async def use(url: str) -> list[int]:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = await shaken(http, url)
            headers = dict(usual(CALL, REVISION, session))
            asked = asyncio.create_task(http.post(url, json=CALL, headers=headers))
            while not handlers.starts:  # noqa: ASYNC110 - it is in another thread
                await asyncio.sleep(0.005)
            await asyncio.sleep(moment)
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": CALL["id"]}}
            cancelled = await http.post(url, json=cancel, headers=headers)
            return [cancelled.status_code, (await asked).status_code]

    with way(package.asgi_app(handlers)) as url:
        assert asyncio.run(use(f"{url}/mcp")) == [202, 200]
    assert handlers.ends == ["cancelled"]


@pytest.fixture
def connecting(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Set when a stream is going to get its connection; it gets that when the second is set."""
    held, released = threading.Event(), threading.Event()
    connect = events.AnswerStream.connect

    async def hold(stream: events.AnswerStream, line: events.EventWriter) -> None:
        held.set()
        while not released.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(0.005)
        await connect(stream, line)

    monkeypatch.setattr(events.AnswerStream, "connect", hold)
    return held, released


@EVERY_WAY
def test_a_call_that_is_cancelled_before_its_stream_has_a_connection(
    way: Any, package: ModuleType, connecting: tuple[threading.Event, threading.Event]
) -> None:
    handlers = Handlers(30)
    held, released = connecting

    async def use(url: str) -> tuple[int, httpx2.Response]:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = await shaken(http, url)
            headers = dict(usual(CALL, REVISION, session))
            asked = asyncio.create_task(http.post(url, json=CALL, headers=headers))
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": CALL["id"]}}
            try:
                async with asyncio.timeout(60):
                    while not held.is_set():  # noqa: ASYNC110 - it is set in another thread
                        await asyncio.sleep(0.005)
                    cancelled = await http.post(url, json=cancel, headers=headers)
                    while not handlers.ends:  # noqa: ASYNC110 - likewise
                        await asyncio.sleep(0.005)
            finally:
                released.set()
            return cancelled.status_code, await asked

    with way(package.asgi_app(handlers)) as url:
        status, response = asyncio.run(use(f"{url}/mcp"))
    assert (status, response.status_code) == (202, 200)
    assert '"code":-32800' in response.text
    assert handlers.ends == ["cancelled"]


@EVERY_WAY
def test_a_session_that_ends_before_the_stream_of_a_call_has_a_connection(
    way: Any, package: ModuleType, connecting: tuple[threading.Event, threading.Event]
) -> None:
    handlers = Handlers(30)
    held, released = connecting

    async def use(url: str) -> tuple[int, httpx2.Response]:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = await shaken(http, url)
            asked = asyncio.create_task(http.post(url, json=CALL, headers=dict(usual(CALL, REVISION, session))))
            try:
                async with asyncio.timeout(60):
                    while not held.is_set():  # noqa: ASYNC110 - it is set in another thread
                        await asyncio.sleep(0.005)
                    ended = await http.delete(url, headers={"mcp-session-id": session})
                    while not handlers.ends:  # noqa: ASYNC110 - likewise
                        await asyncio.sleep(0.005)
            finally:
                released.set()
            return ended.status_code, await asked

    with way(package.asgi_app(handlers)) as url:
        status, response = asyncio.run(use(f"{url}/mcp"))
    assert (status, response.status_code) == (200, 200)
    answer = json.loads(response.text.rpartition("data: ")[2])
    assert answer["id"] == CALL["id"]
    assert answer["error"]["message"] == "The session was closed; the request may have taken effect"
    assert handlers.ends == ["cancelled"]


@pytest.mark.anyio
async def test_a_call_on_stdio_that_is_cancelled_at_once_is_forgotten(package: ModuleType) -> None:
    handlers, sink = Handlers(), Sink()
    core = build_core(package.TOOLS["wait"].package, handlers)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": CALL["id"]}}
    async with core.lifespan(), asyncio.timeout(60):
        connection = Connection(core, sink)  # type: ignore[arg-type]
        await connection.handle(line_of(handshake(REVISION)))
        await connection.wait_for_answers()
        await connection.handle(line_of(CALL))
        await connection.handle(line_of(cancel))
        await connection.wait_for_answers()
        assert connection._requests == {}
        await connection.close()
    assert handlers.starts == 0
    assert [line["id"] for line in sink.lines] == ["hello"]


@pytest.mark.anyio
async def test_a_call_whose_cancellation_is_read_before_it_begins(package: ModuleType) -> None:
    """As when both have waited while a handler held the event loop, and come on two connections."""
    handlers = Handlers(30)
    direct = asgi_app(build_core(package.TOOLS["wait"].package, handlers)).routes[0].endpoint.app  # type: ignore[attr-defined]

    def take(message: Any, session: str | None) -> Any:
        headers = [(name.lower().encode(), value.encode()) for name, value in usual(message, REVISION, session)]
        head = direct.parse_head([*headers, (b"host", b"127.0.0.1:80"), (b"content-length", b"2")])
        return direct.handle(head, json.dumps(message).encode(), lambda _: None)

    async with direct.run(), asyncio.timeout(60):
        opened = await take(handshake(REVISION), None)
        session = dict(opened.headers)[b"mcp-session-id"].decode()
        called = take(CALL, session)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": CALL["id"]}}
        assert (await take(cancel, session)).status == 202
        answer = await called
        assert json.loads(answer.body)["error"]["code"] == -32800
        assert (await take(request(8, "ping", {}, stateless=False), session)).status == 200
    assert handlers.starts == 0


def test_handshakes_count_in_the_budget_of_their_caller(package: ModuleType) -> None:
    core = build_core(package.TOOLS["wait"].package, Handlers())
    core.package.manifest["storage"] = {"maxBytesPerPrincipal": "50KiB"}
    first = handshake(REVISION)
    first["params"]["capabilities"] = {"experimental": {str(number): {} for number in range(1_450)}}
    with asgi(asgi_app(core)) as url, httpx2.Client() as http:

        def shake() -> httpx2.Response:
            return http.post(f"{url}/mcp", json=first, headers=dict(usual(first, REVISION, None)))

        def use(session: str) -> int:
            ping = request(8, "ping", {}, stateless=False)
            return http.post(f"{url}/mcp", json=ping, headers=dict(usual(ping, REVISION, session))).status_code

        # Sessions that were never used make room, the oldest first.
        names = [shake().headers["mcp-session-id"] for _ in range(5)]
        assert [use(name) for name in names] == [404, 404, 200, 200, 200]
        refused = shake()
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        assert "from your address have used its share of memory" in refused.json()["error"]["message"]
        http.delete(f"{url}/mcp", headers={"mcp-session-id": names[-1]})
        assert shake().status_code == 200
    del core.package.manifest["storage"]


@EVERY_WAY
def test_calls_that_go_on_without_their_clients_have_a_budget(way: Any, package: ModuleType) -> None:
    handlers = Handlers(30)
    call = request(0, "tools/call", {"name": "wait", "arguments": {"a": "x" * 900_000}}, stateless=False)

    async def use(url: str) -> None:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = await shaken(http, url)
            for number in range(8):
                message = {**call, "id": number}
                sent = dict(usual(message, REVISION, session))
                async with http.stream("POST", url, json=message, headers=sent) as answer:
                    assert answer.headers["content-type"] == "text/event-stream"
            async with asyncio.timeout(60):
                while len(handlers.ends) < 2:  # noqa: ASYNC110 - it is in another thread
                    await asyncio.sleep(0.01)
            assert (handlers.starts, len(handlers.ends)) == (8, 2), "six take 16 MiB"
            await http.delete(url, headers={"mcp-session-id": session})

    with way(package.asgi_app(handlers)) as url:
        asyncio.run(use(f"{url}/mcp"))


def test_there_are_so_many_sessions(package: ModuleType) -> None:
    core = build_core(package.TOOLS["wait"].package, Handlers())
    plain, odd = handshake(REVISION), handshake(REVISION)
    odd["params"]["odd"] = True
    with asgi(asgi_app(core, max_sessions=3)) as url, httpx2.Client() as http:

        def opened(message: Any, session: str | None = None) -> httpx2.Response:
            headers = dict(usual(message, REVISION, session))
            return http.post(f"{url}/mcp", json=message, headers=headers)

        ping = request(8, "ping", {}, stateless=False)
        names = [opened(message).headers["mcp-session-id"] for message in (plain, odd, plain)]
        assert [opened(ping, name).status_code for name in names] == [200, 200, 200]
        assert [opened(message).status_code for message in (plain, odd)] == [503, 503]


@pytest.mark.parametrize("result", [{"a": object()}, {"a": "\ud800"}])
def test_what_is_not_json_is_an_error_and_no_silence(
    result: Any, package: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    lifecycle = Lifecycle(build_core(package.TOOLS["wait"].package, Handlers()))
    request: Any = SimpleNamespace(id=1, method="tools/call")
    answer = json.loads(lifecycle.encode_response(request, result))
    assert answer["error"] == {"code": -32603, "message": "The message cannot be written as JSON"}
    assert "cannot be written as JSON" in caplog.text


class Released(Handlers):
    """Gives up its stream before it waits."""

    async def wait(self, args: Any, ctx: Any) -> str:
        await ctx.release_stream()
        return await super().wait(args, ctx)


@EVERY_WAY
def test_calls_whose_streams_were_released_count_until_they_end(way: Any, package: ModuleType) -> None:
    handlers = Released(30)
    core = build_core(package.TOOLS["wait"].package, handlers)
    core.package.manifest["storage"] = {"maxBytesPerPrincipal": "40KiB"}  # two calls take 32 KiB and their messages

    async def use(url: str) -> None:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = await shaken(http, url)

            async def send(number: int) -> httpx2.Response:
                message = {**CALL, "id": number}
                return await http.post(url, json=message, headers=dict(usual(message, REVISION, session)))

            for number in range(2):
                assert '"id"' not in (await send(number)).text, "its connection ends without the answer"
            third = asyncio.create_task(send(3))  # there is no room, and it keeps its connection
            async with asyncio.timeout(60):
                while handlers.starts < 3:  # noqa: ASYNC110 - it is in another thread
                    await asyncio.sleep(0.01)
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}}
            await http.post(url, json=cancel, headers=dict(usual(cancel, REVISION, session)))
            async with asyncio.timeout(60):
                while not handlers.ends:  # noqa: ASYNC110 - it is in another thread
                    await asyncio.sleep(0.01)
            assert '"id"' not in (await send(4)).text, "there is room again"
            await http.delete(url, headers={"mcp-session-id": session})
            assert "The session was closed" in (await third).text

    try:
        with way(asgi_app(core)) as url:
            asyncio.run(use(f"{url}/mcp"))
    finally:
        del core.package.manifest["storage"]


@pytest.mark.anyio
async def test_calls_that_ignore_their_cancellation_are_answered_once(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the client cancelled them. Other requests in the same batch keep their responses."""

    class Stubborn:
        async def wait(self, args: Any, ctx: Any) -> str:
            begun.release()
            while not may_end.is_set():
                try:
                    await may_end.wait()
                except asyncio.CancelledError:
                    continue
            return "done"

    monkeypatch.setattr(connection_module, "_ABORT_SECONDS", 0.01)
    monkeypatch.setattr(connection_module, "CANCEL_TIMEOUT", 0.01)
    begun, may_end, sink = asyncio.Semaphore(0), asyncio.Event(), Sink()
    core = build_core(package.TOOLS["wait"].package, Stubborn())
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": CALL["id"]}}
    async with core.lifespan(), asyncio.timeout(60):
        connection = Connection(core, sink)  # type: ignore[arg-type]
        await connection.handle(line_of(handshake("2025-03-26")))
        await connection.wait_for_answers()
        await connection.handle(line_of([request("ping", "ping", {}, stateless=False), {**CALL, "id": "call"}]))
        await connection.handle(line_of(CALL))
        for _ in range(2):
            await begun.acquire()
        await connection.handle(line_of(cancel))
        await connection.abort_requests()
        await connection.abort_requests()  # a signal after the end of the input
        assert [line["id"] for line in sink.lines] == ["hello", "call"]
        await connection.close()
        may_end.set()
        await connection.wait_for_answers()
    assert [line["id"] for line in sink.lines[2]] == ["ping"]
    assert len(sink.lines) == 3
