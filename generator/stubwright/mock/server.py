"""Serves a mock of a manifest in a subprocess, from a temporary folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stubwright.mock.names import OPTIONS
from stubwright.project.files import disk

if TYPE_CHECKING:
    from stubwright.mock.files import MockFiles

_LOADER: Final = "stubwright.mock.package"
_STOPPING: Final = ("SIGINT", "SIGTERM", "SIGHUP")


def serve(
    mocked: MockFiles,
    options: Sequence[str],
    *,
    seed: int,
    loader: str = _LOADER,
    files: Mapping[str, bytes] | None = None,
) -> int:
    """Serve until the client disconnects or a signal arrives.

    Args:
        mocked: The package's files.
        options: Server options, such as `--http`.
        seed: The random seed for generated responses.
        loader: The module whose `load` returns the package and its handlers in the server process.
        files: Additional files, keyed by name.

    Returns:
        The exit status.

    Raises:
        OSError: The temporary folder cannot be written.
    """
    package = mocked.package + "_mock"  # cannot shadow a required module
    modules = {"__init__.py": _MODULE.format(loader=loader).encode(), "__main__.py": _PROGRAM}
    with forward_signals() as pass_on, tempfile.TemporaryDirectory(prefix="stubwright-mock-") as name:
        options_data = json.dumps({"seed": seed}).encode()
        for path, data in {**mocked.files, OPTIONS: options_data, **modules, **(files or {})}.items():
            disk.write(Path(name, package, path), data)
        # -P: modules in the working folder cannot shadow the server's.
        command = [sys.executable, "-P", "-m", package, "--handlers", f"{package}:HANDLERS", *options]
        path = os.pathsep.join([name, *filter(None, [os.environ.get("PYTHONPATH")])])
        # its own session, so that it receives Ctrl-C only once, from this process
        # The server stops when its standard input is closed, even over HTTP, and so stops with this process.
        stdin = subprocess.PIPE if "--http" in options else None
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, env={**os.environ, "PYTHONPATH": path}, stdin=stdin, start_new_session=True
        )
        pass_on(process)
        status = process.wait()
    return status if status >= 0 else 128 - status


_MODULE: Final = """from pathlib import Path

from {loader} import load

PACKAGE, HANDLERS = load(__name__, Path(__file__).parent)
"""
_PROGRAM: Final = b"""import sys

from stubwright_runtime.generated import main
from stubwright_runtime.server.execution.signals import stop_at_end_of

from . import PACKAGE

if "--http" in sys.argv:
    stop_at_end_of(0)
main(PACKAGE)
"""


@contextmanager
def forward_signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Forward signals that stop this process to a server process, which then shuts down cleanly.

    Yield a function that sets the server process. It then also receives the signals that arrived earlier.
    """
    servers: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        early.append(number)
        for server in servers:
            server.send_signal(_translate_signal(number))

    def pass_on(server: subprocess.Popen[bytes]) -> None:
        for number in early:
            server.send_signal(_translate_signal(number))
        servers.append(server)

    numbers = [getattr(signal, name) for name in _STOPPING if hasattr(signal, name)]
    previous = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield pass_on
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _translate_signal(number: int) -> int:
    # A closed terminal also stops the server.
    return number if number == signal.SIGINT else signal.SIGTERM
