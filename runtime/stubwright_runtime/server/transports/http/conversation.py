"""The SDK over HTTP: what becomes of the requests that need a conversation, or that only the SDK can refuse.

Takes requests as ASGI has them; it is loaded with the first. A session that has shaken hands without the SDK gets one
of the SDK's, under the same id, when a request of it comes here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

from ....sdk.http import (
    StreamableHTTPASGIApp,
    StreamableHTTPServerTransport,
    StreamableHTTPSessionManager,
    TransportSecuritySettings,
)
from ...core.principal import ANONYMOUS, current
from ...direct.keys import REVISION, WANTS
from ...old_names import MIRRORS
from ...server import PackageServer
from .bad_requests import BadRequests
from .resumption.replay import Archive
from .resumption.shared import Resumption, SharedReplay
from .streams import Bounded
from .uploads import Uploads

if TYPE_CHECKING:
    from contextvars import Context

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ....sdk.http import EventStore
    from ...core.core import Core
    from .resumption.awaited import Awaited
    from .sessions import Session, Sessions

_RETRY: Final = 1000
"""Milliseconds after which a client that lost its stream should come back."""

_PASSED_ON: Final = frozenset({b"host", b"origin", b"authorization"})
"""Headers of a request that opens the SDK's session, as they are in that which needs it."""

_PARAMETER: Final = b"mcp-param-"
"""What the names of headers that mirror arguments begin with."""

