"""The task engine on a Redis stream, for processes that share a store.

The stream contains only IDs, so that write access to Redis does not allow choosing functions or arguments. If a process
dies, other processes reclaim its tasks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import RedisError, ResponseError

from ...observability.logs import log
from ...state.store import StateLost

if TYPE_CHECKING:
    from ...server.core.task_engine import TaskWork
    from ...state.store import Store


MAX_CLAIMED: Final = 1000
"""The maximum number of IDs that one process claims; most of them wait for a slot."""

IDLE: Final = 4000
"""Milliseconds after which another process may claim an unfinished ID. A lease keeps the task from running twice."""

_GROUP: Final = "workers"
_WORKER: Final = "worker"
"""The consumer name that all processes share, because redelivery depends only on age."""

_BLOCK: Final = 1000
"""The duration of a blocking read in milliseconds; less than the connection's timeout."""

_LOOKS: Final = 4
"""The number of scans for idle IDs during the idle time after which an ID can be claimed."""

_BATCH: Final = 100
"""The maximum number of idle IDs to claim in one step."""

_CONNECTIONS: Final = 40
"""The maximum number of connections per process."""

_RETRY_INTERVAL: Final = 1.0
"""Seconds between attempts to reach Redis."""

_CANCEL_TIMEOUT: Final = 3.0
"""Seconds to wait for cancelled tasks to finish; longer than a blocking read."""

_ID: Final = re.compile(rb"[A-Za-z0-9_-]{16,64}")
_T = TypeVar("_T")


class _Entry(NamedTuple):
    """An entry of a stream: its ID, and its fields unless the entry was deleted."""

    place: bytes
    fields: dict[bytes, bytes] | None


class _Stream:
    """The stream of task IDs."""

    def __init__(self, redis: Redis, key: str, idle: int) -> None:
        """Create a stream of task IDs at `key`. Idle IDs are reclaimed after `idle` milliseconds."""
        self._redis = redis
        self._key = key
        self._idle = idle
        self._has_group = False
        self._cursor, self._next_look = b"0-0", 0.0

    async def add(self, task: str) -> None:
        await self._redis.xadd(self._key, {b"data": task.encode()})

    async def receive(self) -> list[tuple[bytes, str]]:
        """Claim or read entries. Return their stream IDs and task IDs, or an empty list after a timeout.

        Raises:
            RedisError: Redis cannot be reached.
            OSError: Redis cannot be reached.
        """
        try:
            if not self._has_group:
                await self._make_group()
            entries = await self._claim() or await self._read()
        except (RedisError, OSError):
            self._has_group = False  # Redis might have lost the group
            raise
        taken: list[tuple[bytes, str]] = []
        for entry in entries:
            data = (entry.fields or {}).get(b"data", b"")
            if _ID.fullmatch(data):
                taken.append((entry.place, data.decode()))
            else:
                log().warning("dropped an entry that is not a task ID")
                await self.remove(entry.place)
        return taken

    async def remove(self, place: bytes) -> None:
        async with self._redis.pipeline(transaction=True) as steps:
            steps.xack(self._key, _GROUP, place)
            steps.xdel(self._key, place)
            await steps.execute()

    async def _make_group(self) -> None:
        try:
            # The group starts at the first entry.
            await self._redis.xgroup_create(self._key, _GROUP, id="0", mkstream=True)
        except ResponseError as error:
            # Another process has already created the group.
            if not str(error).startswith("BUSYGROUP"):
                raise
        self._has_group = True

    async def _claim(self) -> list[_Entry]:
        """Claim a batch of idle entries, scanning the list in steps."""
        clock = asyncio.get_running_loop().time
        if clock() < self._next_look:
            return []
        self._cursor, idle, _ = await self._redis.xautoclaim(
            self._key, _GROUP, _WORKER, self._idle, self._cursor, count=_BATCH
        )
        # The scan is complete.
        if self._cursor == b"0-0":
            self._next_look = clock() + self._idle / _LOOKS / 1000
        return [_Entry(*entry) for entry in idle]

    async def _read(self) -> list[_Entry]:
        wait = _BLOCK if self._cursor == b"0-0" else None
        read = await self._redis.xreadgroup(_GROUP, _WORKER, {self._key: ">"}, count=1, block=wait)
        streams = cast("dict[bytes, list[tuple[bytes, dict[bytes, bytes]]]]", read)
        return [_Entry(*entry) for entries in streams.values() for entry in entries]


