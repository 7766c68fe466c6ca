"""Standard input and output, held for messages alone.

Meanwhile, `print()` and child processes write to standard error and read no input.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....observability.standard_error import BackgroundStream, open_background

if TYPE_CHECKING:
    from collections.abc import Generator

_STDIN, _STDOUT, _STDERR = 0, 1, 2


@dataclass(frozen=True, slots=True)
class StdioPipes:
    """The file descriptors that messages come in on and go out on."""

    source: int
    sink: int


@contextmanager
def claim_stdio() -> Generator[StdioPipes, None, None]:
    """Hold standard input and output for messages alone.

    Until the end of the block, file descriptor 0 is empty and 1 goes to standard error, for this process and for the
    processes that it starts.
    """
    sys.stdout.flush()
    source, sink = os.dup(_STDIN), os.dup(_STDOUT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STDIN)
    os.close(nothing)
    os.dup2(_STDERR, _STDOUT)
    try:
        with _print_in_background():
            yield StdioPipes(source, sink)
    finally:
        sys.stdout.flush()
        os.dup2(source, _STDIN)
        os.dup2(sink, _STDOUT)
        os.close(source)
        os.close(sink)


@contextmanager
def _print_in_background() -> Generator[None, None, None]:
    """Write what this process prints to standard error from a thread: handlers do not wait for a reader."""
    stdout, stderr = sys.stdout, sys.stderr
    stream = open_background()
    if not isinstance(stream, BackgroundStream):
        yield
        return
    sys.stdout = sys.stderr = stream.open_text()
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stdout, sys.stderr = stdout, stderr


def is_pipe(descriptor: int) -> bool:
    """Return whether the event loop can wait for it."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
