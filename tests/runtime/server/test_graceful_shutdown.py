"""Shutdown of an HTTP server: every accepted connection gets a response."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import closing, nullcontext
from functools import partial
from typing import Any

import pytest

from stubwright_runtime.server.handlers.lifespan import Lifespan
from stubwright_runtime.server.main import listen
from stubwright_runtime.server.transports.http.events import Response
from stubwright_runtime.server.transports.http.listener import graceful_shutdown
from stubwright_runtime.server.transports.http.listener.connections import Connection
from stubwright_runtime.server.transports.http.listener.direct import Endpoint
from stubwright_runtime.server.transports.http.listener.graceful_shutdown import GracefulServer

REQUEST = b"GET /%d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def _answer(link: socket.socket) -> bytes:
    link.settimeout(10)
    found = b""
    while part := link.recv(1000):
        found += part
    return found


async def _start(
    seconds: int, stop: Callable[[], None] = lambda: None, app: Any = app
) -> tuple[GracefulServer, socket.socket]:
    listener = listen("127.0.0.1", 0)
    server = GracefulServer(app, seconds, stop)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup([listener])
    return server, listener


@pytest.mark.anyio
async def test_who_was_connected_before_is_answered_and_who_comes_later_is_refused() -> None:
    stopped: list[str] = []
    server, listener = await _start(5, lambda: stopped.append("stopped"))
    where = listener.getsockname()
    # Nothing here waits, so that the event loop cannot take these connections before the server is asked to stop.
    links = [socket.create_connection(where) for _ in range(9)]
    for number, link in enumerate(links[:-1]):
        link.sendall(REQUEST % number)
    ending = asyncio.create_task(server.shutdown([listener]))
    await asyncio.sleep(0)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(where)
    links[-1].sendall(REQUEST % 8)  # said only now
    await ending
    assert stopped == ["stopped"]
    for number, link in enumerate(links):
        with closing(link):
            assert (await asyncio.to_thread(_answer, link)).endswith(b"/%d" % number)


@pytest.mark.anyio
async def test_a_client_that_is_busy_when_the_server_stops_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graceful_shutdown, "_LATE", 0.0)
    monkeypatch.setattr(graceful_shutdown, "_LATEST", 60.0)
    server, listener = await _start(5)
    (new_reader, new), (used_reader, used) = [await asyncio.open_connection(*listener.getsockname()) for _ in range(2)]
    used.write(b"GET /1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"connection: close" not in (await used_reader.readuntil(b"/1")).lower()
    ending = asyncio.create_task(server.shutdown([listener]))
    await asyncio.wait([ending], timeout=0.1)
    async with asyncio.timeout(30):  # the server does not wait for a minute once each has been answered
        for number, (reader, writer) in enumerate([(new_reader, new), (used_reader, used)], 2):
            assert not ending.done()
            writer.write(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number)
            answer = await reader.read()
            assert answer.lower().count(b"connection: close") == 1
            assert answer.endswith(b"/%d" % number)
            writer.close()
        await ending


class _Direct:
    """An endpoint that answers directly, with the body of the request; it fails at the body `no`."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.held = asyncio.Semaphore(0)

    def parse_head(self, _headers: object) -> object:
        return object()

    async def handle(self, _head: object, body: bytes, _connect: object, *, peer: object, address: str) -> Response:
        assert address == "127.0.0.1"
        self.held.release()
        await self.may_answer.wait()
        if body == b"no":
            raise ValueError
        return Response.from_answer(200, body)


@pytest.mark.anyio
async def test_a_direct_answer_says_once_that_its_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graceful_shutdown, "_LATE", 0.0)
    monkeypatch.setattr(graceful_shutdown, "_LATEST", 0.0)
    endpoint: Any = _Direct()
    application: Any = partial(app)
    application.direct_endpoint = Endpoint(endpoint, "/mcp", "none")
    server, listener = await _start(60, app=application)
    shut_down = Connection.shutdown

    def answer_after_shutdown(self: Connection) -> None:
        shut_down(self)
        endpoint.may_answer.set()

    monkeypatch.setattr(Connection, "shutdown", answer_after_shutdown)
    request = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"
    links = [await asyncio.open_connection(*listener.getsockname()) for _ in range(3)]
    async with asyncio.timeout(30):
        for reader, writer in links[:2]:
            writer.write(request + b"10")
            assert b"connection: close" not in (await reader.readuntil(b"10")).lower()
        failed, writer = links.pop()
        writer.write(request + b"no")
        answers = [await failed.read()]  # the connection ends, though the server goes on
        writer.close()
        endpoint.held = asyncio.Semaphore(0)
        endpoint.may_answer.clear()
        for (_, writer), body in zip(links, (b"10", b"no"), strict=True):
            writer.write(request + body)
            await endpoint.held.acquire()
        await server.shutdown([listener])
        for reader, writer in links:
            answers.append(await reader.read())
            writer.close()
    assert [answer[9:12] for answer in answers] == [b"500", b"200", b"500"]
    assert [answer.lower().count(b"connection: close") for answer in answers] == [1, 1, 1]


