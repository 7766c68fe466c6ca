"""Reads incoming lines, with backpressure."""

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

MAX_LINE: Final = 32 * 1024 * 1024
"""The maximum length of a line in bytes."""

_CHUNK: Final = 1 << 16  # bytes per read
_MAX_WAITING: Final = 1 << 20  # bytes of waiting lines at which reading pauses
_LINE_OVERHEAD: Final = 128  # bytes


@dataclass(frozen=True, slots=True)
class Line:
    """A line. If it is longer than `MAX_LINE`, only its start."""

    data: bytes
    is_whole: bool = True


@asynccontextmanager
async def read_lines(
    descriptor: int, try_handle: Callable[[Line], bool], end: Callable[[], None]
) -> AsyncGenerator[AsyncIterator[Line], None]:
    """Yield an iterator over incoming lines. Pipes are read by the event loop, files and terminals by a thread.

    Args:
        descriptor: The file descriptor to read.
        try_handle: Processes a line immediately if possible, and returns whether it did. The iterator yields only the
            other lines.
        end: Called at the end of the input, even if lines are still waiting.
    """
    loop = asyncio.get_running_loop()
    lines = _Lines(try_handle, end)
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
        # The parent process shares the open file, and thus the `O_NONBLOCK` flag.
        os.set_blocking(descriptor, True)


class _ThreadReader(asyncio.ReadTransport):
    """Reads a file or terminal in a thread, because the event loop cannot wait for either.

    After each chunk, the thread waits until the event loop has processed it. It also waits while reading is paused.
    """

    def __init__(self, descriptor: int, lines: _Lines, loop: asyncio.AbstractEventLoop) -> None:
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
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._may_read.set()

    def close(self) -> None:
        # A read from a terminal cannot be interrupted.
        self._is_closed = True
        self.resume_reading()

    def _pump(self) -> None:
        with suppress(RuntimeError):  # the event loop is closed
            while not self._is_closed and (chunk := os.read(self._descriptor, _CHUNK)):
                self._may_read.clear()
                self._loop.call_soon_threadsafe(self._receive, chunk)
                self._may_read.wait()
            self._loop.call_soon_threadsafe(self._lines.connection_lost, None)

    def _receive(self, chunk: bytes) -> None:
        self._lines.data_received(chunk)
        if not self._is_paused:
            self._may_read.set()


class _Lines(asyncio.Protocol):
    """Splits incoming bytes into lines. Only the start of an overlong line is retained."""

    def __init__(self, try_handle: Callable[[Line], bool], end: Callable[[], None]) -> None:
        self._try_handle = try_handle
        self._end = end
        self._rest = bytearray()
        self._is_skipping = False
        self._waiting: deque[Line] = deque()
        self._size = 0
        self._is_busy = False
        self._has_ended = False
        self._woken = asyncio.Event()
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.ReadTransport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        rest = self._rest
        # Searching a long line from its start again for each chunk would take quadratic time.
        searched = len(rest)
        rest += data
        while (end := rest.find(b"\n", searched)) >= 0:
            self._enqueue(Line(bytes(rest[:_CHUNK]), is_whole=False) if self._is_skipping else Line(bytes(rest[:end])))
            del rest[: end + 1]
            searched, self._is_skipping = 0, False
        if len(rest) > MAX_LINE or self._is_skipping:
            self._is_skipping = True
            del rest[_CHUNK:]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio requires the parameter
        if self._rest:
            self._enqueue(Line(bytes(self._rest), is_whole=not self._is_skipping))
        self._has_ended = True
        self._woken.set()
        self._end()

    def _enqueue(self, line: Line) -> None:
        if not self._waiting and not self._is_busy and self._try_handle(line):
            return
        self._waiting.append(line)
        self._woken.set()
        before, self._size = self._size, self._size + len(line.data) + _LINE_OVERHEAD
        if before < _MAX_WAITING <= self._size and self._transport is not None:
            self._transport.pause_reading()

    async def read_waiting(self) -> AsyncIterator[Line]:
        """Yield the lines that were not processed immediately."""
        while True:
            # Later lines wait while the consumer processes one, so that they do not overtake it.
            self._is_busy = True
            while self._waiting:
                line = self._waiting.popleft()
                yield line
                before, self._size = self._size, self._size - len(line.data) - _LINE_OVERHEAD
                if self._size < _MAX_WAITING <= before and self._transport is not None:
                    self._transport.resume_reading()
            self._is_busy = False
            if self._has_ended:
                return
            self._woken.clear()
            await self._woken.wait()
