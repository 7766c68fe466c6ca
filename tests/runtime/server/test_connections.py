"""Connections of the server's own listener: unused connections do not block other clients."""

from __future__ import annotations

import asyncio
import errno
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from stubwright_runtime.server.main import listen
from stubwright_runtime.server.transports.http.listener import connections
from stubwright_runtime.server.transports.http.listener.connections import Bounds, Connections, log_accept_errors
from stubwright_runtime.server.transports.http.listener.graceful_shutdown import GracefulServer
from stubwright_runtime.server.transports.http.uploads import Uploads

pytestmark = pytest.mark.anyio

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class App:
    """Answers GET immediately, unless it must hold it, and POST after the body."""

    def __init__(self) -> None:
        self.hold = asyncio.Event()
        self.hold.set()
        self.held = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        self.held += 1
        await self.hold.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"done"})


class Transport(asyncio.Transport):
    """A transport whose client reads when the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.unsent = 0
        self.is_aborted = False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        self.is_aborted = True


async def test_a_slow_reader_is_given_time_until_it_has_its_answer() -> None:
    async with served(App(), Bounds(4, None, head=0.0)) as (port, links):
        _, writer = await link(port)
        async with asyncio.timeout(60):
            while not links._open:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0)
        [connection] = links._open
        real, slow = connection.transport, Transport()
        connection.transport = slow
        connection.timeout_keep_alive = 0.0
        slow.unsent = 3
        connection._wait(0.0)
        for unsent in (2, 1, 0):
            slow.unsent = unsent
            connection._check_deadline()
            assert not slow.is_aborted, "it has read some of it"
            assert connection._timer is not None
        connection._check_deadline()
        assert slow.is_aborted, "it has all, and asks for nothing more"
        real.abort()
        writer.close()


@asynccontextmanager
async def served(app: Any, bounds: Bounds) -> AsyncIterator[tuple[int, Connections]]:
    """Run the application behind the server's own listener; yield the port and the counter of connections."""
    listener = listen("127.0.0.1", 0)
    server = GracefulServer(app, 0, lambda: None, bounds=bounds)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup([listener])
    made: Any = server.config.http_protocol_class
    try:
        yield listener.getsockname()[1], made.__self__
    finally:
        await server.shutdown([listener])
        asyncio.get_running_loop().set_exception_handler(None)


