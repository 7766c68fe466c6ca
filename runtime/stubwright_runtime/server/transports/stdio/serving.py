"""The server on standard input and output, from its start to its end."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ....observability.logs import log
from ...calls.watchdog import watch_loop
from ...execution.signals import stop_signals, stop_signals_heard
from .connection import Connection
from .reading import read_lines
from .writing import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ...app.core import Core
    from .wire import StdioPipes


def run(core: Core, wire: StdioPipes) -> None:
    """Serve until standard input is closed, the client is gone, or SIGINT, SIGTERM, SIGHUP or SIGBREAK arrives.

    All of these are clean stops: this function returns. Interrupted requests are answered with an error. A second
        signal ends the process immediately.

    Args:
        core: The server.
        wire: The file descriptors of messages.
    """
    asyncio.run(_serve(core, wire))


async def _serve(core: Core, wire: StdioPipes) -> None:
    stopping, gone = asyncio.Event(), asyncio.Event()
    output = Output(wire.sink, gone.set)
    connection = Connection(core, output)
    serving = asyncio.create_task(_serve_client(core, wire, connection))
    ends = [asyncio.create_task(event.wait()) for event in (stopping, gone)]
    try:
        with _stopped_by_signals(stopping.set):
            await asyncio.wait([serving, *ends], return_when=asyncio.FIRST_COMPLETED)
            if not serving.done():
                if not gone.is_set():
                    await connection.cut_off()
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
    async with core.lifespan(), read_lines(wire.source, connection.takes, connection.end) as lines:
        try:
            with watch_loop(core.package.name):
                async for line in lines:
                    await connection.take(line)
                await connection.disconnect()
        finally:
            await connection.close()


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Generator[None, None, None]:
    """Call `stop` at the first signal; the next one has its default effect, which ends the process."""
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

    with stop_signals_heard(loop, on_signal):
        yield
