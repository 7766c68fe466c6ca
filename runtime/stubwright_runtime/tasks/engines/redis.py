"""The engine on a stream of Redis, for all processes with one store.

The stream contains only ids, so writers to Redis choose no function and no arguments. Tasks of a process that died go
to another process.
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


MAX_TAKEN: Final = 1000
"""The most ids that one process has taken and is not done with; most of them wait for their turn."""

IDLE: Final = 4000
"""Milliseconds after which an id that was given out and is not done with is given to another program, too.

Who is at work on a task has a lease on it, so that it is not run twice for that.
"""

_GROUP: Final = "workers"
_WORKER: Final = "worker"
"""One consumer name for all processes: redelivery depends only on age."""

_BLOCK: Final = 1000
"""Milliseconds of one wait for an id; it must be shorter than a connection waits for an answer."""

_LOOKS: Final = 4
"""The number of looks for ids that were given out long ago, within the time after which they count as such."""

_BATCH: Final = 100
"""The most ids that are taken over in one step from processes that took them long ago."""

_CONNECTIONS: Final = 40
"""The most connections of one process for its ids; an exchange that needs another waits."""

_RETRY_INTERVAL: Final = 1.0
"""Seconds between two attempts to reach Redis."""

_CANCEL_TIMEOUT: Final = 3.0
"""Seconds for cancelled tasks to end, longer than a wait for an id."""

_ID: Final = re.compile(rb"[A-Za-z0-9_-]{16,64}")
_T = TypeVar("_T")


class _Entry(NamedTuple):
    """An entry of the stream: its place, and its fields, if they are still there."""

    place: bytes
    fields: dict[bytes, bytes] | None


class _Stream:
    """The waiting ids and the delivered ids."""

    def __init__(self, redis: Redis, key: str, idle: int) -> None:
        """Take the stream's key, and the milliseconds after which an id is given out again."""
        self._redis = redis
        self._key = key
        self._idle = idle
        self._has_group = False
        self._cursor, self._next_look = b"0-0", 0.0

    async def add(self, task: str) -> None:
        """Enqueue an id."""
        await self._redis.xadd(self._key, {b"data": task.encode()})

    async def take(self) -> list[tuple[bytes, str]]:
        """Return ids with their places; none if there were none for a while.

        Raises:
            RedisError: Redis cannot be reached.
            OSError: Likewise.
        """
        try:
            if not self._has_group:
                await self._make_group()
            entries = await self._claim() or await self._read()
        except (RedisError, OSError):
            self._has_group = False  # Redis may have lost all
            raise
        taken: list[tuple[bytes, str]] = []
        for entry in entries:
            data = (entry.fields or {}).get(b"data", b"")
            if _ID.fullmatch(data):
                taken.append((entry.place, data.decode()))
            else:
                log().warning("dropped an entry that is not the id of a task")
                await self.forget(entry.place)
        return taken

    async def forget(self, place: bytes) -> None:
        """Delete an id."""
        async with self._redis.pipeline(transaction=True) as steps:
            steps.xack(self._key, _GROUP, place)
            steps.xdel(self._key, place)
            await steps.execute()

    async def _make_group(self) -> None:
        try:
            await self._redis.xgroup_create(self._key, _GROUP, id="0", mkstream=True)  # also what came before
        except ResponseError as error:
            # Another process has made the group.
            if not str(error).startswith("BUSYGROUP"):
                raise
        self._has_group = True

    async def _claim(self) -> list[_Entry]:
        """Return some that were given out long ago; they are looked through step by step, now and then."""
        clock = asyncio.get_running_loop().time
        if clock() < self._next_look:
            return []
        self._cursor, idle, _ = await self._redis.xautoclaim(
            self._key, _GROUP, _WORKER, self._idle, self._cursor, count=_BATCH
        )
        # XAUTOCLAIM has been through the whole list.
        if self._cursor == b"0-0":
            self._next_look = clock() + self._idle / _LOOKS / 1000
        return [_Entry(*entry) for entry in idle]

    async def _read(self) -> list[_Entry]:
        """Return a new one; wait for it, unless there is more to look through."""
        wait = _BLOCK if self._cursor == b"0-0" else None
        read = await self._redis.xreadgroup(_GROUP, _WORKER, {self._key: ">"}, count=1, block=wait)
        streams = cast("dict[bytes, list[tuple[bytes, dict[bytes, bytes]]]]", read)
        return [_Entry(*entry) for entries in streams.values() for entry in entries]


class StreamEngine:
    """Works at tasks that wait in Redis."""

    def __init__(self, store: Store, *, idle: int = IDLE) -> None:
        """Take the store of the stream.

        Args:
            store: The store whose Redis has the stream.
            idle: See `IDLE`.
        """
        self._store = store
        self._stop = asyncio.Event()
        self._is_away = False
        # Unlike the store, this may send a command twice: a task whose id waits twice runs once, by its lease.
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
        taker = None if work is None else asyncio.create_task(self._take(work))
        try:
            yield
        finally:
            self._stop.set()
            if taker is not None:
                await asyncio.wait([taker], timeout=grace)
                taker.cancel()
                if (await asyncio.wait([taker], timeout=_CANCEL_TIMEOUT))[1]:
                    log().warning("a task does not end although it was cancelled; it is abandoned")
            await self._pool.disconnect()

    async def _take(self, work: TaskWork) -> None:
        """Work at tasks until the stop, and until those under way have ended."""
        under_way: set[asyncio.Task[None]] = set()
        try:
            while not self._stop.is_set():
                if len(under_way) >= MAX_TAKEN:  # what waits in Redis can be taken by others
                    await self._before_stop(asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED))
                    continue
                for taken in await self._before_stop(self._next()) or ():
                    working = asyncio.create_task(self._work(work, *taken))
                    under_way.add(working)
                    working.add_done_callback(under_way.discard)
            if under_way:
                # Not `gather`, which passes a cancellation on: a second one would break off the handing back of a task.
                await asyncio.wait(under_way)
        finally:
            for working in under_way:
                working.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _before_stop(self, step: Coroutine[Any, Any, _T]) -> _T | None:
        """Return the result of a step; `None` if the stop comes first; an id on its way is given out again later."""
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
            taken = await self._stream.take()
        except (RedisError, OSError) as error:
            if not self._is_away:
                log().warning("tasks cannot be taken from Redis: %s", error)
            self._is_away = True
            await asyncio.sleep(_RETRY_INTERVAL)
            return []
        self._is_away = False
        return taken

    async def _work(self, work: TaskWork, place: bytes, task: str) -> None:
        """Run one task; an unfinished task is delivered again."""
        try:
            if await work(task):
                await self._stream.forget(place)
        except StateLost:
            return
        except RedisError as error:
            log().warning("a task that has ended stays in Redis for a while: %s", error)
        except Exception:  # noqa: BLE001 - one task that cannot be worked at stops no other
            log().exception("a task could not be worked at")
