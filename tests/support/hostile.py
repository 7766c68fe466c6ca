"""A server with scripted bytes as responses, over stdio and over HTTP, in two protocol eras.

    python hostile.py ERA METHOD SAID

Over stdio, this program responds to requests for one method with a file's current bytes. Over HTTP, `listen` serves in
a thread. `$ID` in the bytes is the request ID. All other methods get valid responses.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

HANDSHAKE: Final = "2025-06-18"
STATELESS: Final = "2026-07-28"

ENDLESS: Final = b"$ENDLESS"
"""Prefix of bytes to repeat without end and without a newline, over stdio."""

ENDING: Final = b"$ENDING"
"""Ends the process without a response, over stdio."""

_INFO: Final = {"name": "hostile", "version": "1"}
_OFFERS: Final[dict[str, Any]] = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}


def opening(era: str, method: str) -> dict[str, Any] | None:
    """Return the valid result of a method that opens a connection, or `None` for other methods and eras."""
    if method == "initialize" and era == HANDSHAKE:
        return {"protocolVersion": HANDSHAKE, "capabilities": _OFFERS, "serverInfo": _INFO}
    if method == "server/discover" and era == STATELESS:
        return {
            "resultType": "complete",
            "supportedVersions": [STATELESS],
            "capabilities": _OFFERS,
            "serverInfo": _INFO,
            "ttlMs": 0,
            "cacheScope": "private",
        }
    return None


def response(number: Any, result: Any) -> bytes:
    """Return a response as JSON."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


def refusal(number: Any) -> bytes:
    """Return the error for an unknown method."""
    return json.dumps(
        {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "Method not found"}}
    ).encode()


def fill_id(template: bytes, number: Any) -> bytes:
    """Insert the request ID into the bytes."""
    return template.replace(b"$ID", json.dumps(number).encode())


@dataclass(frozen=True, slots=True)
class Said:
    """A response over HTTP: a status, headers, pieces of a body, and whether it ends there."""

    body: Callable[[], Iterator[bytes]]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    is_cut: bool = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Suppress the access log."""

    def do_GET(self) -> None:
        said = self.server.answer("GET", None) if "Last-Event-ID" in self.headers else None
        self._send(said or Said(lambda: iter(()), 405))

    def do_DELETE(self) -> None:
        self._send(Said(lambda: iter(()), 200))

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(message)
        if "id" not in message:
            self._send(Said(lambda: iter(()), 202))
            return
        method, number = message["method"], message["id"]
        said = self.server.answer(method, number)
        if said is None:
            result = opening(self.server.era, method)
            body = refusal(number) if result is None else response(number, result)
            said = Said(lambda: iter((body,)))
        self._send(said)

    def _send(self, said: Said) -> None:
        self.send_response(said.status)
        for name, value in said.headers.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):
            for piece in said.body():
                if piece:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    self.wfile.flush()
            if not said.is_cut:
                self.wfile.write(b"0\r\n\r\n")
        if said.is_cut:
            self.close_connection = True


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    era: str
    answer: Callable[[str, Any], Said | None]
    seen: list[Any]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


@contextlib.contextmanager
def listen(era: str, answer: Callable[[str, Any], Said | None]) -> Iterator[tuple[str, list[Any]]]:
    """Serve on a free port. Yield the URL and the received messages."""
    listener = _Listener(("127.0.0.1", 0), _Handler)
    listener.era, listener.answer, listener.seen = era, answer, []
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_address[1]}/mcp", listener.seen
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join(5)


def events(charset: str = "") -> dict[str, str]:
    """Return the headers for an event stream."""
    return {"Content-Type": f"text/event-stream{charset}"}


class Attacker:
    """A server with changeable responses to one method: over `stdio`, over `http`, or in `events`."""

    def __init__(self, transport: str, era: str, method: str, folder: Path) -> None:
        self._transport, self._era, self._method = transport, era, method
        folder.mkdir(exist_ok=True)
        self._said = folder / "said"
        self._said.write_bytes(b"")

    def say(self, said: bytes) -> None:
        """Set the response."""
        self._said.write_bytes(said)

    @contextlib.contextmanager
    def target(self) -> Iterator[Any]:
        """The client's target."""
        if self._transport == "stdio":
            import forked  # only for tests, because the program starts again for each test

            yield [*forked.interpreter(), __file__, self._era, self._method, str(self._said)]
            return
        with listen(self._era, self._answer) as (url, _):
            yield url

    def _answer(self, method: str, number: Any) -> Said | None:
        if method != self._method:
            return None
        said = fill_id(self._said.read_bytes(), number)
        if self._transport == "http":
            return Said(lambda: iter((said,)))
        # A charset that would inflate the text; event streams are always UTF-8.
        return Said(lambda: iter((b"data: " + said + b"\n\n",)), headers=events("; charset=zlib"))


def main() -> None:
    """Respond on standard output until standard input is closed."""
    era, attacked, said = sys.argv[1:]
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        method, number = message["method"], message["id"]
        if method == attacked:
            template = Path(said).read_bytes()
            while template.startswith(ENDLESS):
                out.write(template.removeprefix(ENDLESS))
                out.flush()
            if template == ENDING:
                return
            out.write(fill_id(template, number) + b"\n")
        else:
            result = opening(era, method)
            out.write((refusal(number) if result is None else response(number, result)) + b"\n")
        out.flush()


if __name__ == "__main__":
    main()
