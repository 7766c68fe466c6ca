"""The Streamable HTTP endpoint (MCP 2025-11-25 and 2026-07-28, basic/transports): GET, POST and DELETE."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Final

from ....state.budget import Budget
from ....values.modules import is_observed
from ...calls.watchdog import watch_loop
from ...core.access_tokens import CALLER
from ...core.principal import find_current
from ...core.request import Peer
from ...core.streams import Streams, TooManyStreamsError
from ...execution.signals import observe_stop_signals
from ...protocol.messages import encode_error, is_batch, read
from .authentication import find_caller
from .events import EventStream, EventWriter, Response
from .headers import Heads, find_version, validate_headers
from .keys import POST, WIRE
from .post_handler import PostHandler, with_retry_after
from .posts.detached_requests import DetachedRequests
from .rejections import NO_SESSION, Rejection, parse_revision
from .sessions import Sessions
from .uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.types import Receive, Scope, Send

    from ...app.core import Core
    from .headers import Allowlist, Head
    from .keys import RawConnection
    from .post_handler import Owner
    from .posts.post import Post
    from .resumption.log import EventLog, Position
    from .resumption.shared_replay import Resumption
    from .sessions import Session

_NOT_STARTED: Final = Rejection(500, "the server is mounted without its lifespan; see its log")

_RESUMED: Final = 500
"""The maximum number of open streams that resume earlier ones (requests with `Last-Event-ID`)."""

_RESUMED_EACH: Final = 16
"""The maximum number of open resumed streams per caller."""


class HttpEndpoint:
    """One server's Streamable HTTP endpoint.

    Attributes:
        handle: Handles a POST after its headers are parsed and its body has arrived.
        parse_head: Parses a POST's headers; returns `None` if any header is uncommon.
    """

    def __init__(
        self,
        core: Core,
        hosts: Allowlist,
        origins: Allowlist,
        *,
        most: int,
        idle: float,
        stateless: bool,
        open_log: Callable[[], EventLog],
        elsewhere: Resumption | None,
    ) -> None:
        """Create a server's endpoint.

        Args:
            core: The server, without a transport.
            hosts: The allowed values of the `Host` header.
            origins: The allowed values of the `Origin` header.
            most: The maximum number of open sessions.
            idle: The idle timeout of sessions in seconds.
            stateless: True to serve without sessions.
            open_log: Creates the event log for the current caller's new session.
            elsewhere: Resumes streams from sessions in other processes.

        Raises:
            ValueError: A limit or timeout is not positive.
        """
        self._core = core
        self._heads = Heads(hosts, origins)
        self.parse_head = self._heads.read
        self._stateless = stateless
        budget = Budget.from_manifest(core.package.manifest)
        self._sessions = Sessions(most, budget, idle)
        self._post_handler = PostHandler(core, self._sessions, DetachedRequests(budget), open_log, stateless=stateless)
        self._elsewhere = elsewhere
        self._uploads = Uploads()
        self._resumed = Streams(_RESUMED, _RESUMED_EACH)
        self.handle = self._post_handler.handle

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None, None]:
        """Accept requests during the block."""
        async with self._core.lifespan():
            self._core.publishers.append(self._sessions.publish)
            self._core.streams.append(self._sessions.end_streams)
            try:
                self._core.is_stopping = False
                with (
                    watch_loop(self._core.package.name),
                    observe_stop_signals(asyncio.get_running_loop(), self._core.stop),
                ):
                    yield
            finally:
                self._core.publishers.remove(self._sessions.publish)
                self._core.streams.remove(self._sessions.end_streams)
                self._sessions.end_all()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request.

        Raises:
            RuntimeError: The application that mounts this one has not run its lifespan.
        """
        if not self._core.lifespan.is_entered:
            # Servers close the connection after an exception; unread bytes would then cause a connection reset.
            if await self._uploads.read(receive, send) is not None:
                await _NOT_STARTED.answer().close().send(send)
            raise RuntimeError(
                f"the server of {self._core.package.name} has not started: Starlette runs the lifespan of the "
                "outermost application only, so enter `mcp.router.lifespan_context(mcp)` there, if `mcp` is what "
                "`asgi_app` returned"
            )
        if (post := scope.pop(POST, None)) is not None:  # Break a cycle: the connection retains its last scope.
            await _serve(post, receive, send)
            return
        method = scope["method"]
        head = validate_headers(method, scope["headers"], self._heads, stateless=self._stateless)
        user = scope.get("user")
        caller = None if user is None else find_caller(user)
        owner = None if caller is None else caller.owner
        before = CALLER.set(caller)
        try:
            if isinstance(head, Rejection):
                if head.logged is not None:
                    self._post_handler.refused.count(head.logged)
                is_lost = head.session is not None and self._sessions.find(head.session, owner) is None
                await (NO_SESSION if is_lost else head).answer(find_version(scope["headers"])).send(send)
            elif method == "POST":
                await self._post(head, owner, scope, receive, send)
            elif method == "GET":
                await self._listen(head, owner, receive, send)
            else:
                await self._delete(head, owner, send)
        finally:
            CALLER.reset(before)

    async def _post(self, head: Head, owner: Owner, scope: Scope, receive: Receive, send: Send) -> None:
        wire: RawConnection | None = scope.get(WIRE)
        is_complete = wire is not None and wire.has_whole_body(scope)
        body = await self._uploads.read(receive, send, is_complete=is_complete)
        if body is None:
            return
        if body[:1] != b"{" and is_batch(body) and self._post_handler.accepts_batches(head, owner):
            entries = [*read(body)]
            if any(entry.message for entry in entries):
                from ..batches import answer_batch

                await answer_batch(entries, self, scope, receive, send)
                return
        serving: list[asyncio.Task[None]] = []
        context = copy_context()  # a context that inherits no current call

        def connect(post: Post) -> None:
            task = _serve(post, receive, send)
            serving.append(asyncio.create_task(task, context=context))

        client = scope.get("client")
        peer = None
        if is_observed():
            peer = Peer((client[0], client[1]) if client else None, head.session, scope.get("http_version", "1.1"))
        address = client[0] if client else ""
        response = await self.handle(head, body, connect, owner, peer, scope["headers"], address)
        if response is not None:
            if wire is not None:
                wire.hold_head()
            await response.send(send)
        else:
            await serving[0]

    async def _listen(self, head: Head, owner: Owner, receive: Receive, send: Send) -> None:
        """Handle a GET: open the listening stream or resume a stream."""
        last = head.last_event
        if last is None:
            await self._listen_on(None, head, owner, receive, send)
            return
        try:
            with self._resumed.count(find_current()):
                await self._listen_on(last, head, owner, receive, send)
        except TooManyStreamsError as refusal:
            body = encode_error(None, refusal, parse_revision(head.revision))
            await with_retry_after(Response.from_answer(refusal.status, body)).send(send)

    async def _listen_on(self, last: str | None, head: Head, owner: Owner, receive: Receive, send: Send) -> None:
        session = self._sessions.find(head.session, owner)
        if session is None:
            if last is None or self._elsewhere is None or not await self._elsewhere.answer(last, receive, send):
                await NO_SESSION.answer(head.revision).send(send)
            return
        writer = EventWriter(send, session.id)
        position = None if last is None else await session.log.find(last)
        stream = session.listening if last is None else _find_stream(session, position)
        announcing = None
        session.is_used = True
        with session.keep_in_use():
            try:
                if last is None:
                    await stream.connect(writer)
                elif position is None:
                    # A 404 would end the client's session; MCP allows only a stream or 405.
                    writer.close()
                else:
                    await stream.resume(writer, position)
                if self._core.is_stopping:
                    session.listening.end()
                if stream is session.listening:
                    announcing = asyncio.create_task(session.announce())
                await writer.serve(receive)
            finally:
                stream.disconnect(writer)
                if announcing is not None:
                    announcing.cancel()
                    await asyncio.wait((announcing,))

    async def _delete(self, head: Head, owner: Owner, send: Send) -> None:
        session = self._sessions.find(head.session, owner)
        if session is None:
            await NO_SESSION.answer(head.revision).send(send)
            return
        self._sessions.end(session)
        await Response.from_answer(200, b"", session.id).send(send)


async def _serve(post: Post, receive: Receive, send: Send) -> None:
    """Send a request's event stream until it ends or the client disconnects."""
    stream = post.stream
    if stream is None:
        raise RuntimeError("the request has no stream")
    writer = EventWriter(send, stream.session)
    is_disconnected = True  # in case the embedder's middleware raises an exception
    try:
        await stream.connect(writer)
        is_disconnected = await writer.serve(receive)
    finally:
        if is_disconnected:
            post.abandon()
        stream.disconnect(writer)


def _find_stream(session: Session, position: Position | None) -> EventStream:
    """Return the stream of the message at a position. If it has ended, return a stream that only replays messages."""
    name = "" if position is None else position.stream
    return session.streams.get(name) or EventStream(session.log, name, has_ended=True)
