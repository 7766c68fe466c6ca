"""An HTTP client for the SDK's transport to which whatever a server does is an answer, and not the end of everything.

Takes requests and gives responses, as `httpx2.AsyncClient` does. An exception would end the SDK's whole transport, and
with it every other call and the caller's block; as an answer it fails the one call that it belongs to. Nothing is read
that is not wanted, and nothing that is longer than it may be.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR
from pydantic_core import from_json, to_json

from ...values.certificates import share_tls_context
from ...values.network_errors import describe
from .batches import split_batch
from .bounds import Bounds, TooLargeError
from .refusals import OPENING, SESSION, Refusal, Refusals, hide_secrets, judge
from .unreadable import UnreadableError, check_message, parse_object

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

_SECONDS: Final = 30.0
"""For connecting and for writing a request. How long an answer may take, the call's own timeout says."""

_SECONDS_UNASKED: Final = 10.0
"""For the answer to what asks for none: the SDK sends nothing else until it is there."""

_SECONDS_FOR_TEXT: Final = 2.0
"""For the text that comes with an error."""

_MOST_OF_TEXT: Final = 1024
"""Bytes of such a text that are read."""

# Atomic: otherwise the two characters of one `\r\n` would match as two line ends.
_BLANK: Final = re.compile(rb"(?>\r\n|\n|\r){2}")
"""The end of an event (WHATWG HTML, 9.2.5), but for one that lies in two pieces of a stream."""

_END: Final = re.compile(rb"\r\n|\n|\r")

_NO_SESSION: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
"""A server answers these to the end of a session that it does not know."""

_FOREIGN: Final = "the server answered something else than what it was asked"

_MOST_CUT: Final = 1000
"""Streams of which is noted what they answer, for where they are cut."""

