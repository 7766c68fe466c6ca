"""A task engine on Redis, with Celery: each task is a message in a queue, visible in Celery's monitors.

CELERY_BROKER_URL is the queue's Redis. This file's folder must be on PYTHONPATH:

    pip install "celery[redis]"
    export CELERY_BROKER_URL=redis://127.0.0.1:6379/1
    python -m shop_mcp --http 127.0.0.1:8000 --state redis://127.0.0.1:6379 --tasks celery_engine:Engine

A message is JSON with one argument, the task ID; nothing is unpickled. The task is in the Redis in `--state`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from celery import Celery
from celery.worker import state

if TYPE_CHECKING:
    from stubwright_runtime import TaskWork

RETRY, DEAD = 4, 10  # seconds before a task that runs elsewhere is checked again; before a dead process loses a message

app = Celery("stubwright", broker=os.environ["CELERY_BROKER_URL"])
app.set_default()  # for retries, which Celery sends from its threads
app.conf.update(accept_content=["json"], task_ignore_result=True, task_acks_late=True, worker_pool="threads")
app.conf.update(worker_concurrency=64, worker_prefetch_multiplier=1)  # the server runs up to 32 of these, in turns
restore = {"visibility_timeout": DEAD, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}
# The timeout applies to all queues with the same prefix.
app.conf.broker_transport_options = {**restore, "global_keyprefix": "stubwright-celery:", "socket_timeout": 5}
retries = {"autoretry_for": [Exception], "max_retries": None, "default_retry_delay": RETRY, "typing": False}


class Engine:
    """One server's messages."""

    def __init__(self, server: str) -> None:
        self._queue = f"stubwright-{server}"
        self._job: Any = app.task(name=self._queue, **retries)(self._run)
        self._begin: Callable[[str], Future[bool]]
        self._running: set[Future[bool]] = set()

    async def submit(self, task: str) -> None:
        await asyncio.to_thread(self._job.apply_async, (task,), queue=self._queue, retry=False)

    @asynccontextmanager
    async def run(self, work: TaskWork | None, grace: float) -> AsyncGenerator[None, None]:
        if work is None:
            yield
            return
        loop, state.should_stop = asyncio.get_running_loop(), None
        self._begin = lambda task: asyncio.run_coroutine_threadsafe(work(task), loop)
        controller = app.WorkController(queues=[self._queue], without_mingle=True, without_gossip=True)
        (worker := threading.Thread(target=controller.start, daemon=True)).start()
        try:
            yield
        finally:
            self.stop()
            await asyncio.to_thread(worker.join, grace)
            for running in tuple(self._running):
                running.cancel()
            await asyncio.to_thread(worker.join, RETRY)

    def stop(self) -> None:
        state.should_stop = 0  # Celery then waits for running messages

    def _run(self, task: str) -> None:
        """Run a task in the server's event loop; Celery calls this in a thread."""
        self._running.add(running := self._begin(task))
        try:
            if not running.result():
                raise RuntimeError("the task runs elsewhere, or the server stops; it is tried again")
        finally:
            self._running.discard(running)
