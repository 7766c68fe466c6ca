"""The processes of a server that is replaced: each is made before the one before it ends, and none is left behind.

The address is bound once, here, and each server gets the listener as it starts: while one server takes over from
another, clients wait in the listener's queue for some tenths of a second, and no one is refused. A server that is
replaced takes nothing new and has its usual seconds to answer what it has begun.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stubwright_runtime.server import main
from stubwright_runtime.server.handlers.loading import StartError

if TYPE_CHECKING:
    from stubwright.project.launch import Launch

_PATIENCE: Final = 8
"""Seconds that a server has to stop: those for its open requests, and some more."""

_LAST: Final = 1
"""Seconds for the last lines of a server that has ended: what it started may keep its standard error open."""

_HANDOVER: Final = 1
"""Seconds that a server waits for the one before it to end, which may hold what both need, such as a locked file."""

_PROOF: Final = Path(__file__).with_name("proof.py")
_SERVER: Final = Path(__file__).with_name("server.py")


_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not bound to


class AddressError(Exception):
    """The address cannot be bound; the text says why."""


class UnmadeError(Exception):
    """A server ended before it was made, so that the one before it goes on; the server itself has said why."""


def prove(launch: Launch, variables: Mapping[str, str]) -> str | None:
    """Return the reason why a server cannot be made, as Python or the server gives it; None if it can.

    Args:
        launch: How it is started.
        variables: What is set in its environment.
    """
    named = (launch.handlers,) if launch.handlers is not None else ()
    command = [launch.python, "-P", str(_PROOF), launch.package, *named]
    try:
        completed = subprocess.run(  # noqa: S603 - our own
            command,
            env=_environment(launch, variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
    except OSError as error:
        return f"`{launch.python}` cannot be started: {error.strerror or error}"
    output = completed.stderr.decode("utf-8", "replace").strip()
    return None if completed.returncode == 0 else output or f"it ended with status {completed.returncode}"


class Serving:
    """An address, and the server that answers there; a context manager, which stops all servers at its end."""

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
            host: Where to serve.
            port: The port; 0 for any that is free.
            ended: Called with the exit status of a server that ended unasked, from another thread.
            write_line: Called with each line that a server writes to standard error, from another thread.
            key: The JWK that verifies tokens, in the place of those of the manifest's issuer.
            options: Options of each server.
            debugging: The options of each server that let a debugger attach; one port, so one server at a time has it.

        Raises:
            AddressError: It cannot be bound.
        """
        self._host = host
        self._ended = ended
        self._said = write_line
        self._key = key or ""
        self._options = options
        self._debugging = debugging
        self._readers: list[threading.Thread] = []
        self._servers: list[subprocess.Popen[bytes]] = []
        self._wanted: subprocess.Popen[bytes] | None = None  # the one that is to answer
        try:
            self._listener = main.listen(host, port)
        except StartError as error:
            raise AddressError(str(error)) from error
        self._listener.set_inheritable(True)
        self.host, self.port = self._listener.getsockname()[:2]
        if sys.platform == "win32":  # where a process cannot hand its listener on: each server binds for itself
            self._listener.close()

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The URL of the server."""
        host = _EVERYWHERE.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/mcp"

    @property
    def is_running(self) -> bool:
        """True if a server answers."""
        return self._wanted is not None and self._wanted.poll() is None

    def replace(self, launch: Launch, variables: Mapping[str, str]) -> None:
        """Start a server in place of the one that runs, which ends when the new one is made.

        Raises:
            OSError: The server cannot be started.
            UnmadeError: It ended before it was made, because of a save after the proof.
        """
        if sys.platform == "win32" or self._debugging:  # both would need the same address, or the same debugger's port
            self._dismiss(wait=True)
            self._start(launch, variables)
            return
        gate, its_gate = socket.socketpair()
        with gate:
            with its_gate:
                process = self._start(launch, variables, its_gate)
            if not gate.recv(1):
                end(process)
                self._servers.remove(process)
                raise UnmadeError
            self._dismiss(wait=False, but=process)
            with suppress(OSError):  # it was killed while it waited, which is reported as any end
                gate.sendall(b".")

    def _start(
        self, launch: Launch, variables: Mapping[str, str], gate: socket.socket | None = None
    ) -> subprocess.Popen[bytes]:
        if sys.platform == "win32":
            address, shared = f"{self.host}:{self.port}", []
        else:
            address, shared = f"fd:{self._listener.fileno()}", [self._listener.fileno()]
        number = ""
        if gate is not None:
            number = str(gate.fileno())
            shared.append(gate.fileno())
        named = [] if self._host in (self.host, "localhost", *_EVERYWHERE) else ["--allow-host", self._host]
        words = launch.arguments[launch.arguments.index(launch.package) :]
        command = [launch.python, "-P", str(_SERVER), number, self._key, *words, "--http", address]
        process = subprocess.Popen(  # noqa: S603 - our own
            [*command, *named, *self._options, *self._debugging],
            env=_environment(launch, variables),
            stdin=None if _is_terminal() else subprocess.DEVNULL,  # so that `breakpoint()` can ask
            stderr=subprocess.PIPE,
            pass_fds=shared,
            start_new_session=True,  # a terminal's Ctrl-C comes once, from here, and not twice
        )
        self._servers.append(process)
        if gate is None:
            self._wanted = process
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._readers = [*filter(threading.Thread.is_alive, self._readers), reader]
        reader.start()
        threading.Thread(target=self._watch, args=(process, reader), daemon=True).start()
        return process

    def close(self) -> None:
        """Stop all servers, and release the address."""
        self._dismiss(wait=True)
        for reader in self._readers:
            reader.join(_LAST)
        with suppress(OSError):
            self._listener.close()

    def _dismiss(self, *, wait: bool, but: subprocess.Popen[bytes] | None = None) -> None:
        """Ask the servers to stop; with `wait`, make sure that they do, otherwise give the last one a moment."""
        self._wanted = but
        leaving = [process for process in self._servers if process is not but]
        for process in leaving:
            if process.poll() is None:
                process.terminate()
        for process in leaving if wait else ():
            end(process)
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
        reader.join(_LAST)  # the lines that say why come before the end
        if process is self._wanted:
            self._ended(status)


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that was asked to stop, and kill it if it does not."""
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, and all that it started."""
    if sys.platform == "win32":
        process.terminate()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    end(process)


def _environment(launch: Launch, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server. It writes no bytecode, which two saves within a second make stale."""
    own = {"PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **own, **launch.make_environment({**_own_path(), **variables})}


def _own_path() -> Mapping[str, str]:
    return {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
