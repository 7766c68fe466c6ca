"""A request ends where a strict reader finds its end, or it is rejected (RFC 9112, 2.2, 5.2, 6.1 and 6.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import product
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest

import amounts
import prompt_ends
from framings import CUTS, FRAMINGS, HEADS, LAST, cut, find_statuses, read_as_uvicorn, read_strictly
from packages import generate, imported, manifest, tool
from serving import listening
from stubwright_runtime.server.transports.http.listener.framing import (
    ChunkedBody,
    UnclearFramingError,
    check_framing,
    check_head,
)

ends_are_prompt = prompt_ends.ends_are_prompt

Parser = Literal["httptools", "h11"]


class Handlers:
    async def add(self, args: Any, ctx: object) -> str:
        return "3"


@pytest.fixture(scope="module", params=["httptools", "h11"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Parser, int]]:
    """The parser and the port of a server."""
    folder = tmp_path_factory.mktemp("framings")
    with (
        imported(folder, generate(folder, manifest([tool("add", {})], name="framings"))) as package,
        listening(package.asgi_app(Handlers()), request.param) as url,
    ):
        port = urlsplit(url).port
        assert port is not None
        yield request.param, port


async def send(port: int, requests: Sequence[Sequence[bytes]]) -> list[int]:
    """Return the statuses of the answers on a connection that the server closes."""
    heard = b""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(60):
            for number, pieces in enumerate(requests):
                if number:
                    heard += await reader.read(65536)
                for index, piece in enumerate(pieces):
                    if index:
                        await asyncio.sleep(0.002)  # most pieces are read one by one then
                    writer.write(piece)
            while data := await reader.read(65536):
                heard += data
    except ConnectionError:  # it was closed before it had read everything
        pass
    finally:
        writer.close()
    return find_statuses(heard)


@pytest.mark.parametrize(
    ("is_pipelined", "way", "head"),
    amounts.sample(product((True, False), CUTS, HEADS), 5),
)
def test_no_request_is_hidden_in_another(is_pipelined: bool, way: int, head: str, server: tuple[Parser, int]) -> None:
    """The server answers no more requests than a strict reader sees, or uvicorn if it refuses them; then it closes."""
    parser, port = server

    async def check(framing: str) -> None:
        first = HEADS[head] + FRAMINGS[framing]
        pieces = cut(first, way)
        strict = read_strictly(first + LAST)
        parts = [first + LAST] if is_pipelined else [first, LAST]
        uvicorn = await read_as_uvicorn(parts, parser)
        statuses = await send(port, [[*pieces, LAST]] if is_pipelined else [pieces, [LAST]])
        most = strict.requests + strict.is_refused
        if uvicorn.is_refused:
            most = min(most, uvicorn.requests + 1)
        assert (0 if strict.is_refused else most) <= len(statuses) <= most, (framing, statuses, strict, uvicorn)

    async def check_all() -> None:
        await asyncio.gather(*map(check, FRAMINGS))

    asyncio.run(check_all())


@pytest.mark.parametrize(
    "framing",
    [
        "length and chunks",
        "chunks and length",
        "equal lengths",
        "list of lengths",
        "folded length",
        "head with a bare LF",
        "trailer with a bare LF",
        "extension with a bare CR",
    ],
)
def test_an_unclear_end_is_refused(framing: str, server: tuple[Parser, int]) -> None:
    assert asyncio.run(send(server[1], [[HEADS["plain"] + FRAMINGS[framing]]])) == [400]


def test_an_answered_request_gets_no_second_answer(server: tuple[Parser, int]) -> None:
    head = HEADS["PUT"] + b"Transfer-Encoding: chunked\r\n\r\n"
    assert asyncio.run(send(server[1], [[head], [b"no size\r\n"]])) == [405]


def test_a_refusal_does_not_overtake_an_earlier_answer(server: tuple[Parser, int]) -> None:
    first, second = (HEADS["plain"] + FRAMINGS[framing] for framing in ("length", "length and chunks"))
    assert asyncio.run(send(server[1], [[first + second]])) == ([200] if server[0] == "httptools" else [200, 400])


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"POST / HTTP/1.1\nHost: a",
        b"POST / HTTP/1.1\r\nHost: a\n\nbody\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\n b",
        b"POST / HTTP/1.1\r\nHost: a\r\n\tb\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\rb",
        b"POST / HTTP/1.1\r\nHost: a\r\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\ncontent-length:1\r\n\r\na",
    ],
)
def test_a_head_with_an_unclear_end(data: bytes) -> None:
    with pytest.raises(UnclearFramingError):
        check_head(data)


@pytest.mark.parametrize(
    "data", [b"", b"POST / HTTP/1.1\r", b"POST / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 3 \r\n\r\n\n\r "]
)
def test_a_head_with_a_clear_end(data: bytes) -> None:
    check_head(data)


@pytest.mark.parametrize(
    "headers",
    [
        [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")],
        [(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")],
        [(b"transfer-encoding", b"gzip, chunked")],
        [(b"content-length", b"+1")],
        [(b"content-length", b"")],
    ],
)
def test_headers_that_leave_the_end_open(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(UnclearFramingError):
        check_framing(headers)


@pytest.mark.parametrize(
    ("body", "is_valid"),
    [
        (b"3;a=b\r\na\nb\r\n0A\r\n0123456789\r\n0;c\r\nX: 1\r\n\r\n\n \r", True),
        (b"0\r\n\r\n", True),
        (b"1\na\r\n", False),
        (b"1 \r\na\r\n", False),
        (b"0x1\r\na\r\n", False),
        (b"-1\r\n", False),
        (b"\r\n", False),
        (b"%b1\r\na\r\n" % (b"0" * 16), False),
        (b"0;a\rb\r\n\r\n", False),
        (b"0\r\n\n", False),
        (b"0\r\nX: 1\n\r\n", False),
        (b"0\r\nX: 1\r\n 2\r\n\r\n", False),
    ],
)
@pytest.mark.parametrize("size", [1, 99])
def test_chunks_have_strict_lines(body: bytes, is_valid: bool, size: int) -> None:
    checked = ChunkedBody()
    with nullcontext() if is_valid else pytest.raises(UnclearFramingError):
        for start in range(0, len(body), size):
            checked.check(body[start : start + size])
