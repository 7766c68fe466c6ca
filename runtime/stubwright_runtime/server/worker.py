"""Worker processes, which run tasks but serve no requests."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, Self

from ..observability.logs import log
from .execution.event_loop import run_loop
from .execution.signals import handle_stop_signals, stop_at_end_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .app.core import Core


UNTIL_EOF: Final = "--until-end-of-input"
"""The option that stops a worker when its standard input closes, as when the parent process exits."""

_RESTART_DELAY: Final = 1.0
"""Seconds after which a worker that exited is restarted."""

_MARGIN: Final = 5.0
"""Seconds between the end of the tasks' grace period and killing the workers."""


def work(core: Core, grace: float, *, until_eof: bool = False) -> None:
    """Run a server's tasks until SIGINT, SIGTERM, SIGHUP or SIGBREAK arrives, or until standard input closes.

    With `until_eof`, the process is killed if it does not stop within `grace` seconds, plus a margin.
    """
    run_loop(_work(core, grace, until_eof))


async def _work(core: Core, grace: float, until_eof: bool) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    with handle_stop_signals(loop, lambda _: stop.set()):
        if until_eof:
            stop_at_end_of(sys.stdin.fileno(), grace + _MARGIN)
        await _run_tasks(core, stop)


async def _run_tasks(core: Core, stop: asyncio.Event) -> None:
    async with core.lifespan():
        log().info("running tasks for %s", core.package.manifest["server"]["name"])
        await stop.wait()
        core.stop()
        log().info("draining: starting no new tasks; waiting for running tasks")


class Workers:
    """Worker processes that run during a block and are restarted if they exit."""

    def __init__(self, number: int, arguments: Sequence[str], grace: float) -> None:
        """Create a pool that starts its processes when the block is entered.

        Args:
            number: The number of worker processes.
            arguments: The arguments of the Python executable.
            grace: The grace period for running tasks, in seconds.
        """
        self._patience = grace + _MARGIN
        self._arguments = [sys.executable, *arguments, UNTIL_EOF]
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=copy_context().run, args=(self._run_process,), daemon=True) for _ in range(number)
        ]
        self._processes: set[subprocess.Popen[bytes]] = set()

    def __enter__(self) -> Self:
        """Start the processes."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the processes, and kill slow ones. Tasks of killed processes then run in other processes."""
        self._stopped.set()
        for process in [*self._processes]:
            process.terminate()
        deadline = time.monotonic() + self._patience
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for process in [*self._processes]:
            log().warning("a worker did not exit within %.0f s; killing it", self._patience)
            process.kill()

    def _run_process(self) -> None:
        while not self._stopped.is_set():
            # The worker's output goes to standard error, because standard output may carry MCP messages.
            with subprocess.Popen(self._arguments, stdin=subprocess.PIPE, stdout=sys.stderr.fileno()) as process:
                self._processes.add(process)
                # `__exit__` may have stopped the other processes before this one was added.
                if self._stopped.is_set():
                    process.terminate()
                status = process.wait()
                self._processes.discard(process)
            if self._stopped.is_set():
                if status not in (0, -signal.SIGTERM):  # SIGTERM kills a worker that has not installed its handler
                    log().warning("a worker exited with status %d during shutdown", status)
            else:
                log().warning("a worker exited with status %d; restarting it", status)
                self._stopped.wait(_RESTART_DELAY)
