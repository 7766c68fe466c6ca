"""Sends task notifications on `subscriptions/listen` streams (2026-07-28)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..state.store import StateLost
from . import wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..server.protocol.sender import Notifier
    from .store import TaskStore


class TaskFeed:
    """Sends task notifications on one stream."""

    def __init__(self, task_store: TaskStore, names: Sequence[str]) -> None:
        self._task_store = task_store
        self._names = names

    @property
    def honored(self) -> Mapping[str, Any]:
        """The tasks to report in the stream's acknowledgement."""
        return {"taskIds": [*self._names]}

    async def run(self, notifier: Notifier, meta: Mapping[str, Any]) -> None:
        """Send each task's state and each change, until cancelled."""
        last_sent: dict[str, dict[str, Any]] = {}
        with self._task_store.watch(self._names) as changed:
            while True:
                for name in self._names:
                    try:
                        task = await self._task_store.find(name)
                        params = (
                            None
                            if task is None
                            else wire.to_detailed_task(task, await self._task_store.get_result(task))
                        )
                    except StateLost:
                        continue  # after an outage, the task store wakes every waiter
                    if params is not None and params != last_sent.get(name):
                        last_sent[name] = params
                        await notifier.notify("notifications/tasks", {**params, "_meta": meta})
                await changed.wait()
                changed.clear()
