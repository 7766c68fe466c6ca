"""An HTTP proxy between clients on this machine and an endpoint, which records messages.

It does not record headers, except the protocol revision and whether there is a session.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import httpx2

from stubwright.login.errors import LoginError
from stubwright.recording.copies import LARGEST, Copies, Copy
from stubwright.recording.encodings import Decoder, EncodingError, decode
from stubwright.recording.redaction import list_parts
from stubwright_runtime.network.certificates import share_tls_context
from stubwright_runtime.network.clients import make_http_client
from stubwright_runtime.network.errors import SettingError, check_proxies, describe
from stubwright_runtime.observability.redaction import is_secret_name
from stubwright_runtime.server.app.loader import StartError
from stubwright_runtime.server.execution.signals import stop_signals
from stubwright_runtime.server.main import listen
from stubwright_runtime.server.transports.http.headers import Allowlist
from stubwright_runtime.server.transports.http.listener.graceful_shutdown import GracefulServer
from stubwright_runtime.values.event_streams import EventReader

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping

    from stubwright.login.authorization import Authorization
    from stubwright.recording.recorder import Recorder, Sender

    Scope: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    """The `send` callable of an ASGI application (ASGI 3.0)."""

PATH: Final = "/mcp"
"""The path to which clients connect."""

_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
_GRACE: Final = 1
"""Grace period in seconds for requests in progress when the proxy stops."""

_CONNECTING: Final = 30.0

_HELD: Final = 1024 * 1024
"""The maximum size of a buffered body; bodies up to this size are recorded before they are forwarded."""

_OWN: Final = frozenset(
    {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection"}
)
"""Hop-by-hop headers (RFC 9110, 7.6.1)."""

_REPLACED: Final = _OWN | {b"host", b"origin", b"content-length", b"accept-encoding"}
_SESSION: Final = b"mcp-session-id"
_EVENTS: Final = "text/event-stream"


def reserve(address: tuple[str, int]) -> socket.socket:
    """Return a listener for a host and port.

    Raises:
        StartError: The address is unavailable, or the environment's proxy or certificates are unusable.
    """
    try:
        check_proxies()
        share_tls_context()
    except SettingError as error:
        raise StartError(str(error)) from None
    return listen(*address)


def run(
    url: str,
    headers: Mapping[str, str],
    listener: socket.socket,
    recorder: Recorder,
    say: Callable[[str], None],
    auth: Authorization | None = None,
) -> None:
    """Serve until a stop signal.

    Args:
        url: The endpoint's URL.
        headers: Headers to add to each request.
        listener: The listener from `reserve`.
        recorder: Records each message.
        say: Prints the address for clients, and endpoint errors.
        auth: Provides the access token for each request.
    """
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    # Calls and streams can be idle; only connecting has a time limit.
    timeout = httpx2.Timeout(None, connect=_CONNECTING)
    # Cookies belong to one client and must not be sent for another.
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    client = make_http_client(timeout, cookies=cookies)
    proxy = _Proxy(url, headers, client, recorder, (*_HOSTS, shown), say, auth)
    server = GracefulServer(proxy, _GRACE, proxy.end_streams)
    for number in stop_signals():  # uvicorn re-raises them when it exits
        signal.signal(number, server.stop_when_started)
    say(f"recording; clients connect to http://{shown}:{port}{PATH}")
    server.run([listener])


class _Proxy:
    """The recording proxy, as an ASGI application."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        client: httpx2.AsyncClient,
        recorder: Recorder,
        hosts: Iterable[str],
        say: Callable[[str], None],
        auth: Authorization | None = None,
    ) -> None:
        self._url = url
        self._auth = auth
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._recorder = recorder
        self._say = say
        forms = [form for host in hosts for form in (host, f"{host}:*")]
        self._hosts = Allowlist(forms, all_=False)
        self._origins = Allowlist([f"http://{form}" for form in forms], all_=False)
        self._numbers = itertools.count(1)
        self._streams: set[asyncio.Task[None]] = set()
        self._client = client
        self._copies = Copies()

    def end_streams(self) -> None:
        """Close the event streams, which otherwise last until their clients disconnect."""
        for task in self._streams:
            task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        with suppress(asyncio.CancelledError):  # a second signal stops the loop immediately
            await receive()
        await self._client.aclose()  # the event loop stops after the next message
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        given: Mapping[bytes, bytes] = dict(scope["headers"])
        if not self._hosts.permits(given.get(b"host", b"")):
            await _refuse(send, 421, "This proxy answers requests for this machine only.")
        elif b"origin" in given and not self._origins.permits(given[b"origin"]):  # it adds credentials
            await _refuse(send, 403, "Requests from other origins are not allowed.")
        elif scope["path"].rstrip("/") != PATH:
            await _refuse(send, 404, f"The endpoint is at {PATH}.")
        else:
            body = _Body(receive, Copy(self._copies))
            with suppress(_ClientLeftError):
                await body.begin()
                try:
                    await self._forward_until_left(self._pass(scope, body, given, send), body)
                finally:
                    body.copy.drop()

    async def _forward_until_left(self, passing: Any, body: _Body) -> None:
        """Forward a request. Disconnect from the endpoint if the client disconnects."""
        task = asyncio.create_task(passing)
        leaving = asyncio.create_task(body.wait_until_left())
        try:
            await asyncio.wait([task, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            was_done = task.done()
            task.cancel()
            await asyncio.wait([task])
        if was_done and not task.cancelled():
            task.result()

    async def _pass(self, scope: Scope, body: _Body, given: Mapping[bytes, bytes], send: Send) -> None:
        exchange = next(self._numbers)
        known: dict[str, Any] = {"session": _SESSION in given}
        if b"mcp-protocol-version" in given:
            known["protocolVersion"] = given[b"mcp-protocol-version"].decode("latin-1")
        self._recorder.add_secrets(_list_credentials(scope["headers"]))
        encoding = given.get(b"content-encoding", b"").decode("latin-1")
        content: bytes | AsyncIterator[bytes] = body.start
        if body.is_whole:
            self._record("client", body.copy, encoding, exchange, known)
        else:
            content = body.stream(lambda: self._record("client", body.copy, encoding, exchange, known))
        own = {name for name, _ in self._headers} | (set() if self._auth is None else {b"authorization"})
        left_out = _REPLACED | _list_hop_headers(scope["headers"]) | own
        headers = [(name, value) for name, value in scope["headers"] if name not in left_out]
        # Request only supported compressions.
        headers += [*self._headers, (b"accept-encoding", b"identity")]
        if not body.is_whole and b"content-length" in given:
            headers.append((b"content-length", given[b"content-length"]))
        request = self._client.build_request(scope["method"], self._url, headers=headers, content=content)
        async with AsyncExitStack() as stack:
            stack.callback(self._record_unread, body, exchange, known)
            try:
                response = await self._client.send(request, stream=True, auth=self._auth)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                await self._fail(f"the endpoint cannot be reached: {describe(error, url=self._url)}", exchange, send)
                return
            except LoginError as error:
                await self._fail(str(error), exchange, send)
                return
            except httpx2.StreamConsumed:  # a large request is not buffered, so it cannot be repeated
                await self._fail("the endpoint requires a different access token; repeat the request", exchange, send)
                return
            if self._auth is not None:
                self._recorder.add_secrets(self._auth.secrets)
            stack.push_async_callback(response.aclose)
            self._recorder.add_secrets(response.headers.get_list("mcp-session-id"))
            if response.headers.get("content-type", "").partition(";")[0].strip().lower() == _EVENTS:
                await self._give_events(response, exchange, send)
            else:
                await self._give(response, exchange, send)

    async def _fail(self, why: str, exchange: int, send: Send) -> None:
        self._say(why)
        self._recorder.add_note("server", exchange, status=502)
        await _refuse(send, 502, "The endpoint did not respond; stubwright record shows why in its terminal.")

    async def _give(self, response: httpx2.Response, exchange: int, send: Send) -> None:
        start, known = _begin(response)
        copy, held, has_begun = Copy(self._copies), bytearray(), False
        try:
            async for part in response.aiter_raw():
                copy.add(part)
                held += part
                if len(held) > _HELD:
                    if not has_begun:
                        await send(start)
                        has_begun = True
                    await send({"type": "http.response.body", "body": bytes(held), "more_body": True})
                    held.clear()
            if copy.size:
                self._record("server", copy, response.headers.get("content-encoding", ""), exchange, known)
            else:
                self._recorder.add_note("server", exchange, **known)
        except httpx2.HTTPError as error:
            self._say(f"the endpoint aborted its response: {describe(error, url=self._url)}")
            self._recorder.add_note("server", exchange, status=502)
            if not has_begun:
                await _refuse(send, 502, "The endpoint aborted its response.")
            return  # close the connection, so that the client detects the incomplete response
        finally:
            copy.drop()
        if not has_begun:
            await send(start)
        await send({"type": "http.response.body", "body": bytes(held)})

    async def _give_events(self, response: httpx2.Response, exchange: int, send: Send) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._streams.add(task)
            task.add_done_callback(self._streams.discard)
        start, known = _begin(response)
        await send(start)
        events = _Events(response.headers.get("content-encoding", ""))
        try:
            async for part in response.aiter_raw():
                for data in events.feed(part):
                    self._recorder.record("server", data, exchange, **known)
                await send({"type": "http.response.body", "body": part, "more_body": True})
        except httpx2.HTTPError as error:  # the client's stream is closed, too, and can be resumed
            self._say(f"the endpoint aborted a stream: {describe(error, url=self._url)}")
        finally:
            if events.problem:
                self._log_unreadable("server", events.size, events.problem, exchange, known)
        await send({"type": "http.response.body", "body": b""})

    def _record(self, sender: Sender, copy: Copy, encoding: str, exchange: int, known: Mapping[str, Any]) -> None:
        body = copy.pop()
        if copy.problem:
            self._log_unreadable(sender, copy.size, copy.problem, exchange, known)
            return
        try:
            decoded = decode(encoding, body) if body else b""
        except EncodingError as error:
            self._log_unreadable(sender, len(body), str(error), exchange, known)
        else:
            self._recorder.record(sender, decoded, exchange, **known)

    def _record_unread(self, body: _Body, exchange: int, known: Mapping[str, Any]) -> None:
        if not body.is_whole:
            why = "it was not read completely"
            self._log_unreadable("client", body.copy.size, why, exchange, known)

    def _log_unreadable(self, sender: Sender, size: int, why: str, exchange: int, known: Mapping[str, Any]) -> None:
        whose = "the endpoint" if sender == "server" else "a client"
        self._say(f"a message from {whose} is not recorded: {why}")
        self._recorder.add_note(sender, exchange, **known, unreadable=size, why=why)


class _ClientLeftError(Exception):
    """The client closed its connection before it sent the whole request."""


class _Body:
    """A request body.

    Attributes:
        start: The first bytes, which `begin` reads.
        is_whole: True once the last byte was read.
        copy: The copy of the body for the recording.
    """

    def __init__(self, receive: Receive, copy: Copy) -> None:
        self.start = b""
        self.is_whole = False
        self.copy = copy
        self._receive = receive
        self._ended = asyncio.Event()

    async def begin(self) -> None:
        """Read the first bytes. Raises _ClientLeftError."""
        start = bytearray()
        while not self.is_whole and len(start) <= _HELD:
            start += await self._read()
        self.start = bytes(start)

    async def stream(self, on_end: Callable[[], None]) -> AsyncIterator[bytes]:
        """Yield all bytes and call `on_end` before the last part. Raises _ClientLeftError."""
        yield self.start
        while not self.is_whole:
            part = await self._read()
            if self.is_whole:
                on_end()
            yield part

    async def wait_until_left(self) -> None:
        await self._ended.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _read(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _ClientLeftError
        part: bytes = message.get("body", b"")
        self.copy.add(part)
        if not message.get("more_body", False):
            self.is_whole = True
            self._ended.set()
        return part


class _Events:
    """Parses a stream's events.

    Attributes:
        size: The size of the unreadable part, in bytes.
        problem: The reason, if the stream is unreadable.
    """

    def __init__(self, encoding: str) -> None:
        self.size = 0
        self.problem = ""
        self._reader = EventReader()
        self._pending = 0  # bytes since the last event
        self._decoder: Decoder | None = None
        try:
            self._decoder = Decoder(encoding)
        except EncodingError as error:
            self.problem = str(error)

    def feed(self, part: bytes) -> Sequence[bytes]:
        try:
            if self._decoder is not None:
                return self._read(self._decoder.feed(part))
        except EncodingError as error:
            self.problem = str(error)
            self._decoder, self._reader = None, EventReader()
        self.size += len(part)
        return ()

    def _read(self, decoded: bytes) -> Sequence[bytes]:
        """Return the data of each event that these bytes complete. Raises EncodingError if an event is too large."""
        events = [*self._reader.feed(decoded)]
        if not events and self._pending + len(decoded) > LARGEST:
            self.size += self._pending
            raise EncodingError(f"an event exceeds {LARGEST // 1024 // 1024} MiB")
        self._pending = 0 if events else self._pending + len(decoded)
        return events


def _begin(response: httpx2.Response) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the ASGI message that starts a response, and the header fields to record."""
    given = [(name.lower(), value) for name, value in response.headers.raw]
    left_out = _OWN | _list_hop_headers(given)
    headers = [(name, value) for name, value in given if name not in left_out]
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    return start, {"status": response.status_code, "session": "mcp-session-id" in response.headers}


def _list_hop_headers(headers: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    """Return the hop-by-hop headers, including those listed in `Connection` (RFC 9110, 7.6.1)."""
    lists = [value for name, value in headers if name == b"connection"]
    return {name.strip().lower() for value in lists for name in value.split(b",")}


def _list_credentials(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    """Yield the credentials in a client's headers, whole and in parts, because a server could echo either."""
    for name, value in headers:
        text = value.decode("latin-1")
        if name == _SESSION:
            yield text
        # `Mcp-Param-…` mirrors an argument, which is also in the message.
        elif is_secret_name(name.decode("latin-1")) and not name.startswith(b"mcp-"):
            yield from list_parts(text)
            if name == b"cookie":
                yield from (pair.partition("=")[2] for pair in text.split("; "))


async def _refuse(send: Send, status: int, words: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode()})
