"""Connections without a proxy behave like httpx2's, for any response of a server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from stubwright_runtime.client.core.connect_errors import ConnectError
from stubwright_runtime.client.rpc.connection import RpcConnection
from stubwright_runtime.client.transports.bounds import Bounds
from stubwright_runtime.client.transports.http import HttpTransport
from stubwright_runtime.network import transport as transport_module
from stubwright_runtime.network.certificates import make_tls_context
from stubwright_runtime.network.transport import DirectTransport
from tls import make_certificate

pytestmark = pytest.mark.anyio

_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"

RESPONSES: Final = {
    "length": _HEAD + b"Content-Length: 5\r\n\r\nhello",
    "empty": _HEAD + b"Content-Length: 0\r\n\r\n",
    "chunks": _HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
    "trailers": _HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Late: yes\r\n\r\n",
    "until the end": _HEAD + b"\r\nhello",
    "closing": _HEAD + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\nhello",
    "lines without returns": (_HEAD + b"Content-Length: 5\r\n\r\n").replace(b"\r", b"") + b"hello",
    "two lengths": _HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "padded": _HEAD + b"X-Padded:  x \t \r\nTransfer-Encoding: chunked\r\n\r\n5  \r\nhello\r\n0\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "accepted": b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
    "hints": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + _HEAD + b"Content-Length: 2\r\n\r\nok",
    "no phrase": b"HTTP/1.1 599\r\nContent-Length: 2\r\n\r\nno",
    "two of a name": _HEAD + b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok",
    "offers an upgrade": _HEAD + b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\nok",
    "compressed": _HEAD + b"Content-Encoding: gzip\r\nContent-Length: 25\r\n\r\n"
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00",
    "short": _HEAD + b"Content-Length: 9\r\n\r\nhello",
    "half a chunk": _HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nhello",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Type: te",
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "wrong chunk": _HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    "wrong length": _HEAD + b"Content-Length: five\r\n\r\nhello",
    "switches": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello",
    "escape in a header": _HEAD + b"X-Own: a\x1b[31mb\x07\r\nContent-Length: 2\r\n\r\nok",
    "latin header": _HEAD + b"X-Own: caf\xe9\r\nContent-Length: 2\r\n\r\nok",
    "spaces around a value": _HEAD + b"X-Own: \t a b \t\r\nContent-Length:  2 \r\n\r\nok",
    "empty value": _HEAD + b"X-Own:\r\nContent-Length: 2\r\n\r\nok",
    "null in a header": _HEAD + b"X-Own: a\0b\r\nContent-Length: 2\r\n\r\nok",
    "return in a header": _HEAD + b"X-Own: a\rb\r\nContent-Length: 2\r\n\r\nok",
    "two different lengths": _HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
    "bare line ends": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "length and chunks": _HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "other version": b"HTTP/1.7 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "space before a colon": _HEAD + b"X-Own : a\r\nContent-Length: 2\r\n\r\nok",
    "no colon": _HEAD + b"X-Own\r\nContent-Length: 2\r\n\r\nok",
    "status of two digits": b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok",
    "no space after the status": b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
    "identity": _HEAD + b"Transfer-Encoding: identity\r\n\r\nok",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"X-Header: some value\r\n" * 10_000,
}


@asynccontextmanager
async def serving(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], **options: object
) -> AsyncIterator[str]:
    """Run a server that answers with bytes; yield its URL."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0, **options)  # type: ignore[arg-type]
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Return a request with `Content-Length`; empty at the end of the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return head + await reader.readexactly(length)


async def ask(transport: httpx2.AsyncBaseTransport, url: str, method: str = "POST") -> object:
    """Return the status, the headers and the body of a response, or the kind of error."""
    async with httpx2.AsyncClient(transport=transport, timeout=10) as client:
        try:
            response = await client.request(method, url, content=b"{}")
        except httpx2.TransportError as error:
            return httpx2.RemoteProtocolError if isinstance(error, httpx2.NetworkError) else type(error)
        return response.status_code, response.reason_phrase, response.headers.multi_items(), response.content


