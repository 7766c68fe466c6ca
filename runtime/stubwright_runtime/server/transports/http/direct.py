"""The direct path over HTTP: which way each request takes.

Takes requests as ASGI has them; answers those whose head is plain by the server's core alone, also to refuse them, and
gives the SDK all others, which is loaded with the first of them. A request that takes longer than a moment, or whose
handler says more than its answer, is handed over to the SDK, whose stream of events its client can come back to.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, nullcontext
from contextvars import Context, copy_context
from functools import partial
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
from ....mcp.revisions import HANDSHAKES, UNNAMED
from ....mcp.vocabulary import HEADER, PROTOCOL_VERSION_META_KEY
from ....observability.logs import Tally, log
from ....state.budget import Budget
from ...core.exchange import Peer
from ...direct.answers import Direct, DirectExchange, is_on
from ...direct.clients import Client
from ...direct.keys import HANDED_OVER, WANTS, WIRE
from ...direct.moments import Moments
from ...direct.runs import CANCELLED, DirectChannel, Run
from ...execution.streams import AGAIN, TooManyStreamsError
from ...execution.watchdog import watched_loop
from ...observability.instrumentation import is_observed
from ...protocol.messages import Refusal, error_response, read
from ...protocol.requests import STATELESS, find_handshake_fault, find_stateless_fault, id_in_use, meta_of
from ...protocol.wants import Wants
from .events import messages_of, stream_run
from .heads import LARGEST, find_foreign, read_head, with_plain_type
from .sessions import Sessions
from .uploads import SECONDS, SlowUploads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ...core.core import Core
    from ...core.exchange import Result
    from ...direct.keys import Wire
    from .conversation import Conversations
    from .heads import Allowed, Foreign, Head
    from .sessions import Session

Headers: TypeAlias = "Sequence[tuple[bytes, bytes]]"
Owner: TypeAlias = "Mapping[str, Any] | None"
"""Whom a session is bound to; `None` where there are no tokens."""

_MOMENT: Final = 0.1
"""Seconds after which a request is handed over, so that a client that loses its connection can come back."""

_ENDED: Final = ProtocolError(CANCELLED.code, "The session has ended; the request may have taken effect")
"""The answer to a request whose session has ended while it was handed over."""

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
"""The status of a response with an error, from 2026-07-28 on; of all others, it is 200."""

_JSON: Final = (b"content-type", b"application/json")


class _Sender(NamedTuple):
    """Who sends a request, and what is wrong with the request, if anything."""

    client: Client
    fault: ProtocolError | None = None


class Response(NamedTuple):
    """The answer to a request.

    Attributes:
        status: The status.
        headers: The headers.
        body: The body.
    """

    status: int
    headers: Headers
    body: bytes

    @classmethod
    def of(cls, status: int, body: bytes, session: Session | None = None) -> Response:
        """Return an answer in JSON, in a session."""
        headers: Headers = (_JSON, (b"content-length", str(len(body)).encode()))
        if session is not None:
            headers = (*headers, (b"mcp-session-id", session.id.encode()))
        return cls(status, headers, body)


class DirectHttp:
    """The endpoint."""

    def __init__(
        self,
        core: Core,
        converse: Callable[[Sessions, ASGIApp], Conversations],
        hosts: Allowed,
        origins: Allowed,
        *,
        most: int,
        idle: float,
        stateless: bool,
    ) -> None:
        """Take the server, and what loads the SDK.

        Args:
            core: The server.
            converse: Makes the SDK's half; it takes the sessions, to ask and to tell, and this endpoint.
            hosts: The hosts to answer.
            origins: The origins to answer.
            most: How many sessions may be open.
            idle: Seconds after which a session ends that has no request under way.
            stateless: Whether there are no sessions.

        Raises:
            ValueError: A number is not positive.
        """
        self._core = core
        self._direct = Direct(core)
        self._is_direct = is_on()
        self._converse = converse
        self._hosts, self._origins = hosts, origins
        self._stateless = stateless
        self._sessions = Sessions(most, Budget.of(core.package.manifest), idle, self._count_others, self._end)
        self._conversations: Conversations | None = None
        self._context = Context()
        self._slow = SlowUploads()
        self._loading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._mirroring: dict[str, bool] = {}
        self._moments = Moments(_MOMENT)
        self._refused = Tally(log(), "requests refused: %d; of the last: %s")

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Answer requests during the block."""
        async with self._core.lifespan():
            self._context = copy_context()
            if not self._is_direct:
                await self._load()
            try:
                with watched_loop(self._core.package.name):
                    yield
            finally:
                self._sessions.note_ends()
                if self._conversations is not None:
                    await self._conversations.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if (run := scope.get(HANDED_OVER)) is not None:
            await self._hand_over(run, self._named(scope), scope, receive, send)
            return
        if scope["method"] == "POST" and self._is_direct:
            head = read_head(scope["headers"], self._hosts, self._origins)
            if head is not None:
                await self._post(head, scope, receive, send)
                return
        session = self._named(scope)
        if session is not None and (header := find_foreign(scope["headers"], self._hosts, self._origins)) is not None:
            # Before the SDK adopts the session: a handshake that it refuses would end the session for everybody.
            await _send(send, _FOREIGN[header])
            return
        await self._pass_on(session, scope, receive, send)

    def reads_raw(self) -> bool:
        """Return whether requests may be answered as they are read: not if telemetry asks for their senders."""
        return self._is_direct and not is_observed()

    def head(self, headers: Headers) -> Head | None:
        """Return what the headers of a POST say; `None` if the SDK has to look at them."""
        return read_head(headers, self._hosts, self._origins)

    async def _post(self, head: Head, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose head is plain."""
        wire: Wire | None = scope.get(WIRE)
        if wire is not None and wire.has_all_of(scope):
            message = await receive()
        else:
            try:
                async with asyncio.timeout(SECONDS):
                    message = await receive()
            except TimeoutError:
                await self._slow.refuse(scope, receive, send)
                return
        replayed = _replay(message, receive)
        is_whole = message["type"] == "http.request" and not message.get("more_body")
        owner = _owner(scope)
        handing: list[asyncio.Task[None]] = []
        context = copy_context()  # in which no call is under way

        def hand_over(run: Run) -> None:
            session = self._session(head, owner)
            task = self._hand_over(run, session, scope, replayed, send)
            handing.append(asyncio.create_task(task, context=context))

        peer = _peer(head, scope) if is_observed() else None
        answering = self.take(head, message.get("body", b""), hand_over, owner, peer) if is_whole else None
        if answering is None:
            await self._pass_on(self._session(head, owner), scope, replayed, send)
        elif (response := await answering) is not None:
            if wire is not None:
                wire.hold_head()
            await _send(send, response)
        else:
            await handing[0]

    def take(
        self,
        head: Head,
        body: bytes,
        hand_over: Callable[[Run], object],
        owner: Owner = None,
        peer: Peer | None = None,
    ) -> Awaitable[Response | None] | None:
        """Return what answers a whole request whose head is plain, or hands it over; `None` if it is the SDK's.

        Args:
            head: What its headers say.
            body: Its body.
            hand_over: Has the SDK answer it while its run goes on; then it has no response here.
            owner: Whose it is.
            peer: Who sends it, if somebody observes the server.
        """
        entries = [*read(body)] if len(body) <= LARGEST else []
        if len(entries) != 1 or body.lstrip()[:1] == b"[":
            return None
        [entry] = entries
        if entry.problem is not None:
            self._refused.count(entry.problem)
            problem = ProtocolError(INVALID_REQUEST, f"The message {entry.problem}")
            return _refuse(400, entry.answer or Refusal(None, problem))
        message = entry.message or {}
        session = self._session(head, owner)
        if "method" not in message:
            return None
        if "id" in message:
            if session is not None and message["id"] in session.runs:
                return _refuse(200, Refusal(message["id"], id_in_use()))
            sender = self._sender(head, session, message)
            if sender is None:
                return None
            run = Run(message["id"], hand_over)
            if session is not None:
                session.runs[run.id] = run  # now: its cancellation may be read before its task begins
            return self._answer(sender, session, message, owner, run, peer)
        return self._accept(session, message, peer) if session is not None and self._hears(session, message) else None

    async def _accept(self, session: Session, message: Mapping[str, Any], peer: Peer | None) -> Response:
        """Answer a notification that was taken."""
        if peer is not None:
            await self._direct.note(message, session.client, peer=peer)
        return Response.of(202, b"", session)

    def _session(self, head: Head, owner: Owner) -> Session | None:
        return None if head.session is None else self._sessions.of(head.session, owner)

    def _sender(self, head: Head, session: Session | None, message: Mapping[str, Any]) -> _Sender | None:
        """Return who sends a request, and what is wrong with it; `None` if the SDK has to answer it."""
        if not _says_revision(head, message):
            return None
        has_tasks = self._direct.has_tasks
        if head.revision is not None and head.revision not in HANDSHAKES:
            if head.revision not in STATELESS or head.session is not None:
                return None
            fault = find_stateless_fault(message, has_tasks=has_tasks)
            if fault is None and self._mirrors(message):
                return None
            meta = meta_of(message)
            if PROTOCOL_VERSION_META_KEY in meta and not head.repeats(message):
                return None
            client = Client.of_request(meta) if fault is None else Client.unknown(STATELESS[-1], stateless=True)
            return _Sender(client, fault)
        fault = find_handshake_fault(message, is_shaken=session is not None, has_tasks=has_tasks)
        if message["method"] == "initialize" and head.session is None:
            if fault is not None:
                return _Sender(Client.unknown(HANDSHAKES[-1], stateless=False), fault)
            return _Sender(Client.of_handshake(message["params"], self._core.changes))
        if self._stateless and head.session is None:
            client = Client(head.revision or UNNAMED, None, {}, Wants())
        elif session is None:
            return None
        else:
            client = session.client
        return _Sender(client, fault) if fault is not None or self._direct.takes(message) else None

    def _mirrors(self, message: Mapping[str, Any]) -> bool:
        """Tell whether arguments of a valid request are mirrored into headers, which the SDK compares."""
        if message["method"] != "tools/call":
            return False
        name = self._core.package.resolve_alias(message["params"]["name"])
        if name not in self._core.package.tools:
            return False
        if name not in self._mirroring:
            self._mirroring[name] = HEADER in json.dumps(self._core.package.tools[name].definition["inputSchema"])
        return self._mirroring[name]

    async def _answer(
        self,
        sender: _Sender,
        session: Session | None,
        message: Mapping[str, Any],
        owner: Owner,
        run: Run,
        peer: Peer | None,
    ) -> Response | None:
        """Answer a request, unless it is handed over meanwhile."""
        client, fault = sender
        opens = message["method"] == "initialize" and fault is None
        if opens and not self._stateless:
            if self._sessions.is_full():
                return Response.of(503, _FULL)
            if not self._sessions.has_room(client, owner):
                return Response.of(429, _NO_ROOM)
            session = self._sessions.open(client, owner)
            session.runs[run.id] = run
        run.task = task = asyncio.current_task()
        params = message.get("params")
        outgoing = messages_of(run) if client.wants is None else None
        way = DirectChannel(client, params, run, outgoing)
        exchange = DirectExchange(message["method"], params, run.id, True, client, way, peer, fault)
        if session is not None and opens:
            session.note_end = self._core.instrumentation.begin_session(exchange)
        if outgoing is not None:
            run.write = partial(self._response, client, session, exchange)
        if fault is None and not opens:  # which waits for nothing, and whose session is not there for the SDK
            self._moments.begin(run)
        result: Result | ProtocolError
        try:
            if run.is_cancelled:
                run.give_up()
                return self._response(client, session, exchange, CANCELLED)
            with nullcontext() if session is None else session.in_use():
                try:
                    result = await self._direct.answer(exchange)
                except ProtocolError as error:
                    result = error
                except asyncio.CancelledError:
                    run.give_up()
                    if task is None or not run.is_cancelled:
                        raise
                    task.uncancel()
                    return None if run.is_handed_over else self._response(client, session, exchange, CANCELLED)
                return None if run.finish(result) else self._response(client, session, exchange, result)
        finally:
            self._moments.end(run)
            if session is not None and session.runs.get(run.id) is run:
                del session.runs[run.id]

    def _response(
        self, client: Client, session: Session | None, exchange: DirectExchange, result: Result | ProtocolError
    ) -> Response:
        body = self._direct.response(exchange, result)
        if not isinstance(result, ProtocolError) or client.wants is not None:
            return Response.of(200, body, session)
        if isinstance(result, TooManyStreamsError):
            response = Response.of(result.status, body)
            return response._replace(headers=(*response.headers, (b"retry-after", b"%d" % AGAIN)))
        return Response.of(_STATUS.get(result.code, 200), body)

    async def _hand_over(self, run: Run, session: Session | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose run goes on as a stream of events; up to 2025-11-25, have the SDK do so."""
        if run.write is not None:
            try:
                await stream_run(run, receive, send)
            finally:
                await run.leave()
            return
        has_session = any(name == b"mcp-session-id" for name, _ in scope["headers"])
        is_gone = False

        async def answer(message: Message) -> None:
            nonlocal is_gone
            is_gone = is_gone or (has_session and message.get("status") == 404)
            if not is_gone:
                await send(message)

        try:
            await self._pass_on(session, {**scope, HANDED_OVER: run}, receive, answer)
            if is_gone:  # 404 would say that nothing was done, and have the client call once more in a new session
                await _send(send, Response.of(200, error_response(run.id, _ENDED)))
        finally:
            await run.leave()

    def _hears(self, session: Session, message: Mapping[str, Any]) -> bool:
        """Take a notification of a session; whether the SDK need not hear of it."""
        params = message.get("params") or {}
        if message["method"] == "notifications/initialized":
            session.is_initialized = True
        elif message["method"] == "notifications/cancelled" and type(params.get("requestId")) in (int, str):
            run = session.runs.get(params["requestId"])
            if run is not None and not run.is_passed_on:
                run.cancel()
                return True
        return not session.has_conversation

    def _named(self, scope: Scope) -> Session | None:
        """Return the session that a request names, where it is one of the direct path's, and the caller's."""
        names = [value for key, value in scope["headers"] if key == b"mcp-session-id"]
        return self._sessions.of(names[0].decode("latin-1"), _owner(scope)) if len(names) == 1 else None

    async def _pass_on(self, session: Session | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the SDK answer a request."""
        conversations = await self._load()
        scope, send = {**scope, "headers": with_plain_type(scope["headers"])}, _refuse_nameless(send)
        if session is None:
            await conversations.answer(scope, receive, send)
            return
        with session.in_use():
            await conversations.adopt(session, scope)
            await conversations.answer({**scope, WANTS: session.client.wants}, receive, send)

    async def _load(self) -> Conversations:
        if self._conversations is None:
            async with self._loading:
                if self._conversations is None:
                    conversations = self._converse(self._sessions, self)
                    await conversations.start(self._context.copy())
                    self._conversations = conversations
        return self._conversations

    def _count_others(self) -> int:
        return 0 if self._conversations is None else len(self._conversations)

    def _end(self, session: Session) -> None:
        """End the SDK's half of a session that has ended."""
        if self._conversations is not None and session.has_conversation:
            task = asyncio.create_task(self._conversations.end(session))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


_FULL: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"Too many open sessions"}}' % INTERNAL_ERROR


