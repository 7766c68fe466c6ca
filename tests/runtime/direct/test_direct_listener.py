"""The server's own listener gives the same responses with its direct path and with uvicorn's parser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from types import ModuleType
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import amounts
import prompt_ends
from conversations import Handlers, request
from packages import generate, imported, manifest, tool
from serving import listening
from stubwright_runtime.server.transports.http.listener import direct, posts

ends_are_prompt = prompt_ends.ends_are_prompt

PARSERS: Sequence[Literal["httptools", "h11"]] = ("httptools", "h11")
TOOLS = [tool("add", {"a": {"type": "integer"}, "b": {"type": "integer"}}, outputSchema={"type": "object"})]
CALL = request(1, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, stateless=True)
HEADERS = (
    b"Host: 127.0.0.1",
    b"Content-Type: application/json",
    b"Accept: application/json, text/event-stream",
    b"MCP-Protocol-Version: 2026-07-28",
    b"Mcp-Method: tools/call",
    b"Mcp-Name: add",
)
ODD = (
    b"X-More: 1",
    b"X-Empty:",
    b"X-Spaces: \t a  b \t",
    b"X-Space : 1",
    b" folded",
    b"\tfolded: 1",
    b"No colon",
    b": no name",
    b"X-Nul: a\x00b",
    b"X-Return: a\rb",
    b"X-Latin: \xe9",
    b"Host: 127.0.0.1",
    b"Content-Length: 3",
    b"Content-Length: +5",
    b"content-length: 0x10",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: identity",
    b"Connection: keep-alive",
    b"Connection: close",
    b"Connection: upgrade",
    b"Upgrade: h2c",
    b"Upgrade: websocket",
    b"Expect: 100-continue",
    b"Trailer: X",
    b"TE: trailers",
    b"Mcp-Other: 1",
)
LINES = (
    b"POST /mcp HTTP/1.0",
    b"POST /mcp?a=1 HTTP/1.1",
    b"POST /m%63p HTTP/1.1",
    b"post /mcp HTTP/1.1",
    b"GET /mcp HTTP/1.1",
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("bytes")
    with imported(folder, generate(folder, manifest(TOOLS, name="bytes"))) as module:
        yield module


@pytest.fixture(scope="module", params=PARSERS)
def ports(request: pytest.FixtureRequest, package: ModuleType) -> Iterator[tuple[int, int]]:
    """Run the listener with and without its direct path. The long delay prevents streams."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr("stubwright_runtime.server.transports.http.post_handler._STREAM_DELAY", 60)
        found = []
        for is_direct in (True, False):
            app = package.asgi_app(Handlers())
            if not is_direct:
                app.direct_endpoint = None
            url = stack.enter_context(listening(app, request.param))
            found.append(int(url.rpartition(":")[2]))
        yield found[0], found[1]


def post(body: bytes, *more: bytes, line: bytes = b"POST /mcp HTTP/1.1", length: int | None = None) -> bytes:
    lines = (line, *HEADERS, b"Content-Length: %d" % (len(body) if length is None else length), *more)
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@st.composite
def said(draw: st.DrawFn) -> list[list[bytes]]:
    """Some requests, each cut into pieces; the last one ends the connection."""
    bodies = [json.dumps({**CALL, "id": number}).encode() for number in range(draw(st.integers(0, 3)))]
    requests = [
        post(
            draw(st.sampled_from((body, body, body, *BODIES))),
            *draw(st.lists(st.sampled_from(ODD), max_size=1)),
            line=draw(st.sampled_from((b"POST /mcp HTTP/1.1",) * 6 + LINES)),
        )
        for body in bodies
    ]
    return [draw(pieces(each)) for each in (*requests, LAST)]


