"""Opens the authorization server in the user's browser and receives the redirect on this machine."""

from __future__ import annotations

import asyncio
import secrets
import webbrowser
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

import anyio

from stubwright.login.errors import LoginError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

_HOST: Final = "127.0.0.1"
_PATH: Final = "/callback"
_SECONDS: Final = 300.0
"""The time limit for a login, in seconds."""

_SECONDS_TO_SEND: Final = 10.0
_MOST_BYTES: Final = 32 * 1024
_DONE: Final = "You can close this page and return to the terminal."
_FOREIGN: Final = "This is not the response to a login started by this program."


class Listener:
    """Receives the redirect of one login.

    Attributes:
        state: The login's `state`, which the redirect must contain.
    """

    def __init__(self) -> None:
        self.state = secrets.token_urlsafe(32)
        self._arrived: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._port = 0

    @property
    def uri(self) -> str:
        """The URI to which the authorization server redirects the browser."""
        return f"http://{_HOST}:{self._port}{_PATH}"

    async def start(self, port: int) -> asyncio.Server:
        """Listen on a port, or on any free port if it is 0 or in use."""
        try:
            server = await asyncio.start_server(self._answer, _HOST, port, limit=_MOST_BYTES)
        except OSError:
            if not port:
                raise
            return await self.start(0)
        self._port = server.sockets[0].getsockname()[1]
        return server

    async def wait(self) -> Mapping[str, str]:
        """Return the redirect's query parameters. Raises LoginError if the redirect does not arrive in time."""
        with anyio.move_on_after(_SECONDS):
            return await self._arrived
        raise LoginError(f"the login was not completed within {_SECONDS:g} s")

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_SECONDS_TO_SEND):
                head = await reader.readuntil(b"\r\n\r\n")
                fields = self._read_fields(head)
                status, text = ("400 Bad Request", _FOREIGN) if fields is None else ("200 OK", _DONE)
                if fields is not None and not self._arrived.done():
                    self._arrived.set_result(fields)
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(text)}\r\n"
                    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
                    f"Connection: close\r\n\r\n{text}".encode()
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError):
            pass  # a closed or unrelated connection; keep waiting for the redirect
        finally:
            writer.close()

    def _read_fields(self, head: bytes) -> Mapping[str, str] | None:
        """Return the redirect's query parameters.

        Return None for other requests, because other programs can send requests to this port.
        """
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        parts = urlsplit(f"http://{_HOST}{rest.partition(' ')[0]}")
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        fields = dict(pairs)
        is_expected = secrets.compare_digest(fields.get("state", "").encode(), self.state.encode())
        return fields if method == "GET" and parts.path == _PATH and is_expected and len(fields) == len(pairs) else None


@asynccontextmanager
async def listen(port: int) -> AsyncIterator[Listener]:
    """Listen for one redirect during the block, on port `port` if it is free.

    Raises:
        LoginError: No port can be opened.
    """
    listener = Listener()
    try:
        server = await listener.start(port)
    except OSError as error:
        raise LoginError(f"cannot listen on {_HOST}: {error.strerror}") from None
    try:
        yield listener
    finally:
        server.close()


async def show(url: str, server: str, say: Callable[[str], None]) -> None:
    """Open a URL in the user's browser and print how to log in to a server."""
    try:
        is_open = await anyio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)
    except (OSError, webbrowser.Error):
        is_open = False
    if is_open:
        say(f"log in to {server} in the browser window that opened")
    else:
        say(f"no browser could be opened; open this URL to log in to {server}:\n{url}")
