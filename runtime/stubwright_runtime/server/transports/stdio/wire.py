"""Standard input and output, held for messages alone: lines come in, and lines go out.

Takes the two streams of the process; gives lines as they come, and writes each line whole. Nothing else can write to
them: while they are held, `print()` and child processes write to standard error and read nothing.
"""

from __future__ import annotations

import asyncio
import io
import os
import stat
import sys
import threading
from collections import deque
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator

LONGEST: Final = 32 * 1024 * 1024
"""Bytes of the longest line that is read."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CHUNK: Final = 1 << 16  # bytes read at once
_AHEAD: Final = 64  # lines that may wait before no more is read


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was read, or the start of one that is longer than `LONGEST`."""

    data: bytes
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Wire:
    """The file descriptors that messages come in on and go out on."""

    source: int
    sink: int


@contextmanager
def hold_wire() -> Generator[Wire, None, None]:
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
        with _flush_lines():
            yield Wire(source, sink)
    finally:
        sys.stdout.flush()
        os.dup2(source, _STDIN)
        os.dup2(sink, _STDOUT)
        os.close(source)
        os.close(sink)


@contextmanager
def _flush_lines() -> Generator[None, None, None]:
    """Write out each line that is printed, as standard error does, also where both are a pipe."""
    stdout = sys.stdout
    if not isinstance(stdout, io.TextIOWrapper):
        yield
        return
    before = stdout.line_buffering
    stdout.reconfigure(line_buffering=True)
    try:
        yield
    finally:
        stdout.reconfigure(line_buffering=before)


@asynccontextmanager
async def read_lines(descriptor: int, take: Callable[[Line], bool]) -> AsyncGenerator[AsyncIterator[Line], None]:
    """Yield an iterator of incoming lines, read without a thread from a pipe, by a thread from anything else.

    Args:
        descriptor: The file descriptor to read.
        take: Takes a line at once, and tells whether it did, unless an earlier one waits; the iterator has the others.
    """
    loop = asyncio.get_running_loop()
    lines = _Lines(take)
    if not _is_pipe(descriptor):
        reader = _ThreadReader(descriptor, lines, loop)
        try:
            yield lines.read_waiting()
        finally:
            reader.close()
        return
    pipe = os.fdopen(descriptor, "rb", 0, closefd=False)
    transport, _ = await loop.connect_read_pipe(lambda: lines, pipe)
    try:
        yield lines.read_waiting()
    finally:
        transport.close()
        # The flag belongs to the open file, which the process that started this one shares.
        os.set_blocking(descriptor, True)


class _ThreadReader(asyncio.ReadTransport):
    """A thread that reads a file or a terminal, which only a thread can wait for.

    It reads no further before the event loop has taken the chunk before, and while the loop wants no more.
    """

    def __init__(self, descriptor: int, lines: _Lines, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread."""
        super().__init__()
        self._descriptor = descriptor
        self._lines = lines
        self._loop = loop
        self._may_read = threading.Event()
        self._is_paused = False
        self._is_closed = False
        lines.connection_made(self)
        threading.Thread(target=self._pump, daemon=True).start()

    def pause_reading(self) -> None:
        """Read no more."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Read on."""
        self._is_paused = False
        self._may_read.set()

    def close(self) -> None:
        """End the thread, after a read under way: that of a terminal cannot be broken off."""
        self._is_closed = True
        self.resume_reading()

    def _pump(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, and does not read any more
            while not self._is_closed and (chunk := os.read(self._descriptor, _CHUNK)):
                self._may_read.clear()
                self._loop.call_soon_threadsafe(self._take, chunk)
                self._may_read.wait()
            self._loop.call_soon_threadsafe(self._lines.connection_lost, None)

    def _take(self, chunk: bytes) -> None:
        """Take a chunk, in the event loop."""
        self._lines.data_received(chunk)
        if not self._is_paused:
            self._may_read.set()


class _Lines(asyncio.Protocol):
    """The lines of incoming bytes. Only the start of a line that is too long is kept."""

    def __init__(self, take: Callable[[Line], bool]) -> None:
        self._take = take
        self._rest = bytearray()
        self._is_skipping = False
        self._waiting: deque[Line] = deque()
        self._is_busy = False
        self._is_over = False
        self._woken = asyncio.Event()
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.ReadTransport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        rest = self._rest
        # A long line in many pieces would take quadratic time if it were searched from its start.
        searched = len(rest)
        rest += data
        while (end := rest.find(b"\n", searched)) >= 0:
            self._give(Line(bytes(rest[:_CHUNK]), is_whole=False) if self._is_skipping else Line(bytes(rest[:end])))
            del rest[: end + 1]
            searched, self._is_skipping = 0, False
        if len(rest) > LONGEST or self._is_skipping:
            self._is_skipping = True
            del rest[_CHUNK:]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio names it
        if self._rest:
            self._give(Line(bytes(self._rest), is_whole=not self._is_skipping))
        self._is_over = True
        self._woken.set()

    def _give(self, line: Line) -> None:
        """Have a line taken at once, unless one before it waits."""
        if not self._waiting and not self._is_busy and self._take(line):
            return
        self._waiting.append(line)
        self._woken.set()
        if len(self._waiting) == _AHEAD and self._transport is not None:
            self._transport.pause_reading()

    async def read_waiting(self) -> AsyncIterator[Line]:
        """Yield the lines that were not taken at once; while one is looked at, the next ones wait."""
        while True:
            # While the consumer looks at a line, a later one must not be taken at once and overtake it.
            self._is_busy = True
            while self._waiting:
                yield self._waiting.popleft()
                if len(self._waiting) == _AHEAD - 1 and self._transport is not None:
                    self._transport.resume_reading()
            self._is_busy = False
            if self._is_over:
                return
            self._woken.clear()
            await self._woken.wait()


class Output:
    """The outgoing lines, in order. The sender of one waits until it is written."""

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        """Take the file descriptor, and the function to call once when its reader is gone."""
        self._descriptor = descriptor
        self._gone: Callable[[], None] | None = gone
        self._writing = asyncio.Lock()
        self._is_pipe = _is_pipe(descriptor)
        if self._is_pipe:
            os.set_blocking(descriptor, False)

    async def send(self, line: bytes) -> None:
        """Write a line; does nothing after the client is gone."""
        async with self._writing:
            data = memoryview(line + b"\n")
            while data and self._gone is not None:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BlockingIOError:
                    await self._wait_until_writable()
                except (BrokenPipeError, ConnectionResetError):
                    gone, self._gone = self._gone, None
                    gone()

    async def _wait_until_writable(self) -> None:
        loop = asyncio.get_running_loop()
        writable = loop.create_future()
        loop.add_writer(self._descriptor, _set, writable)
        try:
            await writable
        finally:
            loop.remove_writer(self._descriptor)

    def close(self) -> None:
        """Leave the stream as it was."""
        if self._is_pipe:
            os.set_blocking(self._descriptor, True)


def _set(future: asyncio.Future[None]) -> None:
    # The event loop may call a writer once more in the turn in which the wait for it was cancelled.
    if not future.done():
        future.set_result(None)


def _is_pipe(descriptor: int) -> bool:
    """Tell whether the event loop can wait for it."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