async def link(port: int, said: bytes = b"", address: str = "127.0.0.1") -> tuple[asyncio.StreamReader, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(said)
    return reader, writer


async def answer(port: int, said: bytes = GET, address: str = "127.0.0.1") -> bytes:
    """Return the response to a request on a separate connection."""
    reader, writer = await link(port, said, address)
    try:
        async with asyncio.timeout(60):
            head = await reader.readuntil(b"\r\n\r\n")
            return head + await reader.read(4)
    except asyncio.IncompleteReadError as error:
        return error.partial
    finally:
        writer.close()


async def closed(reader: asyncio.StreamReader) -> None:
    """Wait until the server closes a connection."""
    async with asyncio.timeout(60):
        with suppress(ConnectionResetError):
            while await reader.read(1000):
                pass


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        await asyncio.sleep(0.005)
    assert is_so()


@pytest.mark.parametrize(
    "said", [b"", b"POST / HTTP/1.1\r\nHost: x\r\nX-A: ", GET + b"GET / HTTP", POST + b"begun"], ids=range(4)
)
async def test_a_request_without_an_end_is_closed_in_time(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stubwright_runtime.server.transports.http.listener.graceful_shutdown.IDLE", 0)
    async with served(App(), Bounds(9, None, head=0.3)) as (port, all_):
        reader, writer = await link(port, said)

        async def trickle() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.02)

        trickling = asyncio.create_task(trickle())
        await closed(reader)
        trickling.cancel()
        await until(lambda: not all_._open)
        assert all_._waiting.find_first() is None
        assert not all_._waiting_by_address
        assert b"200" in await answer(port)


async def test_a_connection_that_was_used_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its last response was sent before its first deadline: one timer is rescheduled."""
    monkeypatch.setattr("stubwright_runtime.server.transports.http.listener.graceful_shutdown.IDLE", 0.2)
    async with served(App(), Bounds(9, None, head=0.4)) as (port, all_):
        reader, writer = await link(port)
        for _ in range(4):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
            await asyncio.sleep(0.15)
            writer.write(b"\r\n")
            assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET / HTTP")
        began = asyncio.get_running_loop().time()
        await closed(reader)
        assert asyncio.get_running_loop().time() - began > 0.3
        await until(lambda: not all_._open)


class Sent:
    """A transport that notes what it is given, and in which turn of the event loop."""

    def __init__(self) -> None:
        self.turn = 0
        self.segments: list[tuple[int, bytes]] = []

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.segments.append((self.turn, data))

    def close(self) -> None:
        self.segments.append((self.turn, b"closed"))


async def test_a_head_goes_out_with_its_body() -> None:
    sent: Any = Sent()
    corked = connections.BufferedTransport(sent, asyncio.get_running_loop())
    corked.write(b"head ")
    corked.write(b"body")
    assert sent.segments == []
    sent.turn = 1
    await asyncio.sleep(0)
    corked.hold()
    corked.write(b"held ")
    await asyncio.sleep(0)
    corked.write(b"body")
    corked.write(b"next")
    await asyncio.sleep(0)
    corked.hold()
    corked.write(b"cut off")
    corked.close()
    assert sent.segments == [(1, b"head body"), (1, b"held body"), (1, b"next"), (1, b"cut off"), (1, b"closed")]


async def test_a_connection_that_keeps_the_server_waiting_makes_room() -> None:
    async with served(App(), Bounds(6, 4)) as (port, all_):
        waiting = [await link(port, said) for said in (b"", b"GET /", POST.replace(b" / ", b" /body "), b"GET")]
        await until(lambda: len(all_._open) == 4)
        for number in range(3):  # of the same address
            assert (await answer(port)).endswith(b"done"), number
        await closed(waiting[0][0])
        others = [f"127.0.0.{2 + number % 2}" for number in range(9)]  # the rest of all places, and then the oldest
        waiting += [await link(port, b"", address) for address in others]
        await until(lambda: len(all_._open) == 6)
        assert (await answer(port, address="127.0.0.4")).endswith(b"done")
        assert len(all_._open) <= 6
        for _, writer in waiting:
            writer.close()
        await until(lambda: not all_._open and not all_._count_by_address)


async def test_where_all_are_at_work_the_next_is_refused_at_once(caplog: pytest.LogCaptureFixture) -> None:
    app = App()
    app.hold.clear()
    async with served(app, Bounds(3, 2)) as (port, _):
        calls = [asyncio.create_task(answer(port)) for _ in range(2)]
        await until(lambda: app.held == 2)
        for _ in range(20):
            assert (await answer(port)).startswith(b"HTTP/1.1 503 ")
        calls.append(asyncio.create_task(answer(port, address="127.0.0.2")))
        await until(lambda: app.held == 3)
        assert (await answer(port, address="127.0.0.3")).startswith(b"HTTP/1.1 503 ")
        app.hold.set()
        assert all(said.endswith(b"done") for said in await asyncio.gather(*calls))
    assert caplog.text.count("connections refused: ") == 1


async def test_an_upload_that_is_slow_goes_on_and_one_that_stops_is_answered() -> None:
    """A stopped body never arrives, on any machine; a slow body has 20 seconds for each part."""
    uploads = {b"": Uploads(seconds=0.3, floor=100), b"slow": Uploads(seconds=0.3, floor=1)}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or await uploads[scope["query_string"]].read(receive, send) is not None:
            await App()(scope, receive, send)

    async with served(app, Bounds(9, None)) as (port, _):

        async def sent(path: bytes, *parts: bytes) -> bytes:
            head = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n\r\n" % path
            reader, writer = await link(port, head + parts[0])
            answered = asyncio.create_task(reader.readuntil(b"\r\n\r\n"))
            for part in parts[1:]:
                await asyncio.sleep(0.1)
                if not answered.done():
                    writer.write(part)
            async with asyncio.timeout(60):
                said = await answered + await reader.read(1000)
            writer.close()
            return said

        slow, stopped, trickled = await asyncio.gather(
            sent(b"/body?slow", *[b"x" * 20] * 10), sent(b"/body", b"x" * 30), sent(b"/body", *[b"x"] * 6)
        )
    assert slow.endswith(b"done")
    for said in (stopped, trickled):
        assert said.startswith(b"HTTP/1.1 408 ")
        assert said.endswith(b'"The request body took too long to arrive"}}')


async def test_requests_that_wait_for_an_answer_stay_bytes() -> None:
    """A client that sends requests without reading answers costs what it sent, and gets all answers in order."""
    app = App()
    app.hold.clear()
    async with served(app, Bounds(4, None)) as (port, links):
        reader, writer = await link(port, GET * 5000)
        async with asyncio.timeout(60):
            while not links._open or not app.held:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0)
            [connection] = links._open
            waiting = len(getattr(connection, "pipeline", ()))  # h11 has no such list: all stays bytes
            assert waiting <= 4096 // len(GET) + 1
            app.hold.set()
            for _ in range(5000):
                assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200")
        assert app.held == 5000
        writer.close()


async def test_all_errors_of_taking_connections_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    log_accept_errors(loop)
    try:
        for _ in range(1000):
            loop.call_exception_handler({"message": "m", "exception": OSError(errno.EMFILE, "x"), "socket": None})
        loop.call_exception_handler({"message": "something else"})
    finally:
        loop.set_exception_handler(None)
    assert [record.message for record in caplog.records] == [
        "connections not accepted: 1, because the system ran out of resources: Too many open files",
        "something else",
    ]


def test_the_bounds_leave_descriptors_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    assert Bounds.choose(None, None) == Bounds(128, 64)
    assert Bounds.choose(None, 0) == Bounds(128, None)
    assert Bounds.choose(10, 3) == Bounds(10, 3)
    assert Bounds.choose(1, None) == Bounds(1, 1)
    for most in (1 << 20, resource.RLIM_INFINITY):
        monkeypatch.setattr(resource, "getrlimit", lambda _, most=most: (most, most))
        assert Bounds.choose(None, None).most == connections.MOST
