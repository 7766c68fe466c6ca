"""Processes that tests start: they heed SIGINT, and nothing waits for one of them for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE = 300
"""Seconds after which a process is killed, which ends all that waits for it or reads what it says."""


def heed_interrupts() -> None:
    """Take SIGINT as usual where a shell ignores it, as it does for jobs in the background; children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def running(command: Sequence[str], patience: float = PATIENCE, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process, started as `subprocess.Popen` does, which is gone after the block, with the others of its session."""
    with subprocess.Popen(command, **options) as process:

        def kill() -> None:
            process.kill()
            if options.get("start_new_session"):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

        end = threading.Timer(patience, kill)
        end.daemon = True
        end.start()
        try:
            yield process
        finally:
            end.cancel()
            kill()


def is_alive(process: int) -> bool:
    """Return whether a process runs. One that has ended keeps its number until somebody reads how."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def await_end(process: int, patience: float = 10) -> None:
    """Wait until a process has ended, of which the system learns a moment later than whoever ended it."""
    end = time.monotonic() + patience
    while is_alive(process):
        assert time.monotonic() < end, f"the process {process} still runs"
        time.sleep(0.01)
