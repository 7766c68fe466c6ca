"""A server on standard input and output: its process, its lines as messages, and how it ended.

Takes a command; gives the streams that the SDK's client reads and writes. They are the pipes themselves, with no task
and no queue between, each line bounded and whole. The SDK starts and stops the process, as it does in its own
transport, which keeps a line of any length, stops at a byte that is not UTF-8, and does not say how the process ended.
"""

from __future__ import annotations

import codecs
import os
import signal
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Self

from ...observability.logs import log
from ...values.terminal import to_one_line
from ..core.environment import find_withheld, select_inherited
from .batches import find_excess, split_batch
from .bounds import Bound, Bounds, TooLargeError
from .standard_error import StandardError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set
    from types import TracebackType
    from typing import TextIO

    from anyio import CancelScope, Lock
    from mcp import StdioServerParameters
    from mcp.client._transport import TransportStreams
    from mcp.os.win32.utilities import ServerProcess
    from mcp.shared.message import SessionMessage

    from ..core.connect_errors import ServerExited

_EXIT_SECONDS: Final = 1.0
"""For a process to end that has closed its standard output, and for what it wrote to standard error to be read.

A process that has ended may have left another behind that holds its standard output: if nothing comes for so long,
nothing will.
"""

_EXIT_POLL: Final = 0.005
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""Marks of an encoding in which no line is a message; the bytes never begin a line in UTF-8."""

_SHOWN: Final = 200
"""Characters of an unreadable line that the log has."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was read: its size in bytes, and whether it is UTF-8."""

    size: int
    is_text: bool


