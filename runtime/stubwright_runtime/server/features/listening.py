"""Streams of `subscriptions/listen`, on which clients from 2026-07-28 on hear of changes (basic/utilities).

Takes the request and the way to its sender; tells of the changes that it names, each kind once as long as it waits,
since a client reads the list anew anyway. The stream ends with its answer, when the server ends or the token expires.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ..core.lists import Change
from ..core.principal import current, local
from ..execution.streams import LISTENERS, LISTENERS_EACH, Streams
from ..middlewares.expiry import own_seconds_left
from ..protocol.wants import check_subscriptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.core import Core
    from ..core.lists import Kind
    from ..protocol.outgoing import Outgoing

_USER: Final = local(())

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
"""The key of `_meta` that says which stream a notification is for."""

_FLAGS: Final[Mapping[str, Kind]] = {
    "toolsListChanged": "tools",
    "promptsListChanged": "prompts",
    "resourcesListChanged": "resources",
}


class Listeners:
    """The streams of one server.

    Attributes:
        streams: How many there may be.
    """

    def __init__(self, core: Core) -> None:
        """Take the server, whose changes are told."""
        self.streams = Streams(LISTENERS, LISTENERS_EACH)
        self._core = core
        self._open: set[_Listener] = set()
        core.publishers.append(self._hear)
        core.streams.append(self._end)

    async def listen(
        self, request_id: str | int, wanted: Mapping[str, Any], outgoing: Outgoing, *, over_http: bool
    ) -> dict[str, Any]:
        """Tell of changes until the stream ends, and return its answer.

        Args:
            request_id: The id of the request, which is that of the stream.
            wanted: The changes that the client wants to hear of; an unknown kind is left aside.
            outgoing: The messages to the client.
            over_http: Whether the request came over HTTP.

        Raises:
            ProtocolError: It wants to hear of too many resources, or there are too many streams.
        """
        uris: list[str] = wanted.get("resourceSubscriptions") or []
        check_subscriptions(uris)
        scopes, principal = self._core.scopes, self._core.principal(over_http=over_http)
        if scopes is not None:
            uris = [uri for uri in uris if scopes.reaches(principal, uri)]
        honored: dict[str, Any] = {flag: True for flag in _FLAGS if wanted.get(flag)}
        if uris:
            honored["resourceSubscriptions"] = uris
        meta = {SUBSCRIPTION_ID: request_id}
        listener = _Listener(frozenset(kind for flag, kind in _FLAGS.items() if flag in honored), frozenset(uris))
        with self.streams.opened(current(over_http=over_http, user=_USER)):
            seconds = own_seconds_left() if over_http else None
            expiry = None if seconds is None else asyncio.get_running_loop().call_later(seconds, listener.end)
            self._open.add(listener)  # before it is told so: a change meanwhile waits for its turn
            try:
                params = {"notifications": honored, "_meta": meta}
                await outgoing.notify("notifications/subscriptions/acknowledged", params)
                while (change := await listener.next()) is not None:
                    await _tell(outgoing, change, meta)
            finally:
                self._open.discard(listener)
                if expiry is not None:
                    expiry.cancel()
        return {"_meta": meta}

    async def _hear(self, change: Change) -> None:
        for listener in self._open:
            listener.hear(change)

    def _end(self) -> None:
        for listener in self._open:
            listener.end()


class _Listener:
    """One stream."""

    def __init__(self, kinds: frozenset[Kind], uris: frozenset[str]) -> None:
        self._kinds = kinds
        self._uris = uris
        self._waiting: dict[Change, None] = {}
        self._woken = asyncio.Event()
        self._is_over = False

    def hear(self, change: Change) -> None:
        """Take a change, if the client wants to hear of it."""
        if change.kind in self._kinds if change.uri is None else change.uri in self._uris:
            self._waiting[change] = None
            self._woken.set()

    def end(self) -> None:
        """Have the stream end when it has told what waits."""
        self._is_over = True
        self._woken.set()

    async def next(self) -> Change | None:
        """Return the next change; `None` if the stream is over."""
        while not self._waiting:
            if self._is_over:
                return None
            self._woken.clear()
            await self._woken.wait()
        change = next(iter(self._waiting))
        del self._waiting[change]
        return change


async def _tell(outgoing: Outgoing, change: Change, meta: Mapping[str, Any]) -> None:
    name = f"{change.kind}/list_changed" if change.uri is None else "resources/updated"
    about = {} if change.uri is None else {"uri": change.uri}
    await outgoing.notify(f"notifications/{name}", {**about, "_meta": meta})
