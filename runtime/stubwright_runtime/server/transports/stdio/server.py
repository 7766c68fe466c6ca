"""Runs a server over stdio."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ....observability.logs import log
from ...calls.watchdog import watch_loop
from ...execution.event_loop import run_loop
from ...execution.signals import handle_stop_signals, stop_signals
from .connection import Connection
from .reader import read_lines
from .writer import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ...app.core import Core
    from .wire import StdioPipes


def run(core: Core, wire: StdioPipes) -> None:
    """Serve until the client closes a pipe, or SIGINT, SIGTERM, SIGHUP or SIGBREAK arrives.

    Pending requests then receive an error. A second signal kills the process immediately.

    Args:
        core: The server, without a transport.
        wire: The file descriptors that carry messages.
    """
    run_loop(_serve(core, wire))


async def _serve(core: Core, wire: StdioPipes) -> None:
    stopping, gone = asyncio.Event(), asyncio.Event()
    output = Output(wire.sink, gone.set)
    connection = Connection(core, output)
    serving = asyncio.create_task(_serve_client(core, wire, connection))
    ends = [asyncio.create_task(event.wait()) for event in (stopping, gone)]
    try:
        with _stop_on_signals(stopping.set):
            await asyncio.wait([serving, *ends], return_when=asyncio.FIRST_COMPLETED)
            if not serving.done():
                if not gone.is_set():
                    await connection.abort_requests()
                serving.cancel()
                with suppress(asyncio.CancelledError):
                    await serving
        if serving.done() and not serving.cancelled():
            serving.result()
    finally:
        for end in ends:
            end.cancel()
        output.close()


async def _serve_client(core: Core, wire: StdioPipes, connection: Connection) -> None:
    async with core.lifespan(), read_lines(wire.source, connection.try_handle, connection.end) as lines:
        try:
            with watch_loop(core.package.name):
                async for line in lines:
                    await connection.handle(line)
                await connection.disconnect()
        finally:
            await connection.close()


@contextmanager
def _stop_on_signals(stop: Callable[[], None]) -> Generator[None, None, None]:
    """Call `stop` on the first signal. Restore the default handlers, so that a second signal kills the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = stop_signals()

    def on_signal(number: signal.Signals) -> None:
        log().info("stopping: %s", number.name)
        for each in numbers:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        stop()

    with handle_stop_signals(loop, on_signal):
        yield
