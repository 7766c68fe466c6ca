"""Outgoing lines, each written whole, however slowly the client reads."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .wire import is_pipe

if TYPE_CHECKING:
    from collections.abc import Callable

UNREAD: Final = 16 * 1024 * 1024
"""Bytes that may wait for a client to read them; beyond that, none of its requests is begun."""


@dataclass(eq=False, slots=True)
class _PendingLine:
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
        self._unwritten: deque[_PendingLine] = deque()
        self._size = 0
        self._changed = asyncio.Event()
        self._is_pipe = is_pipe(descriptor)
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
        waiting = _PendingLine(rest, loop.create_future(), is_begun=len(rest) < len(whole))
        self._unwritten.append(waiting)
        self._size += len(rest)
        await waiting.written

    def _write(self, data: memoryview) -> memoryview:
        """Write until the pipe is full; return the rest, which is empty if the client is gone."""
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
        """Write the waiting lines until the pipe is full."""
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
        """Restore the stream's mode."""
        if self._unwritten:
            asyncio.get_running_loop().remove_writer(self._descriptor)
        if self._is_pipe:
            os.set_blocking(self._descriptor, True)