@pytest.mark.anyio
async def test_a_connection_without_a_request_holds_a_server_up_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graceful_shutdown, "_LATEST", 0.3)
    server, listener = await _start(60)
    with closing(socket.create_connection(listener.getsockname())) as silent:
        async with asyncio.timeout(30):
            await server.shutdown([listener])
        assert await asyncio.to_thread(_answer, silent) == b""


@pytest.mark.anyio
async def test_a_start_that_hangs_is_aborted_at_a_signal(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The signal sets it for the whole process, so that the SDK's servers would end the streams of later tests.
    monkeypatch.setattr("sse_starlette.sse.AppStatus.should_exit", False)
    ended: list[str] = []

    async def hang(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
            await send({"type": "lifespan.startup.failed", "message": "Traceback"})

    server = GracefulServer(hang, 5, lambda: None)
    server.config.load()
    before = asyncio.all_tasks()
    with closing(listen("127.0.0.1", 0)) as listener:
        asyncio.get_running_loop().call_later(0.05, server.handle_exit, signal.SIGTERM, None)
        with pytest.raises(SystemExit):
            async with asyncio.timeout(5):
                await server.startup([listener])
    for task in (running := asyncio.all_tasks() - before):
        task.cancel()  # as the end of the loop does
    await asyncio.wait(running)
    assert server.is_aborted
    assert ended == ["cancelled"]
    assert "Traceback" not in caplog.text


@pytest.mark.anyio
async def test_handlers_that_end_slowly_are_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stubwright_runtime.server.handlers.lifespan._SLOW", 0.05)

    class Slow:
        seconds = 0.2

        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *_: object) -> None:
            await asyncio.sleep(self.seconds)

    handlers = Slow()
    lifespan = Lifespan(handlers, nullcontext)
    for handlers.seconds in (0.2, 0.0):
        async with lifespan():
            pass
    waits = [record.message for record in caplog.records if "__aexit__ has been running" in record.message]
    assert waits == ["the handlers' __aexit__ has been running for 0.05 seconds; still waiting"]


@pytest.mark.anyio
@pytest.mark.parametrize("has_started", [False, True])
async def test_a_handler_that_ignores_its_cancellation_leaves_no_traceback(
    has_started: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graceful_shutdown, "_LAST_ERRORS", 0.0)
    monkeypatch.setattr(graceful_shutdown, "_LATE", 0.0)
    monkeypatch.setattr(graceful_shutdown, "_LATEST", 0.0)
    is_called = asyncio.Event()

    async def hang(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if has_started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
        is_called.set()
        await asyncio.Event().wait()

    server, listener = await _start(0, app=hang)
    with closing(socket.create_connection(listener.getsockname())) as link:
        link.sendall(REQUEST % 1)
        await is_called.wait()
        await server.shutdown([listener])
        answer = await asyncio.to_thread(_answer, link)
    if has_started:
        assert answer.endswith(b"5\r\nfirst\r\n0\r\n\r\n")
    else:
        assert answer.startswith(b"HTTP/1.1 500 ")
        assert b'"message":"The server stopped before it could respond.' in answer
    assert "Traceback" not in caplog.text
    assert "a handler is still running; its request ends without a result" in caplog.text


@pytest.mark.anyio
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_only_a_second_sigint_kills_a_server_that_waits_for_requests(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[Any] = []
    monkeypatch.setattr(signal, "signal", lambda *given: killed.append(given))
    monkeypatch.setattr(signal, "raise_signal", killed.append)
    server, listener = await _start(5)
    server.handle_exit(number, None)
    assert killed == []
    server.handle_exit(number, None)
    assert killed == ([(number, signal.SIG_DFL), number] if number == signal.SIGINT else [])
    await server.shutdown([listener])
