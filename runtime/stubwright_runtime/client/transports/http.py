"""The Streamable HTTP transport (MCP 2025-11-25 and 2026-07-28, basic/transports).

Each message is a POST request; its response is JSON or an event stream. An invalid response fails only its request.
"""

from __future__ import annotations

import asyncio
import codecs
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import from_json, to_json

from ...mcp.parameter_headers import encode_value
from ...network.errors import SettingError, describe
from ...observability.logs import log, redact_text
from ...values.json import is_group
from ..core.connect_errors import Unreachable
from ..rpc.mcp_error import MCPError
from .batches import split_batch
from .bounds import Bounds, TooLargeError
from .events import Event, EventParser
from .refusals import OPENING, SESSION, Refusal, find_refusal, hide_secrets
from .replies import HttpClient, HttpRequest, Reply
from .sessions import Sessions
from .unreadable import UnreadableError, check_message, is_sound, parse_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_types import RequestId

    from ..rpc.connection import RpcConnection

_SECONDS_UNASKED: Final = 10.0
"""The timeout for sending a notification, in seconds."""

_SECONDS_FOR_TEXT: Final = 2.0
"""The timeout for reading an error response's text, in seconds."""

_MOST_OF_TEXT: Final = 1024
"""The maximum size of an error response's text, in bytes."""

_ATTEMPTS: Final = 2
"""The maximum number of failed attempts to resume a stream."""

_PAUSE: Final = 1000
"""The default delay in milliseconds before resuming a stream."""

_REDIRECTS: Final = frozenset({HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT})
"""Redirects that preserve the method and the body (RFC 9110, section 15.4)."""

_NAMES: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the `Mcp-Name` header mirrors, by method."""

_FOREIGN: Final = "the server responded to a different request"


class SessionLostError(Exception):
    """The server rejected a request's session."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal


