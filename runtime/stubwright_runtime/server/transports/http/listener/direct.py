"""Fast path: handles common requests without uvicorn's protocol.

All other bytes, and requests that switch to a stream, go to uvicorn unchanged.
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from .....observability.logs import log, name_records
from .....values.modules import is_observed
from ....app.toolsets import HEADER
from ....core.request import Peer
from ..events import Response
from .posts import END, LARGEST, read_post

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from ..authentication import Authentication
    from ..endpoint import HttpEndpoint
    from ..headers import Head
    from ..posts.post import Post

_AUTHORIZATION: Final = re.compile(rb"\r\nauthorization:[ \t]*([!-~](?:[ -~]*[!-~])?)[ \t]*(?=\r\n|\Z)", re.IGNORECASE)
_TOOLSET: Final = HEADER.encode()
_FORWARDED: Final = b"x-forwarded-"
"""The prefix of the headers in which a proxy identifies the client. Only uvicorn has the list of trusted proxies."""

_HEADS: Final = 1024
"""The maximum number of cached heads. Clients send equal heads with each request."""

_LARGEST_BODY: Final = 1024 * 1024
"""The maximum body size in bytes."""

_LATE: Final = 0.005
"""Seconds to wait for the body if the client sends it after the head."""


CLOSE: Final = (b"connection", b"close")
"""The header of the last response on a connection."""

_FAILED: Final = Response(
    500,
    ((b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"21")),
    b"Internal Server Error",
)


class ParsedHead(NamedTuple):
    """The parsed head of a request on the fast path.

    Attributes:
        head: The headers that the server reads.
        length: The body size in bytes.
        is_forwarded: True if a proxy identifies the client.
    """

    head: Head
    length: int
    is_forwarded: bool


class Endpoint:
    """The fast path's endpoint; absent if the embedder has added middleware, which the fast path would bypass.

    Attributes:
        direct: The HTTP endpoint.
        package: The package name.
        authentication: Authenticates callers; `None` if tokens are not used.
    """

    def __init__(
        self, direct: HttpEndpoint, path: str, package: str, authentication: Authentication | None = None
    ) -> None:
        """Create the fast path for an HTTP endpoint at a path."""
        self.direct = direct
        self.package = package
        self.authentication = authentication
        self._path = path
        self.parse_cached = lru_cache(_HEADS)(self._parse)

    def read(self, head: bytes) -> tuple[ParsedHead | None, bytes]:
        """Return the parsed head and the bearer token. The cache contains heads without their tokens.

        The head is `None` if uvicorn or the application must handle the request.
        """
        if self.authentication is None:
            return self.parse_cached(head), b""
        match = _AUTHORIZATION.search(head)
        if match is None:
            return None, b""
        return self.parse_cached(head[: match.start()] + head[match.end() :]), match[1]

    def _parse(self, head: bytes) -> ParsedHead | None:
        lower = head.lower()
        post = read_post(head, self._path.encode())
        is_whole = post is not None and _TOOLSET not in lower  # the application handles it
        if (
            self.authentication is not None and b"\r\nauthorization:" in lower
        ):  # a second Authorization header, which the application rejects
            return None
        parsed = self.direct.parse_head(post.headers) if post is not None and is_whole else None
        return None if post is None or parsed is None else ParsedHead(parsed, post.length, _FORWARDED in lower)


class DirectConnection(Protocol):
    """The part of a connection that the fast path uses."""

    address: str
    """The client's IP address."""

    client: tuple[str, int] | None
    """The client's address and port."""

    @property
    def is_idle(self) -> bool:
        """True if uvicorn has no request in progress."""
        ...

    def feed(self, data: bytes) -> None:
        """Pass bytes to uvicorn."""

    def on_request(self) -> None:
        """Mark the connection as active."""

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that handles a request."""

    async def respond(self, response: Response, *, is_last: bool = False) -> None:
        """Send a response, then close the connection if `is_last` is true."""

    def connect_post(self, data: bytes, post: Post) -> None:
        """Pass the bytes of a request to uvicorn, because its response becomes a stream."""


class DirectReader:
    """Reads a connection's bytes before uvicorn does.

    Attributes:
        is_answering: True while the fast path handles a request.
    """

    def __init__(self, endpoint: Endpoint, connection: DirectConnection) -> None:
        """Create a reader for one connection."""
        self.is_answering = False
        self._endpoint = endpoint
        self._connection = connection
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None
        self._later: list[bytes] = []
        self._is_delegated = False
        """True once uvicorn has received bytes; from then on, only uvicorn can find the start of the next request.
        """

    def read(self, data: bytes) -> None:
        """Handle a request, or pass its bytes to uvicorn."""
        if self.is_answering:
            self._later.append(data)
            return
        if self._is_delegated:
            self._connection.feed(data)
            return
        data = self._buffer + data
        end = data.find(END, 0, LARGEST)
        parse_cached, credentials = None, b""
        if end >= 0 and self._connection.is_idle:
            parse_cached, credentials = self._endpoint.read(data[:end])
        is_traced = parse_cached is not None and is_observed()
        if parse_cached is not None and parse_cached.is_forwarded and is_traced:
            parse_cached = None
        missing = -1 if parse_cached is None else end + len(END) + parse_cached.length - len(data)
        # `missing` is also negative if the client pipelines requests.
        if parse_cached is None or missing < 0 or parse_cached.length > _LARGEST_BODY:
            self._is_delegated = True
            self._delegate(data)
        elif missing:
            self._hold(data)
        else:
            peer = Peer(self._connection.client, parse_cached.head.session, "1.1") if is_traced else None
            self._answer(parse_cached.head, peer, credentials, data, data[end + len(END) :])

    def release(self) -> None:
        """Pass the bytes of an incomplete request to uvicorn."""
        if self._buffer:
            self._is_delegated = True
            self._delegate(self._buffer)

    def _hold(self, data: bytes) -> None:
        self._buffer = data
        if self._timer is None:
            self._connection.on_request()
            self._timer = asyncio.get_running_loop().call_later(_LATE, self.release)

    def _stop_holding(self) -> None:
        self._buffer = b""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _delegate(self, data: bytes) -> None:
        self._stop_holding()
        self._connection.feed(data)

    def _answer(self, head: Head, peer: Peer | None, credentials: bytes, data: bytes, body: bytes) -> None:
        if body.lstrip()[:1] == b"[":  # a batch, which the endpoint splits
            self._delegate(data)
            return
        answer = partial(
            self._endpoint.direct.handle,
            head,
            body,
            partial(self._connect, data),
            peer=peer,
            address=self._connection.address,
        )
        authentication = self._endpoint.authentication
        if authentication is None:
            answering = answer()
        else:
            answering = _authenticate(authentication, credentials, head.revision, body, answer)
        self._stop_holding()
        self.is_answering = True
        self._connection.on_request()
        self._connection.start(self._respond(answering))

    async def _respond(self, answering: Awaitable[Response | None]) -> None:
        with name_records(self._endpoint.package):
            try:
                response = await answering
            except Exception:  # noqa: BLE001 - logged, as uvicorn does for application exceptions
                log().exception("failed to handle a request")
                response = _FAILED
        if response is None:
            return
        await self._connection.respond(response, is_last=response is _FAILED)
        self.is_answering = False
        self._read_pending()

    def _connect(self, data: bytes, post: Post) -> None:
        self.is_answering = False
        self._connection.connect_post(data, post)
        self._read_pending()

    def _read_pending(self) -> None:
        later, self._later = b"".join(self._later), []
        if later:
            self.read(later)


async def _authenticate(
    authentication: Authentication,
    credentials: bytes,
    revision: str | None,
    body: bytes,
    answer: Callable[..., Awaitable[Response | None]],
) -> Response | None:
    """Handle a request as its caller, or return the error response if the token is invalid or lacks a scope."""
    caller = await authentication.authenticate([credentials], revision)
    if isinstance(caller, Response):
        return caller
    refusal = authentication.find_refusal(caller, revision, body)
    if refusal is not None:
        return refusal
    caller.enter()
    return await answer(owner=caller.owner)
