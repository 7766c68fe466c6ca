"""The task engine over a Redis stream, for processes that share a store.

The stream contains only ids, so that writers to Redis cannot choose functions or arguments. Other processes reclaim the
tasks of a dead process.
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
"""The maximum number of ids that one process has claimed; most of them wait for a slot."""

IDLE: Final = 4000
"""Milliseconds after which another process may claim an unfinished id. A lease prevents that the task runs twice."""

_GROUP: Final = "workers"
_WORKER: Final = "worker"
"""One consumer name for all processes: redelivery depends only on age."""

_BLOCK: Final = 1000
"""Milliseconds of a blocking read; less than the connection's timeout."""

_LOOKS: Final = 4
"""The number of scans for idle ids per idle time."""

_BATCH: Final = 100
"""The maximum number of idle ids to claim in one step."""

_CONNECTIONS: Final = 40
"""The maximum number of connections per process."""

_RETRY_INTERVAL: Final = 1.0
"""Seconds between two attempts to reach Redis."""

_CANCEL_TIMEOUT: Final = 3.0
"""Seconds for cancelled tasks to end; longer than a blocking read."""

_ID: Final = re.compile(rb"[A-Za-z0-9_-]{16,64}")
_T = TypeVar("_T")


class _Entry(NamedTuple):
    """An entry of the stream: its id, and its fields unless it was deleted."""

    place: bytes
    fields: dict[bytes, bytes] | None


class _Stream:
    """The stream of task ids."""

    def __init__(self, redis: Redis, key: str, idle: int) -> None:
        """Use the stream with a key; ids are reclaimed after `idle` milliseconds."""
        self._redis = redis
        self._key = key
        self._idle = idle
        self._has_group = False
        self._cursor, self._next_look = b"0-0", 0.0

    async def add(self, task: str) -> None:
        """Enqueue an id."""
        await self._redis.xadd(self._key, {b"data": task.encode()})

    async def receive(self) -> list[tuple[bytes, str]]:
        """Claim or read entries, and return their places and task ids; none after a timeout.

        Raises:
            RedisError: Redis cannot be reached.
            OSError: Redis cannot be reached.
        """
        try:
            if not self._has_group:
                await self._make_group()
            entries = await self._claim() or await self._read()
        except (RedisError, OSError):
            self._has_group = False  # Redis may have lost the group
            raise
        taken: list[tuple[bytes, str]] = []
        for entry in entries:
            data = (entry.fields or {}).get(b"data", b"")
            if _ID.fullmatch(data):
                taken.append((entry.place, data.decode()))
            else:
                log().warning("dropped an entry that is not the id of a task")
                await self.remove(entry.place)
        return taken

    async def remove(self, place: bytes) -> None:
        """Delete an id."""
        async with self._redis.pipeline(transaction=True) as steps:
            steps.xack(self._key, _GROUP, place)
            steps.xdel(self._key, place)
            await steps.execute()

    async def _make_group(self) -> None:
        try:
            await self._redis.xgroup_create(self._key, _GROUP, id="0", mkstream=True)  # from the first entry on
        except ResponseError as error:
            # Another process created the group.
            if not str(error).startswith("BUSYGROUP"):
                raise
        self._has_group = True

    async def _claim(self) -> list[_Entry]:
        """Claim a batch of idle entries; the list is scanned in steps."""
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
        """Read a new entry; wait for it, unless a scan is in progress."""
        wait = _BLOCK if self._cursor == b"0-0" else None
        read = await self._redis.xreadgroup(_GROUP, _WORKER, {self._key: ">"}, count=1, block=wait)
        streams = cast("dict[bytes, list[tuple[bytes, dict[bytes, bytes]]]]", read)
        return [_Entry(*entry) for entries in streams.values() for entry in entries]


class StreamEngine:
    """Runs the tasks of a Redis stream."""

    def __init__(self, store: Store, *, idle: int = IDLE) -> None:
        """Create an engine.

        Args:
            store: The store whose Redis has the stream.
            idle: See `IDLE`.
        """
        self._store = store
        self._stop = asyncio.Event()
        self._is_unreachable = False
        # Unlike the store, this may send a command twice: by its lease, a task that is queued twice runs once.
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
        """Implement the protocol."""
        async with self._store.exchange(writes=True):
            await self._stream.add(task)

    def stop(self) -> None:
        """Implement the protocol."""
        self._stop.set()

    @asynccontextmanager
    async def run(self, work: TaskWork | None, grace: float) -> AsyncGenerator[None, None]:
        """Implement the protocol."""
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
                    log().warning("abandoning a task that does not end after its cancellation")
            await self._pool.disconnect()

    async def _consume(self, work: TaskWork) -> None:
        """Run tasks until `stop`, then wait for the running ones."""
        running: set[asyncio.Task[None]] = set()
        try:
            while not self._stop.is_set():
                if len(running) >= MAX_CLAIMED:  # leave the rest to other processes
                    await self._before_stop(asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED))
                    continue
                for taken in await self._before_stop(self._next()) or ():
                    working = asyncio.create_task(self._work(work, *taken))
                    running.add(working)
                    working.add_done_callback(running.discard)
            if running:
                # Not `gather`, which propagates cancellation: a second one would interrupt releasing a task.
                await asyncio.wait(running)
        finally:
            for working in running:
                working.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _before_stop(self, step: Coroutine[Any, Any, _T]) -> _T | None:
        """Return the result of a step; `None` if `stop` is called first. An id in transit is reclaimed later."""
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
        """Run one task; an unfinished one is delivered again."""
        try:
            if await work(task):
                await self._stream.remove(place)
        except StateLost:
            return
        except RedisError as error:
            log().warning("the id of a finished task could not yet be removed from Redis: %s", error)
        except Exception:  # noqa: BLE001 - other tasks continue
            log().exception("a task could not be run")
