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

UNREAD: Final = 16 * 1024 * 1024
"""Bytes that may wait for a client to read them; beyond that, none of its requests is begun."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CHUNK: Final = 1 << 16  # bytes read at once
_AHEAD: Final = 1 << 20  # bytes of lines that may wait before no more is read
_BESIDE: Final = 128  # bytes that a line takes beside its data


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
async def read_lines(
    descriptor: int, take: Callable[[Line], bool], end: Callable[[], None]
) -> AsyncGenerator[AsyncIterator[Line], None]:
    """Yield an iterator of incoming lines, read without a thread from a pipe, by a thread from anything else.

    Args:
        descriptor: The file descriptor to read.
        take: Takes a line at once, and tells whether it did, unless an earlier one waits; the iterator has the others.
        end: Is called at the end of the input, before the lines that wait have been looked at.
    """
    loop = asyncio.get_running_loop()
    lines = _Lines(take, end)
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

    def __init__(self, take: Callable[[Line], bool], end: Callable[[], None]) -> None:
        self._take = take
        self._end = end
        self._rest = bytearray()
        self._is_skipping = False
        self._waiting: deque[Line] = deque()
        self._size = 0
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
        self._end()

    def _give(self, line: Line) -> None:
        """Have a line taken at once, unless one before it waits."""
        if not self._waiting and not self._is_busy and self._take(line):
            return
        self._waiting.append(line)
        self._woken.set()
        before, self._size = self._size, self._size + len(line.data) + _BESIDE
        if before < _AHEAD <= self._size and self._transport is not None:
            self._transport.pause_reading()

    async def read_waiting(self) -> AsyncIterator[Line]:
        """Yield the lines that were not taken at once; while one is looked at, the next ones wait."""
        while True:
            # While the consumer looks at a line, a later one must not be taken at once and overtake it.
            self._is_busy = True
            while self._waiting:
                line = self._waiting.popleft()
                yield line
                before, self._size = self._size, self._size - len(line.data) - _BESIDE
                if self._size < _AHEAD <= before and self._transport is not None:
                    self._transport.resume_reading()
            self._is_busy = False
            if self._is_over:
                return
            self._woken.clear()
            await self._woken.wait()


@dataclass(eq=False, slots=True)
class _Unwritten:
    """The rest of a line that waits for its client to read.

    Attributes:
        data: The bytes.
        written: Done when they are written; its sender waits for it.
        is_begun: True if the start of the line is written.
    """

    data: memoryview
    written: asyncio.Future[None]
    is_begun: bool


class Output:
    """The outgoing lines, in order. The sender of one waits until it is written."""

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        """Take the file descriptor, and the function to call once when its reader is gone."""
        self._descriptor = descriptor
        self._gone: Callable[[], None] | None = gone
        self._unwritten: deque[_Unwritten] = deque()
        self._size = 0
        self._changed = asyncio.Event()
        self._is_pipe = _is_pipe(descriptor)
        if self._is_pipe:
            os.set_blocking(descriptor, False)

    @property
    def is_full(self) -> bool:
        """True if more than `UNREAD` bytes wait for the client to read them."""
        return self._size > UNREAD

    async def wait_for_change(self) -> None:
        """Wait until the client reads some of it, or `end_waits` is called."""
        self._changed.clear()
        await self._changed.wait()

    def end_waits(self) -> None:
        """End the waits for a change."""
        self._changed.set()

    async def send(self, line: bytes) -> None:
        """Write a line; does nothing after the client is gone.

        If the sender is cancelled, a line that has begun is written to its end, since half of it would spoil the next.
        """
        whole = memoryview(line + b"\n")
        rest = whole if self._unwritten else self._write(whole)
        if not rest:
            return
        loop = asyncio.get_running_loop()
        if not self._unwritten:
            loop.add_writer(self._descriptor, self._write_waiting)
        waiting = _Unwritten(rest, loop.create_future(), is_begun=len(rest) < len(whole))
        self._unwritten.append(waiting)
        self._size += len(rest)
        await waiting.written

    def _write(self, data: memoryview) -> memoryview:
        """Write as much as the client has room for; return the rest, which is empty if the client is gone."""
        while data and self._gone is not None:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                return data
            except (BrokenPipeError, ConnectionResetError):
                gone, self._gone = self._gone, None
                gone()
        return data[:0]

    def _write_waiting(self) -> None:
        """Write the lines that wait, as far as the client has room for them."""
        while self._unwritten:
            first = self._unwritten[0]
            size = len(first.data)
            if not first.is_begun and first.written.cancelled():
                first.data = first.data[:0]
            try:
                first.data = self._write(first.data)
            except OSError as error:
                first.data = first.data[:0]
                if not first.written.done():
                    first.written.set_exception(error)
            self._size += len(first.data) - size
            first.is_begun = first.is_begun or len(first.data) < size
            if first.data:
                break
            self._unwritten.popleft()
            if not first.written.done():
                first.written.set_result(None)
        self._changed.set()
        if not self._unwritten:
            asyncio.get_running_loop().remove_writer(self._descriptor)

    def close(self) -> None:
        """Leave the stream as it was."""
        if self._unwritten:
            asyncio.get_running_loop().remove_writer(self._descriptor)
        if self._is_pipe:
            os.set_blocking(self._descriptor, True)


def _is_pipe(descriptor: int) -> bool:
    """Tell whether the event loop can wait for it."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
