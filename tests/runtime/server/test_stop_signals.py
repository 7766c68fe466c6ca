"""Stop signals of a program with a mounted server; `tests/servers/test_real_hosts.py` has real programs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stubwright_runtime.server.execution.signals import observe_stop_signals

STOPS = [signal.SIGINT, signal.SIGTERM]


@contextmanager
def handled(number: signal.Signals, handler: Any) -> Iterator[None]:
    """Handle a signal, as the surrounding program does."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


async def turn() -> None:
    """Let the loop call all that is due."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("number", STOPS)
def test_both_hear_of_a_signal(number: signal.Signals) -> None:
    heard: list[object] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        with (
            observe_stop_signals(loop, lambda: heard.append("outer")),
            observe_stop_signals(loop, lambda: heard.append("inner")),
        ):
            signal.raise_signal(number)
            await turn()
        assert signal.getsignal(number) is handler
        signal.raise_signal(number)
        await turn()

    def handler(number: int, _: object) -> None:
        heard.append(number)

    with handled(number, handler):
        asyncio.run(run())
    assert sorted(heard, key=str) == [number, number, "inner", "outer"]


@pytest.mark.parametrize("number", STOPS)
def test_handlers_of_a_loop_are_called(number: signal.Signals) -> None:
    heard: list[str] = []

    async def run() -> None:
        loop, is_told = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(number, is_told.set)
        with observe_stop_signals(loop, lambda: heard.append("server")):
            signal.raise_signal(number)
            async with asyncio.timeout(60):
                await is_told.wait()
            await turn()
        loop.remove_signal_handler(number)

    with handled(number, signal.getsignal(number)):
        asyncio.run(run())
    assert heard == ["server"]


def test_a_handler_that_is_set_later_stays() -> None:
    """It may call the previous handler, which must then forward the signal, but not to a closed loop."""
    heard: list[str] = []
    later: list[Callable[..., object]] = []

    async def run() -> None:
        with observe_stop_signals(asyncio.get_running_loop(), lambda: heard.append("server")):
            overhearing: Any = signal.getsignal(signal.SIGTERM)
            later.append(lambda number, frame: overhearing(number, frame))
            signal.signal(signal.SIGTERM, later[0])

    with handled(signal.SIGTERM, lambda *_: heard.append("program")):
        asyncio.run(run())
        assert signal.getsignal(signal.SIGTERM) is later[0]
        signal.raise_signal(signal.SIGTERM)
    assert heard == ["program"]


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler])
def test_without_a_handler_of_the_program_there_is_none(handler: Any) -> None:
    async def run() -> None:
        with observe_stop_signals(asyncio.get_running_loop(), lambda: None):
            assert signal.getsignal(signal.SIGTERM) is handler

    with handled(signal.SIGTERM, handler):
        asyncio.run(run())


def test_in_another_thread_there_is_none() -> None:
    seen: list[object] = []

    async def run() -> None:
        with observe_stop_signals(asyncio.get_running_loop(), lambda: None):
            seen.append(signal.getsignal(signal.SIGTERM))

    def handler(*_: object) -> None:
        pass

    with handled(signal.SIGTERM, handler):
        thread = threading.Thread(target=asyncio.run, args=[run()])
        thread.start()
        thread.join()
    assert seen == [handler]


@pytest.mark.skipif(os.name == "nt", reason="Windows closes pipes differently")
def test_a_process_that_ignores_the_end_of_its_parent_is_killed() -> None:
    program = (
        "import signal, time; from stubwright_runtime.server.execution.signals import stop_at_end_of\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); stop_at_end_of(0, 0.1); time.sleep(10)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
        process.communicate()
    assert process.returncode == 1