@st.composite
def pieces(draw: st.DrawFn, data: bytes) -> list[bytes]:
    cuts = sorted(draw(st.sets(st.integers(1, len(data) - 1), max_size=3)))
    return [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


LAST = post(json.dumps({**CALL, "id": "last"}).encode(), b"Connection: close")
BODIES = (
    b"",
    b"{}",
    b"[]",
    b"nothing",
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
)


Answer = tuple[bytes, dict[bytes, bytes], Any]


async def answered(
    port: int, requests: Sequence[Sequence[bytes]], wait: float, *, at_once: bool = False, patience: float = 60
) -> list[Any]:
    """Return the responses to these requests, until the server closes the connection or is idle for these seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answers: list[Any] = []
    try:
        for request in requests:
            for piece in request:
                writer.write(piece)
                await asyncio.sleep(wait)
            if not at_once:
                answers.append(await heard(reader, patience))
        answers += [await heard(reader, patience) for _ in requests if at_once]
        async with asyncio.timeout(max(5, patience)):
            answers.append(await reader.read())
    except TimeoutError:
        answers.append("nothing")
    except (asyncio.IncompleteReadError, ConnectionError):
        answers.append("the end")
    finally:
        writer.close()
    return answers


async def heard(reader: asyncio.StreamReader, patience: float) -> Answer:
    """Return one response as clients see it: the SDK writes headers and members in another order."""
    async with asyncio.timeout(patience):
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 100"):
            head = await reader.readuntil(b"\r\n\r\n")
        status, *lines = head.removesuffix(b"\r\n\r\n").lower().split(b"\r\n")
        headers = dict(line.split(b": ", 1) for line in lines)
        if headers.get(b"transfer-encoding") == b"chunked":
            body = await reader.readuntil(b"0\r\n\r\n")
        else:
            body = await reader.readexactly(int(headers.get(b"content-length", 0)))
    is_json = headers.get(b"content-type") == b"application/json" and body
    return status, {**headers, b"date": b""}, json.loads(body) if is_json else body


def alike(ports: tuple[int, int], requests: Sequence[Sequence[bytes]], wait: float, *, at_once: bool = False) -> None:
    async def both(patience: float) -> list[list[Any]]:
        return await asyncio.gather(
            *(answered(port, requests, wait, at_once=at_once, patience=patience) for port in ports)
        )

    # On a busy machine, one may answer later, and what comes in two pieces for it may come in one for the other.
    for patience in (0.5, 2, 8):
        ours, oracle = map(taken, asyncio.run(both(patience)))
        if ours == oracle:
            break
    assert ours == oracle


def taken(answers: Sequence[Any]) -> list[Any]:
    """Return the responses without the parser's final rejection, which may be lost if more bytes have arrived."""
    is_lost = answers[-1] == "the end"
    return [
        each
        for each in answers
        if not (is_lost and (each == "the end" or each[1].get(b"content-type", b"").startswith(b"text/plain")))
    ]


@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 12, 30, 30), suppress_health_check=list(HealthCheck))
@given(requests=said(), wait=st.sampled_from((0.0, 0.001, 0.01)))
def test_bytes(requests: Sequence[Sequence[bytes]], wait: float, ports: tuple[int, int]) -> None:
    alike(ports, requests, wait)


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(data=st.data(), number=st.integers(1, 6), wait=st.sampled_from((0.0, 0.001, 0.01)))
def test_requests_that_wait_for_no_answer(data: Any, number: int, wait: float, ports: tuple[int, int]) -> None:
    calls = [post(json.dumps({**CALL, "id": each}).encode()) for each in range(number)]
    joined = data.draw(pieces(b"".join([*calls, LAST])))
    alike(ports, [joined, *([] for _ in calls)], wait, at_once=True)


HEADS = [*product([b"POST /mcp HTTP/1.1", *LINES], [(), *((odd,) for odd in ODD)])]


@pytest.mark.parametrize(
    ("line", "more"), [*HEADS[: len(ODD) + 1], *amounts.sample(HEADS[len(ODD) + 1 :], 10)], ids=repr
)
def test_each_odd_head(more: tuple[bytes, ...], line: bytes, ports: tuple[int, int]) -> None:
    alike(ports, [[post(json.dumps(CALL).encode(), *more, line=line)], [LAST]], 0)


