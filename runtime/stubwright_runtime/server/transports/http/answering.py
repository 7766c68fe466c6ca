"""The messages that come in POSTs: their faults, their senders and their answers.

Takes heads and bodies; gives responses. A request that takes longer than a moment, or whose handler sends more than its
answer, gets a stream of events, and a connection for it.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
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
from ....mcp.revisions import HANDSHAKES, UNNAMED, Revision
from ....mcp.vocabulary import HEADER
from ....observability.logs import Tally, log
from ...direct.answers import Direct, DirectExchange
from ...direct.clients import Client
from ...direct.moments import Moments
from ...direct.runs import CANCELLED, DirectChannel, Run
from ...execution.streams import AGAIN, TooManyStreamsError
from ...middlewares.expiry import count_own_seconds_left
from ...old_names import find_mirrored_schema
from ...protocol.messages import Refusal, encode_error, read
from ...protocol.outgoing import Outgoing
from ...protocol.parameter_headers import find_parameter_fault
from ...protocol.requests import STATELESS, find_handshake_fault, find_stateless_fault, get_meta, refuse_id_in_use
from ...protocol.wants import Wants
from .events import AnswerStream, Response
from .judging import NO_SESSION, UNNAMED_SESSION, Refused, find_header_fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ...core.core import Core
    from ...core.exchange import Peer, Result
    from .accounts import Account
    from .heads import Head
    from .resumption.log import EventLog
    from .sessions import Session, Sessions
    from .unattended import Unattended

Headers: TypeAlias = "Sequence[tuple[bytes, bytes]]"
Owner: TypeAlias = "Mapping[str, Any] | None"
"""The owner of a session; `None` if there are no tokens."""

_MOMENT: Final = 0.1
"""Seconds after which a request is answered by a stream, so that a client that loses its connection can come back."""

_ENDED: Final = ProtocolError(CANCELLED.code, "The session has ended; the request may have taken effect")
"""The answer to a request whose session has ended."""

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
"""The status of a response with an error, from 2026-07-28 on; for all others, it is 200."""

_FULL: Final = Refused(503, "Too many open sessions", INTERNAL_ERROR)
_NO_ROOM: Final = Refused(
    429, "The handshakes of your open sessions use up your share of memory; end a session", INTERNAL_ERROR
)
_NO_ROOM_FOR_ADDRESS: Final = Refused(
    429,
    "The handshakes of open sessions from your address use up its share of memory; end a session, or try again later",
    INTERNAL_ERROR,
)
_EMPTY: Final = ProtocolError(PARSE_ERROR, "The message is empty")
_BATCH: Final = ProtocolError(INVALID_REQUEST, "The message is a batch; send each message in a request of its own")


class _Sender(NamedTuple):
    """The sender of a request, and the fault of the request, if any."""

    client: Client
    fault: ProtocolError | None = None


class Answering:
    """The handler of messages to one server."""

    def __init__(
        self,
        core: Core,
        sessions: Sessions,
        unattended: Unattended,
        open_log: Callable[[], EventLog],
        *,
        stateless: bool,
    ) -> None:
        """Take the server.

        Args:
            core: The server.
            sessions: Its sessions.
            unattended: Its requests that go on without their clients.
            open_log: Returns the log of a new session of the caller.
            stateless: True if there are no sessions.
        """
        self._core = core
        self._direct = Direct(core)
        self._sessions = sessions
        self._unattended = unattended
        self._open_log = open_log
        self._stateless = stateless
        self._mirroring: dict[str, bool] = {}
        self._moments = Moments(_MOMENT)
        self.refused = Tally(log(), "requests refused: %d; of the last: %s")

    def take(
        self,
        head: Head,
        body: bytes,
        connect: Callable[[Run], object],
        owner: Owner = None,
        peer: Peer | None = None,
        headers: Headers = (),
        address: str = "",
    ) -> Awaitable[Response | None]:
        """Return an awaitable of the response to a request; if that is `None`, the run is answered on its stream.

        Args:
            head: The relevant content of its headers.
            body: Its body.
            connect: Gives the stream of a run a connection, if it needs one.
            owner: Its owner.
            peer: Its sender, if telemetry observes the server.
            headers: All its headers, if they are not plain.
            address: The IP address that it came from, which counts as the caller in budgets if there is no owner.
        """
        entries = [*read(body)]
        if not entries:
            return self._refuse(Refusal(None, _EMPTY))
        [entry, *_] = entries
        is_batch = body.lstrip()[:1] == b"["
        if is_batch and not (entry.problem or "").startswith("is not valid JSON"):
            return self._refuse(Refusal(None, _BATCH))
        if entry.problem is not None:
            problem = ProtocolError(INVALID_REQUEST, f"The message {entry.problem}")
            return self._refuse(entry.answer or Refusal(None, problem))
        message = entry.message or {}
        is_request = "id" in message and "method" in message
        fault = find_header_fault(head, message, headers, has_tasks=self._direct.has_tasks)
        if fault is not None:
            return self._refuse(Refusal(message["id"] if is_request else None, fault))
        session = None if head.is_stateless else self._sessions.find(head.session, owner)
        if not head.is_stateless and not self._stateless and session is None:
            if head.session is not None:
                return _give(NO_SESSION.answer())
            if not is_request or message["method"] != "initialize":
                return _give(UNNAMED_SESSION.answer())
        if not is_request:
            return self._accept(session, message, peer)
        if session is not None and message["id"] in session.runs:
            return _give(Response.from_answer(200, encode_error(message["id"], refuse_id_in_use()), session.id))
        sender = self._sender(head, session, message)
        if head.is_stateless and sender.fault is None:
            fault = self._find_parameter_fault(head, message, headers)
            if fault is not None:
                return self._refuse(Refusal(message["id"], fault))
        run = Run(
            message["id"],
            lambda run: self._move(run, session, connect),
            lambda run: self._may_go_on(run, owner or address, len(body)),
            head.traceparent,
        )
        if session is not None:
            session.runs[run.id] = run  # now: its cancellation may be read before its task begins
            session.is_used = True
        return self._answer(sender, session, message, owner, run, peer, address)

    def takes_batches(self, head: Head, owner: Owner) -> bool:
        """Tell whether a request is of a revision that has batches (MCP 2025-03-26, basic, "Batching")."""
        session = self._sessions.find(head.session, owner)
        if session is None and (head.session is None) != self._stateless:
            return False
        named = head.revision or UNNAMED
        dates = (named,) if session is None else (named, session.client.revision)
        return all(Revision.from_date(date).has("batches") for date in dates)

    def _refuse(self, refusal: Refusal) -> Awaitable[Response]:
        """Answer a message that is refused."""
        self.refused.count(refusal.error.message)
        return _give(Response.from_answer(400, encode_error(refusal.id, refusal.error)))

    async def _accept(self, session: Session | None, message: Mapping[str, Any], peer: Peer | None) -> Response:
        """Take a notification, or the answer to a question."""
        if session is None:
            return Response.from_answer(202, b"")
        params = message.get("params") or {}
        match message.get("method"):
            case None:
                session.questions.take(message)
            case "notifications/initialized":
                session.begin(self._core.changes)
            # `True` equals the id 1, and would find its call.
            case "notifications/cancelled" if type(params.get("requestId")) in (int, str):
                if (run := session.runs.get(params["requestId"])) is not None:
                    run.cancel()
        if peer is not None and "method" in message:
            await self._direct.note(message, session.client, peer=peer)
        return Response.from_answer(202, b"", session.id)

    def _sender(self, head: Head, session: Session | None, message: Mapping[str, Any]) -> _Sender:
        """Return the sender of a request, and its fault, if any."""
        has_tasks = self._direct.has_tasks
        if head.is_stateless:
            fault = find_stateless_fault(message, has_tasks=has_tasks)
            if fault is not None:
                return _Sender(Client.make_unknown(STATELESS[-1], stateless=True), fault)
            return _Sender(Client.from_request(get_meta(message)))
        fault = find_handshake_fault(message, is_shaken=session is not None, has_tasks=has_tasks)
        if session is not None:
            return _Sender(session.client, fault)
        if message["method"] == "initialize":
            if fault is not None:
                return _Sender(Client.make_unknown(HANDSHAKES[-1], stateless=False), fault)
            return _Sender(Client.from_handshake(message["params"], self._core.changes))
        return _Sender(Client(head.revision or UNNAMED, None, {}, Wants()), fault)

    def _find_parameter_fault(self, head: Head, message: Mapping[str, Any], headers: Headers) -> ProtocolError | None:
        """Return the fault of the headers that mirror arguments of a valid request; `None` if there is none."""
        if message["method"] != "tools/call":
            return None
        called, package = message["params"]["name"], self._core.package
        name = package.resolve_alias(called)
        if name not in package.tools:
            return None
        definition = package.tools[name].definition["inputSchema"]
        if name not in self._mirroring:
            # Most schemas mirror no argument, and need not be walked for each call.
            self._mirroring[name] = HEADER in json.dumps(definition)
        # A fault in its headers would tell that a hidden tool is there.
        if not self._mirroring[name] or not self._core.shows_tool(name):
            return None
        schema = find_mirrored_schema(definition, package.aliases.get(called), has_headers=head.has_parameters)
        return (
            None if schema is None else find_parameter_fault(schema, message["params"].get("arguments") or {}, headers)
        )

    async def _answer(
        self,
        sender: _Sender,
        session: Session | None,
        message: Mapping[str, Any],
        owner: Owner,
        run: Run,
        peer: Peer | None,
        address: str,
    ) -> Response | None:
        """Answer a request; without a response, on its stream."""
        client, fault = sender
        opens = message["method"] == "initialize" and fault is None
        if opens and not self._stateless:
            if not self._sessions.has_place():
                return come_again(_FULL.answer())
            if not self._sessions.has_room(client, owner or address):
                return come_again((_NO_ROOM if owner else _NO_ROOM_FOR_ADDRESS).answer())
            session = self._sessions.open(client, owner, self._open_log(), owner or address)
            session.runs[run.id] = run
        run.task = asyncio.current_task()
        exchange = self._exchange(client, session, message, run, peer, fault)
        if session is not None and opens:
            session.note_end = self._core.instrumentation.begin_session(exchange)
        elif fault is None:
            self._moments.begin(run)
        left = count_own_seconds_left() if session is not None and session.is_resumable else None
        # The stream lasts as long as the caller's token; the call goes on, and its answer is kept for the client.
        expiry = None if left is None else asyncio.get_running_loop().call_later(left, run.expire)
        try:
            with nullcontext() if session is None else session.keep_in_use():
                result = await self._result(exchange, session, run)
                run.end()
                response = self._response(client, session, exchange, result)
                if run.stream is None:
                    return response
                await run.stream.finish(response)
                return None
        finally:
            run.end()
            self._unattended.end(run)
            self._moments.end(run)
            if expiry is not None:
                expiry.cancel()
            if run.stream is not None:
                run.stream.end()
            if session is not None and session.runs.get(run.id) is run:
                del session.runs[run.id]

    async def _result(self, exchange: DirectExchange, session: Session | None, run: Run) -> Result | ProtocolError:
        """Return the result of a request; if it was cancelled, the error for that."""
        try:
            if not run.is_cancelled:
                return await self._direct.answer(exchange)
        except asyncio.CancelledError:
            if run.task is None or not run.is_cancelled:
                raise
            # The cancellation was for the call; this task still has to send the answer.
            run.task.uncancel()
        return _ENDED if session is not None and session.is_over else CANCELLED

    def _exchange(
        self,
        client: Client,
        session: Session | None,
        message: Mapping[str, Any],
        run: Run,
        peer: Peer | None,
        fault: ProtocolError | None,
    ) -> DirectExchange:
        """Return a request with the way to its sender."""

        async def say(text: bytes) -> None:
            run.move()
            if run.stream is not None and not run.stream.is_over:
                await run.stream.send(text)
            elif session is not None:
                await session.listening.send(text)

        params = message.get("params")
        channel = DirectChannel(
            client,
            params,
            Outgoing(say, None if session is None else session.questions),
            self._core.input_requests.urls,
            connection=None if session is None else session.connection,
            session=None if session is None else session.id,
            release=run.release if session is not None and session.is_resumable else None,
        )
        return DirectExchange(
            message["method"], params, run.id, True, client, channel, peer, fault, traceparent=run.traceparent
        )

    def _move(self, run: Run, session: Session | None, connect: Callable[[Run], object]) -> None:
        """Have a request answered on a stream."""
        run.stream = AnswerStream() if session is None else session.open_stream()
        connect(run)

    def _may_go_on(self, run: Run, owner: Account, size: int) -> bool:
        """Tell whether a request may go on without its client; if not, the log says so."""
        if self._unattended.admit(run, owner, size):
            return True
        self.refused.count("it would go on without its client, and the requests that do use up the memory for them")
        return False

    def _response(
        self, client: Client, session: Session | None, exchange: DirectExchange, result: Result | ProtocolError
    ) -> Response:
        body = self._direct.encode_response(exchange, result)
        if not isinstance(result, ProtocolError) or client.wants is not None:
            return Response.from_answer(200, body, None if session is None else session.id)
        if isinstance(result, TooManyStreamsError):
            return come_again(Response.from_answer(result.status, body))
        return Response.from_answer(_STATUS.get(result.code, 200), body)


def come_again(response: Response) -> Response:
    """Return a refusal with the time to try again (`Retry-After`)."""
    return response._replace(headers=(*response.headers, (b"retry-after", b"%d" % AGAIN)))


async def _give(response: Response) -> Response:
    return response
