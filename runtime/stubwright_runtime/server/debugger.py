"""Remote debugging with debugpy (`--debug-port`)."""

from __future__ import annotations

import errno
import importlib
import socket
import time
from typing import Final

from ..observability.logs import log
from .app.loader import StartError

_HOST: Final = "127.0.0.1"
_PATIENCE: Final = 5  # seconds for the previous server of `dev` to release the port


def listen(port: int | None, *, wait: bool) -> None:
    """Listen for a debugger if a port is set, and log how to attach one.

    Standard input and output must not be connected to a client: debugpy starts a process that inherits both.

    Args:
        port: The TCP port; 0 for any free port; `None` to disable debugging.
        wait: True to block until a debugger attaches.

    Raises:
        StartError: debugpy is not installed, or the port is not free.
    """
    if port is None:
        if wait:
            raise StartError("--debug-wait requires --debug-port, such as --debug-port 5678")
        return
    try:
        debugpy = importlib.import_module("debugpy")
    except ModuleNotFoundError as error:
        if error.name != "debugpy":
            raise
        raise StartError("--debug-port requires debugpy; install it") from None
    try:
        _await_port(port)
        host, bound = debugpy.listen((_HOST, port))
    except (OSError, RuntimeError) as error:  # debugpy raises RuntimeError if the process that it starts fails
        raise StartError(f"cannot listen on --debug-port {port}: {error}", status=1) from None
    # A warning, because a debugger can do anything this process can.
    log().warning(
        "a debugger can attach to %s:%d and run any code in this process; in VS Code, attach with "
        '{"type": "debugpy", "request": "attach", "connect": {"host": "%s", "port": %d}}',
        *(host, bound, host, bound),
    )
    if wait:
        log().warning("waiting for a debugger to attach; to start immediately, omit --debug-wait")
        debugpy.wait_for_client()


def _await_port(port: int) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            socket.create_server((_HOST, port)).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return