class ProcessTransport(AbstractAsyncContextManager["TransportStreams", None]):
    """The transport.

    Attributes:
        bounds: How many bytes may come.
        line: The line that the last message stood in.
        has_answered: Whether a message has come.
        fault: Why its output cannot be read at all, as the end of a sentence that begins with its name.
        longest: Gives the bound of a line now.
        too_large: Is told, once, why nothing more is read.
    """

    def __init__(self, server: StdioServerParameters, bounds: Bounds, shown: TextIO | None) -> None:
        """Take the command, the bounds of its output, and the stream that shows its standard error; `None` for none."""
        self.bounds = bounds
        self.line: Line | None = None
        self.has_answered = False
        self.longest: Callable[[], Bound] = bounds.find_bound
        self.too_large: Callable[[TooLargeError], None] = lambda _: None
        self._server = server
        self._errors = StandardError(shown)
        self._process: ServerProcess | None = None
        self._passed: Set[str] = frozenset()
        self.fault: str | None = None
        self._reading = _Reading(self)

    @property
    def name(self) -> str:
        """The program, without its folder and its arguments, in which a secret may stand."""
        return to_one_line(PurePath(self._server.command).name or self._server.command)

    async def __aenter__(self) -> TransportStreams:
        """Start the process.

        Raises:
            OSError: It cannot be started.
            ValueError: A NUL byte stands in the command.
        """
        from mcp.client import stdio

        server = self._server
        environment = select_inherited(os.environ) | (server.env or {})
        self._passed = environment.keys()
        try:
            self._process = await stdio._create_platform_compatible_process(
                await stdio._get_executable_command(server.command),
                server.args,
                environment,
                self._errors.writing,
                server.cwd,
            )
        finally:
            self._errors.start()
        return self._reading, _Writing(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the process: close its standard input, wait, and end it and all that it started."""
        import anyio
        from mcp.client import stdio

        if self._process is None:
            return
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._reading.drain)  # one that is stuck in writing does not see that its input ended
                await stdio._stop_server_process(self._process)
                tasks.cancel_scope.cancel()
            await anyio.to_thread.run_sync(self._errors.wait, 0.1)

    async def write(self, data: bytes) -> None:
        """Write a line."""
        if self._process is not None and self._process.stdin is not None:
            await self._process.stdin.send(data)

    async def read(self) -> bytes:
        """Read the available bytes. Raises anyio.EndOfStream and the like at the end.

        Returns none if the process has ended, and nothing comes from what it left behind.
        """
        import anyio

        if self._process is None or self._process.stdout is None:
            return b""
        has_ended = False
        while not has_ended:
            has_ended = self._status is not None
            with anyio.move_on_after(_EXIT_SECONDS):
                return await self._process.stdout.receive()
        return b""

    def stop_reading(self) -> None:
        """Let the connection end: nothing can be written any more."""
        self._reading.end()

    def log_lines(self) -> tuple[str, ...]:
        """Return the first and the last lines of the process's standard error so far."""
        return self._errors.list_lines()

    @property
    def _status(self) -> int | None:
        return None if self._process is None else self._process.returncode

    async def explain_end(self) -> Callable[[], ServerExited]:
        """Return a function that makes the exception for how the process ended that closed its standard output."""
        import anyio

        from ..core.connect_errors import ServerExited

        with anyio.move_on_after(_EXIT_SECONDS):
            while self.fault is None and self._status is None:  # noqa: ASYNC110 - waiting for a process would wait for its pipes, too
                await anyio.sleep(_EXIT_POLL)
        status = self._status
        if status is not None:
            await anyio.to_thread.run_sync(self._errors.wait, _EXIT_SECONDS)
        why, lines, name = self.fault or _describe_exit(status), self.log_lines(), self.name
        withheld = self._find_withheld(lines) if status is not None and status >= 0 else ()
        return lambda: ServerExited(name, why, status=status, stderr=lines, withheld=withheld)

    def _find_withheld(self, lines: Sequence[str]) -> tuple[str, ...]:
        return find_withheld(os.environ, self._passed, lines, at_start=not self.has_answered)


class _Reading:
    """The standard output of the process, as messages."""

    def __init__(self, transport: ProcessTransport) -> None:
        self._transport = transport
        self._lines: list[bytes] = []
        self._begun = bytearray()
        self._is_over = False
        self._has_begun = False
        self._scope: CancelScope | None = None
        # `drain` may begin while `receive` waits, and the pipe takes one reader at a time.
        self._own_lock: Lock | None = None

    @property
    def _lock(self) -> Lock:
        import anyio

        if self._own_lock is None:
            self._own_lock = anyio.Lock(fast_acquire=True)
        return self._own_lock

    def end(self) -> None:
        """End the stream: nothing will come any more."""
        self._is_over = True
        if self._scope is not None:
            self._scope.cancel()

    async def drain(self) -> None:
        """Read and discard the remaining output."""
        async with self._lock:
            with _ended():
                while await self._transport.read():
                    pass

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or the error in its place. Raises anyio.EndOfStream at the end."""
        import anyio

        while not self._lines:
            if self._is_over:
                raise anyio.EndOfStream
            async with self._lock:
                with anyio.CancelScope() as self._scope:
                    await self._read_more()
        line = self._lines.pop()
        try:
            text, is_text = line.decode(), True
        except UnicodeDecodeError:
            text, is_text = line.decode(errors="replace"), False
        self._transport.line = Line(len(line), is_text)
        message = _parse(text)
        self._transport.has_answered |= not isinstance(message, Exception)
        return message

    async def _read_more(self) -> None:
        data = b""
        with _ended():
            data = await self._transport.read()
        if not data:
            self._is_over = True
            return
        if not self._has_begun and bytes(self._begun[:2] + data[:2]).startswith(_UTF_16):
            self._transport.fault = "wrote UTF-16 in place of UTF-8"
            self._is_over = True
            return
        bounds = self._transport.bounds
        try:
            bounds.add(len(data))
            bound = self._transport.longest()
            if b"\n" not in data:
                self._begun += data
                bounds.check(len(self._begun), bound)
                return
            *lines, rest = bytes(self._begun + data).split(b"\n")
            for line in (*lines, rest):
                bounds.check(len(line), bound)
            if not self._has_begun:  # a parser may ignore a byte order mark (RFC 8259, 8.1)
                self._has_begun = True
                lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
        except TooLargeError as error:
            self._is_over = True
            self._begun.clear()
            self._transport.too_large(error)
            return
        self._begun = bytearray(rest)
        # `receive` pops lines from the end, which moves no others.
        messages = [message for line in lines for message in split_batch(line)]
        self._lines = [message for message in reversed(messages) if message.strip()]

    async def aclose(self) -> None:
        self.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        import anyio

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        await self.aclose()
        return None


class _Writing:
    """The standard input of the process, as messages."""

    def __init__(self, transport: ProcessTransport) -> None:
        import anyio

        self._transport = transport
        self._lock = anyio.Lock(fast_acquire=True)

    async def send(self, item: SessionMessage, /) -> None:
        import anyio

        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        async with self._lock:
            try:
                await self._transport.write(data)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                self._transport.stop_reading()  # it may still run, but no request can be answered

    async def aclose(self) -> None:
        """Leave the process's standard input open; it is closed when the process is stopped."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        await self.aclose()
        return None


def _ended() -> suppress:
    """Suppress the exceptions of a pipe that has ended."""
    import anyio

    return suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


def _parse(text: str) -> SessionMessage | Exception:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    adapter: Any = jsonrpc_message_adapter
    try:
        return SessionMessage(adapter.validate_json(text, by_name=False))
    except ValueError as error:
        shown = find_excess(text.encode()) or to_one_line(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")
        log().warning("a line of the server is no message of JSON-RPC and is passed over: %s", shown)
        return error


def _describe_exit(status: int | None) -> str:
    if status is None:
        return "closed its standard output"
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by the signal {-status}"
