"""The server on standard input and output.

Takes a server and runs it until its input ends or a signal asks it to stop; both are clean stops, in which the
handlers are left properly. The streams are ours, since those of the SDK need threads, drop what is malformed, and end
with the first message that they cannot write. Nothing else can write to them: while they are held, `print()` and child
processes write to standard error and read nothing.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import stat
import sys
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from ...observability.logs import log
from .framing import LONGEST, incoming, too_long
from .in_flight import LISTENING
from .signals import stop_signals

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Generator,
    )
    from types import TracebackType
    from typing import Self

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from ..server import PackageServer
    from .framing import Incoming

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CHUNK: Final = 1 << 16  # bytes read at once
_LAST_ANSWERS: Final = 2.0  # seconds for the answers that are still due when the input ends
_LAST_ERRORS: Final = 1.0  # seconds for telling the client which requests a stop cut off
_GONE: Final = "the client has left"


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


def run(server: PackageServer, held: Wire) -> None:
    """Serve until standard input is closed, the client is gone, or SIGINT, SIGTERM or SIGHUP arrives.

    All of these are clean stops, after which this returns. Requests that a stop cuts off are answered with an error. A
    second signal ends the process at once.

    Args:
        server: What `build_server` gave.
        held: The wire.
    """
    anyio.run(_serve, server, held)


async def _serve(server: PackageServer, held: Wire) -> None:
    given, taken = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    lines, written = anyio.create_memory_object_stream[str](0)
    outgoing = _Outgoing(lines)

    async def cut_off() -> None:
        """Answer what is under way with errors, as far as the client takes them."""
        server.in_flight.end()
        with anyio.move_on_after(_LAST_ERRORS):
            await outgoing.due.all_answered()

    async def end() -> None:
        await cut_off()
        whole.cancel_scope.cancel()

    def stop() -> None:
        whole.start_soon(end)

    async with anyio.create_task_group() as whole:
        with _stopped_by_signals(stop):
            async with _source(held.source) as source, anyio.create_task_group() as tasks:
                tasks.start_soon(_read, source, given, outgoing, cut_off)
                tasks.start_soon(_write, written, held.sink, whole.cancel_scope.cancel)
                await server.run(taken, outgoing, server.create_initialization_options())


async def _read(
    source: AsyncIterator[Incoming],
    given: MemoryObjectSendStream[SessionMessage | Exception],
    outgoing: _Outgoing,
    cut_off: Callable[[], Awaitable[None]],
) -> None:
    """Give the server what comes in, and at the end time for the answers that are due.

    The SDK gives up what it is doing when its input ends; so the end is held back until all is answered, for a while.
    What waits for an answer of the client fails at once: none can come any more.
    """
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the server listens no more
        async with given:
            async for one in source:
                if one.problem is not None:
                    log().warning("refused a message, since it %s", one.problem)
                if one.answer is not None:
                    await outgoing.send(SessionMessage(one.answer))
                if one.message is not None:
                    outgoing.due.note(one.message)
                    outgoing.questions.answered(one.message)
                    await given.send(SessionMessage(one.message))
            for question in outgoing.questions.closed():
                await given.send(SessionMessage(question))
            with anyio.move_on_after(_LAST_ANSWERS) as late:
                await outgoing.due.all_answered()
            if late.cancelled_caught:
                await cut_off()


class _Outgoing:
    """Where the server sends messages, shaped as the SDK uses a stream. What cannot be written fails its sender."""

    def __init__(self, lines: MemoryObjectSendStream[str]) -> None:
        self.due = _Due()
        self.questions = _Questions()
        self._lines = lines

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message.

        Raises:
            MCPError: It cannot be written as JSON, or it is a question that nobody answers any more.
        """
        self.questions.asked(item.message)
        try:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        except ValueError:
            log().exception("a message cannot be written as JSON")
            raise MCPError(INTERNAL_ERROR, "The message cannot be written as JSON") from None
        await self._lines.send(f"{line}\n")
        self.due.answered(item.message)

    async def aclose(self) -> None:
        """Let no more be sent."""
        await self._lines.aclose()

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        """Let no more be sent."""
        await self.aclose()


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Generator[None, None, None]:
    """Call `stop` at the first signal; the next one has its default effect, which ends the process."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = stop_signals()

    def arrived(number: signal.Signals) -> None:
        log().info("stopping: %s", number.name)
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
    """The requests that are not answered yet."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._changed = asyncio.Event()

    def note(self, message: JSONRPCMessage) -> None:
        """Take note of a message that comes in."""
        match message:
            case JSONRPCRequest(id=request, method=method) if method != LISTENING:
                self._waiting.add(repr(request))
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": request}):
                self._forget(request)
            case _:
                pass

    def answered(self, message: JSONRPCMessage) -> None:
        """Take note of a message that goes out."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._forget(message.id)

    async def all_answered(self) -> None:
        """Wait until no answer is due any more."""
        while self._waiting:
            self._changed.clear()
            await self._changed.wait()

    def _forget(self, request: object) -> None:
        self._waiting.discard(repr(request))
        self._changed.set()


class _Questions:
    """The requests to the client that it has not answered."""

    def __init__(self) -> None:
        self._open: dict[str, int | str] = {}
        self._is_closed = False

    def asked(self, message: JSONRPCMessage) -> None:
        """Take note of a message that goes out. Raises MCPError where it is a request, and the client has left."""
        if isinstance(message, JSONRPCRequest):
            if self._is_closed:
                raise MCPError(CONNECTION_CLOSED, _GONE)
            self._open[repr(message.id)] = message.id

    def answered(self, message: JSONRPCMessage) -> None:
        """Take note of a message that comes in."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._open.pop(repr(message.id), None)

    def closed(self) -> list[JSONRPCError]:
        """What the server is given in the place of the answers, since the client has left."""
        self._is_closed = True
        error = ErrorData(code=CONNECTION_CLOSED, message=_GONE)
        return [JSONRPCError(jsonrpc="2.0", id=one, error=error) for one in self._open.values()]


