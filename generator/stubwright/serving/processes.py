"""Replaces the server process after a save; the new process is ready before the previous one stops.

The address is bound once, and each server inherits the listener. During a replacement, clients wait in the listener's
queue for a few tenths of a second, and none is rejected. A replaced server accepts no new requests, but open ones get
the usual grace period.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stubwright_runtime.server import main
from stubwright_runtime.server.app.loader import StartError

if TYPE_CHECKING:
    from stubwright.project.launch import Launch

_PATIENCE: Final = 8
"""Seconds for a server to stop: its grace period for open requests, plus a margin."""

_LAST: Final = 1
"""Seconds to spend reading a stopped server's last lines; its child processes can keep standard error open."""

_HANDOVER: Final = 1
"""Seconds that a server waits for the previous one to stop and release resources such as a locked file."""

_SLOW: Final = 5
"""Seconds after which a slow start is reported."""

_GLANCE: Final = 0.2
"""Seconds between checks on whether a starting server is still needed."""

_FAULTS: Final = (1, 2)
"""Exit statuses from Python and from the check that come with a message."""

_PROOF: Final = Path(__file__).with_name("proof.py")
_SERVER: Final = Path(__file__).with_name("server.py")


_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only compared, not bound


class AddressError(Exception):
    """The server's address cannot be bound; the message explains why."""


class StartupError(Exception):
    """A server reported an error and exited before it was ready, so the previous server continues."""


class StaleError(Exception):
    """A server became outdated before it was ready and was stopped. The message contains the handlers' stack trace."""


@dataclass(frozen=True, slots=True)
class StartupWait:
    """Waits for a server to start, even if its handlers delay that indefinitely.

    Attributes:
        is_stale: Returns whether the server is outdated.
        report: Called once if the start is slow, with the elapsed seconds and the handlers' stack if known.
    """

    is_stale: Callable[[], bool]
    report: Callable[[int, str], None]

    def wait(self, is_made: Callable[[float], bool], find_stack: Callable[[], str] = str) -> None:
        """Poll `is_made`, which can block briefly, until it returns true. Raises StaleError."""
        began = time.monotonic()
        is_reported = False
        while not is_made(_GLANCE):
            if time.monotonic() - began < _SLOW:
                continue
            if self.is_stale():
                raise StaleError(find_stack())
            if not is_reported:
                is_reported = True
                self.report(_SLOW, find_stack())


