"""Requests that are answered as read, before uvicorn makes anything of them.

Other bytes go to uvicorn's protocol unchanged, and so does a request whose answer becomes a stream.
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
from .. import heads
from ..events import Response
from .posts import END, LARGEST, read_post

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from ..authentication import Authentication
    from ..endpoint import HttpEndpoint
    from ..heads import Head
    from ..posts.post import Post

_AUTHORIZATION: Final = re.compile(rb"\r\nauthorization:[ \t]*([!-~](?:[ -~]*[!-~])?)[ \t]*(?=\r\n|\Z)", re.IGNORECASE)
_TOOLSET: Final = HEADER.encode()
_FORWARDED: Final = b"x-forwarded-"
"""The beginning of headers in which a proxy names the client. uvicorn has the list of trusted proxies."""

_HEADS: Final = 1024
"""The number of parsed heads that are cached, since clients repeat theirs."""

_LATE: Final = 0.005
"""Seconds to wait for a body after its head, for clients that send them one by one."""


CLOSE: Final = (b"connection", b"close")
"""The header of an answer after which the connection ends."""

_FAILED: Final = Response(
    500,
    ((b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"21")),
    b"Internal Server Error",
)


class ParsedHead(NamedTuple):
    """A head that was read.

    Attributes:
        head: Its content.
        length: The bytes of the body.
        is_forwarded: True if a proxy names the client.
    """

    head: Head
    length: int
    is_forwarded: bool


class Endpoint:
    """The endpoint of a server without a middleware in front of it.

    Attributes:
        direct: The HTTP endpoint.
        package: The name of the package.
        authentication: Authenticates callers; `None` if any caller may call.
    """

    def __init__(
        self, direct: HttpEndpoint, path: str, package: str, authentication: Authentication | None = None
    ) -> None:
        """Take the HTTP endpoint, its path, the name of the package, and the authentication of callers."""
        self.direct = direct
        self.package = package
        self.authentication = authentication
        self._path = path
        self.known = lru_cache(_HEADS)(self._known)

    def read(self, head: bytes) -> tuple[ParsedHead | None, bytes]:
        """Read the bytes of a head, and the credentials in it if callers are authenticated.

        The head is `None` if the parser, or the application, has to read it. Heads are cached without credentials.
        """
        if self.authentication is None:
            return self.known(head), b""
        match = _AUTHORIZATION.search(head)
        if match is None:
            return None, b""
        return self.known(head[: match.start()] + head[match.end() :]), match[1]

    def _known(self, head: bytes) -> ParsedHead | None:
        lower = head.lower()
        post = read_post(head, self._path.encode())
        is_whole = post is not None and _TOOLSET not in lower  # which the application looks at
        if self.authentication is not None and b"\r\nauthorization:" in lower:  # one more, which is refused
            return None
        parsed = self.direct.parse_head(post.headers) if post is not None and is_whole else None
        return None if post is None or parsed is None else ParsedHead(parsed, post.length, _FORWARDED in lower)


class DirectConnection(Protocol):
    """The interface of a connection that is needed here."""

    address: str
    """The IP address of the client."""

    client: tuple[str, int] | None
    """Its address and port."""

    @property
    def is_between(self) -> bool:
        """True if uvicorn has no request in progress."""
        ...

    def feed(self, data: bytes) -> None:
        """Pass bytes to uvicorn."""

    def on_request(self) -> None:
        """Note the arrival of a request."""

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Answer a request."""

    async def respond(self, response: Response, *, is_last: bool = False) -> None:
        """Answer the request; with `is_last`, the connection ends then."""

    def connect_post(self, data: bytes, post: Post) -> None:
        """Pass a request that continues to uvicorn."""


class DirectReader:
    """The first reader of one connection.

    Attributes:
        is_answering: True if a request is being answered here.
    """

    def __init__(self, endpoint: Endpoint, line: DirectConnection) -> None:
        """Take the endpoint, and the connection."""
        self.is_answering = False
        self._endpoint = endpoint
        self._line = line
        self._held = b""
        self._timer: asyncio.TimerHandle | None = None
        self._later: list[bytes] = []
        self._is_astray = False
        """True if the start of the next request is unknown here: only uvicorn knows from then on."""

    def read(self, data: bytes) -> None:
        """Answer a request, or have uvicorn read the bytes."""
        if self.is_answering:
            self._later.append(data)
            return
        if self._is_astray:
            self._line.feed(data)
            return
        data = self._held + data
        end = data.find(END, 0, LARGEST)
        known, credentials = None, b""
        if end >= 0 and self._line.is_between:
            known, credentials = self._endpoint.read(data[:end])
        is_traced = known is not None and is_observed()
        if known is not None and known.is_forwarded and is_traced:
            known = None
        missing = -1 if known is None else end + len(END) + known.length - len(data)
        # `missing` is negative, too, if a client sends its next request before the answer to this one.
        if known is None or missing < 0 or known.length > heads.LARGEST:
            self._is_astray = True
            self._give_back(data)
        elif missing:
            self._hold(data)
        else:
            peer = Peer(self._line.client, known.head.session, "1.1") if is_traced else None
            self._answer(known.head, peer, credentials, data, data[end + len(END) :])

    def release(self) -> None:
        """Pass the delayed bytes to uvicorn."""
        if self._held:
            self._is_astray = True
            self._give_back(self._held)

    def _hold(self, data: bytes) -> None:
        self._held = data
        if self._timer is None:
            self._line.on_request()
            self._timer = asyncio.get_running_loop().call_later(_LATE, self.release)

    def _stop_holding(self) -> None:
        self._held = b""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_back(self, data: bytes) -> None:
        self._stop_holding()
        self._line.feed(data)

    def _answer(self, head: Head, peer: Peer | None, credentials: bytes, data: bytes, body: bytes) -> None:
        if body.lstrip()[:1] == b"[":  # a batch, which the endpoint takes apart
            self._give_back(data)
            return
        answer = partial(
            self._endpoint.direct.handle,
            head,
            body,
            partial(self._connect, data),
            peer=peer,
            address=self._line.address,
        )
        authentication = self._endpoint.authentication
        if authentication is None:
            answering = answer()
        else:
            answering = _authenticate(authentication, credentials, head.revision, body, answer)
        self._stop_holding()
        self.is_answering = True
        self._line.on_request()
        self._line.start(self._respond(answering))

    async def _respond(self, answering: Awaitable[Response | None]) -> None:
        with name_records(self._endpoint.package):
            try:
                response = await answering
            except Exception:  # noqa: BLE001 - as uvicorn does of an application's exceptions
                log().exception("a request could not be answered")
                response = _FAILED
        if response is None:
            return
        await self._line.respond(response, is_last=response is _FAILED)
        self.is_answering = False
        self._go_on()

    def _connect(self, data: bytes, post: Post) -> None:
        self.is_answering = False
        self._line.connect_post(data, post)
        self._go_on()

    def _go_on(self) -> None:
        """Read the bytes that came meanwhile."""
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
    """Answer a request as its caller's, in the context of the current task, or refuse it."""
    caller = await authentication.authenticate([credentials], revision)
    if isinstance(caller, Response):
        return caller
    refusal = authentication.find_refusal(caller, revision, body)
    if refusal is not None:
        return refusal
    caller.enter()
    return await answer(owner=caller.owner)