_ENCODED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class NetworkClient(httpx2.AsyncClient):
    """Sends as its base does, and answers with a JSON-RPC error where there is no response that can be read."""

    def __init__(
        self,
        headers: Mapping[str, str],
        bounds: Bounds | None = None,
        auth: httpx2.Auth | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        """Take the headers that every request has, the bounds of what is read, and who authorizes requests.

        In `refusals` it notes why a request has no answer.
        """
        timeout = httpx2.Timeout(_SECONDS, read=None)
        super().__init__(headers=dict(headers), timeout=timeout, auth=auth, verify=share_tls_context())
        self._bounds = bounds or Bounds()
        self._refusals: Refusals = {} if refusals is None else refusals
        self._cut: dict[str, str] = {}

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; never raises `httpx2.RequestError`, nor what the authorization raises."""
        asked, method = _read_request(await request.aread()) if request.method == "POST" else (None, "")
        if request.method == "DELETE":
            return await self._end_session(request, options)
        if method == "initialize":  # the SDK would name the session that the server does not know any more
            request.headers.pop(SESSION, None)
        try:
            if asked is None and request.method != "GET":
                with anyio.fail_after(_SECONDS_UNASKED):
                    return await self._send(request, asked, method, options)
            return await self._send(request, asked, method, options)
        except TooLargeError as error:
            return _make_response(request, CONNECTION_CLOSED, str(error))
        except (httpx2.RequestError, TimeoutError) as error:
            is_unheard = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            verb = "cannot be reached" if is_unheard else "does not answer"
            refusal = Refusal("unreachable", hide_secrets(request), f"{verb}: {describe(error, url=str(request.url))}")
            return self._refuse(request, asked, refusal)
        except Exception as error:
            if self.auth is None:
                raise
            why = f"was not asked, because there is no authorization: {describe(error)}"
            return self._refuse(request, asked, Refusal("unauthorized", hide_secrets(request), why))

    async def _end_session(self, request: httpx2.Request, options: Mapping[str, Any]) -> httpx2.Response:
        """Tell the server that the session is over. One that is gone has none, and the SDK would warn of it."""
        try:
            with anyio.fail_after(_SECONDS_UNASKED):
                response = await self._send(request, None, "", options)
        except (httpx2.RequestError, TimeoutError):
            return httpx2.Response(HTTPStatus.NO_CONTENT, request=request)
        return _replace_body(response, HTTPStatus.NO_CONTENT if response.status_code in _NO_SESSION else None)

    def _refuse(self, request: httpx2.Request, asked: str | None, refusal: Refusal) -> httpx2.Response:
        if asked is not None:
            self._refusals[asked] = refusal
        return _make_response(request, CONNECTION_CLOSED, f"{refusal.url} {refusal.why}")

    async def _send(
        self, request: httpx2.Request, asked: str | None, method: str, options: Mapping[str, Any]
    ) -> httpx2.Response:
        sent: dict[str, Any] = {**options, "stream": True}
        response = await super().send(request, **sent)
        media = response.headers.get("content-type", "").lower()
        if response.is_success and media.startswith("text/event-stream"):
            return self._read_events(request, response, asked, self._bounds)
        try:
            body = b"" if asked is None else await self._read_body(response, media)
        finally:
            await response.aclose()
        if response.is_success and (messages := split_batch(body)) != [body]:  # its bytes are counted
            return self._read_events(request, _make_events(response, messages), asked, Bounds(None))
        is_json = media.startswith("application/json")
        if asked is not None and (not response.is_success or not is_json or method in OPENING):
            refusal = judge(request, response, method, body)
            if refusal is not None:
                self._refusals[asked] = refusal
                if response.is_success:
                    return _make_response(request, PARSE_ERROR, f"{refusal.url} {refusal.why}")
        if asked is not None and is_json and response.is_success:
            return _check_body(response, body, asked)
        return _replace_body(response, content=body)

    def _read_events(
        self, request: httpx2.Request, response: httpx2.Response, asked: str | None, bounds: Bounds
    ) -> httpx2.Response:
        """Return a response that is an event stream with its events checked."""
        last = request.headers.get("last-event-id")  # the rest of an answer that came in part
        own = asked if last is None else self._cut.pop(last, None)

        def note_break(why: str) -> None:
            if own is not None:
                self._refusals[own] = Refusal("unreachable", hide_secrets(request), f"breaks off its answer{why}")

        if own is not None:
            self._refusals.pop(own, None)  # the rest of an answer that was broken off
        return _replace_body(response, stream=_Events(response, bounds, own, self._cut, note_break))

    async def _read_body(self, response: httpx2.Response, media: str) -> bytes:
        """Return a body of JSON, or the start of a text or a problem that comes with an error; otherwise nothing."""
        if media.startswith("application/json"):
            return await self._read(response)
        if media.startswith(("text/plain", "application/problem+json")) and response.is_error:
            return await self._read_start(response)
        return b""

    async def _read_start(self, response: httpx2.Response) -> bytes:
        start = bytearray()
        # The status is an answer by itself, and a text that is late or broken must not hide it.
        with anyio.move_on_after(_SECONDS_FOR_TEXT), suppress(httpx2.RequestError):
            async for chunk in response.aiter_bytes():
                self._bounds.add(len(chunk))
                start += chunk
                if len(start) >= _MOST_OF_TEXT:
                    break
        return bytes(start[:_MOST_OF_TEXT])

    async def _read(self, response: httpx2.Response) -> bytes:
        """Return the body after decoding; the rest is not asked for where it is too long."""
        body, bound = bytearray(), self._bounds.find_bound()
        async for chunk in response.aiter_bytes():
            self._bounds.add(len(chunk))
            body += chunk
            self._bounds.check(len(body), bound)
        return bytes(body).removeprefix(codecs.BOM_UTF8)


class _Events(httpx2.AsyncByteStream):
    """An event stream: as long as it likes, but each event is bounded, all of it is UTF-8, and it answers its request.

    The SDK takes whatever answer comes for the one to the request that was sent.
    """

    def __init__(
        self,
        response: httpx2.Response,
        bounds: Bounds,
        asked: str | None = None,
        cut: dict[str, str] | None = None,
        note_break: Callable[[str], None] | None = None,
    ) -> None:
        """Take the response, its bounds, the number of the request, and where that is noted by the ids of events.

        `note_break` is called with the reason if the stream ends by itself: whoever has its answer closes it before.
        """
        self._response = response
        self._asked = asked
        self._cut = {} if cut is None else cut
        self._note_break = note_break
        self._last: str | None = None
        self._bounds = bounds
        self._bound = bounds.find_bound()
        self._size = 0
        self._end = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for event in self._split():
                yield event
        except httpx2.RequestError as error:
            if self._note_break is not None and not isinstance(
                error, httpx2.SSEError
            ):  # which says itself what is wrong
                self._note_break(f": {describe(error)}")
            raise
        if self._note_break is not None:
            self._note_break("")

    async def _split(self) -> AsyncIterator[bytes]:
        begun = bytearray()
        async for chunk in _drop_mark(self._response.aiter_bytes()):
            try:
                self._bounds.add(len(chunk))
                self._count(chunk)
                self._decoder.decode(chunk)
            except TooLargeError as error:
                raise httpx2.SSEError(str(error)) from None
            except UnicodeDecodeError:
                raise httpx2.SSEError("the server's answer holds bytes that are not UTF-8") from None
            begun += chunk
            end = 0
            # The longest blank has four bytes, of which three may have come before this chunk.
            for blank in _BLANK.finditer(begun, max(0, len(begun) - len(chunk) - 3)):
                event, end = bytes(begun[end : blank.end()]), blank.end()
                yield self._read_event(event)
            del begun[:end]
        if begun:
            yield self._read_event(bytes(begun))

    def _read_event(self, event: bytes) -> bytes:
        """Return an event: several in place of a batch, and an error in place of an answer to another request."""
        fields = [line.partition(b":") for line in _END.split(event)]
        values = [(name, value.removeprefix(b" ")) for name, _, value in fields]
        for name, value in values:
            if name == b"id" and self._asked is not None:
                self._note(value.decode(errors="replace"))
        data = b"\n".join(value for name, value in values if name == b"data")
        messages = split_batch(data)
        # The SDK passes over an event without data or of another kind, whatever it holds.
        if self._asked is not None and data and all(value == b"message" for name, value in values if name == b"event"):
            messages = [_check_event(message, self._asked) for message in messages]
        if messages == [data]:
            return event
        others = b"".join(b"%b: %b\n" % pair for pair in values if pair[0] not in (b"data", b""))
        return b"".join(b"%bdata: %b\n\n" % (others, message) for message in messages)

    def _note(self, last: str) -> None:
        """Note the id of the last event, with which a client resumes the stream elsewhere."""
        if self._last is not None:
            self._cut.pop(self._last, None)
        if self._asked is not None:
            self._cut[last], self._last = self._asked, last
        while len(self._cut) > _MOST_CUT:
            del self._cut[next(iter(self._cut))]

    def _count(self, chunk: bytes) -> None:
        """Count the bytes since the last event's end; ends may be cut in two."""
        seen, at = self._end + chunk, 0
        size = self._size - len(self._end)
        for blank in _BLANK.finditer(seen):
            self._bounds.check(size + blank.start() - at, self._bound)
            size, at = 0, blank.end()
        self._size = size + len(seen) - at
        self._end = seen[max(at, len(seen) - 3) :]
        self._bounds.check(self._size, self._bound)

    async def aclose(self) -> None:
        await self._response.aclose()


async def _drop_mark(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Drop the byte order mark that a text may begin with, which is no part of its first field (WHATWG HTML, 9.2.5)."""
    start: bytes | None = b""
    async for chunk in chunks:
        if start is None:
            yield chunk
            continue
        start += chunk
        if len(start) >= len(codecs.BOM_UTF8) or not codecs.BOM_UTF8.startswith(start):
            yield start.removeprefix(codecs.BOM_UTF8)
            start = None
    if start:
        yield start


def _read_request(body: bytes) -> tuple[str | None, str]:
    """Return the number of the request of JSON-RPC that is sent, or `None` if it gets no answer; and its method."""
    message = from_json(body)
    if "method" in message and "id" in message:
        return str(message["id"]), str(message["method"])
    return None, ""


def _check_body(response: httpx2.Response, body: bytes, asked: str) -> httpx2.Response:
    """Return the response with a body of JSON, or an error in place of what is no answer to the request."""
    try:
        message = parse_object(body)
        if "method" in message or _names_another(message, asked):
            return _make_response(response.request, INVALID_REQUEST, _FOREIGN)
        check_message(message, body)
    except UnreadableError as error:
        return _make_response(response.request, PARSE_ERROR, error.sentence)
    # With the status of an error, the SDK takes one about a request that could not be read.
    is_about_none = "error" in message and message["id"] is None
    return _replace_body(response, HTTPStatus.BAD_REQUEST if is_about_none else None, content=body)


def _check_event(data: bytes, asked: str) -> bytes:
    """Return the data of an event of a request's stream, or an error in place of what is no message for it."""
    try:
        message = parse_object(data)
        if message.keys() & {"result", "error"} and ("method" in message or _names_another(message, asked)):
            return _make_error(INVALID_REQUEST, _FOREIGN)
        check_message(message, data)
    except UnreadableError as error:
        return _make_error(PARSE_ERROR, error.sentence)
    return data


def _names_another(message: dict[str, Any], asked: str) -> bool:
    """Tell whether an answer names another request. An error may name none: its request could not be read."""
    if "id" not in message or ("error" in message and message["id"] is None):
        return False
    return str(message["id"]) != asked


def _replace_body(response: httpx2.Response, status: int | None = None, **body: Any) -> httpx2.Response:
    """Return the response with another body, which is not compressed, and perhaps another status."""
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _ENCODED]
    headers_left = [("content-type", "text/event-stream") if _is_charset(*pair) else pair for pair in headers]
    replaced = httpx2.Response(status or response.status_code, headers=headers_left, request=response.request, **body)
    replaced.next_request = response.next_request
    return replaced


def _is_charset(name: str, value: str) -> bool:
    """Tell whether a header gives an event stream a charset, which is always UTF-8 (WHATWG HTML, 9.2.5)."""
    return name.lower() == "content-type" and value.lower().startswith("text/event-stream")


def _make_events(response: httpx2.Response, messages: Iterable[bytes]) -> httpx2.Response:
    """Return the response with each message as an event of a stream."""
    events = b"".join(b"data: %b\n\n" % message for message in messages)
    replaced = _replace_body(response, content=events)
    replaced.headers["content-type"] = "text/event-stream"
    return replaced


def _make_response(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
    """Return a response for what the server did not send."""
    headers = {"Content-Type": "application/json"}
    return httpx2.Response(503, content=_make_error(code, message), headers=headers, request=request)


def _make_error(code: int, message: str) -> bytes:
    """Return an error, with which the SDK answers what it sent."""
    return to_json({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})
