"""Incoming lines, no faster than they are taken."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .wire import is_pipe

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

LONGEST: Final = 32 * 1024 * 1024
"""Bytes of the longest line that is read."""

_CHUNK: Final = 1 << 16  # bytes per read
_AHEAD: Final = 1 << 20  # bytes of lines that may wait before no more is read
_BESIDE: Final = 128  # overhead of a line in bytes


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or the start of a line that is longer than `LONGEST`."""

    data: bytes
    is_whole: bool = True


@asynccontextmanager
async def read_lines(
    descriptor: int, take: Callable[[Line], bool], end: Callable[[], None]
) -> AsyncGenerator[AsyncIterator[Line], None]:
    """Yield an iterator of incoming lines, read without a thread from a pipe, by a thread from anything else.

    Args:
        descriptor: The file descriptor to read.
        take: Processes a line immediately if it can, and returns whether it did; the iterator yields the others.
        end: Is called at the end of the input, before the lines that wait have been looked at.
    """
    loop = asyncio.get_running_loop()
    lines = _Lines(take, end)
    if not is_pipe(descriptor):
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

    It pauses until the event loop has processed the previous chunk, and while the loop has paused it.
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
        """End the thread after the current read, which cannot be interrupted on a terminal."""
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
    """The lines of incoming bytes. Only the start of a line that is too long is retained."""

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
        """Process a line immediately, unless an earlier one waits."""
        if not self._waiting and not self._is_busy and self._take(line):
            return
        self._waiting.append(line)
        self._woken.set()
        before, self._size = self._size, self._size + len(line.data) + _BESIDE
        if before < _AHEAD <= self._size and self._transport is not None:
            self._transport.pause_reading()

    async def read_waiting(self) -> AsyncIterator[Line]:
        """Yield the lines that were not processed immediately; the next ones wait for the consumer."""
        while True:
            # While the consumer processes a line, a later one must not overtake it.
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
