"""Serves the `dev` page on this machine.

The page can issue tokens, and other users of the machine and web pages in the browser can reach the server. So each
request must have one of our hosts (against DNS rebinding) and the run's key: first in the URL, then in a cookie that
scripts cannot read and that is not sent with cross-site requests.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from stubwright.workbench.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_LONGEST: Final = 64 * 1024
"""The maximum request body size in bytes."""

_ALIVE: Final = 10.0
"""The interval between keep-alives on an event stream, in seconds."""

_SAFE: Final = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
)


class RefusedError(Exception):
    """The requested token cannot be issued; the message explains why."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes since the last commit: a summary, and the full text."""

    summary: str
    text: str


@dataclass(slots=True)
class PageContent:
    """The page's content, which `dev` replaces after each save.

    Attributes:
        journal: The run's events.
        page: The page's HTML; empty before the first served save.
        docs: The documentation's HTML; empty before the first served save.
        difference: The changes since the last commit.
        issue: Issues a token for a subject, scopes and claims; None if this run issues no tokens.
        key: The secret that each request must contain.
    """

    journal: Journal = field(default_factory=Journal)
    page: str = ""
    docs: str = ""
    difference: Difference = field(default=Difference("comparing …", ""))
    issue: Callable[[str, Sequence[str], Mapping[str, Any]], str] | None = None
    key: str = field(default_factory=lambda: secrets.token_urlsafe(24))


class Workbench:
    """The server of the `dev` page. A context manager."""

    def __init__(self, host: str, port: int) -> None:
        """Bind the address of the page. Raises OSError."""
        self.content = PageContent()
        self._server = _Server((host, port), self.content)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def __enter__(self) -> Workbench:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.content.journal.close()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The address to open in a browser, including the key."""
        return f"{self._server.origins[0]}/?key={self.content.key}"

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins that the page can have (RFC 6454)."""
        return self._server.origins