@pytest.mark.parametrize(("name", "size"), [*product(RESPONSES, [1, 7, 1_000_000])])
async def test_a_response_is_read_as_httpx2_reads_it(name: str, size: int) -> None:
    said = RESPONSES[name]
    if size == 1 and len(said) > 1000:
        pytest.skip("a long response in single bytes shows nothing more")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        with suppress(ConnectionError):
            for start in range(0, len(said), size):
                writer.write(said[start : start + size])
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    async with serving(answer) as url:
        assert await ask(DirectTransport(make_tls_context()), url) == await ask(httpx2.AsyncHTTPTransport(), url)


async def test_a_response_to_head_has_no_body() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(_HEAD + b"Content-Length: 5\r\n\r\n")
        await writer.drain()
        await reader.read()
        writer.close()

    async with serving(answer) as url:
        mine = await ask(DirectTransport(make_tls_context()), url, "HEAD")
        assert mine == await ask(httpx2.AsyncHTTPTransport(), url, "HEAD")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (RESPONSES["length"], 1),
        (RESPONSES["no content"], 1),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", 3),
        (RESPONSES["length"] + RESPONSES["length"], 3),
        (RESPONSES["length"] + b"x", 3),
        (RESPONSES["two lengths"], 3),
    ],
)
async def test_a_connection_is_kept_if_nothing_follows_its_response(response: bytes, expected: int) -> None:
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while not reader.at_eof():
            try:
                await read_request(reader)
            except asyncio.IncompleteReadError:
                break
            writer.write(response)
        writer.close()

    async with serving(answer) as url, httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
        for _ in range(3):
            assert (await client.post(url, content=b"{}")).text == ("" if b" 204 " in response else "hello")
            await asyncio.sleep(0.01)
    assert connections == expected


async def test_an_idle_connection_that_the_server_closed_is_not_used() -> None:
    closed = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(RESPONSES["length"])
        await writer.drain()
        await asyncio.sleep(0.01)
        writer.close()
        closed.set()

    async with serving(answer) as url, httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
        for _ in range(3):
            assert (await client.post(url, content=b"{}")).text == "hello"
            await closed.wait()  # the client has not seen the end yet
            closed.clear()


async def test_a_connection_with_an_unread_response_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "_MOST_BUFFERED", 1)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                await read_request(reader)
                writer.write(RESPONSES["length"])
        writer.close()

    async with serving(answer) as url, httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
        async with client.stream("POST", url, content=b"{}"), asyncio.timeout(10):
            assert (await client.post(url, content=b"{}")).text == "hello"
        assert (await asyncio.wait_for(client.post(url, content=b"{}"), 10)).text == "hello"


async def test_expired_connections_give_way_to_those_of_other_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "_MOST_IDLE", 1)
    ports: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.append(writer.get_extra_info("sockname")[1])
        with suppress(asyncio.IncompleteReadError):
            while True:
                await read_request(reader)
                writer.write(RESPONSES["length"])
        writer.close()

    transport = DirectTransport(make_tls_context())
    async with serving(answer) as first, serving(answer) as second, httpx2.AsyncClient(transport=transport) as client:
        for url, seconds in ((first, 60), (second, -1), (second, 60)):
            monkeypatch.setattr(transport_module, "_IDLE_SECONDS", seconds)
            await client.post(url, content=b"{}")
    assert len(ports) == len(set(ports)) == 2


