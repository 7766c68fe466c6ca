# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""The server on standard input and output.

Takes a server and runs it until its input ends or a signal asks it to stop; both are clean stops, in which the
handlers are left properly. The SDK frames and parses the messages; ours are the streams, which need no threads, and
which nothing else can write to: while they are held, `print()` and child processes write to standard error and read
nothing.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import stat
import sys
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import anyio.lowlevel
from mcp.server.stdio import stdio_server

from .ending import end_without_threads
from .logs import logger

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator

    from mcp.server.lowlevel import Server

_LOG: Final = logger(__name__)
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CHUNK: Final = 1 << 16  # bytes read at once
_LAST_ANSWERS: Final = 2.0  # seconds for the answers that are still due when the input ends
_ENDLESS: Final = frozenset({"subscriptions/listen"})  # answered only when the server stops


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
        with _printed_at_once():
            yield Wire(source, sink)
    finally:
        sys.stdout.flush()
        os.dup2(source, _STDIN)
        os.dup2(sink, _STDOUT)
        os.close(source)
        os.close(sink)


@contextmanager
def _printed_at_once() -> Generator[None, None, None]:
    """Write out each line that is printed, as standard error does, also where both are a pipe."""
    printed = sys.stdout
    if not isinstance(printed, io.TextIOWrapper):
        yield
        return
    before = printed.line_buffering
    printed.reconfigure(line_buffering=True)
    try:
        yield
    finally:
        printed.reconfigure(line_buffering=before)


def run(server: Server[Any], held: Wire | None = None) -> None:
    """Serve until standard input is closed, the client is gone, or SIGINT or SIGTERM arrives.

    All of these are clean stops, after which this returns; where a plain `def` handler is still at work in its thread,
    the process ends here instead (see `ending`). A second signal ends the process at once.

    Args:
        server: What `build_server` gave.
        held: The wire, where the caller holds it already.
    """
    if held is None:
        with wire() as held:
            run(server, held)
        return
    anyio.run(_serve, server, held)
    end_without_threads()


async def _serve(server: Server[Any], held: Wire) -> None:
    with anyio.CancelScope() as scope, _stopped_by_signals(scope.cancel):
        due = _Due()
        async with _lines(held.source) as source, _sink(held.sink, scope.cancel, due) as sink:
            # The SDK asks for files; it iterates over the one, and calls `write` and `flush` of the other.
            streams = stdio_server(cast("Any", due.noted(source)), cast("Any", sink))
            async with streams as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Generator[None, None, None]:
    """Call `stop` at the first signal; the next one has its default effect, which ends the process."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def arrived(number: signal.Signals) -> None:
        _LOG.info("stopping: %s", number.name)
        for each in numbers:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        stop()

    before = [signal.getsignal(number) for number in numbers]
    for number in numbers:
        loop.add_signal_handler(number, arrived, number)
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


class _Due:
    """The requests that are not answered yet.

    The SDK gives up what it is doing when its input ends; so the end is held back until all is answered, for a while.
    """

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._changed = asyncio.Event()

    async def noted(self, lines: AsyncIterator[str]) -> AsyncIterator[str]:
        """The messages as they come, and their end when no answer is due any more, or too late to wait for."""
        async for line in lines:
            for message in _messages(line):
                self._note(message)
                yield message
        with anyio.move_on_after(_LAST_ANSWERS):
            while self._waiting:
                self._changed.clear()
                await self._changed.wait()

    def answered(self, text: str) -> None:
        """Take note of a message that goes out."""
        if (found := _ANSWER.match(text)) is not None:
            self._forget(json.loads(found[1]))

    def _note(self, line: str) -> None:
        with suppress(ValueError, RecursionError):  # what is no message, the SDK answers or drops
            match json.loads(line):
                case {"method": "notifications/cancelled", "params": {"requestId": request}}:
                    self._forget(request)
                case {"method": str(method), "id": str() | int() as request} if method not in _ENDLESS:
                    self._waiting.add(repr(request))
                case _:
                    pass

    def _forget(self, request: object) -> None:
        self._waiting.discard(repr(request))
        self._changed.set()


_ANSWER: Final = re.compile(r'\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?\d+),"(?:result|error)"')


@asynccontextmanager
async def _lines(descriptor: int) -> AsyncGenerator[AsyncIterator[str], None]:
    """The lines that come in: without threads from a pipe, through one from anything else."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    if not _is_pipe(descriptor):
        threading.Thread(target=_pump, args=(descriptor, reader, loop), daemon=True).start()
        yield _decoded(reader)
        return
    pipe = os.fdopen(descriptor, "rb", 0, closefd=False)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        yield _decoded(reader)
    finally:
        transport.close()
        os.set_blocking(descriptor, True)


def _pump(descriptor: int, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    """Read from a file or a terminal, which only a thread can wait for."""
    with suppress(RuntimeError):  # the loop is closed; nobody reads any more
        while chunk := os.read(descriptor, _CHUNK):
            loop.call_soon_threadsafe(reader.feed_data, chunk)
        loop.call_soon_threadsafe(reader.feed_eof)


async def _decoded(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """Lines of any length; what is not UTF-8, or only half a character, becomes U+FFFD."""
    rest = bytearray()
    while chunk := await reader.read(_CHUNK):
        start = len(rest)
        rest += chunk
        while (end := rest.find(b"\n", start)) >= 0:
            yield _whole(rest[: end + 1].decode("utf-8", "replace"))
            del rest[: end + 1]
            start = 0
    if rest:
        yield _whole(rest.decode("utf-8", "replace"))


def _messages(line: str) -> list[str]:
    """The messages of a line: one, or those of a batch (MCP 2025-03-26, basic, "Batching").

    Those of a batch are answered one by one, as if each had come alone. The SDK knows no batches, and would drop them.
    """
    if not line.lstrip().startswith("["):
        return [line]
    try:
        return [f"{json.dumps(message, allow_nan=False)}\n" for message in json.loads(line)] or [line]
    except (ValueError, RecursionError):
        return [line]


_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")


def _whole(line: str) -> str:
    """JSON without escapes of lone surrogates, for which the SDK would drop the whole message."""
    if _HALF.search(line) is None:
        return line
    return _ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], line)


@asynccontextmanager
async def _sink(descriptor: int, stop: Callable[[], None], due: _Due) -> AsyncGenerator[_Sink, None]:
    if not _is_pipe(descriptor):
        yield _Sink(descriptor, stop, due)
        return
    os.set_blocking(descriptor, False)
    try:
        yield _Sink(descriptor, stop, due)
    finally:
        os.set_blocking(descriptor, True)


class _Sink:
    """Where messages go out, shaped as the SDK uses a file."""

    def __init__(self, descriptor: int, stop: Callable[[], None], due: _Due) -> None:
        self._descriptor = descriptor
        self._stop = stop
        self._due = due

    async def write(self, text: str) -> None:
        """Write the whole text; a client that is gone stops the server."""
        data = memoryview(text.encode())
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                await anyio.wait_writable(self._descriptor)
            except (BrokenPipeError, ConnectionResetError):
                self._stop()
                await anyio.lowlevel.checkpoint()
        self._due.answered(text)

    async def flush(self) -> None:
        """Do nothing: nothing is held back."""


def _is_pipe(descriptor: int) -> bool:
    """Whether the event loop can wait for it."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