_HELLO: Final = b'{"jsonrpc":"2.0","id":"stubwright/replayed","method":"initialize","params":%b}'
_READY: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class Conversations:
    """The SDK's half of a server over HTTP."""

    def __init__(
        self,
        core: Core,
        awaited: Awaited | None,
        *,
        hosts: list[str],
        origins: list[str],
        is_protected: bool,
        idle: float,
        most: int,
        stateless: bool,
        sessions: Sessions,
        endpoint: ASGIApp,
    ) -> None:
        """Build what answers.

        Args:
            core: The server.
            awaited: Who waits for messages of sessions of other processes, where state is shared.
            hosts: The hosts to answer.
            origins: The origins to answer.
            is_protected: Whether others are refused.
            idle: Seconds after which a session that the SDK has opened ends.
            most: How many sessions may be open.
            stateless: Whether there are none.
            sessions: Those that have shaken hands without the SDK, which count, too.
            endpoint: Answers each message of a batch.
        """
        server = PackageServer(core)
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=is_protected, allowed_hosts=hosts, allowed_origins=origins
        )
        self._manager = manager = _Manager(
            server,
            retry_interval=_RETRY,
            security_settings=security,
            session_idle_timeout=idle,
            max_sessions=most,
            stateless=stateless,
        )
        manager.others = sessions
        app: ASGIApp = StreamableHTTPASGIApp(manager)
        if awaited is not None:
            manager.awaited = awaited
            app = Resumption(app, awaited, security)
        self._app: ASGIApp = Uploads(BadRequests(Bounded(app, every_get=stateless), endpoint, manager.find_revision))
        self._running: asyncio.Task[None] | None = None
        self._ready, self._over = asyncio.Event(), asyncio.Event()

    def __len__(self) -> int:
        """Return how many sessions the SDK has opened by itself."""
        return self._manager.own

    async def start(self, context: Context) -> None:
        """Be ready for requests; sessions live in a context in which no call is under way."""
        self._running = asyncio.create_task(self._run(), context=context)
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait([ready, self._running], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._running.done():
            self._running.result()

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._over.wait()

    async def stop(self) -> None:
        """End all sessions."""
        self._over.set()
        if self._running is not None:
            await asyncio.wait([self._running])
            self._running.result()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        MIRRORS.set(any(name.lower().startswith(_PARAMETER) for name, _ in scope["headers"]))
        await self._app(scope, receive, send)

    async def adopt(self, session: Session, scope: Scope) -> None:
        """Give a session one of the SDK's, which knows what its client has said; `scope` is a request of it."""
        async with session.opens:
            if not session.has_conversation:
                await self._manager.adopt(session, scope)
                session.has_conversation = True

    async def end(self, session: Session) -> None:
        """End the SDK's session, where there is one."""
        await self._manager.end(session.id)


class _Manager(StreamableHTTPSessionManager):
    """The SDK's sessions, each with a store of its own: its streams are called alike in all of them."""

    app: PackageServer
    awaited: Awaited | None = None
    """Who waits for messages of sessions of other processes, where state is shared."""
    others: Sessions
    """The sessions that have shaken hands without the SDK."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._adopted: set[str] = set()
        self._unready: WeakSet[StreamableHTTPServerTransport] = WeakSet()
        """Those of adoptions that have not succeeded."""
        self._revisions: WeakKeyDictionary[StreamableHTTPServerTransport, str] = WeakKeyDictionary()
        """The revisions that their handshakes came to."""

    @property
    def event_store(self) -> EventStore | None:
        """A new store; the SDK asks when it opens a session."""
        return self._archive.session(_caller()) if self.awaited is None else SharedReplay(self.awaited)

    @event_store.setter
    def event_store(self, _store: EventStore | None) -> None:
        """The SDK's constructor sets one for all sessions."""
        self._archive = Archive()

    async def adopt(self, session: Session, scope: Scope) -> None:
        """Open a session that has an id, and shake hands in it as its client has.

        Raises:
            RuntimeError: The SDK refuses the handshake; the next request tries again.
        """
        transport = StreamableHTTPServerTransport(
            mcp_session_id=session.id,
            is_json_response_enabled=self.json_response,
            event_store=self.event_store,
            security_settings=self.security_settings,
            retry_interval=self.retry_interval,
        )
        self._unready.add(transport)
        self._adopted.add(session.id)
        self._server_instances[session.id] = transport
        if session.owner is not None:
            self._session_owners[session.id] = session.owner  # type: ignore[assignment]
        headers = [entry for entry in scope["headers"] if entry[0] in _PASSED_ON]
        headers += [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]
        shaking = {
            **scope,
            "method": "POST",
            "headers": headers,
            WANTS: session.client.wants,
            REVISION: session.client.revision,
        }
        hello = _HELLO % (session.client.opening or b"{}")
        try:
            await self._serve_opening_request(transport, shaking, _body(hello), _ignore)
            if session.is_initialized:
                named = {**shaking, "headers": [*headers, (b"mcp-session-id", session.id.encode())]}
                await transport.handle_request(named, _body(_READY), _ignore)
        except BaseException:  # also where the client leaves meanwhile
            await self._discard_session(session.id, transport)
            raise
        if self._server_instances.get(session.id) is not transport:
            raise RuntimeError("a session could not be adopted")
        self._unready.discard(transport)

    def find_revision(self, session: str | None, named: str) -> str | None:
        """Return the revision of a session, or of a request that has none; `None` if it needs one first.

        Args:
            session: What the request names; one that is not there will be refused as such.
            named: The revision that the request names.
        """
        if session is None:
            return named if self.stateless else None
        transport = self._server_instances.get(session)
        return named if transport is None else self._revisions.get(transport)

    async def _serve_opening_request(
        self, http_transport: StreamableHTTPServerTransport, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if REVISION in scope:
            self._revisions[http_transport] = scope[REVISION]
        await super()._serve_opening_request(http_transport, scope, receive, send)

    async def end(self, name: str) -> None:
        """End a session."""
        transport = self._server_instances.get(name)
        if transport is not None:
            await self._discard_session(name, transport)

    @property
    def own(self) -> int:
        """How many sessions it has opened by itself."""
        return len(self._server_instances) - len(self._adopted)

    def _admit_session(self, requestor: Any) -> StreamableHTTPServerTransport | None:
        return None if self.others.is_full() else super()._admit_session(requestor)

    async def _discard_session(self, session_id: str, transport: StreamableHTTPServerTransport) -> None:
        if transport in self._unready:
            # The session itself goes on, and may have another transport by now.
            if self._server_instances.get(session_id) is transport:
                await self._drop(session_id, transport)
            return
        await self._drop(session_id, transport)
        self.others.forget(session_id)

    async def _drop(self, session_id: str, transport: StreamableHTTPServerTransport) -> None:
        self._adopted.discard(session_id)
        await super()._discard_session(session_id, transport)


def _body(message: bytes) -> Receive:
    """Return what gives a request with a message, from a client that does not leave."""
    messages: list[Message] = [{"type": "http.request", "body": message, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop()

    return receive


async def _ignore(_message: Message) -> None:
    return


def _caller() -> str:
    """Return who sent the request that is being answered."""
    return current(over_http=True, user=ANONYMOUS).key