class _Server(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there, the option would share the address with other programs

    def __init__(self, address: tuple[str, int], content: PageContent) -> None:
        super().__init__(address, _Handler)
        self.content = content
        host, port = str(address[0]).lower(), self.server_address[1]
        names = dict.fromkeys([host if host != "localhost" else "127.0.0.1", "127.0.0.1", "localhost"])
        self.hosts = tuple(f"{name}:{port}" for name in names)
        self.origins = tuple(f"http://{name}" for name in self.hosts)
        self.cookie = f"stubwright-dev-{port}"  # cookies are shared across ports


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "stubwright"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        """Serve `/` (the page), `/docs`, `/difference` (the changes) and `/events` (the run's events)."""
        address = urlsplit(self.path)
        given = parse_qs(address.query).get("key", [""])[0]
        # `compare_digest` rejects non-ASCII strings, so compare bytes.
        if (
            given
            and self._is_same_origin()
            and secrets.compare_digest(given.encode(), self.server.content.key.encode())
        ):
            cookie = f"{self.server.cookie}={self.server.content.key}; Path=/; HttpOnly; SameSite=Strict"
            self._answer(HTTPStatus.SEE_OTHER, "", Location="/", Set_Cookie=cookie)
        elif not self._is_authorized():
            return
        elif address.path == "/":
            self._answer(HTTPStatus.OK, self.server.content.page or _WAITING, "text/html; charset=utf-8")
        elif address.path == "/docs":
            self._answer(HTTPStatus.OK, self.server.content.docs or _WAITING, "text/html; charset=utf-8")
        elif address.path == "/difference":
            self._answer(HTTPStatus.OK, json.dumps(asdict(self.server.content.difference)), "application/json")
        elif address.path == "/events":
            self._stream()
        else:
            self._answer(HTTPStatus.NOT_FOUND, "Not found; the page is at /.\n")

    def do_POST(self) -> None:
        """Serve `/token`, which issues a token for this run."""
        if not self._is_authorized():
            return
        issue = self.server.content.issue
        if self.path != "/token" or issue is None:
            self._answer(HTTPStatus.NOT_FOUND, "This run issues no tokens; start it with --scope.\n")
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LONGEST or self.headers.get_content_type() != "application/json":
            self._answer(HTTPStatus.BAD_REQUEST, f"Send JSON of at most {_LONGEST:,} bytes.\n")
            return
        try:
            subject, scopes, claims = _parse_token_request(self.rfile.read(int(length)))
            token = issue(subject, scopes, claims)
        except RefusedError as error:
            self._answer(HTTPStatus.BAD_REQUEST, f"{error}\n")
            return
        self._answer(HTTPStatus.OK, json.dumps({"token": token}), "application/json")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Respond to invalid requests and unsupported methods in plain text, not in the library's HTML."""
        self.close_connection = True
        self._answer(HTTPStatus(code), f"{message or HTTPStatus(code).phrase}{f': {explain}' if explain else ''}\n")

    def log_message(self, *_: Any) -> None:
        """Log nothing, because the page's requests are not events of the run."""

    def _is_same_origin(self) -> bool:
        """Return whether the request's host is this server.

        If the request has an origin, the origin must be this server too.
        """
        host, origin = self.headers.get_all("Host") or [], self.headers.get_all("Origin") or []
        is_known_host = len(host) == 1 and host[0].lower() in self.server.hosts  # RFC 9110, 4.2.3
        return is_known_host and all(value.lower() in self.server.origins for value in origin)

    def _is_authorized(self) -> bool:
        """Return whether the request contains the key. Send an error if the request lacks the key."""
        if not self._is_same_origin():
            self._answer(HTTPStatus.FORBIDDEN, "This address serves only the `stubwright dev` page.\n")
            return False
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        except CookieError:
            cookie = None
        if cookie is None or not secrets.compare_digest(cookie.value.encode(), self.server.content.key.encode()):
            self._answer(HTTPStatus.FORBIDDEN, "Open the address that `stubwright dev` printed: it contains the key.\n")
            return False
        return True

    def _answer(self, status: HTTPStatus, text: str, media: str = "text/plain; charset=utf-8", **headers: str) -> None:
        content = text.encode()
        self.send_response(status)
        for name, value in (*_SAFE, ("Content-Type", media), ("Content-Length", str(len(content)))):
            self.send_header(name, value)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if self.command != "GET" and status != HTTPStatus.OK:  # its body might not have been read
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":  # the response has no content (RFC 9110, section 9.3.2)
            self.wfile.write(content)

    def _stream(self) -> None:
        """Send the run's events, starting with events that the page missed (HTML, "Server-sent events")."""
        last = self.headers.get("Last-Event-ID", "0")
        number = int(last) if last.isdecimal() else 0
        self.send_response(HTTPStatus.OK)
        for name, value in (*_SAFE, ("Content-Type", "text/event-stream"), ("Connection", "close")):
            self.send_header(name, value)
        self.end_headers()
        try:
            while (events := self.server.content.journal.wait_after(number, _ALIVE)) is not None:
                parts = [
                    f"id: {event.number}\ndata: {json.dumps({'kind': event.kind, **event.details})}\n\n"
                    for event in events
                ]
                self.wfile.write("".join(parts or [":\n\n"]).encode())
                number = events[-1].number if events else number
        except OSError:
            pass  # the page was closed


_WAITING: Final = """\
<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>Waiting</title>
<p>The server has not started yet. See the <code>stubwright dev</code> terminal. This page reloads automatically.
"""


def _parse_token_request(content: bytes) -> tuple[str, list[str], Mapping[str, Any]]:
    """Parse a token request into subject, scopes and claims. Raises RefusedError."""
    try:
        wish: Any = json.loads(content)
    except ValueError as error:
        raise RefusedError(f"The request body is not JSON: {error}") from error
    match wish:
        case {"subject": str(subject), "scopes": list(scopes), "claims": dict(claims)} if subject and all(
            isinstance(scope, str) for scope in scopes
        ):
            return subject, scopes, claims
    raise RefusedError("Send a subject, a list of scopes, and a claims object.")
