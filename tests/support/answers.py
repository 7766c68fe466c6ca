"""HTTP servers with scripted responses, including responses that violate MCP."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@contextmanager
def serve(
    answer: Callable[[BaseHTTPRequestHandler, dict[str, Any]], None], tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Run a server over HTTP or HTTPS that responds to each POST with `answer`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer(self, json.loads(body))

        def do_GET(self) -> None:
            self.send_error(405)

        def do_DELETE(self) -> None:
            self.send_error(405)

        def log_message(self, *_: object) -> None:
            """Suppress the access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()


def say(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    """Send a response."""
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def say_result(handler: BaseHTTPRequestHandler, message: dict[str, Any]) -> None:
    """Send a result as a 2025-11-25 server does."""
    results = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "a", "version": "1"},
        },
        "tools/call": {"content": []},
    }
    if "id" not in message:
        say(handler, 202)
    elif message["method"] in results:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
        say(handler, 200, json.dumps(answer).encode(), Content_Type="application/json")
    else:
        say(handler, 404)