class HttpTransport:
    """The transport for a URL."""

    over_http = True

    def __init__(self, url: str, headers: Mapping[str, str], bounds: Bounds, auth: httpx2.Auth | None = None) -> None:
        """Prepare a transport.

        Args:
            url: The MCP endpoint.
            headers: Headers for every request.
            bounds: The connection's size limits for responses.
            auth: Authorizes every request.
        """
        self.url = url
        self._headers = headers
        self._bounds = bounds
        self._auth = auth
        self._client: HttpClient | None = None
        self._parsed_url = httpx2.URL(url)
        self._base_headers: dict[str, str] = {}
        self._connection: RpcConnection | None = None
        self._sessions = Sessions(self)
        self._listening: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The URL without credentials or query."""
        return hide_secrets(self._parsed_url)

    @property
    def connection(self) -> RpcConnection:
        """The open connection. Raises RuntimeError if the transport is not open."""
        if self._connection is None:
            raise RuntimeError("the transport is not open")
        return self._connection

    async def open(self, connection: RpcConnection) -> None:
        """Create the HTTP client, which connects on the first request.

        Raises:
            Unreachable: The environment has an invalid proxy or certificate setting.
        """
        self._connection = connection
        try:
            self._client = HttpClient(self._headers, self._auth)
        except SettingError as error:
            raise Unreachable(self.name, f"cannot be reached: {error}") from None
        host = self._parsed_url.netloc.decode("ascii")
        self._base_headers = {"host": host, **self._client.headers}

    async def send(self, message: Mapping[str, Any], headers: Mapping[str, str] | None = None, /) -> None:
        """Send a message, and, if it is a request, wait for the response.

        Raises:
            MCPError: The server does not respond to a request.
        """
        if "id" in message and "method" in message:
            await self._sessions.send(message, headers or {})
            return
        # In MCP 2026-07-28 and later, closing the stream cancels the request.
        if message.get("method") == "notifications/cancelled" and self._is_modern:
            return
        await self.post(message)
        if message.get("method") == "notifications/initialized" and self._sessions.session is not None:
            if self._listening is not None:
                self._listening.cancel()
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    def resume(self) -> None:
        """Do nothing, because streams wait for room themselves."""

    def log_lines(self) -> tuple[str, ...]:
        """Return an empty tuple, because the log stays on the server."""
        return ()

    async def close(self, seconds: float, /) -> None:
        """End the session and close all connections."""
        client = self._client
        if client is None:
            return
        try:
            self._sessions.stop()
            if self._listening is not None:
                self._listening.cancel()
            if self._sessions.session is not None:
                await self._end_session(min(_SECONDS_UNASKED, seconds))
        finally:
            with anyio.CancelScope(shield=True):
                await client.aclose()

    @property
    def _is_modern(self) -> bool:
        return self.connection.revision in MODERN_PROTOCOL_VERSIONS

    def _build(self, verb: str, message: Mapping[str, Any] | None, headers: Mapping[str, str]) -> HttpRequest:
        own = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        method = None if message is None else message.get("method")
        if method != "initialize":
            own["mcp-protocol-version"] = self.connection.revision
            if self._sessions.session is not None:
                own[SESSION] = self._sessions.session
        if message is not None and method is not None and self._is_modern:
            own["mcp-method"] = method
            name = (message.get("params") or {}).get(_NAMES.get(method, ""))
            if isinstance(name, str):
                own["mcp-name"] = encode_value(name)
        body = b""
        if message is not None:
            body = to_json(message, inf_nan_mode="null")
            own["content-length"] = str(len(body))
        return HttpRequest(verb, self._parsed_url, {**self._base_headers, **own, **headers}, body)

    async def post(self, message: Mapping[str, Any]) -> None:
        """Send a notification or a response. Failures are logged."""
        try:
            with anyio.fail_after(_SECONDS_UNASKED):
                async with await self._send(self._build("POST", message, {})) as response:
                    if response.status >= HTTPStatus.BAD_REQUEST:
                        log().debug("%s failed with status %d", message.get("method", "a response"), response.status)
        except (MCPError, TimeoutError) as error:
            log().debug("%s was not delivered: %s", message.get("method", "a response"), error)

    async def exchange(
        self, message: Mapping[str, Any], headers: Mapping[str, str], deliver: Callable[[dict[str, Any], int], None]
    ) -> None:
        """Send a request and deliver all messages in its response.

        Raises:
            MCPError: The server sends no valid response.
            SessionLostError: The server rejects the session.
        """
        request = self._build("POST", message, headers)
        method = str(message["method"])
        try:
            async with await self._send(request) as response:
                reading = _Exchange(self, request, response, message["id"], method, deliver)
                if await reading.read():
                    return
            await self._resume(reading)
        except TooLargeError as error:
            raise MCPError(code=CONNECTION_CLOSED, message=str(error)) from error

    async def _resume(self, reading: _Exchange) -> None:
        """Resume an interrupted stream after its last event (`Last-Event-ID`)."""
        for _ in range(_ATTEMPTS):
            if reading.last is None:
                break
            await asyncio.sleep((_PAUSE if reading.retry is None else reading.retry) / 1000)
            request = self._build("GET", None, {"last-event-id": reading.last, "accept": "text/event-stream"})
            is_resumed = False
            try:
                async with await self._send(request) as response:
                    is_resumed = response.is_success
                    if is_resumed and await reading.read_events(response):
                        return
            except MCPError:  # if resuming fails, report the first stream's error
                if is_resumed:
                    raise
        raise reading.explain_break()

    async def _listen(self) -> None:
        """Receive messages that belong to no request (MCP 2025-11-25, "Listening for Messages from the Server")."""
        last, retry, attempt = None, _PAUSE, 0
        while attempt < _ATTEMPTS and self._sessions.session is not None:
            headers = {"accept": "text/event-stream", **({} if last is None else {"last-event-id": last})}
            try:
                async with await self._send(self._build("GET", None, headers)) as response:
                    if not response.is_success:
                        return
                    parser = EventParser(self._bounds, self._bounds.find_bound())
                    while piece := await response.read():
                        for event in parser.feed(piece):
                            last = event.id or last
                            retry = retry if event.retry is None else event.retry
                            if event.data and event.is_message:
                                for text in split_batch(event.data):
                                    await self._wait_for_room()
                                    self.connection.receive(text)
                attempt = 0
            except (MCPError, httpx2.RequestError, TooLargeError, UnicodeDecodeError) as error:
                log().debug("the stream of server messages was interrupted: %s", error)
                attempt += 1
            await asyncio.sleep(retry / 1000)

    async def _wait_for_room(self) -> None:
        while not self.connection.has_room:
            await self.connection.wait_for_room()

    async def _end_session(self, seconds: float) -> None:
        with suppress(MCPError, TimeoutError), anyio.fail_after(seconds):
            async with await self._send(self._build("DELETE", None, {})):
                pass

    async def _send(self, request: HttpRequest) -> Reply:
        """Send a request and follow one same-origin redirect. The response body is not read.

        Raises:
            MCPError: The server sends no response.
        """
        response = await self._send_once(request)
        location = response.headers.get("location") if response.status in _REDIRECTS else None
        again = None if location is None else request.redirect(location)
        if again is None:
            return response
        async with response:
            pass
        return await self._send_once(again)

    async def _send_once(self, request: HttpRequest) -> Reply:
        if self._client is None:
            raise RuntimeError("the transport is not open")
        try:
            return await self._client.send(request)
        except httpx2.RequestError as error:
            is_unreachable = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            verb = "cannot be reached" if is_unreachable else "does not respond"
            why = f"{verb}: {describe(error, url=str(request.url))}"
            raise _make_error(Refusal("unreachable", hide_secrets(request.url), why)) from None
        except MCPError:
            raise
        except Exception as error:
            if self._auth is None:
                raise
            reason = describe(error) if is_group(error) else str(error) or describe(error)
            why = f"was not called because authorization failed: {reason}"
            raise _make_error(Refusal("unauthorized", hide_secrets(request.url), why)) from error


class _Exchange:
    """Reads the response to one request.

    Attributes:
        last: The last event ID, or `None` if the stream cannot be resumed.
        retry: The delay in milliseconds before resuming the stream; `None` for the default.
    """

    def __init__(
        self,
        transport: HttpTransport,
        request: HttpRequest,
        response: Reply,
        key: RequestId,
        method: str,
        deliver: Callable[[dict[str, Any], int], None],
    ) -> None:
        self.last: str | None = None
        self.retry: int | None = None
        self._transport = transport
        self._request = request
        self._response = response
        self._key = str(key)
        self._method = method
        self._deliver = deliver
        self._bounds = transport._bounds
        self._break = ""

    async def read(self) -> bool:
        """Read the response. Return False if its stream ended early.

        Raises the same exceptions as `HttpTransport.exchange`.
        """
        response = self._response
        media = response.headers.get("content-type", "").lower()
        if response.is_success:
            self._transport._sessions.record_start(self._method, response.headers.get(SESSION))
        if response.is_success and media.startswith("text/event-stream"):
            return await self.read_events(response)
        body = await self._read_body(media)
        is_json = media.startswith("application/json")
        if response.is_success and (messages := split_batch(body)) != [body]:
            return max([self._receive(text) for text in messages])
        if not response.is_success or not is_json or self._method in OPENING:
            self._check_refusal(body)
        self._receive(body, is_alone=True)
        return True

    async def read_events(self, response: Reply) -> bool:
        """Read an event stream up to the JSON-RPC response, and return whether the response arrived."""
        parser = EventParser(self._bounds, self._bounds.find_bound())
        self._break = ""
        try:
            while piece := await response.read():
                for event in parser.feed(piece):
                    if await self._read_event(event):
                        return True
            last = parser.finish()
            if last is not None and _is_json(last.data):
                return await self._read_event(last)
        except UnicodeDecodeError:
            message = "the server's response contains bytes that are not UTF-8"
            raise MCPError(code=CONNECTION_CLOSED, message=message) from None
        except httpx2.RequestError as error:
            self._break = f": {describe(error)}"
        return False

    async def _read_event(self, event: Event) -> bool:
        """Deliver an event's messages. Return whether one of the messages is the response."""
        self.last = event.id or self.last
        self.retry = self.retry if event.retry is None else event.retry
        if event.data and event.is_message:
            for text in split_batch(event.data):
                await self._transport._wait_for_room()
                if self._receive(text):
                    return True
        return False

    def explain_break(self) -> MCPError:
        why = f"interrupted its response{self._break}"
        return _make_error(Refusal("unreachable", hide_secrets(self._request.url), why))

    async def _read_body(self, media: str) -> bytes:
        """Return a JSON body, the start of an error response's text, or empty bytes for any other body."""
        response = self._response
        if media.startswith("application/json"):
            body, bound = bytearray(), self._bounds.find_bound()
            try:
                while chunk := await response.read():
                    self._bounds.add(len(chunk))
                    body += chunk
                    self._bounds.check(len(body), bound)
            except httpx2.RequestError as error:
                why = f"does not respond: {describe(error, url=str(self._request.url))}"
                raise _make_error(Refusal("unreachable", hide_secrets(self._request.url), why)) from None
            return bytes(body).removeprefix(codecs.BOM_UTF8)
        if not media.startswith(("text/plain", "application/problem+json")) or response.status < HTTPStatus.BAD_REQUEST:
            return b""
        start = bytearray()
        # The status alone is an error, even if the text is late or invalid.
        with anyio.move_on_after(_SECONDS_FOR_TEXT), suppress(httpx2.RequestError):
            while chunk := await response.read():
                self._bounds.add(len(chunk))
                start += chunk
                if len(start) >= _MOST_OF_TEXT:
                    break
        return bytes(start[:_MOST_OF_TEXT])

    def _check_refusal(self, body: bytes) -> None:
        """Raise the error for an HTTP response that is not an MCP response."""
        response = self._response
        own = self._read_error(body)
        refusal = find_refusal(self._request, response, self._method, body)
        if refusal is not None:
            if refusal.kind == "session_lost":
                raise SessionLostError(refusal)
            if response.is_success:
                own = MCPError(code=PARSE_ERROR, message=f"{refusal.url} {refusal.why}")
            raise replace(refusal, data=own.data).to_error(own)
        if not response.is_success:
            raise own

    def _read_error(self, body: bytes) -> MCPError:
        """Return the JSON-RPC error in the body, or an error that reports the HTTP status."""
        try:
            message = parse_object(body)
            check_message(message, body)
        except UnreadableError:
            message = {}
        error = message.get("error")
        if isinstance(error, dict):
            return _read_error(error)
        if self._response.status != HTTPStatus.NOT_FOUND:
            return MCPError(code=INTERNAL_ERROR, message="Server returned an error response")
        if SESSION in self._request.headers:
            return MCPError(code=INVALID_REQUEST, message="Session terminated")
        return MCPError(code=METHOD_NOT_FOUND, message="Not Found")

    def _receive(self, text: bytes, *, is_alone: bool = False) -> bool:
        """Deliver a message, and return whether it is the response. With `is_alone`, any other message is an error.

        Raises:
            MCPError: The message is malformed or responds to another request.
        """
        try:
            message = parse_object(text)
            is_answer = bool(message.keys() & {"result", "error"})
            if (is_alone or is_answer) and ("method" in message or self._has_other_id(message)):
                raise MCPError(code=INVALID_REQUEST, message=_FOREIGN)
            if not is_sound(message):
                check_message(message, text)
        except UnreadableError as error:
            raise MCPError(code=PARSE_ERROR, message=error.sentence) from None
        if is_answer and message.get("id") is None:
            raise _read_error(message["error"])
        self._deliver(message, len(text))
        return is_answer

    def _has_other_id(self, message: dict[str, Any]) -> bool:
        if "id" not in message or ("error" in message and message["id"] is None):
            return False
        return str(message["id"]) != self._key


def _is_json(data: bytes) -> bool:
    try:
        from_json(data)
    except ValueError:
        return False
    return True


def _read_error(error: Mapping[str, Any]) -> MCPError:
    return MCPError(code=error["code"], message=redact_text(error["message"]), data=error.get("data"))


def _make_error(refusal: Refusal) -> MCPError:
    return refusal.to_error(MCPError(code=CONNECTION_CLOSED, message=f"{refusal.url} {refusal.why}"))