@asynccontextmanager
async def _source(descriptor: int) -> AsyncGenerator[AsyncIterator[Incoming], None]:
    """What comes in: without threads from a pipe, through one from anything else."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    if not _is_pipe(descriptor):
        threading.Thread(target=_pump, args=(descriptor, reader, loop), daemon=True).start()
        yield _messages(reader)
        return
    pipe = os.fdopen(descriptor, "rb", 0, closefd=False)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        yield _messages(reader)
    finally:
        transport.close()
        os.set_blocking(descriptor, True)


def _pump(descriptor: int, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    """Read from a file or a terminal, which only a thread can wait for."""
    with suppress(RuntimeError):  # the loop is closed; nobody reads any more
        while chunk := os.read(descriptor, _CHUNK):
            loop.call_soon_threadsafe(reader.feed_data, chunk)
        loop.call_soon_threadsafe(reader.feed_eof)


async def _messages(reader: asyncio.StreamReader) -> AsyncGenerator[Incoming, None]:
    """The messages of each line, as it comes. Of a line that is too long only the start is kept."""
    rest = bytearray()
    skipping = False
    while chunk := await reader.read(_CHUNK):
        searched = len(rest)
        rest += chunk
        while (end := rest.find(b"\n", searched)) >= 0:
            if skipping:
                yield too_long(bytes(rest[:_CHUNK]))
            else:
                for one in incoming(bytes(rest[:end])):
                    yield one
            del rest[: end + 1]
            searched, skipping = 0, False
        if len(rest) > LONGEST or skipping:
            skipping = True
            del rest[_CHUNK:]
    if skipping:
        yield too_long(bytes(rest))
        return
    for one in incoming(bytes(rest)):
        yield one


async def _write(lines: MemoryObjectReceiveStream[str], descriptor: int, stop: Callable[[], None]) -> None:
    """Write each line whole; a client that is gone stops the server."""
    is_pipe = _is_pipe(descriptor)
    if is_pipe:
        os.set_blocking(descriptor, False)
    try:
        async with lines:
            async for line in lines:
                data = memoryview(line.encode())
                while data:
                    try:
                        data = data[os.write(descriptor, data) :]
                    except BlockingIOError:
                        await anyio.wait_writable(descriptor)
                    except (BrokenPipeError, ConnectionResetError):
                        stop()
                        await anyio.lowlevel.checkpoint()
    finally:
        if is_pipe:
            os.set_blocking(descriptor, True)


def _is_pipe(descriptor: int) -> bool:
    """Whether the event loop can wait for it."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