def prove(launch: Launch, variables: Mapping[str, str], startup: StartupWait) -> str | None:
    """Check that a server can start; return the error from Python or the server, or None on success.

    Args:
        launch: The server's command.
        variables: The server's environment variables.

    Raises:
        StaleError: The generated package is outdated.
    """
    named = (launch.handlers,) if launch.handlers is not None else ()
    with tempfile.TemporaryDirectory(prefix="stubwright-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        command = [launch.python, "-P", str(_PROOF), name, launch.package, *named]
        # Not a pipe, which stays open if the handlers start a process that continues.
        with (folder / "output").open("wb") as output:
            try:
                process = subprocess.Popen(  # noqa: S603 - our own
                    command,
                    env=_environment(launch, variables),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=output,
                    start_new_session=True,
                )
            except OSError as error:
                return f"`{launch.python}` cannot be started: {error.strerror or error}"
        try:
            startup.wait(
                lambda seconds: _has_ended(process, seconds) or (folder / "made").exists(),
                lambda: _read(folder / "stack"),
            )
            if (folder / "made").exists():
                _has_ended(process, _LAST)  # cleanup or a handler's thread can delay the exit
                return None
        finally:
            _kill_group(process)
        said = _read(folder / "output").strip()
        how = f"the process exited with status {process.returncode} before it created the server"
        return said if said and process.returncode in _FAULTS else f"{said}\n{how}".strip()


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


class ServerSupervisor:
    """Runs servers at one address, one after the other. A context manager that stops all servers on exit."""

    def __init__(
        self,
        host: str,
        port: int,
        ended: Callable[[int], None],
        write_line: Callable[[str], None],
        key: str | None = None,
        options: tuple[str, ...] = (),
        debugging: tuple[str, ...] = (),
    ) -> None:
        """Bind the address.

        Args:
            port: The port; 0 for any free port.
            ended: Called from another thread with the exit status of a server that exited unexpectedly.
            write_line: Called from another thread with each line that a server writes to standard error.
            key: The JWK that verifies tokens, replacing the keys of the manifest's issuer.
            options: Command-line options for every server.
            debugging: Options that let a debugger attach; servers share the debugger's port, so only one runs at a
                time.

        Raises:
            AddressError: The address cannot be bound.
        """
        self._host = host
        self._ended = ended
        self._said = write_line
        self._key = key or ""
        self._options = options
        self._debugging = debugging
        self._watchers: list[threading.Thread] = []
        self._servers: list[subprocess.Popen[bytes]] = []
        self._wanted: subprocess.Popen[bytes] | None = None  # the server that should respond
        try:
            self._listener = main.listen(host, port)
        except StartError as error:
            raise AddressError(str(error)) from error
        self._listener.set_inheritable(True)
        self._alive, self._lifeline = os.pipe()  # its write end closes when this process exits for any reason
        self.host, self.port = self._listener.getsockname()[:2]
        if sys.platform == "win32":  # where a listener cannot be inherited, each server binds the address itself
            self._listener.close()

    def __enter__(self) -> ServerSupervisor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The server's URL."""
        host = _EVERYWHERE.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/mcp"

    @property
    def is_running(self) -> bool:
        """True if a server is running."""
        return self._wanted is not None and self._wanted.poll() is None

    def replace(self, launch: Launch, variables: Mapping[str, str], startup: StartupWait) -> None:
        """Start a server, and stop the previous one when the new one is ready.

        Raises:
            StaleError: The new server became outdated before it was ready.
            OSError: The new server cannot be started.
            StartupError: The new server exited before it was ready, for example because a file was saved after the
                check.
        """
        if sys.platform == "win32" or self._debugging:  # both would need the same address or debugger port
            self._stop_servers(wait=True)
            self._start(launch, variables)
            return
        gate, its_gate = socket.socketpair()
        with gate:
            with its_gate:
                process = self._start(launch, variables, its_gate)
            try:
                startup.wait(lambda seconds: bool(select.select([gate], [], [], seconds)[0]))
            except StaleError:
                _kill_group(process)
                self._servers.remove(process)
                raise
            if not gate.recv(1):
                end(process)
                self._servers.remove(process)
                raise StartupError
            self._stop_servers(wait=False, but=process)
            with suppress(OSError):  # a server killed while waiting is reported like any exit
                gate.sendall(b".")

    def _start(
        self, launch: Launch, variables: Mapping[str, str], gate: socket.socket | None = None
    ) -> subprocess.Popen[bytes]:
        if sys.platform == "win32":
            address, parent, shared = f"{self.host}:{self.port}", "", []
        else:
            address, parent = f"fd:{self._listener.fileno()}", str(self._alive)
            shared = [self._listener.fileno(), self._alive]
        number = ""
        if gate is not None:
            number = str(gate.fileno())
            shared.append(gate.fileno())
        named = [] if self._host in (self.host, "localhost", *_EVERYWHERE) else ["--allow-host", self._host]
        words = launch.arguments[launch.arguments.index(launch.package) :]
        command = [launch.python, "-P", str(_SERVER), parent, number, self._key, *words, "--http", address]
        process = subprocess.Popen(  # noqa: S603 - our own
            [*command, *named, *self._options, *self._debugging],
            env=_environment(launch, variables),
            stdin=None if _is_terminal() else subprocess.DEVNULL,  # so that `breakpoint()` can prompt
            stderr=subprocess.PIPE,
            pass_fds=shared,
            start_new_session=True,  # so that the server gets Ctrl-C once, from here, and not also from the terminal
        )
        self._servers.append(process)
        if gate is None:
            self._wanted = process
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        reader.start()
        watcher = threading.Thread(target=self._watch, args=(process, reader), daemon=True)
        self._watchers = [*filter(threading.Thread.is_alive, self._watchers), watcher]
        watcher.start()
        return process

    def close(self) -> None:
        """Stop all servers and release the address."""
        self._stop_servers(wait=True)
        for watcher in self._watchers:
            watcher.join()
        with suppress(OSError):
            self._listener.close()
        os.close(self._alive)
        os.close(self._lifeline)

    def _stop_servers(self, *, wait: bool, but: subprocess.Popen[bytes] | None = None) -> None:
        """Terminate all servers except `but`, kill any that do not stop, and wait briefly for the last server.

        With `wait`, first wait until all terminated servers have stopped.
        """
        self._wanted = but
        leaving = [process for process in self._servers if process is not but]
        for process in leaving:
            if process.poll() is None:
                process.terminate()
        killers = [threading.Thread(target=end, args=(process,), daemon=True) for process in leaving]
        for killer in killers:
            killer.start()
        for killer in killers if wait else ():
            killer.join()
        for process in leaving[-1:]:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_HANDOVER)
        self._servers = [process for process in self._servers if process is but or process.poll() is None]

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        with process.stderr as stream:  # type: ignore[union-attr]
            for line in stream:
                self._said(line.decode("utf-8", "replace").rstrip("\r\n"))

    def _watch(self, process: subprocess.Popen[bytes], reader: threading.Thread) -> None:
        status = process.wait()
        _signal_group(process, kill=True)  # immediately, because its ID could be reused for another group
        reader.join(_LAST)  # report the reason before the exit
        if process is self._wanted:
            self._ended(status)


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a terminated process and kill it after a timeout."""
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # The child processes can outlive the leader.
    _signal_group(process, kill=True)
    process.wait()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Stop a session leader and its child processes."""
    _signal_group(process, kill=False)
    end(process)


def _signal_group(process: subprocess.Popen[bytes], *, kill: bool) -> None:
    """Kill or terminate a process group. On Windows, terminate only the leader."""
    if sys.platform == "win32":
        process.terminate()
    else:
        with suppress(ProcessLookupError, PermissionError):  # macOS raises PermissionError if only zombies are left
            os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGTERM)


def _environment(launch: Launch, variables: Mapping[str, str]) -> dict[str, str]:
    # Python validates bytecode by modification time in seconds, so bytecode would be stale after two saves within a
    # second.
    own = {"PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **own, **launch.make_environment({**_inherit_path(), **variables})}


def _inherit_path() -> Mapping[str, str]:
    return {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
