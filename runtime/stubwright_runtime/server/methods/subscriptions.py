"""`subscriptions/listen`: streams that notify clients of changes (MCP 2026-07-28 and later, basic/utilities).

When the server stops or the caller's token expires, the request's response closes the stream.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from ..core.streams import LISTENERS, LISTENERS_EACH, Streams
from ..middlewares.expiry import token_lifetime
from ..protocol.changes import ChangeNotifier
from ..protocol.client_subscriptions import check_subscriptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from ..core.hub import Hub
    from ..core.request import Answer, Request, Result
    from ..protocol.client_subscriptions import Change, Kind
    from ..protocol.sender import Notifier

LISTENING: Final = "subscriptions/listen"
"""The method that opens a stream of change notifications; its response closes the stream (MCP 2026-07-28)."""

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
"""The `_meta` key of the ID of the stream that a notification belongs to."""

_FLAGS: Final[Mapping[str, Kind]] = {
    "toolsListChanged": "tools",
    "promptsListChanged": "prompts",
    "resourcesListChanged": "resources",
}


class Feed(Protocol):
    """An additional source of notifications for a stream, such as a task's status."""

    @property
    def honored(self) -> Mapping[str, Any]:
        """The subscriptions that this source adds to the acknowledgement."""
        ...

    async def run(self, notifier: Notifier, meta: Mapping[str, Any]) -> None:
        """Send notifications, each with this `_meta`, until cancelled."""


class Listeners:
    """One server's `subscriptions/listen` streams.

    Attributes:
        streams: Counts the open streams and limits their number.
    """

    def __init__(self, hub: Hub) -> None:
        """Register with a server, to be notified of changes and of its stop."""
        self.streams = Streams(LISTENERS, LISTENERS_EACH)
        self._hub = hub
        self._open: set[ChangeNotifier] = set()
        hub.publishers.append(self._on_change)
        hub.streams.append(self._end)

    def wrap(self, method: str, call_next: Answer) -> Answer:
        """Return a function that handles `subscriptions/listen`; for any other method, return `call_next`."""
        if method != LISTENING:
            return call_next

        async def call(request: Request) -> Result:
            if request.id is None or not request.revision.has("stateless") or not request.is_admissible:
                return await call_next(request)
            return await self.listen(request)

        return call

    async def listen(self, request: Request, feed: Feed | None = None) -> dict[str, Any]:
        """Send change notifications until the stream ends, then return the request's result.

        Args:
            request: The request, which lists the subscriptions; unknown kinds of changes are ignored.
            feed: An additional source of notifications.

        Raises:
            ProtocolError: The request names too many resources, or too many streams are open.
        """
        wanted: Mapping[str, Any] = request.params["notifications"]
        outgoing = cast("Notifier", request.channel)
        uris: list[str] = wanted.get("resourceSubscriptions") or []
        check_subscriptions(uris)
        honored: dict[str, Any] = {flag: True for flag in _FLAGS if wanted.get(flag)}
        if uris:  # including hidden resources, because unknown resources are acknowledged, too
            honored["resourceSubscriptions"] = uris
        if (scopes := self._hub.scopes) is not None:
            principal = scopes.widen(request.principal)
            uris = [uri for uri in uris if scopes.reaches(principal, uri)]
        if feed is not None:
            honored |= feed.honored
        meta = {SUBSCRIPTION_ID: request.id}
        kinds, uri_set = {_FLAGS[flag] for flag in honored if flag in _FLAGS}, frozenset(uris)

        def is_wanted(change: Change) -> bool:
            return change.kind in kinds if change.uri is None else change.uri in uri_set

        notifier = ChangeNotifier(is_wanted, outgoing, meta)
        with self.streams.count(request.principal):
            seconds = token_lifetime() if request.over_http else None
            expiry = None if seconds is None else asyncio.get_running_loop().call_later(seconds, notifier.end)
            if self._hub.is_stopping:
                notifier.end()
            self._open.add(notifier)  # before the acknowledgement, because no later change may be missed
            try:
                params = {"notifications": honored, "_meta": meta}
                await outgoing.notify("notifications/subscriptions/acknowledged", params)
                async with _run_feed(feed, outgoing, meta):
                    await notifier.run()
            finally:
                self._open.discard(notifier)
                if expiry is not None:
                    expiry.cancel()
        return {"_meta": meta}

    async def _on_change(self, change: Change) -> None:
        for notifier in self._open:
            notifier.on_change(change)

    def _end(self) -> None:
        for notifier in self._open:
            notifier.end()


@asynccontextmanager
async def _run_feed(feed: Feed | None, notifier: Notifier, meta: Mapping[str, Any]) -> AsyncGenerator[None, None]:
    if feed is None:
        yield
        return
    async with asyncio.TaskGroup() as group:
        running = group.create_task(feed.run(notifier, meta))
        yield
        running.cancel()
