"""Handles messages in POST requests.

The response is an event stream if its handler takes longer than 0.1 s or sends a message first.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ....mcp.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    ProtocolError,
)
from ....mcp.parameter_headers import find_parameter_error
from ....mcp.revisions import HANDSHAKES, UNNAMED
from ....mcp.vocabulary import HEADER
from ....observability.logs import LogThrottle, log
from ...calls.old_names import find_mirrored_schema
from ...core.access_tokens import CALLER
from ...core.principal import ANONYMOUS
from ...core.streams import RETRY_SECONDS, TooManyStreamsError
from ...middlewares.expiry import token_lifetime
from ...protocol.messages import Refusal, encode_error, is_batch, read
from ...protocol.refusals import STATELESS, refuse_id_in_use
from ...protocol.requests import find_handshake_error, find_stateless_error
from ...protocol.sender import MessageSender
from ..channel import ClientChannel
from ..lifecycle import Client, Lifecycle
from .events import Response
from .headers import find_header_error
from .posts.post import CANCELLED, Post
from .rejections import NO_SESSION, UNNAMED_SESSION, Rejection, parse_revision

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ...app.core import Core
    from ...core.request import Channel, Peer, Result
    from .headers import Head
    from .posts.detached_requests import DetachedRequests
    from .resumption.log import EventLog
    from .sessions import Session, Sessions

Headers: TypeAlias = "Sequence[tuple[bytes, bytes]]"
Owner: TypeAlias = "Mapping[str, Any] | None"
"""The claims that identify a session's owner; `None` if tokens are not used."""

_STREAM_DELAY: Final = 0.1
"""Seconds after which a pending response switches to a stream, so that a client can resume after a disconnect."""

_ENDED: Final = ProtocolError(CANCELLED.code, "The session was closed; the request may have taken effect")
"""The error for a pending request when its session is closed."""

_STATUS: Final = dict.fromkeys(
    (
        HEADER_MISMATCH,
        INVALID_PARAMS,
        INVALID_REQUEST,
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        PARSE_ERROR,
        UNSUPPORTED_PROTOCOL_VERSION,
    ),
    400,
) | {METHOD_NOT_FOUND: 404}
"""The HTTP status for each JSON-RPC error code (MCP 2026-07-28 and later); by default 200."""

_FULL: Final = Rejection(503, "Too many open sessions", INTERNAL_ERROR)
_NO_ROOM: Final = Rejection(
    429, "The handshakes of your open sessions have used your share of memory; close a session", INTERNAL_ERROR
)
_NO_ROOM_FOR_ADDRESS: Final = Rejection(
    429,
    "The handshakes of open sessions from your address have used its share of memory; close one, or try again later",
    INTERNAL_ERROR,
)
_EMPTY: Final = ProtocolError(PARSE_ERROR, "The message is empty")
_BATCH: Final = ProtocolError(INVALID_REQUEST, "The message is a batch; send each message in its own request")


class _Sender(NamedTuple):
    """The client that sent a request and, if the request is invalid, the error."""

    client: Client
    error: ProtocolError | None = None


