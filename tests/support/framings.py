"""Requests that a lenient reader delimits differently (RFC 9112, 11.2), and two readers: a strict one, and uvicorn."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from conversations import request

CALL = json.dumps(request(1, "tools/call", {"name": "add", "arguments": {}}, stateless=True)).encode()
_SIZE = len(CALL)
_TYPES = (
    b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: add\r\n"
)


def _head(line: bytes = b"POST /mcp HTTP/1.1", *headers: bytes, host: bytes = b"Host: 127.0.0.1\r\n") -> bytes:
    return b"%b\r\n%b%b%b" % (line, host, _TYPES, b"".join(header + b"\r\n" for header in headers))


_POST = b"POST /mcp HTTP/1.1"
HEADS = {
    "plain": _head(),
    "query": _head(b"POST /mcp?a=1 HTTP/1.1"),
    "URL": _head(b"POST http://127.0.0.1/mcp HTTP/1.1"),
    "elsewhere": _head(b"POST /elsewhere HTTP/1.1"),
    "GET": _head(b"GET /mcp HTTP/1.1"),
    "DELETE": _head(b"DELETE /mcp HTTP/1.1"),
    "OPTIONS": _head(b"OPTIONS * HTTP/1.1"),
    "PUT": _head(b"PUT /mcp HTTP/1.1"),
    "1.0": _head(b"POST /mcp HTTP/1.0"),
    "1.0 keep-alive": _head(b"POST /mcp HTTP/1.0", b"Connection: keep-alive"),
    "keep-alive": _head(_POST, b"Connection: keep-alive"),
    "close": _head(_POST, b"Connection: close"),
    "upgrade": _head(_POST, b"Connection: upgrade", b"Upgrade: h2c"),
    "websocket": _head(_POST, b"Connection: Upgrade", b"Upgrade: websocket"),
    "hop by hop": _head(_POST, b"Connection: Content-Length, Transfer-Encoding"),
    "expect": _head(_POST, b"Expect: 100-continue"),
    "trailers": _head(_POST, b"TE: trailers", b"Trailer: X-More"),
    "capitals": _head().replace(b"Host", b"HOST").replace(b"Accept", b"aCCEPT"),
    "no space": _head(_POST, b"X-More:1"),
    "tabs": _head(_POST, b"X-More:\t 1 \t"),
    "empty": _head(_POST, b"X-More:"),
    "Latin-1": _head(_POST, b"X-More: \xe9"),
    "long": _head(_POST, b"X-More: " + b"a" * 5000),
    "no host": _head(host=b""),
    "two hosts": _head(_POST, b"Host: 127.0.0.1"),
    "space before colon": _head(_POST, b"X-More : 1"),
    "fold": _head(_POST, b"X-More: 1\r\n more"),
    "bare LF": _head(_POST, b"X-More: 1\nX-Other: 2"),
    "bare CR": _head(_POST, b"X-More: 1\rX-Other: 2"),
    "NUL": _head(_POST, b"X-More: 1\x002"),
}
"""The heads of requests, without the headers that frame a body."""

_HIDDEN = b"%bContent-Length: %d\r\n\r\n%b" % (_head(), _SIZE, CALL)
_LENGTH = b"Content-Length: %d\r\n" % _SIZE
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (_SIZE, CALL)
_EMPTY = b"0\r\n\r\n" + _HIDDEN
_BOTH = b"Content-Length: %d\r\n" % len(_EMPTY)

FRAMINGS = {
    "none": b"\r\n",
    "length": _LENGTH + b"\r\n" + CALL,
    "length with zeros": b"Content-Length: 00%d\r\n\r\n" % _SIZE + CALL,
    "length with spaces": b"Content-Length: \t%d \r\n\r\n" % _SIZE + CALL,
    "chunks": _CHUNKED + b"\r\n" + _CHUNKS,
    "chunks with more": _CHUNKED + b"\r\n%x;a=b\r\n%b\r\n0;c\r\nX-More: 1\r\n\r\n" % (_SIZE, CALL),
    "equal lengths": _LENGTH * 2 + b"\r\n" + CALL,
    "different lengths": b"Content-Length: 0\r\n" + _LENGTH + b"\r\n" + CALL,
    "list of lengths": b"Content-Length: %d, %d\r\n\r\n" % (_SIZE, _SIZE) + CALL,
    "length with a sign": b"Content-Length: +%d\r\n\r\n" % _SIZE + CALL,
    "negative length": b"Content-Length: -1\r\n\r\n" + _HIDDEN,
    "length in hex": b"Content-Length: %#x\r\n\r\n" % _SIZE + CALL,
    "length and chunks": _BOTH + _CHUNKED + b"\r\n" + _EMPTY,
    "chunks and length": _CHUNKED + _BOTH + b"\r\n" + _EMPTY,
    "length and identity": _LENGTH + b"Transfer-Encoding: identity\r\n\r\n" + CALL,
    "chunks twice": _CHUNKED * 2 + b"\r\n" + _EMPTY,
    "list of chunks": b"Transfer-Encoding: chunked, chunked\r\n\r\n" + _EMPTY,
    "chunks and identity": b"Transfer-Encoding: chunked, identity\r\n\r\n" + _EMPTY,
    "unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n" + _EMPTY,
    "folded coding": _LENGTH + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + CALL,
    "folded length": b"Content-Length:\r\n %d\r\n\r\n" % _SIZE + CALL,
    "head with a bare LF": _LENGTH + b"\n" + CALL,
    "chunk size with a bare LF": _CHUNKED + b"\r\n" + _CHUNKS.replace(b"\r\n", b"\n", 1) + _HIDDEN,
    "trailer with a bare LF": _CHUNKED + b"\r\n0\r\n\n" + _HIDDEN,
    "extension with a bare CR": _CHUNKED + b"\r\n0;a\rb\r\n\r\n" + _HIDDEN,
    "chunk longer than its size": _CHUNKED + b"\r\n1\r\n22\r\n0\r\n\r\n" + _HIDDEN,
}
"""The rest of requests: the headers that frame a body, and the body; some hide a second request in it."""

LAST = b"%bContent-Length: %d\r\n\r\n%b" % (_head(_POST, b"Connection: close"), _SIZE, CALL)
"""The request after it, whose answer ends the connection."""

CUTS = range(6)


def cut(data: bytes, way: int) -> list[bytes]:
    """Cut a request's bytes into pieces, in one of six ways."""
    end = max(data.find(b"\r\n\r\n"), 1)
    places = ([], [data.find(b"\r\n") + 1], [len(data) // 2], [end + 1], [end + 3], [end + 4, end + 6])[way]
    edges = [0, *(place for place in places if place < len(data)), len(data)]
    return [data[begin:finish] for begin, finish in pairwise(edges)]


@dataclass(frozen=True)
class Reading:
    """The requests that a reader sees in bytes.

    Attributes:
        requests: The number of complete requests.
        is_refused: True if invalid bytes follow them.
    """

    requests: int
    is_refused: bool


_REQUEST_LINE = re.compile(rb"[A-Z]+ (?:[/*]|http:)[^ \r\n]* HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#-'*+.0-9A-Z^-z|~-]+):[ \t]*([^\x00\r\n]*?)[ \t]*")
_BODY = re.compile(rb"(?:([1-9a-f][0-9a-f]*)(?:;[^\r\n]*)?\r\n([^\r\n]*)\r\n)?0(?:;[^\r\n]*)?\r\n(?:[^\r\n]+\r\n)*\r\n")
"""A chunked body of at most one chunk without line breaks."""


def read_strictly(data: bytes) -> Reading:
    """Return the requests in bytes, up to the last of the connection, without any leniency (RFC 9112)."""
    number = 0
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        line, *lines = head.split(b"\r\n")
        fields = [(match[1].lower(), match[2]) for match in map(_FIELD.fullmatch, lines) if match]
        size = _find_size(fields, data)
        if not end or not _REQUEST_LINE.fullmatch(line) or len(fields) < len(lines) or size is None:
            return Reading(number, is_refused=True)
        number, data = number + 1, data[size:]
        if line.endswith(b"1.0") or (b"connection", b"close") in fields:
            break
    return Reading(number, is_refused=False)


def _find_size(fields: Sequence[tuple[bytes, bytes]], rest: bytes) -> int | None:
    """Return a body's length in bytes, or `None` if it is ambiguous."""
    framings = [field for field in fields if field[0] in (b"content-length", b"transfer-encoding")]
    if [name for name, _ in fields].count(b"host") != 1 or len(framings) > 1:
        return None
    if not framings:
        return 0
    if framings == [(b"transfer-encoding", b"chunked")]:
        body = _BODY.match(rest)
        return None if body is None or int(body[1] or b"0", 16) != len(body[2] or b"") else body.end()
    return int(framings[0][1]) if framings[0][1].isdigit() else None


class _Transport(asyncio.Transport):
    """A transport that records the bytes that a protocol writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self._is_closing = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self._is_closing = True

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        """Do nothing, since all bytes have been read."""

    resume_reading = pause_reading


async def read_as_uvicorn(requests: Sequence[bytes], parser: Literal["httptools", "h11"]) -> Reading:
    """Return how many of these requests plain uvicorn responds to when it receives them one by one."""
    state, transport = ServerState(), _Transport()
    kind: Any = HttpToolsProtocol if parser == "httptools" else H11Protocol
    protocol = kind(config=Config(_answer, log_config=None, ws="none"), server_state=state, app_state={})
    protocol.connection_made(transport)
    for each in requests:
        if not transport.is_closing():
            protocol.data_received(each)
            for _ in range(9):  # event loop iterations, enough for all responses
                await asyncio.sleep(0)
    protocol.connection_lost(None)
    is_refused = b"Invalid HTTP request received." in transport.written
    return Reading(len(find_statuses(transport.written)) - is_refused, is_refused)


async def _answer(_scope: Any, receive: Any, send: Any) -> None:
    message = await receive()
    while message.get("more_body"):
        message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


def find_statuses(answers: bytes) -> list[int]:
    """Return the response statuses, without 100 (Continue)."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", answers) if status != b"100"]
