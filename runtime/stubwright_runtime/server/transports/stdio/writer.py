"""Writes outgoing lines without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .wire import is_pipe

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_UNREAD: Final = 16 * 1024 * 1024
"""The maximum number of bytes that the client has not read. Above it, no further request is handled."""


@dataclass(eq=False, slots=True)
class _PendingLine:
    """The unwritten rest of a line.

    Attributes:
        data: The bytes that have not been written.
        written: Completes when all bytes have been written.
        has_started: True if the start of the line has been written.
    """

    data: memoryview
    written: asyncio.Future[None]
    has_started: bool


class Output:
    """Writes lines in order; each sender waits until its line is written."""

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        """Create a writer for a file descriptor. The writer calls `gone` once, when the client has closed the pipe."""
        self._descriptor = descriptor
        self._gone: Callable[[], None] | None = gone
        self._unwritten: deque[_PendingLine] = deque()
        self._size = 0
        self._changed = asyncio.Event()
        self._is_pipe = is_pipe(descriptor)
        if self._is_pipe:
            os.set_blocking(descriptor, False)

    @property
    def is_full(self) -> bool:
        """True if more than `MAX_UNREAD` bytes are waiting for the client to read them."""
        return self._size > MAX_UNREAD

    async def wait_for_change(self) -> None:
        """Wait until the client has read bytes or `end_waits` is called."""
        self._changed.clear()
        await self._changed.wait()

    def end_waits(self) -> None:
        """Make all calls of `wait_for_change` return."""
        self._changed.set()

    async def send(self, line: bytes) -> None:
        """Write a line unless the client has closed the pipe.

        If the calling task is cancelled, a partly written line is still completed, so that the next line remains valid.
        """
        whole = memoryview(line + b"\n")
        rest = whole if self._unwritten else self._write(whole)
        if not rest:
            return
        loop = asyncio.get_running_loop()
        if not self._unwritten:
            loop.add_writer(self._descriptor, self._flush)
        waiting = _PendingLine(rest, loop.create_future(), has_started=len(rest) < len(whole))
        self._unwritten.append(waiting)
        self._size += len(rest)
        await waiting.written

    def _write(self, data: memoryview) -> memoryview:
        """Write until the pipe is full. Return the unwritten bytes, or none if the client has closed the pipe."""
        while data and self._gone is not None:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                return data
            except (BrokenPipeError, ConnectionResetError):
                gone, self._gone = self._gone, None
                gone()
        return data[:0]

    def _flush(self) -> None:
        while self._unwritten:
            first = self._unwritten[0]
            size = len(first.data)
            if not first.has_started and first.written.cancelled():
                first.data = first.data[:0]
            try:
                first.data = self._write(first.data)
            except OSError as error:
                first.data = first.data[:0]
                if not first.written.done():
                    first.written.set_exception(error)
            self._size += len(first.data) - size
            first.has_started = first.has_started or len(first.data) < size
            if first.data:
                break
            self._unwritten.popleft()
            if not first.written.done():
                first.written.set_result(None)
        self._changed.set()
        if not self._unwritten:
            asyncio.get_running_loop().remove_writer(self._descriptor)

    def close(self) -> None:
        """Restore the file descriptor's blocking mode."""
        if self._unwritten:
            asyncio.get_running_loop().remove_writer(self._descriptor)
        if self._is_pipe:
            os.set_blocking(self._descriptor, True)