def test_what_is_usual_is_answered_directly(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the body comes a moment after its head, and after a request that the SDK had to answer."""
    taken: list[bytes] = []
    respond = direct.DirectReader._respond

    async def noted(self: direct.DirectReader, answering: Any) -> None:
        taken.append(b"")
        await respond(self, answering)

    monkeypatch.setattr(direct.DirectReader, "_respond", noted)
    # On a busy machine, either time would expire, and uvicorn would read the rest of the connection.
    monkeypatch.setattr(direct, "_LATE", 60)
    monkeypatch.setattr("stubwright_runtime.server.transports.http.post_handler._STREAM_DELAY", 60)
    # Another test of this process may have set OpenTelemetry up.
    monkeypatch.setattr("stubwright_runtime.server.transports.http.endpoint.is_observed", lambda: False)
    call = post(json.dumps(CALL).encode())
    end = call.index(b"\r\n\r\n") + 4
    with listening(package.asgi_app(Handlers()), "httptools") as url:
        port = int(url.rpartition(":")[2])
        requests = [[call], [call[:end], call[end:]], [post(b"[]")], [call], [LAST]]
        answers = asyncio.run(answered(port, requests, 0.001))
    assert [answer[0][9:12] for answer in answers[:-1]] == [b"200", b"200", b"400", b"200", b"200"]
    assert len(taken) == 3, "those that are whole and plain, and end nothing"


@pytest.mark.anyio
@pytest.mark.parametrize("parser", amounts.sample(PARSERS, 1))
async def test_a_connection_is_closed_some_time_after_its_last_answer(
    parser: Literal["httptools", "h11"], package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One timer covers many responses, and does not close a connection with a running request."""
    monkeypatch.setattr("stubwright_runtime.server.transports.http.listener.graceful_shutdown.IDLE", 1.0)
    monkeypatch.setattr("stubwright_runtime.server.transports.http.post_handler._STREAM_DELAY", 60)  # no stream
    monkeypatch.setattr("stubwright_runtime.server.transports.http.endpoint.is_observed", lambda: False)
    pauses = iter([0.0, 0.0, 0.0, 1.4])

    class Slow(Handlers):
        async def add(self, args: Any, ctx: Any) -> Any:
            await asyncio.sleep(next(pauses))
            return await super().add(args, ctx)

    with listening(package.asgi_app(Slow()), parser) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        async with asyncio.timeout(10):  # the deadline of a head is later
            for _ in range(4):
                await asyncio.sleep(0.4)  # three times is longer than a connection may be idle
                writer.write(post(json.dumps(CALL).encode()))
                assert b"200 OK" in await reader.readuntil(b'"sum":1')
            began = asyncio.get_running_loop().time()
            await reader.read()
            assert asyncio.get_running_loop().time() - began > 0.8
        writer.close()


@pytest.mark.parametrize("length", [b"", b"-1", b"1 1", b"1,1", b"123456789", "\N{SUPERSCRIPT TWO}".encode()])
def test_lengths_that_are_none(length: bytes) -> None:
    assert posts.read_post(b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: %b" % length, b"/mcp") is None


def test_a_head_is_read_as_it_stands() -> None:
    head = b"POST /mcp HTTP/1.1\r\nHOST: a\r\nContent-Length:5\r\nX-A: \t b  c\t"
    headers = ((b"host", b"a"), (b"content-length", b"5"), (b"x-a", b"b  c"))
    assert posts.read_post(head, b"/mcp") == posts.Post(headers, 5)
    assert posts.read_post(head, b"/other") is None
    assert posts.read_post(head.replace(b"HOST", b"X-Host"), b"/mcp") is None


def test_no_more_heads_are_kept_than_are_said() -> None:
    endpoint = direct.Endpoint(None, "/mcp", "none")  # type: ignore[arg-type]  # it is not asked for odd heads
    for number in range(2000):
        assert endpoint.parse_cached(b"odd %d" % number) is None
    assert endpoint.parse_cached.cache_info().currsize == direct._HEADS
