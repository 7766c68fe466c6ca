"""Manages processes that tests start: they handle SIGINT and SIGHUP, and have a deadline."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE = 300
"""Seconds after which a process is killed, which unblocks all waiting readers."""

_MARK = "STUBWRIGHT_TEST_RUN"
_CURRENT = b"PYTEST_CURRENT_TEST="
_TICK = 0.05  # seconds; times in `/proc` are hundredths of seconds


def heed_interrupts() -> None:
    """Let children handle SIGINT and SIGHUP, which background jobs and `nohup` ignore; children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # unlike SIG_IGN, children do not inherit a handler


@contextmanager
def start_process(
    command: Sequence[str], patience: float = PATIENCE, **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Start a process as `subprocess.Popen` does, and kill its session after the block."""
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
    """Set an environment variable that all processes in this pytest run inherit, and return its value."""
    os.environ.setdefault(_MARK, f"{os.getpid()}-{time.time_ns()}")
    return f"{_MARK}={os.environ[_MARK]}"


def list_marked(mark: str) -> dict[int, str]:
    """Return the command lines of other processes that inherited an environment variable, by process id.

    A command line is followed by the test that started the process, if pytest ran one. Processes of this process group
    that started after the time in the mark count as well, because they may have another environment. Returns an empty
    mapping without `/proc`.
    """
    marked = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            variables = (folder / "environ").read_bytes().split(b"\0")
            if int(folder.name) != os.getpid() and (mark.encode() in variables or _is_new_in_group(folder, mark)):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                tests = [each.partition(b"=")[2].decode() for each in variables if each.startswith(_CURRENT)]
                marked[int(folder.name)] = command and f"{command}{''.join(f' (started in {test})' for test in tests)}"
    return {process: command for process, command in marked.items() if command}  # a zombie has no command line


def _is_new_in_group(folder: Path, mark: str) -> bool:
    """Return whether a process of this process group started after the time at a mark's end, if any (proc(5))."""
    start = re.search(r"\d{19}\Z", mark)
    fields = (folder / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
    if start is None or int(fields[2]) != os.getpgrp():
        return False
    uptime = float(Path("/proc/uptime").read_text("ascii").split()[0])
    age = uptime - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return age < time.time() - int(start[0]) / 1e9 + _TICK


def list_left(mark: str, patience: float) -> list[str]:
    """Return the command lines of processes that are still running a few seconds after a run."""
    end = time.monotonic() + patience
    while (left := list_marked(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    return sorted(left.values())


def is_alive(process: int) -> bool:
    """Return whether a process is running. An exited process keeps its ID until its parent reads the status."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def await_end(process: int, patience: float = 10) -> None:
    """Wait until a process has exited, which the system reports with a delay."""
    end = time.monotonic() + patience
    while is_alive(process):
        assert time.monotonic() < end, f"the process {process} still runs"
        time.sleep(0.01)