async def test_a_response_that_nobody_reads_stops_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server sends until the buffers are full, and the rest when the client reads."""
    monkeypatch.setattr(transport_module, "_MOST_BUFFERED", 1000)
    size = 20_000_000
    sent = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await read_request(reader)
        writer.write(_HEAD + b"Content-Length: %d\r\n\r\n" % size)
        while sent < size:
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000
        writer.close()

    async with (
        serving(answer) as url,
        httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client,
        client.stream("POST", url, content=b"{}") as response,
    ):
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.05)
        assert sent < size / 2
        assert len(await response.aread()) == size


async def test_a_large_request_gets_the_answer_that_comes_before_its_end() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()

    async with serving(answer) as url, httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
        assert (await client.post(url, content=b"x" * 50_000_000)).status_code == 413


@pytest.mark.parametrize(
    ("kind", "said", "size"),
    [
        ("write", b"", 50_000_000),
        ("read", b"", 1),
        ("read", _HEAD, 1),
        ("read", _HEAD + b"Content-Length: 2\r\n\r\no", 1),
    ],
)
async def test_times_are_limited(kind: str, said: bytes, size: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if kind == "write":
            await asyncio.Event().wait()
        await read_request(reader)
        writer.write(said)
        await reader.read()
        writer.close()

    timeout = httpx2.Timeout(None, **{kind: 0.05})
    transport = DirectTransport(make_tls_context())
    async with serving(answer) as url, httpx2.AsyncClient(transport=transport, timeout=timeout) as client:
        with pytest.raises({"write": httpx2.WriteTimeout, "read": httpx2.ReadTimeout}[kind]):
            await client.post(url, content=b"x" * size)


async def test_as_many_connections_are_open_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "_MOST_CONNECTIONS", 1)
    may_answer = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await may_answer.wait()
        writer.write(RESPONSES["closing"])
        writer.close()

    transport = DirectTransport(make_tls_context())
    timeout = httpx2.Timeout(None, pool=0.01)
    async with serving(answer) as url, httpx2.AsyncClient(transport=transport, timeout=timeout) as client:
        first = asyncio.create_task(client.post(url, content=b"{}"))
        await asyncio.sleep(0)
        with pytest.raises(httpx2.PoolTimeout):
            await client.post(url, content=b"{}")
        may_answer.set()
        assert (await first).text == (await client.post(url, content=b"{}")).text == "hello"


async def test_a_cancelled_request_closes_its_connection() -> None:
    asked, closed = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        asked.set()
        assert await reader.read() == b""
        closed.set()
        writer.close()

    async with serving(answer) as url, httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
        call = asyncio.create_task(client.post(url, content=b"{}"))
        await asked.wait()
        call.cancel()
        await closed.wait()


async def test_requests_fail_when_their_client_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "_MOST_CONNECTIONS", 2)
    asked = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        asked.set()
        await reader.read()
        writer.close()

    async with serving(answer) as url:
        client = httpx2.AsyncClient(transport=DirectTransport(make_tls_context()), timeout=None)
        calls = [asyncio.create_task(client.post(url, content=b"{}"))]
        await asked.wait()
        calls += [
            asyncio.create_task(client.post(url, content=b"{}")) for _ in "ab"
        ]  # one connects, one waits for room
        await asyncio.sleep(0)
        await client.aclose()
        results = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 10)
    assert [type(result) for result in results] == [httpx2.ReadError, httpx2.ConnectError, httpx2.ConnectError]


async def test_a_request_that_is_cancelled_while_it_connects_leaves_no_connection() -> None:
    ends: list[asyncio.Event] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends.append(ended := asyncio.Event())
        await reader.read()
        ended.set()
        writer.close()

    gc.disable()  # it would close a forgotten socket
    try:
        async with serving(answer) as url, httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
            for steps in range(15):
                call = asyncio.create_task(client.post(url, content=b"{}"))
                for _ in range(steps):
                    await asyncio.sleep(0)
                call.cancel()
                await asyncio.wait([call])
            for _ in range(15):  # the server accepts them
                await asyncio.sleep(0)
            assert ends
            async with asyncio.timeout(10):
                for ended in ends:
                    await ended.wait()
    finally:
        gc.enable()


async def test_event_loops_other_than_that_of_asyncio_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as uvloop's, whose `create_connection` has fewer parameters."""
    loop = asyncio.get_running_loop()

    class Loop:
        create_task, create_future = loop.create_task, loop.create_future

        async def create_connection(self, make: Any, host: str, port: int, *, ssl: Any, server_hostname: Any) -> Any:
            return await loop.create_connection(make, host, port, ssl=ssl, server_hostname=server_hostname)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(RESPONSES["closing"])
        writer.close()

    async with serving(answer) as url:
        monkeypatch.setattr(asyncio, "get_running_loop", Loop)
        status = await ask(DirectTransport(make_tls_context()), url)
        monkeypatch.undo()
    assert isinstance(status, tuple)


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\nb", "a\rb", "a\0b"])
async def test_a_header_cannot_begin_another(value: str) -> None:
    async with (
        serving(lambda _reader, writer: writer.drain()) as url,
        httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client,
    ):
        with pytest.raises(httpx2.LocalProtocolError):
            await client.post(url, content=b"{}", headers={"X-Own": value})