_NO_ROOM: Final = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":'
    b'"The handshakes of your open sessions use up your share of memory; end a session"}}' % INTERNAL_ERROR
)

_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_FOREIGN: Final[Mapping[Foreign, Response]] = {
    "Host": Response(421, (_TEXT, (b"content-length", b"19")), b"Invalid Host header"),
    "Origin": Response(403, (_TEXT, (b"content-length", b"21")), b"Invalid Origin header"),
}


async def _refuse(status: int, refusal: Refusal) -> Response:
    """Answer a message that is refused."""
    return Response.of(status, error_response(refusal.id, refusal.error))


async def _send(send: Send, response: Response) -> None:
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    await send({"type": "http.response.body", "body": response.body})


def _refuse_nameless(send: Send) -> Send:
    """Send responses, but refusals without the id of a session: the SDK names one that it opened only to refuse."""

    async def filtered(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] >= 400:
            message = {**message, "headers": [each for each in message["headers"] if each[0] != b"mcp-session-id"]}
        await send(message)

    return filtered


def _says_revision(head: Head, message: Mapping[str, Any]) -> bool:
    """Tell whether a request names the same revision in its header as in its body, if it names one there."""
    said: object = meta_of(message).get(PROTOCOL_VERSION_META_KEY, head.revision)
    return said == head.revision


def _peer(head: Head, scope: Scope) -> Peer:
    client = scope.get("client")
    return Peer(None if client is None else (client[0], client[1]), head.session, scope.get("http_version", "1.1"))


def _owner(scope: Scope) -> Owner:
    """Return the principal of a request, as sessions are bound to it; `None` if it has no token."""
    user = scope.get("user")
    if user is None:
        return None
    from ....sdk.auth import AuthenticatedUser, authorization_context

    return {**authorization_context(user)} if isinstance(user, AuthenticatedUser) else None


def _replay(message: Message, receive: Receive) -> Receive:
    """Return what gives a message that was received again, and then what comes after it."""
    waiting = [message]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
