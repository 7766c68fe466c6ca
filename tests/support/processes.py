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

_MARK = "STUBWRIGHT_TEST_RUN"


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


def mark_run() -> str:
    """Set a variable of the environment that all processes of this run of pytest inherit, and return its text."""
    os.environ.setdefault(_MARK, f"{os.getpid()}-{time.time_ns()}")
    return f"{_MARK}={os.environ[_MARK]}"


def list_marked(mark: str) -> dict[int, str]:
    """Return the command lines of the other processes that inherited a variable of the environment, by process id.

    Empty where there is no `/proc`.
    """
    marked = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if int(folder.name) != os.getpid() and mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                marked[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return {process: command for process, command in marked.items() if command}  # a zombie has no command line


def list_left(mark: str, patience: float) -> list[str]:
    """Return the command lines of the processes that still run after some seconds, although a run has ended."""
    end = time.monotonic() + patience
    while (left := list_marked(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    return sorted(left.values())


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