class PostHandler:
    """Handles POST requests."""

    def __init__(
        self,
        core: Core,
        sessions: Sessions,
        detached: DetachedRequests,
        open_log: Callable[[], EventLog],
        *,
        stateless: bool,
    ) -> None:
        """Create a handler for one server.

        Args:
            core: The server, without a transport.
            sessions: The server's open sessions.
            detached: The requests that continue although their clients have disconnected.
            open_log: Creates the event log for the current caller's new session.
            stateless: True to serve without sessions.
        """
        self._core = core
        self._lifecycle = Lifecycle(core)
        self._sessions = sessions
        self._detached = detached
        self._open_log = open_log
        self._stateless = stateless
        self._mirrored: dict[str, Mapping[str, Any] | None] = {}
        self._stream_timer = StreamTimer(_STREAM_DELAY)
        self.refused = LogThrottle(log(), "requests refused: %d; the last: %s")

    def handle(
        self,
        head: Head,
        body: bytes,
        connect: Callable[[Post], object],
        owner: Owner = None,
        peer: Peer | None = None,
        headers: Headers = (),
        address: str = "",
    ) -> Awaitable[Response | None]:
        """Return an awaitable that resolves to the response, or to `None` after the response was sent as a stream.

        Args:
            head: The parsed headers.
            body: The request body.
            connect: Called when the response becomes a stream; connects the stream to the client.
            owner: The claims that identify the caller; `None` if tokens are not used.
            peer: The client's address, for telemetry.
            headers: All headers; empty if `Heads.read` parsed them.
            address: The client's IP address, which identifies callers without a token in budgets.
        """
        entries = [*read(body)]
        if not entries:
            return self._refuse(Refusal(None, _EMPTY), head)
        [entry, *_] = entries
        if body[:1] != b"{" and is_batch(body) and not (entry.problem or "").startswith("is not valid JSON"):
            return self._refuse(Refusal(None, _BATCH), head)
        if entry.problem is not None:
            problem = ProtocolError(INVALID_REQUEST, f"The message {entry.problem}")
            return self._refuse(entry.answer or Refusal(None, problem), head)
        message = entry.message or {}
        is_request = "id" in message and "method" in message
        error = find_header_error(head, message, headers, has_tasks=self._lifecycle.has_tasks)
        if error is not None:
            return self._refuse(Refusal(message["id"] if is_request else None, error), head)
        session = None if head.is_stateless else self._sessions.find(head.session, owner)
        if not head.is_stateless and not self._stateless and session is None:
            if head.session is not None:
                return _complete(NO_SESSION.answer(head.revision))
            if not is_request or message["method"] != "initialize":
                return _complete(UNNAMED_SESSION.answer(head.revision))
        if not is_request:
            return self._accept(session, message, peer)
        if session is not None and message["id"] in session.posts:
            return _complete(Response.from_answer(200, encode_error(message["id"], refuse_id_in_use()), session.id))
        sender = self._identify_client(head, session, message)
        if head.is_stateless and sender.error is None:
            error = self._find_parameter_error(head, message, headers)
            if error is not None:
                return self._refuse(Refusal(message["id"], error), head)
        post = Post(
            package=self._lifecycle.package,
            method=message["method"],
            id=message["id"],
            params=message.get("params") or {},
            revision=sender.client.revision,
            transport="http",
            threads=self._lifecycle.threads,
            open_channel=self._open_channel,
            call_next=self._lifecycle.answer_default,
            is_admissible=sender.error is None,
            traceparent=head.traceparent,
            principal=ANONYMOUS if (caller := CALLER.get()) is None else caller.principal,
            peer=peer,
            client=sender.client,
            error=sender.error,
            answering=self,
            connect=connect,
            session=session,
            account=owner or address,
            length=len(body),
        )
        if session is not None:
            session.posts[message["id"]] = post  # a cancellation can arrive before the task starts
            session.is_used = True
        return self._answer(post, owner)

    def accepts_batches(self, head: Head, owner: Owner) -> bool:
        """Return whether the revision in a request's headers supports batches (MCP 2025-03-26, basic, "Batching")."""
        session = self._sessions.find(head.session, owner)
        if session is None and (head.session is None) != self._stateless:
            return False
        revisions = [parse_revision(head.revision), *([] if session is None else [session.client.revision])]
        return all(revision.has("batches") for revision in revisions)

    def _refuse(self, refusal: Refusal, head: Head) -> Awaitable[Response]:
        self.refused.count(refusal.error.message)
        return _complete(
            Response.from_answer(400, encode_error(refusal.id, refusal.error, parse_revision(head.revision)))
        )

    async def _accept(self, session: Session | None, message: Mapping[str, Any], peer: Peer | None) -> Response:
        """Process a notification, or a response to a request from the server."""
        if session is None:
            return Response.from_answer(202, b"")
        params = message.get("params") or {}
        match message.get("method"):
            case None:
                session.questions.resolve(message)
            case "notifications/initialized":
                session.begin(self._core.changes)
            # In Python, `True == 1`, so a Boolean ID would cancel request 1.
            case "notifications/cancelled" if type(params.get("requestId")) in (int, str):
                if (post := session.posts.get(params["requestId"])) is not None:
                    post.cancel()
        if peer is not None and "method" in message:
            await self._lifecycle.observe_notification(message, session.client, "http", peer)
        return Response.from_answer(202, b"", session.id)

    def _identify_client(self, head: Head, session: Session | None, message: Mapping[str, Any]) -> _Sender:
        """Return the client that sent a request, and the error if the request is invalid."""
        has_tasks = self._lifecycle.has_tasks
        if head.is_stateless:
            error = find_stateless_error(message, has_tasks=has_tasks)
            if error is not None:
                return _Sender(Client.make_unknown(STATELESS[-1], stateless=True), error)
            return _Sender(Client.from_request(message["params"]["_meta"], logs=self._core.logs))
        error = find_handshake_error(message, is_initialized=session is not None, has_tasks=has_tasks)
        if session is not None:
            return _Sender(session.client, error)
        if message["method"] == "initialize":
            if error is not None:
                return _Sender(Client.make_unknown(HANDSHAKES[-1], stateless=False), error)
            return _Sender(Client.from_handshake(message["params"], self._core.changes))
        return _Sender(Client.make_unknown(head.revision or UNNAMED, stateless=False), error)

    def _find_parameter_error(self, head: Head, message: Mapping[str, Any], headers: Headers) -> ProtocolError | None:
        """Return the error if an `Mcp-Param-…` header contradicts the argument that it mirrors."""
        if message["method"] != "tools/call":
            return None
        called, package = message["params"]["name"], self._core.package
        if called in self._mirrored:
            schema = self._mirrored[called]
        elif (tool := package.tools.get(package.resolve_alias(called))) is None:
            return None
        else:
            schema = tool.definition["inputSchema"]
            if HEADER not in json.dumps(schema):
                schema = None
            self._mirrored[called] = schema
        # An error would reveal that a hidden tool exists.
        if schema is None or not self._core.shows_tool(package.resolve_alias(called)):
            return None
        schema = find_mirrored_schema(schema, package.aliases.get(called), has_headers=head.has_parameters)
        return (
            None if schema is None else find_parameter_error(schema, message["params"].get("arguments") or {}, headers)
        )

    async def _answer(self, post: Post, owner: Owner) -> Response | None:
        """Handle a request. Return the response, or `None` after sending it on the stream."""
        session, opens = post.session, post.method == "initialize" and post.is_admissible
        if opens and not self._stateless:
            if not self._sessions.has_capacity():
                return with_retry_after(_FULL.answer(post.revision.date))
            if not self._sessions.has_room(post.client, post.account):
                return with_retry_after((_NO_ROOM if owner else _NO_ROOM_FOR_ADDRESS).answer(post.revision.date))
            session = post.session = self._sessions.open(post.client, owner, self._open_log(), post.account)
            session.posts[post.key] = post
        post.task = asyncio.current_task()
        if session is not None and opens:
            session.record_end = self._core.instrumentation.begin_session(post)
        elif post.error is None:
            self._stream_timer.begin(post)
        left = token_lifetime() if session is not None and session.is_resumable else None
        # When the token expires, the stream closes and the call continues, so that the client can fetch the response
        # with a new token.
        expiry = None if left is None else asyncio.get_running_loop().call_later(left, post.expire)
        try:
            if session is None:
                return await self._respond(post)
            with session.keep_in_use():
                return await self._respond(post)
        finally:
            self._stream_timer.end(post)
            if expiry is not None:
                expiry.cancel()
            if post.stream is not None:
                post.stream.end()
            if session is not None:
                self._detached.end(post)
                if session.posts.get(post.key) is post:
                    del session.posts[post.key]
            post.close()

    async def _respond(self, post: Post) -> Response | None:
        """Return the response to a request, or `None` after sending it on the stream."""
        result: Result | ProtocolError = CANCELLED
        try:
            if not post.is_cancelled:
                result = await self._lifecycle.answer(post)
        except asyncio.CancelledError:
            if post.task is None or not post.is_cancelled:
                raise
            # The client cancelled the call, not this task, which must still send the response.
            post.task.uncancel()
        post.has_ended = True
        if result is CANCELLED and post.session is not None and post.session.has_ended:
            result = _ENDED
        response = self._make_response(post, result)
        if post.stream is None:
            return response
        await post.stream.finish(response)
        return None

    def _open_channel(self, post: Post) -> Channel:
        session = post.session
        return ClientChannel(
            post.client,
            post.params,
            MessageSender(post.send_before_response, None if session is None else session.questions),
            self._core.input_requests.urls,
            connection=None if session is None else session.connection,
            session=None if session is None else session.id,
            release=post.release if session is not None and session.is_resumable else None,
        )

    def may_outlive_client(self, post: Post) -> bool:
        """Return whether a request may continue although its client has disconnected. Log the reason if not."""
        if self._detached.admit(post, post.account, post.length):
            return True
        self.refused.count("its client disconnected, and the memory for requests without clients is exhausted")
        return False

    def _make_response(self, post: Post, result: Result | ProtocolError) -> Response:
        body = self._lifecycle.encode_response(post, result)
        if not isinstance(result, ProtocolError) or post.client.subscriptions is not None:
            return Response.from_answer(200, body, None if post.session is None else post.session.id)
        if isinstance(result, TooManyStreamsError):
            return with_retry_after(Response.from_answer(result.status, body))
        return Response.from_answer(_STATUS.get(result.code, 200), body)


class StreamTimer:
    """Switches slow responses to streams, with one timer for all of a server's requests."""

    def __init__(self, seconds: float) -> None:
        """Create a timer that switches a response after a delay in seconds."""
        self._seconds = seconds
        self._ends: dict[Post, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, post: Post) -> None:
        """Switch a request to a stream after the delay, unless `end` is called first."""
        loop = asyncio.get_running_loop()
        self._ends[post] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._switch_due)

    def end(self, post: Post) -> None:
        """Cancel the switch of a request that has finished."""
        self._ends.pop(post, None)

    def _switch_due(self) -> None:
        loop = asyncio.get_running_loop()
        now, self._timer = loop.time(), None
        for post, at in [*self._ends.items()]:  # ordered by deadline
            if at > now:
                self._timer = loop.call_at(at, self._switch_due)
                return
            del self._ends[post]
            post.switch_to_stream()


def with_retry_after(response: Response) -> Response:
    """Return a copy of the response with a `Retry-After` header."""
    return response._replace(headers=(*response.headers, (b"retry-after", b"%d" % RETRY_SECONDS)))


async def _complete(response: Response) -> Response:
    return response