@pytest.mark.parametrize(
    ("url", "kind"), [("http://localhost:9/", ConnectionRefusedError), ("http://x.invalid/", OSError)]
)
async def test_an_error_of_the_system_is_its_cause(url: str, kind: type[OSError]) -> None:
    async with httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
        with pytest.raises(httpx2.ConnectError) as raised:
            await client.post(url, content=b"{}")
    assert isinstance(raised.value.__cause__, kind)
    assert raised.value.__cause__.errno


async def test_tls_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, certificate = make_certificate(tmp_path)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(RESPONSES["length"])
        writer.close()

    async with serving(answer, ssl=context) as url:
        url = url.replace("http://127.0.0.1", "https://localhost")
        async with httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
            with pytest.raises(httpx2.ConnectError, match="self-signed"):
                await client.post(url, content=b"{}")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        async with httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
            assert (await client.post(url, content=b"{}")).text == "hello"
            with pytest.raises(httpx2.ConnectError, match="127"):
                await client.post(url.replace("localhost", "127.0.0.1"), content=b"{}")


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy", "no_proxy"])
async def test_proxies_of_the_environment_are_used(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    targets: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        targets.append((await read_request(reader)).split()[1])
        writer.write(b"HTTP/1.1 418 I'm a Teapot\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with serving(answer) as url:
        port = url.split(":")[2].removesuffix("/mcp")
        monkeypatch.setenv(variable, "*" if variable == "no_proxy" else f"http://127.0.0.1:{port}")
        target = url if variable == "no_proxy" else "http://example.invalid/mcp"
        transport = HttpTransport(target, {}, Bounds())
        connection = RpcConnection(transport, Bounds(), _ignore, _ignore)
        await connection.open()
        with pytest.raises(ConnectError, match="418"):
            await connection.request("initialize", seconds=10)
        await connection.close()
    assert targets == [b"/mcp" if variable == "no_proxy" else b"http://example.invalid/mcp"]


async def _ignore(*_: object) -> Any:
    return None


@pytest.mark.parametrize("length", [None, "6"])
async def test_a_body_is_sent_in_pieces(length: str | None) -> None:
    bodies: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        bodies.append(await (reader.readuntil(b"\r\n0\r\n\r\n") if length is None else reader.readexactly(6)))
        writer.write(RESPONSES["length"])
        writer.close()

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"abc", b"", b"def"):
            yield piece

    headers = {} if length is None else {"Content-Length": length}
    async with serving(answer) as url, httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
        assert (await client.post(url, content=pieces(), headers=headers)).text == "hello"
    assert bodies == [b"abcdef" if length else b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"]


async def test_a_body_is_not_sent_to_its_end_if_it_was_answered() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await reader.read()
        writer.close()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000
            await asyncio.sleep(0)

    async with serving(answer) as url, httpx2.AsyncClient(transport=DirectTransport(make_tls_context())) as client:
        assert (await client.post(url, content=endless())).status_code == 413
