"""Processes that make models, the first of which gets ready while the compiler still reads and checks.

To load the generator of models takes longer than all the rest of a run in which little has changed, and to run it takes
longer than all the rest of one in which much has. What a process fails at, this one does again, and meets the same
mistake.
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
"""A function, and its arguments; its result depends on these alone."""


class Worker:
    """A process that does one job at a time."""

    def __init__(self, *, makes_models: bool = True) -> None:
        """Start it; with `makes_models`, load the modules for models in advance."""
        self._connection, theirs = Pipe()
        self._process = Process(target=_serve, args=(theirs, self._connection, makes_models), daemon=True)
        self._process.start()
        # While this process holds the other end, too, `recv` does not end when the worker dies.
        theirs.close()
        self._is_stopped = False

    def run(self, job: Job) -> Any:
        """Do a job, and wait for its result."""
        try:
            self._connection.send(job)
            return self._connection.recv()
        except (EOFError, OSError):  # it has died
            if self._is_stopped:
                raise
            make, arguments = job
            return make(*arguments)

    def stop(self) -> None:
        """End it, whatever it does."""
        self._is_stopped = True
        self._process.kill()
        self._process.join()


class Workers:
    """As many workers as there is work for, and processors."""

    def __init__(self) -> None:
        """Start the first one."""
        self._workers = [Worker()]
        self._threads: ThreadPoolExecutor | None = None

    def begin(self, jobs: Sequence[Job], most: int) -> Callable[[], list[Any]]:
        """Start jobs, and return a function that waits for their results, in order; call it before you start others.

        Args:
            jobs: The jobs, which are started in this order.
            most: The maximum number of workers, if there are enough processors.
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

        self._threads = ThreadPoolExecutor(len(self._workers))  # a thread waits for each worker
        begun = [self._threads.submit(run, job) for job in jobs]
        return lambda: [each.result() for each in begun]

    def stop(self) -> None:
        """End all, whatever they do."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.stop()


@contextmanager
def run_workers() -> Iterator[Workers | None]:
    """Yield workers for the length of a block; None if they could save no time."""
    workers_started = Workers() if is_worthwhile() else None
    try:
        yield workers_started
    finally:
        if workers_started is not None:
            workers_started.stop()


def is_worthwhile() -> bool:
    """Return whether workers can save time: there is a processor for one, and something to load."""
    return (os.cpu_count() or 1) > 1 and "datamodel_code_generator" not in sys.modules


def run_parallel(jobs: Sequence[Job], workers: Workers | None) -> list[Any]:
    """Do jobs in other processes, in these or in a new one, and wait for their results, in the order of the jobs."""
    if workers is not None:
        return workers.begin(jobs, len(jobs))()
    worker = Worker(makes_models=False)
    try:
        return [worker.run(job) for job in jobs]
    finally:
        worker.stop()


def _serve(connection: Connection, other: Connection, makes_models: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    other.close()  # otherwise this process would keep its own connection open when the first one is gone
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # they take a look at all that is installed
    # A job that fails ends this process. `Worker.run` then does it in the first one, where the error is seen.
    with suppress(Exception):
        if makes_models:
            from stubwright.codegen.models import datamodel

            datamodel.load()
        # Loaded modules live until the end, so later collections can skip them.
        gc.freeze()
        while True:
            make, arguments = connection.recv()
            connection.send(make(*arguments))
            gc.collect()  # models, and what writes them, hold each other
