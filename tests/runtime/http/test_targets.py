"""The target host of an HTTP request (RFC 9112, 3.2), with both parsers of the server's own listener."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest

import prompt_ends
from packages import generate, imported, manifest, tool
from serving import listening
from stubwright_runtime.server.transports.http.listener.targets import UnclearHostError, resolve_target

ends_are_prompt = prompt_ends.ends_are_prompt

OWN = "127.0.0.1:{port}"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}


class Handlers:
    async def add(self, args: Any, ctx: object) -> str:
        return "3"


@pytest.fixture(scope="module", params=["httptools", "h11"])
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    parser: Literal["httptools", "h11"] = request.param
    folder = tmp_path_factory.mktemp("hosts")
    with (
        imported(folder, generate(folder, manifest([tool("add", {})], name="hosts"))) as package,
        listening(package.asgi_app(Handlers()), parser) as url,
    ):
        number = urlsplit(url).port
        assert number is not None
        yield number


def ask(port: int, line: str, *hosts: str) -> int:
    """Return the status of the answer to a request with such a line and such Host headers."""
    body = json.dumps(INITIALIZE)
    head = [
        line.format(port=port),
        *(f"Host: {host.format(port=port)}" for host in hosts),
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(("\r\n".join(head) + "\r\n\r\n" + body).encode())
        answer = connection.recv(65536)
    return int(answer.split()[1])


@pytest.mark.parametrize(
    ("line", "hosts", "status"),
    [
        ("POST /mcp HTTP/1.1", [OWN], 200),
        ("POST /mcp HTTP/1.1", ["elsewhere.example"], 421),
        ("POST /mcp HTTP/1.1", [], 400),
        ("POST /mcp HTTP/1.1", [OWN, OWN], 400),
        ("POST /mcp HTTP/1.1", [OWN, "elsewhere.example"], 400),
        ("POST /mcp HTTP/1.0", [OWN], 200),
        ("POST /mcp HTTP/1.0", [], 421),
        ("POST /mcp HTTP/1.0", [OWN, OWN], 400),
        (f"POST http://{OWN}/mcp HTTP/1.1", [OWN], 200),
        (f"POST HTTP://{OWN}/mcp HTTP/1.1", ["elsewhere.example"], 200),
        (f"POST http://{OWN}/mcp HTTP/1.1", [], 400),
        ("POST http://elsewhere.example/mcp HTTP/1.1", [OWN], 421),
        (f"POST http://{OWN}@elsewhere.example/mcp HTTP/1.1", [OWN], 400),
        (f"POST http://elsewhere.example@{OWN}/mcp HTTP/1.1", [OWN], 400),
        (f"POST http://{OWN}/nowhere HTTP/1.1", [OWN], 404),
        ("POST mcp HTTP/1.1", [OWN], 400),
    ],
)
def test_a_request_is_for_one_host(line: str, hosts: list[str], status: int, port: int) -> None:
    assert ask(port, line, *hosts) == status


def test_the_server_goes_on_after_a_refusal(port: int) -> None:
    assert [ask(port, "POST /mcp HTTP/1.1"), ask(port, "POST /mcp HTTP/1.1", OWN)] == [400, 200]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"/mcp?a=1", (b"/mcp?a=1", b"own")),
        (b"*", (b"*", b"own")),
        (b"http://other:80/mcp?a=1", (b"/mcp?a=1", b"other:80")),
        (b"https://other", (b"/", b"other")),
        (b"https://other?a=/", (b"/?a=/", b"other")),
        (b"http://[::1]:8000/a@b", (b"/a@b", b"[::1]:8000")),
    ],
)
def test_a_target_with_a_host_is_for_that_one(target: bytes, expected: tuple[bytes, bytes]) -> None:
    path, headers = resolve_target(target, b"1.1", [(b"accept", b"*/*"), (b"host", b"own")])
    assert (path, dict(headers)) == (expected[0], {b"host": expected[1], b"accept": b"*/*"})


@pytest.mark.parametrize(
    "target", [b"", b"mcp", b"ftp://other/mcp", b"http:///mcp", b"http://a@b/", b"http://a#b", b"a:80"]
)
def test_other_targets_are_for_nobody(target: bytes) -> None:
    with pytest.raises(UnclearHostError):
        resolve_target(target, b"1.1", [(b"host", b"own")])
