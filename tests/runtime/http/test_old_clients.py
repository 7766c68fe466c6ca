"""Requests with `Upgrade`, and of HTTP/1.0, with both parsers of the server's own listener."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest

import prompt_ends
from serving import listening

ends_are_prompt = prompt_ends.ends_are_prompt

H2C = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"
"""The headers that Java's HttpClient sends with its first request."""


async def echo(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Answer with the body in brackets: of a known length, or as a stream at the path `/stream`."""
    if scope["type"] == "lifespan":
        for part in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{part}.complete"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    is_stream = scope["path"] == "/stream"
    headers = [] if is_stream else [(b"content-length", b"%d" % (len(body) + 2))]
    if scope["path"] == "/last":
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"<" + body, "more_body": True})
    await send({"type": "http.response.body", "body": b">"})


@pytest.fixture(scope="module", params=["httptools", "h11"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    parser: Literal["httptools", "h11"] = request.param
    with listening(echo, parser) as url:
        number = urlsplit(url).port
        assert number is not None
        yield number


def ask(port: int, *parts: str) -> str:
    """Return all that the server sends until it ends the connection, in lower case."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        for part in parts:
            connection.sendall(part.encode())
        while data := connection.recv(65536):
            answer += data
    return answer.decode().lower()


def post(body: str, headers: str = "", path: str = "/", version: str = "1.1") -> str:
    """Return a POST with its body."""
    return f"POST {path} HTTP/{version}\r\nHost: x\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}"


LAST = post("last", path="/last")
CHUNKED = f"POST / HTTP/1.1\r\nHost: x\r\n{H2C}Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("parts", "bodies"),
    [
        ([post("one", H2C), LAST], ["<one>", "<last>"]),
        ([post("one", "Connection: upgrade\r\nUpgrade: websocket\r\n") + LAST], ["<one>", "<last>"]),
        ([post("one", "Connection: keep-alive, Upgrade\r\nUpgrade: TLS/1.0, x/2\r\n") + LAST], ["<one>", "<last>"]),
        ([post("one", "Connection: Upgrade, close\r\nUpgrade: h2c\r\n")], ["<one>"]),
        ([CHUNKED, "3\r\none\r\n", "0\r\n\r\n", LAST], ["<one>", "<last>"]),
        ([f"GET / HTTP/1.1\r\nHost: x\r\n{H2C}\r\n" + LAST], ["<>", "<last>"]),
        ([post("one", H2C)[:-2], "ne", LAST], ["<one>", "<last>"]),
        ([post("one", H2C)[:30], post("one", H2C)[30:], LAST], ["<one>", "<last>"]),
        ([post("one", H2C, version="1.0")], ["<one>"]),
    ],
)
def test_a_request_with_upgrade_is_answered_in_http_1(port: int, parts: list[str], bodies: list[str]) -> None:
    answers = ask(port, *parts).split("http/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == ["200"] * len(bodies)
    assert [answer.partition("\r\n\r\n")[2] for answer in answers] == bodies


def test_many_requests_with_upgrade_in_one_packet_are_answered(port: int) -> None:
    answer = ask(port, post("one", H2C) * 300 + LAST)
    assert answer.count("<one>") == 300
    assert answer.endswith("<last>")


def test_an_invalid_request_with_upgrade_is_refused(port: int) -> None:
    assert ask(port, f"POST / HTTP/1.1\r\n{H2C}\r\n").startswith("http/1.1 400")


@pytest.mark.parametrize("headers", ["", "Connection: keep-alive\r\n", "Connection: close\r\n"])
@pytest.mark.parametrize("path", ["/", "/stream", "/last"])
def test_http_1_0_gets_no_chunks_and_one_connection_header(port: int, path: str, headers: str) -> None:
    head, _, body = ask(port, post("one", f"{headers}Expect: 100-continue\r\n", path, "1.0")).partition("\r\n\r\n")
    assert body == "<one>"
    assert "transfer-encoding" not in head
    # uvicorn writes it from 0.53 on; to these clients, its absence means the same (RFC 9112, 9.3).
    assert [line for line in head.split("\r\n") if line.startswith("connection:")] in (["connection: close"], [])


def test_http_1_0_gets_the_head_of_a_stream(port: int) -> None:
    answer = ask(port, "HEAD /stream HTTP/1.0\r\nHost: x\r\n\r\n")
    assert answer.endswith("\r\n\r\n")
    assert "transfer-encoding" not in answer
