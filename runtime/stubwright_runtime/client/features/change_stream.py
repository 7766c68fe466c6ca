"""A `subscriptions/listen` request (MCP 2026-07-28, basic/utilities/subscriptions)."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any, Final

from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, SubscriptionFilter
from pydantic import ValidationError

from ..rpc.mcp_error import MCPError
from .changes import MOST, Change, ListChanged, ResourceUpdated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..rpc.client import RpcClient

_NUMBERS: Final = itertools.count(1)

_LISTS: Final[dict[str, tuple[str, ListChanged]]] = {
    "notifications/tools/list_changed": ("tools_list_changed", ListChanged("tools")),
    "notifications/prompts/list_changed": ("prompts_list_changed", ListChanged("prompts")),
    "notifications/resources/list_changed": ("resources_list_changed", ListChanged("resources")),
}


class ChangeStream:
    """An asynchronous iterator over the changes that a server announces."""

    def __init__(self, client: RpcClient, lists: bool, resources: Sequence[str]) -> None:
        """Prepare a subscription to changes in the lists (with `lists`) and in the resources with these URIs."""
        self._client = client
        self._filter = SubscriptionFilter(
            tools_list_changed=lists or None,
            prompts_list_changed=lists or None,
            resources_list_changed=lists or None,
            resource_subscriptions=list(resources) or None,
        )
        self._key = f"listen-{next(_NUMBERS)}"
        self._granted: SubscriptionFilter | None = None
        self._waiting: dict[Change, None] = {}
        self._news = asyncio.Event()
        self._has_ended = False
        self._error: MCPError | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Send the subscription request, and wait until the server acknowledges it.

        Raises:
            MCPError: The server responds with an error or ends the subscription.
        """
        self._client.server.listeners[self._key] = self._handle_notification
        self._task = asyncio.create_task(self._run())
        while self._granted is None:
            await self._news.wait()
            self._news.clear()
            if self._granted is None and self._has_ended:
                raise self._error or _make_lost()

    def stop(self) -> None:
        """End the subscription."""
        self._client.server.listeners.pop(self._key, None)
        if self._task is not None:
            self._task.cancel()
        self._end(None)  # a consumer in another task may still be waiting

    async def _run(self) -> None:
        """Send `subscriptions/listen`, and wait for its result, which ends the subscription."""
        params = {"notifications": self._filter.model_dump(by_alias=True, mode="json", exclude_none=True)}
        error: MCPError | None = None
        try:
            await self._client.server.request("subscriptions/listen", self._client.stamp(params), key=self._key)
            self._granted = self._granted or SubscriptionFilter()
        except MCPError as refused:
            error = refused
        # A closed connection ends the iteration without an error.
        is_closed = error is not None and error.code == CONNECTION_CLOSED and self._granted is not None
        self._end(None if is_closed else error)

    def _end(self, error: MCPError | None) -> None:
        if not self._has_ended:
            self._has_ended, self._error = True, error
        self._news.set()

    def _handle_notification(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/cancelled":
            self._end(_make_lost())
        elif method == "notifications/subscriptions/acknowledged":
            if self._granted is None:
                try:
                    self._granted = SubscriptionFilter.model_validate(params.get("notifications"))
                except ValidationError:
                    return
                self._news.set()
        elif self._granted is not None and not self._has_ended:
            change = self._read(method, params, self._granted)
            if change is not None:
                self._add(change)

    def _read(self, method: str, params: dict[str, Any], granted: SubscriptionFilter) -> Change | None:
        """Return the change that a notification announces, or `None` for a kind that the server did not acknowledge."""
        if method in _LISTS:
            name, change = _LISTS[method]
            return change if getattr(granted, name) else None
        uri = params.get("uri")
        # The URI may identify a part of a subscribed resource.
        if method != "notifications/resources/updated" or not isinstance(uri, str):
            return None
        return ResourceUpdated(uri) if granted.resource_subscriptions else None

    def _add(self, change: Change) -> None:
        if change not in self._waiting and len(self._waiting) >= MOST:
            message = f"more than {MOST} changes are queued; subscribe again, then reread"
            self._end(MCPError(code=INTERNAL_ERROR, message=message))
            return
        self._waiting[change] = None
        self._news.set()

    def __aiter__(self) -> ChangeStream:
        return self

    async def __anext__(self) -> Change:
        while not self._waiting:
            if self._has_ended:
                if self._error is None:
                    raise StopAsyncIteration
                raise self._error
            self._news.clear()
            await self._news.wait()
        change = next(iter(self._waiting))
        del self._waiting[change]
        return change


def _make_lost() -> MCPError:
    return MCPError(code=CONNECTION_CLOSED, message="the server ended the subscription early; listen again")
