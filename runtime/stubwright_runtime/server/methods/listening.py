"""Streams of `subscriptions/listen`, which notify clients of changes from 2026-07-28 on (basic/utilities).

The stream ends with its answer, when the server ends or the token expires.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from ..core.principal import find_current, make_local
from ..core.streams import LISTENERS, LISTENERS_EACH, Streams
from ..middlewares.expiry import count_own_seconds_left
from ..middlewares.pending_requests import LISTENING
from ..protocol.changes import ChangeNotifier
from ..protocol.client_subscriptions import check_subscriptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from ..core.hub import Hub
    from ..core.request import Answer, Request, Result
    from ..protocol.client_subscriptions import Change, Kind
    from ..protocol.outgoing import Notifier

_USER: Final = make_local(())

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
"""The key of `_meta` with the id of the stream that a notification is for."""

_FLAGS: Final[Mapping[str, Kind]] = {
    "toolsListChanged": "tools",
    "promptsListChanged": "prompts",
    "resourcesListChanged": "resources",
}


class Feed(Protocol):
    """A source of notifications on a stream next to changes."""

    @property
    def honored(self) -> Mapping[str, Any]:
        """Its fields in the acknowledgement."""
        ...

    async def run(self, notifier: Notifier, meta: Mapping[str, Any]) -> None:
        """Send notifications with this `_meta` until it is cancelled."""


class Listeners:
    """The streams of one server.

    Attributes:
        streams: The limits on their number.
    """

    def __init__(self, hub: Hub) -> None:
        """Take the server, whose changes are told."""
        self.streams = Streams(LISTENERS, LISTENERS_EACH)
        self._hub = hub
        self._open: set[ChangeNotifier] = set()
        hub.publishers.append(self._hear)
        hub.streams.append(self._end)

    def wrap(self, method: str, call_next: Answer) -> Answer:
        """Answer `subscriptions/listen`."""
        if method != LISTENING:
            return call_next

        async def call(request: Request) -> Result:
            if request.id is None or not request.revision.has("stateless") or not request.is_admissible:
                return await call_next(request)
            return self._hub.stamp(await self.listen(request), request.revision)

        return call

    async def listen(self, request: Request, feed: Feed | None = None) -> dict[str, Any]:
        """Send changes until the stream ends, and return its answer.

        Args:
            request: The request, with the changes that its client subscribes to; an unknown kind is ignored.
            feed: A further source of notifications that the client wants.

        Raises:
            ProtocolError: It names too many resources, or there are too many streams.
        """
        wanted: Mapping[str, Any] = request.params["notifications"]
        outgoing, over_http = cast("Notifier", request.channel), request.over_http
        uris: list[str] = wanted.get("resourceSubscriptions") or []
        check_subscriptions(uris)
        scopes, principal = self._hub.scopes, self._hub.find_principal(over_http=over_http)
        if scopes is not None:
            uris = [uri for uri in uris if scopes.reaches(principal, uri)]
        honored: dict[str, Any] = {flag: True for flag in _FLAGS if wanted.get(flag)}
        if uris:
            honored["resourceSubscriptions"] = uris
        if feed is not None:
            honored |= feed.honored
        meta = {SUBSCRIPTION_ID: request.id}
        kinds, uri_set = {_FLAGS[flag] for flag in honored if flag in _FLAGS}, frozenset(uris)

        def is_wanted(change: Change) -> bool:
            return change.kind in kinds if change.uri is None else change.uri in uri_set

        telling = ChangeNotifier(is_wanted, outgoing, meta)
        with self.streams.count(find_current(over_http=over_http, user=_USER)):
            seconds = count_own_seconds_left() if over_http else None
            expiry = None if seconds is None else asyncio.get_running_loop().call_later(seconds, telling.end)
            if self._hub.is_stopping:
                telling.end()
            self._open.add(telling)  # before the acknowledgement: a change meanwhile waits
            try:
                params = {"notifications": honored, "_meta": meta}
                await outgoing.notify("notifications/subscriptions/acknowledged", params)
                async with _running(feed, outgoing, meta):
                    await telling.run()
            finally:
                self._open.discard(telling)
                if expiry is not None:
                    expiry.cancel()
        return {"_meta": meta}

    async def _hear(self, change: Change) -> None:
        for telling in self._open:
            telling.on_change(change)

    def _end(self) -> None:
        for telling in self._open:
            telling.end()


@asynccontextmanager
async def _running(feed: Feed | None, notifier: Notifier, meta: Mapping[str, Any]) -> AsyncGenerator[None, None]:
    """Run a feed during the block, if there is one."""
    if feed is None:
        yield
        return
    async with asyncio.TaskGroup() as group:
        running = group.create_task(feed.run(notifier, meta))
        yield
        running.cancel()
