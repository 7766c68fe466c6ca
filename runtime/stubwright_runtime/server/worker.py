"""Processes that work at tasks and serve no requests.

`Workers` starts such processes next to a server, and starts those again that die.
"""

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
from .execution.signals import handle_stop_signals, stop_at_end_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .app.core import Core


UNTIL_EOF: Final = "--until-end-of-input"
"""The option of a process that ends with its parent, whose death closes its standard input."""

_RESTART_DELAY: Final = 1.0
"""Seconds before a process that died is started again."""

_MARGIN: Final = 5.0
"""Seconds that processes may take to end after their tasks; then they are killed."""


def work(core: Core, *, until_eof: bool = False) -> None:
    """Work at a server's tasks until SIGINT, SIGTERM, SIGHUP or SIGBREAK, or the end of standard input."""
    asyncio.run(_work(core, until_eof))


async def _work(core: Core, until_eof: bool) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    with handle_stop_signals(loop, lambda _: stop.set()):
        if until_eof:
            stop_at_end_of(sys.stdin.fileno())
        await _run_tasks(core, stop)


async def _run_tasks(core: Core, stop: asyncio.Event) -> None:
    async with core.lifespan():
        log().info("working at tasks of %s", core.package.manifest["server"]["name"])
        await stop.wait()
        core.stop()
        log().info("no more tasks are begun; those under way may end")


class Workers:
    """Processes that run tasks, for the length of a block."""

    def __init__(self, number: int, arguments: Sequence[str], grace: float) -> None:
        """Prepare the processes.

        Args:
            number: How many.
            arguments: Their command line after Python's own arguments.
            grace: Seconds that their tasks may take to end.
        """
        self._patience = grace + _MARGIN
        self._arguments = [sys.executable, *arguments, UNTIL_EOF]
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=copy_context().run, args=(self._keep,), daemon=True) for _ in range(number)
        ]
        self._processes: set[subprocess.Popen[bytes]] = set()

    def __enter__(self) -> Self:
        """Start them."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the processes, and wait for their running tasks; kill slow ones, whose tasks run elsewhere."""
        self._over.set()
        for process in [*self._processes]:
            process.terminate()
        deadline = time.monotonic() + self._patience
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for process in [*self._processes]:
            log().warning("a process that works at tasks did not end in %.0f s and is killed", self._patience)
            process.kill()

    def _keep(self) -> None:
        """Run one process, again and again, until the block ends."""
        while not self._over.is_set():
            # What a process writes is for the log: standard output may be the server's wire.
            with subprocess.Popen(self._arguments, stdin=subprocess.PIPE, stdout=sys.stderr.fileno()) as process:
                self._processes.add(process)
                # `__exit__` may have gone through the processes before this one was among them.
                if self._over.is_set():
                    process.terminate()
                status = process.wait()
                self._processes.discard(process)
            if self._over.is_set():
                if status not in (0, -signal.SIGTERM):  # the latter where it had not begun yet
                    log().warning("a process that works at tasks ended with status %d when it was stopped", status)
            else:
                log().warning("a process that works at tasks ended with status %d; another is started", status)
                self._over.wait(_RESTART_DELAY)
