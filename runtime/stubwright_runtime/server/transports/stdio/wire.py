"""Reserves standard input and output for MCP messages.

While they are reserved, `print()` and child processes write to standard error and read an empty standard input.
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
    """The file descriptors that carry incoming and outgoing messages."""

    source: int
    sink: int


@contextmanager
def claim_stdio() -> Generator[StdioPipes, None, None]:
    """Reserve standard input and output for MCP messages during the block.

    For this process and its child processes, file descriptor 0 is then empty and 1 is standard error.
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
    """Let a thread write the output of `print()` to standard error, so that a slow reader does not block handlers."""
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
    """Return whether the event loop can read a file descriptor: a pipe or socket, but not a file or terminal."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
