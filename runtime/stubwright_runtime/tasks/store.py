"""Stores a server's tasks. Changes are atomic, and finished tasks never change."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..state.budget import BudgetExceeded, count_bytes
from ..state.store import mark_after_change
from .records import Task

if TYPE_CHECKING:
    from ..state.store import Store

_TASK: Final = "task"
_RESULT: Final = "task-result"
_SLOT: Final = "task-place"
_TOPIC: Final = "task"
_GIVEN_UP: Final = "tasks-given-up"

_CLAIM: Final = 60.0
"""Seconds after which another process may rerun an abandoned task if the first process died."""

_MIN_RESULT_TTL: Final = 1.0
"""A result's minimum retention in seconds."""


class TaskStore:
    """Stores tasks and their results."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        """Create a task store; `clock` returns seconds since 1970."""
        self._store = store
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self.now = clock
        store.listen(_TOPIC, self._wake)

    async def create(self, task: Task, most: int | None) -> bool:
        """Store a task unless its caller has `most` unfinished tasks for this tool, and return whether it was stored.

        Raises:
            StateLost: The task might not have been stored.
            BudgetExceeded: The task exceeds the caller's budget.
        """
        payer = task.principal.key
        slot, store = json.dumps([payer, task.tool]), self._store  # shared by all of the caller's sessions
        data, head = task.dump(), task.dump_head()
        # Reserve room for the task, too. Otherwise the error's used bytes would include a slot without a task.
        room = count_bytes(task.id, data, head)
        if not await store.create(_SLOT, task.id, b"", owner=slot, ttl=task.ttl, most=most, payer=payer, room=room):
            return False
        try:
            await store.create(
                _TASK, task.id, data, owner=task.owner, ttl=task.ttl, payer=payer, head=head, tracked=True
            )
        except BudgetExceeded:  # concurrent calls may have used up the room
            await store.delete(_SLOT, task.id)
            raise
        return True

    async def forget(self, task: Task) -> None:
        """Delete a task. Raises StateLost."""
        await self._store.delete(_TASK, task.id, payer=task.principal.key)
        await self._store.delete(_SLOT, task.id)

    async def find(self, name: str) -> Task | None:
        """Return the task with this ID, or `None`. Raises StateLost."""
        record = await self._store.get(_TASK, name)
        return None if record is None else Task.load(record.data)

    async def list_owned(self, owner: str) -> list[Task]:
        """Return an owner's tasks, oldest first, with only the fields in `dump_head`. Raises StateLost."""
        tasks = [Task.load(head) for head in await self._store.list_heads(_TASK, owner)]
        return sorted(tasks, key=lambda task: (task.created, task.id))

    async def list_abandoned(self) -> list[Task]:
        """Return abandoned tasks that were not rerun, oldest first. Raises StateLost."""
        tasks: list[Task] = []
        for name in await self._store.list_members(_GIVEN_UP):
            task = await self.find(name)
            if task is None:
                await self._store.switch(_GIVEN_UP, name, on=False)
            elif task.is_abandoned:
                tasks.append(task)
        return sorted(tasks, key=lambda task: (task.created, task.id))

    @asynccontextmanager
    async def claim_abandoned(self, name: str) -> AsyncGenerator[Task | None, None]:
        """Yield an abandoned task to one process at a time. Raises StateLost.

        Unless the block raises, remove the task from the list.
        """
        holder, lease = secrets.token_hex(8), f"task-again:{name}"
        if not await self._store.hold(lease, holder, _CLAIM):
            yield None
            return
        try:
            is_listed = name in await self._store.list_members(_GIVEN_UP)
            task = await self.find(name) if is_listed else None
            yield task if task is not None and task.is_abandoned else None
            await self._store.switch(_GIVEN_UP, name, on=False)
        finally:
            await self._store.release(lease, holder)

    async def change(self, name: str, make: Callable[[Task], Task | None]) -> Task | None:
        """Change an unfinished task.

        Args:
            name: The task's ID.
            make: Returns the new task for the current one, or `None` for no change. Can be called repeatedly.

        Returns:
            The new task, or `None` if it did not change.

        Raises:
            StateLost: The change might not have been stored.
            BudgetExceeded: The change exceeds the caller's budget; a task's end never does.
        """
        while True:
            record = await self._store.get(_TASK, name)
            task = None if record is None else Task.load(record.data)
            if record is None or task is None or task.is_terminal or (changed := make(task)) is None:
                return None
            if changed.is_abandoned:
                await self._store.switch(_GIVEN_UP, name, on=True)  # add the task first, so that the list is complete
            is_forgotten = changed.is_terminal and not changed.is_abandoned
            # Clocks differ between processes, but `updated` must not decrease.
            changed = replace(changed.end() if is_forgotten else changed, updated=max(self.now(), task.updated))
            if await self._store.replace(
                _TASK,
                name,
                changed.dump(),
                version=record.version,
                head=changed.dump_head(),
                payer=changed.principal.key,
                final=changed.is_terminal,
            ):
                break
        with mark_after_change():
            if changed.is_terminal:
                await self._store.delete(_SLOT, name)
            await self._store.publish(_TOPIC, name.encode())
        return changed

    async def complete(
        self, task: Task, result: Mapping[str, Any], make: Callable[[Task, str], Task | None]
    ) -> Task | None:
        """Store a task's result, and change the task.

        Args:
            task: The task.
            result: The result in the newest revision's format.
            make: Returns the new task for the current one and the result's key, or `None` for no change.

        Returns:
            The new task, or `None` if it did not change.

        Raises:
            StateLost: The change might not have been stored.
            BudgetExceeded: The result exceeds the caller's budget.
            TypeError: The result cannot be converted to JSON.
        """
        key, data = secrets.token_urlsafe(16), json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode()
        left = max(_MIN_RESULT_TTL, task.created + task.ttl - self.now())
        # Store the result first, because readers of a completed task need it.
        await self._store.create(_RESULT, key, data, owner=task.id, ttl=left, payer=task.principal.key)
        changed = await self.change(task.id, lambda now: make(now, key))
        if changed is None:
            await self._store.delete(_RESULT, key)
        return changed

    async def get_result(self, task: Task) -> dict[str, Any] | None:
        """Return a task's result, or `None` if it does not exist or has expired. Raises StateLost."""
        record = None if task.result is None else await self._store.get(_RESULT, task.result)
        result: dict[str, Any] | None = None if record is None else json.loads(record.data)
        return result

    @contextmanager
    def watch(self, names: Iterable[str]) -> Generator[asyncio.Event, None, None]:
        """Yield an event that is set when any of the tasks might have changed; the caller clears it."""
        changed = asyncio.Event()
        watched = [*names]
        for name in watched:
            self._waiting[name].add(changed)
        try:
            yield changed
        finally:
            for name in watched:
                self._waiting[name].discard(changed)
                if not self._waiting[name]:
                    del self._waiting[name]

    async def _wake(self, data: bytes | None) -> None:
        names = [*self._waiting] if data is None else [data.decode()]
        for changed in [changed for name in names for changed in self._waiting.get(name, ())]:
            changed.set()
