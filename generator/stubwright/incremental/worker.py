"""Runs jobs in worker processes; the first one starts while the compiler still reads and checks.

With few changes, loading the model generator takes longer than the rest of a run; with many changes, running it does.
A job that fails in a worker is repeated in this process, which raises its error.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, TypeAlias

Job: TypeAlias = tuple[Callable[..., Any], Sequence[Any]]
"""A function and its arguments; its result must depend only on these."""


class Worker:
    """A process that runs one job at a time."""

    def __init__(self, *, makes_models: bool = True) -> None:
        """Start the process; with `makes_models`, load the model generator in advance."""
        self._connection, theirs = Pipe()
        self._process = Process(target=_serve, args=(theirs, self._connection, makes_models), daemon=True)
        self._process.start()
        # Close the other end here; otherwise `recv` would block forever if the worker dies.
        theirs.close()
        self._is_stopped = False

    def run(self, job: Job) -> Any:
        """Run a job and wait for its result."""
        try:
            self._connection.send(job)
            return self._connection.recv()
        except (EOFError, OSError):  # the worker has died
            if self._is_stopped:
                raise
            make, arguments = job
            return make(*arguments)

    def stop(self) -> None:
        """Kill the worker."""
        self._is_stopped = True
        self._process.kill()
        self._process.join()


class Workers:
    """A pool of workers, limited by the number of jobs and processors."""

    def __init__(self) -> None:
        """Start the first worker."""
        self._workers = [Worker()]
        self._threads: ThreadPoolExecutor | None = None

    def begin(self, jobs: Sequence[Job], most: int) -> Callable[[], list[Any]]:
        """Start jobs and return a function that waits for the results. Call the function before starting other jobs.

        Args:
            jobs: The jobs, started in this order.
            most: The maximum number of workers, which the number of processors also limits.
        """
        while len(self._workers) < min(most, os.cpu_count() or 1):
            self._workers.append(Worker())
        idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._workers:
            idle.put(worker)

        def run(job: Job) -> Any:
            worker = idle.get()
            try:
                return worker.run(job)
            finally:
                idle.put(worker)

        self._threads = ThreadPoolExecutor(len(self._workers))  # one thread waits for each worker
        begun = [self._threads.submit(run, job) for job in jobs]
        return lambda: [each.result() for each in begun]

    def stop(self) -> None:
        """Kill all workers."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.stop()


@contextmanager
def run_workers() -> Iterator[Workers | None]:
    """Yield workers for a block, or None if they could not save time."""
    workers_started = Workers() if is_worthwhile() else None
    try:
        yield workers_started
    finally:
        if workers_started is not None:
            workers_started.stop()


def is_worthwhile() -> bool:
    """Return whether workers can save time: more than one processor, and the generator is not loaded yet."""
    return (os.cpu_count() or 1) > 1 and "datamodel_code_generator" not in sys.modules


def run_parallel(jobs: Sequence[Job], workers: Workers | None) -> list[Any]:
    """Run jobs in workers, or in a new process, and return their results in order."""
    if workers is not None:
        return workers.begin(jobs, len(jobs))()
    worker = Worker(makes_models=False)
    try:
        return [worker.run(job) for job in jobs]
    finally:
        worker.stop()


def _serve(connection: Connection, other: Connection, makes_models: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process kills this one
    other.close()  # otherwise, this process would keep its own connection open after the parent exits
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # they scan all installed packages
    # A failing job terminates this process. `Worker.run` then repeats it in the parent process, which raises the error.
    with suppress(Exception):
        if makes_models:
            from stubwright.codegen.models import datamodel

            datamodel.load()
        # Loaded modules are never freed, so later collections can skip them.
        gc.freeze()
        while True:
            make, arguments = connection.recv()
            connection.send(make(*arguments))
            gc.collect()  # models and their generator form reference cycles
