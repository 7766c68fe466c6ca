"""A task engine on PostgreSQL, with Procrastinate: each task is a job in a queue, with retries and a history.

The libpq variables (PGHOST, PGUSER, PGDATABASE, …) select the database. This file's folder must be on PYTHONPATH:

    pip install procrastinate "psycopg[binary]"
    procrastinate --app procrastinate_engine.app schema --apply
    python -m shop_mcp --http 127.0.0.1:8000 --state redis://127.0.0.1:6379 --tasks procrastinate_engine:Engine

A job has one argument, the task ID. The task itself is in the Redis in `--state`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from procrastinate import App, PsycopgConnector, RetryStrategy
from procrastinate.exceptions import ConnectorException

if TYPE_CHECKING:
    from stubwright_runtime import TaskWork

SLOTS = 64  # the server runs up to 32 of these, taking turns by tool
RETRY = 4  # seconds before a task that runs elsewhere is checked again
HEARTBEAT, DEAD = 2, 10  # seconds between a process's heartbeats, and before its jobs move to another process

app = App(connector=PsycopgConnector())


class Engine:
    """One server's jobs."""

    def __init__(self, server: str) -> None:
        self._queue = f"stubwright-{server}"
        self._work: TaskWork | None = None
        self._serving: list[asyncio.Task[None]] = []
        self._job = app.task(name=self._queue, queue=self._queue, retry=RetryStrategy(wait=RETRY))(self._run)

    async def submit(self, task: str) -> None:
        await self._job.defer_async(task=task)

    @asynccontextmanager
    async def run(self, work: TaskWork | None, grace: float) -> AsyncGenerator[None, None]:
        self._work = work
        async with app.open_async():
            if work is not None:
                self._serving = [asyncio.create_task(self._serve(grace)), asyncio.create_task(self._rescue())]
            try:
                yield
            finally:
                self.stop()
                await asyncio.gather(*self._serving, return_exceptions=True)

    def stop(self) -> None:
        for serving in self._serving:
            serving.cancel()  # Procrastinate then waits for running jobs, up to its graceful timeout

    async def _run(self, *, task: str) -> None:
        if self._work is None or not await self._work(task):
            raise RuntimeError("the task runs elsewhere, or the server stops; the job is tried again")

    async def _serve(self, grace: float) -> None:
        while True:
            try:
                await app.run_worker_async(
                    queues=[self._queue],
                    concurrency=SLOTS,
                    delete_jobs="successful",
                    shutdown_graceful_timeout=grace,
                    update_heartbeat_interval=HEARTBEAT,
                    stalled_worker_timeout=DEAD,
                    install_signal_handlers=False,  # the server has its own
                )
            except ConnectorException as error:
                logging.warning("jobs cannot be taken from PostgreSQL: %s", error)
            await asyncio.sleep(1)

    async def _rescue(self) -> None:
        """Retry jobs whose processes died. Procrastinate does not do this itself."""
        while True:
            try:
                for job in await app.job_manager.get_stalled_jobs(queue=self._queue, seconds_since_heartbeat=DEAD):
                    await app.job_manager.retry_job(job)
            except ConnectorException as error:
                logging.warning("jobs of dead processes cannot be retried: %s", error)
            await asyncio.sleep(HEARTBEAT)
