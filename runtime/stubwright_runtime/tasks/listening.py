"""Clients of 2026-07-28 that hear of tasks on a stream of `subscriptions/listen`.

Takes the request; adds to what the SDK's stream tells (the extension, "Task Status Notifications"). The SDK
acknowledges what it knows itself, so that its acknowledgement gets the tasks on its way.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
import mcp_types as types

from ..sdk.subscriptions import SUBSCRIPTION_ID_META_KEY
from ..state.store import StateLost
from . import wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from ..sdk.requests import ServerRequestContext, ServerSession
    from .store import TaskStore


class Listener:
    """One stream."""

    def __init__(self, ctx: ServerRequestContext[Any, Any], task_store: TaskStore, names: Sequence[str]) -> None:
        """Take the request, and the tasks that it hears of."""
        self._session = ctx.session
        self._request_id = ctx.request_id
        self._task_store = task_store
        self._names = names
        self._acknowledged = anyio.Event()

    @property
    def session(self) -> ServerSession:
        """What the SDK sends its own notifications with."""
        return cast("ServerSession", self)

    async def send_notification(
        self, notification: types.ServerNotification, related_request_id: types.RequestId | None = None
    ) -> None:
        """Send what the SDK sends; its acknowledgement with the tasks."""
        if isinstance(notification, types.SubscriptionsAcknowledgedNotification):
            honored = notification.params.notifications
            honored = types.SubscriptionFilter.model_validate({**honored.model_dump(), "taskIds": [*self._names]})
            params = notification.params.model_copy(update={"notifications": honored})
            notification = notification.model_copy(update={"params": params})
        await self._session.send_notification(notification, related_request_id)
        self._acknowledged.set()

    @asynccontextmanager
    async def sending(self) -> AsyncGenerator[None, None]:
        """Notify the client during the block."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._send_changes)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    async def _send_changes(self) -> None:
        """Send each task's state, and then each change."""
        last_sent: dict[str, dict[str, Any]] = {}
        await self._acknowledged.wait()
        with self._task_store.watching(self._names) as changed:
            while True:
                for name in self._names:
                    try:
                        task = await self._task_store.find(name)
                        params = (
                            None if task is None else wire.to_detailed_task(task, await self._task_store.result(task))
                        )
                    except StateLost:
                        continue  # the task store wakes all who wait when the store is there again
                    if params is not None and params != last_sent.get(name):
                        last_sent[name] = params
                        meta = {SUBSCRIPTION_ID_META_KEY: self._request_id}
                        notification = wire.TaskNotification(params={**params, "_meta": meta})
                        await self._session.send_notification(
                            cast("types.ServerNotification", notification), related_request_id=self._request_id
                        )
                await changed.wait()
                changed.clear()
