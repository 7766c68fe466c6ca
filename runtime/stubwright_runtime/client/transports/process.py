"""The stdio transport: runs a server process and reads messages from its standard output.

Closing the transport closes the standard input, then terminates, then kills the process and its children (MCP
2025-11-25, basic/lifecycle, "Shutdown").
"""

from __future__ import annotations

import asyncio
import codecs
import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from ...values.terminal import to_one_line
from ..core.connect_errors import ServerExited, ServerNotFound
from ..core.environment import find_withheld, select_inherited
from .batches import split_batch
from .bounds import Bounds, TooLargeError
from .standard_error import StandardError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set
    from typing import TextIO

    from ..rpc.connection import RpcConnection

_EXIT_SECONDS: Final = 1.0
"""Seconds for a process to exit after it has closed its standard output, and for its standard error to be read.

    Children can keep the standard output open; after this long without output, it is ignored.
"""

_GRACE: Final = 2.0
"""Seconds for a process to exit after its standard input is closed, and again after it is terminated."""

_POLL: Final = 0.01

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""Byte order marks of an unsupported encoding."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that starts a server.

    Attributes:
        program: The program's name or path.
        arguments: The arguments.
        environment: Additional environment variables.
        folder: The working directory, or `None` for the current directory.
    """

    program: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] | None = None
    folder: str | Path | None = None


class ServerProcess(asyncio.SubprocessProtocol):
    """The transport for a command."""

    over_http = False

    def __init__(self, command: Command, bounds: Bounds, shown: TextIO | None) -> None:
        """Prepare a process.

        Args:
            command: The command.
            bounds: Size limits for the process's output.
            shown: Receives a copy of the process's standard error; `None` for no copy.
        """
        self._command = command
        self._bounds = bounds
        self._errors = StandardError(shown)
        self._passed: Set[str] = frozenset()
        self._connection: RpcConnection | None = None
        self._transport: Any = None
        self._input: Any = None
        self._output: Any = None
        self._exited = asyncio.Event()
        self._writable = asyncio.Event()
        self._lines: deque[bytes] = deque()
        self._begun = bytearray()
        self._has_begun = False
        self._is_paused = False
        self._is_silent = False
        self._has_ended = False
        self._is_closing = False
        self._fault: str | None = None
        self._heard = 0.0
        self._ending: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The program's name, without the arguments, which may be secret."""
        return to_one_line(PurePath(self._command.program).name or self._command.program)

    async def open(self, connection: RpcConnection) -> None:
        """Start the process.

        Raises:
            ServerNotFound: The program or working directory does not exist, or the program is not executable.
            OSError: The process cannot be started for another reason.
            ValueError: The command contains a NUL byte.
        """
        self._connection = connection
        environment = select_inherited(os.environ) | dict(self._command.environment or {})
        self._passed = environment.keys()
        program = self._command.program
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            # Windows needs the full name of scripts such as `npx.cmd`.
            program = shutil.which(program, path=environment.get("PATH")) or program
            options = {"creationflags": subprocess.CREATE_NO_WINDOW}
        self._writable.set()
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                program,
                *self._command.arguments,
                env=environment,
                cwd=self._command.folder,
                stderr=self._errors.writing,
                **options,
            )
        )
        try:
            await _complete(starting)
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise ServerNotFound(self.name, f"cannot be started: {self._explain(error)}") from None
        finally:
            self._errors.start()

    def _explain(self, error: OSError) -> str:
        folder = self._command.folder
        if folder is not None and not Path(folder).is_dir():
            return "its working directory does not exist"
        if isinstance(error, FileNotFoundError):
            return "program not found; is it installed?"
        return error.strerror or str(error)

    async def send(self, message: Mapping[str, Any], _headers: Mapping[str, str] | None = None, /) -> None:
        """Write a message as a line, unless the pipe is closed."""
        line = to_json(message, inf_nan_mode="null") + b"\n"
        if not self._writable.is_set():
            await self._writable.wait()
        if not self._input.is_closing():
            self._input.write(line)

    async def close(self, seconds: float, /) -> None:
        """Stop the process and its children; each step before SIGKILL can take half of the time."""
        import anyio

        if self._transport is None:
            return
        self._is_closing = True
        self._lines.clear()
        with anyio.CancelScope(shield=True):
            self._input.close()
            self._resume_reading()  # a process blocked on its output does not notice that its input is closed
            grace = min(_GRACE, seconds / 2)
            if not await self._wait_for_exit(grace):
                await self._kill(grace)
            with suppress(PermissionError):  # raised if the process belongs to another user
                self._transport.close()
            if self._ending is not None:
                self._ending.cancel()
            if not self._errors.has_ended:
                await anyio.to_thread.run_sync(self._errors.wait, 0.1)

    async def _wait_for_exit(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._exited.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _kill(self, grace: float) -> None:
        """Terminate the process and its children, and kill them if they do not exit."""
        pid: int = self._transport.get_pid()
        if sys.platform == "win32":
            killing = await asyncio.create_subprocess_exec(
                "taskkill", "/T", "/F", "/PID", str(pid), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            await killing.wait()
            await self._wait_for_exit(_GRACE)
            return
        deadline = asyncio.get_running_loop().time() + grace
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGTERM)
            while asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(_POLL)
                os.killpg(pid, 0)
            os.killpg(pid, signal.SIGKILL)
        await self._wait_for_exit(_GRACE)

    def log_lines(self) -> tuple[str, ...]:
        """Return the first and last lines of standard error so far."""
        return self._errors.list_lines()

    def resume(self) -> None:
        """Resume delivering lines when the connection has room again."""
        self._deliver()

    def connection_made(self, transport: Any) -> None:
        """Store the process's pipes."""
        self._transport = transport
        self._input = transport.get_pipe_transport(0)
        self._output = transport.get_pipe_transport(1)
        asyncio.get_running_loop().call_soon(self._read_directly)  # uvloop delivers earlier output in between

    def _read_directly(self) -> None:
        if not self._output.is_closing():
            self._output.set_protocol(_OutputProtocol(self, self._output.get_protocol()))

    def pipe_data_received(self, _fd: int, data: bytes) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Split a chunk of standard output into lines and deliver them."""
        if self._has_ended or self._is_closing:
            return
        if self._is_silent:
            self._heard = asyncio.get_running_loop().time()
        try:
            self._split(data)
        except TooLargeError as error:
            self._has_ended = True
            self._begun.clear()
            if self._connection is not None:
                self._connection.end_too_large(error)
            return
        if self._fault is not None:
            self._end()
        elif self._lines:
            self._deliver()

    def _split(self, data: bytes) -> None:
        if not self._has_begun and bytes(self._begun[:2] + data[:2]).startswith(_UTF_16):
            self._fault = "wrote UTF-16 instead of UTF-8"
            return
        if self._connection is None:
            return
        self._bounds.add(len(data))
        bound = self._connection.find_longest()
        if data.find(b"\n") < 0:
            self._begun += data
            self._bounds.check(len(self._begun), bound)
            return
        *lines, rest = (bytes(self._begun) + data if self._begun else data).split(b"\n")
        self._bounds.check(max(len(rest), *map(len, lines)), bound)
        self._begun = bytearray(rest)
        if not self._has_begun:  # JSON is UTF-8 (RFC 8259, section 8.1)
            self._has_begun = True
            lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
        for line in lines:
            if line.startswith(b"{"):
                self._lines.append(line)
            else:
                self._lines.extend(message for message in split_batch(line) if message.strip())

    def _deliver(self) -> None:
        connection = self._connection
        if connection is None or self._is_closing:
            return
        while self._lines:
            if not connection.has_room:
                if not self._is_paused and not self._has_ended:
                    self._is_paused = True
                    self._output.pause_reading()
                return
            connection.receive(self._lines.popleft())
        if self._is_paused:
            self._resume_reading()
        if self._has_ended:
            self._explain_end()

    def _resume_reading(self) -> None:
        if self._is_paused:
            self._is_paused, self._heard = False, asyncio.get_running_loop().time()
            self._output.resume_reading()

    def pause_writing(self) -> None:
        """Pause `send` while the pipe is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Resume `send`."""
        self._writable.set()

    def pipe_connection_lost(self, fd: int, _exc: Exception | None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fail the connection when the process has closed a pipe."""
        self._writable.set()
        if fd == 0:  # by exiting, perhaps, and then its last output is still unread
            if not self._is_closing:
                asyncio.get_running_loop().call_later(_EXIT_SECONDS, self._check_exit)
            return
        if self._begun.strip() and not self._has_ended and not self._is_closing:
            self._lines.append(bytes(self._begun))
            self._begun.clear()
        self._end()

    def process_exited(self) -> None:
        """Fail the connection when the process has exited and its output has been read."""
        self._exited.set()
        if not self._has_ended and not self._is_closing:
            loop = asyncio.get_running_loop()
            self._is_silent, self._heard = True, loop.time()
            loop.call_later(_EXIT_SECONDS, self._check_silence)

    def _check_silence(self) -> None:
        if self._has_ended or self._is_closing:
            return
        loop = asyncio.get_running_loop()
        left = _EXIT_SECONDS if self._is_paused else self._heard + _EXIT_SECONDS - loop.time()
        if left > 0:
            loop.call_later(left, self._check_silence)
        else:
            self._end()

    def _check_exit(self) -> None:
        if not self._exited.is_set() and not self._has_ended:
            self._fault = "closed its standard input"
            self._end()

    def _end(self) -> None:
        """Fail the connection once all lines have been delivered."""
        if self._has_ended or self._is_closing:
            return
        self._has_ended = True
        self._deliver()

    def _explain_end(self) -> None:
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._find_end())

    async def _find_end(self) -> None:
        """Fail the connection with an error that contains the process's exit status, if known."""
        import anyio

        if self._fault is None:
            await self._wait_for_exit(_EXIT_SECONDS)
        status: int | None = self._transport.get_returncode() if self._exited.is_set() else None
        if status is not None:
            await anyio.to_thread.run_sync(self._errors.wait, _EXIT_SECONDS)
        why, lines, name = self._fault or _describe_exit(status), self.log_lines(), self.name
        connection = self._connection
        if connection is None:
            return
        withheld: Sequence[str] = ()
        if status is not None and status >= 0:
            withheld = find_withheld(os.environ, self._passed, lines, at_start=not connection.has_answered)
        connection.end(lambda: ServerExited(name, why, status=status, stderr=lines, withheld=withheld))


class _OutputProtocol(asyncio.Protocol):
    """Reads standard output without asyncio's own protocol, which waits one event loop iteration for each chunk."""

    def __init__(self, process: ServerProcess, default: asyncio.BaseProtocol) -> None:
        self._process = process
        self._default = default

    def data_received(self, data: bytes) -> None:
        self._process.pipe_data_received(1, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._default.connection_lost(exc)


async def _complete(starting: asyncio.Future[Any]) -> None:
    """Wait for a process's start, also if the caller is cancelled, so that `close` can then stop the process.

    If asyncio's own start is cancelled, it kills the process and waits for pipes that it never closes.
    """
    try:
        await asyncio.wait((starting,))
    except asyncio.CancelledError:
        while not starting.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((starting,))
        starting.exception()  # otherwise asyncio logs it
        raise
    starting.result()  # raises the exception from starting


def _describe_exit(status: int | None) -> str:
    if status is None:
        return "closed its standard output"
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was terminated by {signal.Signals(-status).name}"
    except ValueError:
        return f"was terminated by signal {-status}"