class StreamEngine:
    """Runs tasks from a Redis stream."""

    def __init__(self, store: Store, *, idle: int = IDLE) -> None:
        """Create an engine.

        Args:
            store: The store whose Redis server has the stream.
            idle: See `IDLE`.
        """
        self._store = store
        self._stop = asyncio.Event()
        self._is_unreachable = False
        # Unlike the store, this client may send a command twice, because the lease lets a task that is queued twice run
        # only once.
        options: dict[str, Any] = {
            **store.pool.connection_kwargs,
            "retry": Retry(ExponentialBackoff(cap=0.5, base=0.05), 3),
            "legacy_responses": False,
        }
        self._pool = BlockingConnectionPool(
            connection_class=store.pool.connection_class,
            max_connections=_CONNECTIONS,
            timeout=store.pool.timeout,
            **options,
        )
        self._stream = _Stream(Redis(connection_pool=self._pool), f"{store.prefix}:tasks", idle)

    async def submit(self, task: str) -> None:
        """Implement `TaskEngine.submit`."""
        async with self._store.exchange(writes=True):
            await self._stream.add(task)

    def stop(self) -> None:
        """Implement `TaskEngine.stop`."""
        self._stop.set()

    @asynccontextmanager
    async def run(self, work: TaskWork | None, grace: float) -> AsyncGenerator[None, None]:
        """Implement `TaskEngine.run`."""
        self._stop = asyncio.Event()
        consumer = None if work is None else asyncio.create_task(self._consume(work))
        try:
            yield
        finally:
            self._stop.set()
            if consumer is not None:
                await asyncio.wait([consumer], timeout=grace)
                consumer.cancel()
                if (await asyncio.wait([consumer], timeout=_CANCEL_TIMEOUT))[1]:
                    log().warning("abandoning a task that did not finish after being cancelled")
            await self._pool.disconnect()

    async def _consume(self, work: TaskWork) -> None:
        """Run tasks until `stop` is called, then wait for the running tasks."""
        running: set[asyncio.Task[None]] = set()
        try:
            while not self._stop.is_set():
                if len(running) >= MAX_CLAIMED:  # leave the remaining tasks to other processes
                    await self._before_stop(asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED))
                    continue
                for taken in await self._before_stop(self._next()) or ():
                    working = asyncio.create_task(self._work(work, *taken))
                    running.add(working)
                    working.add_done_callback(running.discard)
            if running:
                # Do not use `gather`, which propagates cancellation; a second one would interrupt releasing a task.
                await asyncio.wait(running)
        finally:
            for working in running:
                working.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _before_stop(self, step: Coroutine[Any, Any, _T]) -> _T | None:
        """Return a step's result, or `None` if `stop` is called first. An ID read at that moment is reclaimed later."""
        done = asyncio.create_task(step)
        both = (done, asyncio.create_task(self._stop.wait()))
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return done.result() if done.done() else None
        finally:
            for each in both:
                each.cancel()
            await asyncio.wait(both)

    async def _next(self) -> list[tuple[bytes, str]]:
        try:
            taken = await self._stream.receive()
        except (RedisError, OSError) as error:
            if not self._is_unreachable:
                log().warning("tasks cannot be read from Redis: %s", error)
            self._is_unreachable = True
            await asyncio.sleep(_RETRY_INTERVAL)
            return []
        self._is_unreachable = False
        return taken

    async def _work(self, work: TaskWork, place: bytes, task: str) -> None:
        """Run one task. If the task does not finish, Redis delivers the task's ID again."""
        try:
            if await work(task):
                await self._stream.remove(place)
        except StateLost:
            return
        except RedisError as error:
            log().warning("the ID of a finished task could not be removed from Redis yet: %s", error)
        except Exception:  # noqa: BLE001 - other tasks continue
            log().exception("a task could not be run")
