"""Standard input and output, held for messages alone: lines come in, and lines go out.

Takes the two streams of the process, and gives what is read as it comes; each line is written whole. Nothing else can
write to them: while they are held, `print()` and child processes write to standard error and read nothing.
"""

from __future__ import annotations

import asyncio
import io
import os
import stat
import sys
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator

LONGEST: Final = 32 * 1024 * 1024
"""Bytes of the longest line that is read."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CHUNK: Final = 1 << 16  # bytes read at once


@dataclass(frozen=True, slots=True)
class Line:
    """What was read: a line, or the start of one that is longer than `LONGEST`."""

    data: bytes
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Wire:
    """The file descriptors that messages come in on and go out on."""

    source: int
    sink: int


@contextmanager
def wire() -> Generator[Wire, None, None]:
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
async def lines_of(descriptor: int) -> AsyncGenerator[AsyncIterator[Line], None]:
    """What comes in: without threads from a pipe, through one from anything else."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    if not _is_pipe(descriptor):
        threading.Thread(target=_pump, args=(descriptor, reader, loop), daemon=True).start()
        yield _lines(reader)
        return
    pipe = os.fdopen(descriptor, "rb", 0, closefd=False)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        yield _lines(reader)
    finally:
        transport.close()
        os.set_blocking(descriptor, True)


def _pump(descriptor: int, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    """Read from a file or a terminal, which only a thread can wait for."""
    with suppress(RuntimeError):  # the loop is closed; nobody reads any more
        while chunk := os.read(descriptor, _CHUNK):
            loop.call_soon_threadsafe(reader.feed_data, chunk)
        loop.call_soon_threadsafe(reader.feed_eof)


async def _lines(reader: asyncio.StreamReader) -> AsyncGenerator[Line, None]:
    """Each line, as it comes. Of a line that is too long only the start is kept."""
    rest = bytearray()
    skipping = False
    while chunk := await reader.read(_CHUNK):
        searched = len(rest)
        rest += chunk
        while (end := rest.find(b"\n", searched)) >= 0:
            yield Line(bytes(rest[:_CHUNK]), is_whole=False) if skipping else Line(bytes(rest[:end]))
            del rest[: end + 1]
            searched, skipping = 0, False
        if len(rest) > LONGEST or skipping:
            skipping = True
            del rest[_CHUNK:]
    if rest:
        yield Line(bytes(rest), is_whole=not skipping)


class Output:
    """Where lines go out, in order. Whoever sends one waits until it is written."""

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        """Take the stream, and what to call once when nobody reads it any more."""
        self._descriptor = descriptor
        self._gone: Callable[[], None] | None = gone
        self._writing = asyncio.Lock()
        self._is_pipe = _is_pipe(descriptor)
        if self._is_pipe:
            os.set_blocking(descriptor, False)

    async def send(self, line: bytes) -> None:
        """Write a line; after the client is gone, nothing happens."""
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
    if not future.done():
        future.set_result(None)


def _is_pipe(descriptor: int) -> bool:
    """Whether the event loop can wait for it."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
