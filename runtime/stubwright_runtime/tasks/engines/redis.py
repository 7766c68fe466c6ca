"""The engine on a stream of Redis, for all processes with one store: taskiq, with what it leaves to chance made sure.

Takes ids of tasks; they wait in Redis, and whichever process is free works at them. An id is all that lies there: who
can write to Redis chooses no function and no argument. What was given to a process that then died is given to another.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import RedisError
from taskiq import AckableMessage, Context, TaskiqDepends
from taskiq.abc.formatter import TaskiqFormatter
from taskiq.acks import AcknowledgeType
from taskiq.message import BrokerMessage, TaskiqMessage
from taskiq.receiver import Receiver
from taskiq_redis import RedisStreamBroker

from ...observability.logs import log
from ...state.store import StateLost

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ...state.store import Store
    from .base import Work


SLOTS: Final = 32
"""Tasks that one process works at, at most."""

IDLE: Final = 4000
"""Milliseconds after which an id that was given out and is not done with is given to somebody else, too.

Who is at work on a task has a lease on it, so that it is not run twice for that.
"""

_BLOCK: Final = 1000
"""Milliseconds of one wait for an id; it must be shorter than a connection waits for an answer."""

_RETRY_INTERVAL: Final = 1.0
"""Seconds between two attempts to reach Redis."""

_CANCEL_TIMEOUT: Final = 3.0
"""Seconds for what is cancelled to end, longer than a wait for an id."""

_RUN: Final = "run"
_ID: Final = re.compile(rb"[A-Za-z0-9_-]{16,64}")
_Entry: TypeAlias = tuple[bytes, dict[bytes, bytes] | None]


class _IdFormatter(TaskiqFormatter):
    """A message is the id of a task and nothing else."""

    def dumps(self, message: TaskiqMessage) -> BrokerMessage:
        return _make_message(message.task_id)

    def loads(self, message: bytes) -> TaskiqMessage:
        return TaskiqMessage(task_id=message.decode(), task_name=_RUN, labels={}, args=[], kwargs={})


class _Stream(RedisStreamBroker):
    """taskiq's broker: here it gives out again also while nothing new comes, outlives Redis, and keeps nothing done.

    Attributes:
        stop: Ends what `listen` gives. Cancelling alone does not: `asyncio.wait_for` before Python 3.12, with which the
            library sends, can lose a cancellation, and waiting for the end of `listen` would take forever.
    """

    stop: asyncio.Event

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        async with Redis(connection_pool=self.connection_pool) as redis:
            is_away = False
            while not self.stop.is_set():
                try:
                    await self._declare_consumer_group()  # also after a failure: Redis may have lost all
                    is_away = False
                    async for entry, fields in self._entries(redis):
                        data = (fields or {}).get(b"data", b"")
                        done = self._ack_generator(entry.decode(), self.queue_name)
                        if _ID.fullmatch(data):
                            yield AckableMessage(data=data, ack=done)
                        else:
                            log().warning("dropped an entry that is not the id of a task")
                            await done()
                except (RedisError, OSError) as error:
                    if not is_away:
                        log().warning("tasks cannot be taken from Redis: %s", error)
                    is_away = True
                    await asyncio.sleep(_RETRY_INTERVAL)

    async def _entries(self, redis: Redis) -> AsyncGenerator[_Entry, None]:
        """Yield new entries, and now and then those that were given out long ago, looked through step by step."""
        clock, group, me = asyncio.get_running_loop().time, self.consumer_group_name, self.consumer_name
        cursor, look = b"0-0", 0.0
        while not self.stop.is_set():
            if clock() >= look:
                cursor, idle, _ = await redis.xautoclaim(self.queue_name, group, me, self.idle_timeout, cursor, count=1)
                for entry in idle:
                    yield entry
                if cursor == b"0-0":
                    look = clock() + self.idle_timeout / 4000
            wait = self.block if cursor == b"0-0" else None
            read = await redis.xreadgroup(group, me, {self.queue_name: ">"}, count=1, block=wait)
            for entries in cast("dict[bytes, list[_Entry]]", read).values():
                for entry in entries:
                    yield entry

    def _ack_generator(self, id: str, queue_name: str) -> Callable[[], Awaitable[None]]:
        async def done() -> None:
            async with Redis(connection_pool=self.connection_pool) as redis, redis.pipeline(transaction=True) as steps:
                steps.xack(queue_name, self.consumer_group_name, id)
                steps.xdel(queue_name, id)
                await steps.execute()

        return done


class StreamEngine:
    """Works at tasks that wait in Redis."""

    def __init__(self, store: Store, *, slots: int = SLOTS, idle: int = IDLE) -> None:
        """Take where they wait.

        Args:
            store: The store in whose Redis they are.
            slots: How many tasks this process works at, at most.
            idle: See `IDLE`.
        """
        self.grace = 5.0
        self._store = store
        self._slots = slots
        self._stop = asyncio.Event()
        self._broker = _Stream(
            "redis://",
            queue_name=f"{store.prefix}:tasks",
            consumer_group_name="workers",
            consumer_name="worker",  # one name for all: what is given out again goes by its age alone
            consumer_id="0",  # also what came before the first process that works at tasks
            xread_block=_BLOCK,
            xread_count=1,
            idle_timeout=idle,
        )
        options: dict[str, Any] = {
            **store.pool.connection_kwargs,
            "retry": Retry(ExponentialBackoff(cap=0.5, base=0.05), 3),
            "legacy_responses": False,
        }
        self._broker.connection_pool = BlockingConnectionPool(
            connection_class=store.pool.connection_class,
            max_connections=slots + 8,
            timeout=store.pool.timeout,
            **options,
        )
        self._broker.formatter = _IdFormatter()
        logging.getLogger("taskiq").setLevel(
            logging.CRITICAL
        )  # it logs ids, messages whole, and each task that is stopped

    async def submit(self, task: str) -> None:
        """See the protocol."""
        async with self._store.exchange(writes=True):
            await self._broker.kick(_make_message(task))

    def stop(self) -> None:
        """See the protocol."""
        self._stop.set()

    @asynccontextmanager
    async def run(self, work: Work) -> AsyncGenerator[None, None]:
        """See the protocol."""
        self._stop = self._broker.stop = asyncio.Event()
        taker = asyncio.create_task(self._take(work))
        try:
            yield
        finally:
            self._stop.set()
            await asyncio.wait([taker], timeout=self.grace)
            taker.cancel()
            if (await asyncio.wait([taker], timeout=_CANCEL_TIMEOUT))[1]:
                log().warning("a task does not end although it is cancelled; it is left behind")
            await self._broker.connection_pool.disconnect()

    async def _take(self, work: Work) -> None:
        under_way: set[asyncio.Future[bool]] = set()

        async def run_task(context: Annotated[Context, TaskiqDepends()]) -> None:
            work_future = asyncio.ensure_future(work(context.message.task_id))
            under_way.add(work_future)
            work_future.add_done_callback(under_way.discard)
            try:
                is_done = await work_future
            except StateLost:
                return  # it is given out again
            except Exception:  # noqa: BLE001 - likewise, and taskiq goes on
                log().exception("a task could not be worked at")
                return
            if is_done:
                await context.ack()

        self._broker.register_task(run_task, task_name=_RUN)
        receiver = Receiver(
            self._broker,
            max_async_tasks=self._slots,
            max_prefetch=0,  # so that nothing waits in this process that another one could work at
            run_startup=False,  # it would fail without Redis; `listen` does what it does
            ack_type=AcknowledgeType.MANUAL,
            validate_params=False,
        )
        try:
            await receiver.listen(self._stop)
        finally:
            futures: list[Any] = [*under_way]
            for work_future in futures:
                work_future.cancel()
            await asyncio.gather(*futures, return_exceptions=True)


def _make_message(task: str) -> BrokerMessage:
    return BrokerMessage(task_id=task, task_name=_RUN, message=task.encode(), labels={})
