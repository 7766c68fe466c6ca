"""Measures the CPU time of typed and untyped calls as a ratio of `mcp.Client`, over stdio and over HTTP in both eras.

    python bench/typed_calls.py [CALLS] [ROUNDS]

All clients call the same weather server in turns, in one process. `connecting` connects, calls once, and closes; child
processes do not count.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import mcp
from mcp.client.stdio import StdioServerParameters

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = [str(ROOT / "generated"), str(ROOT / "examples")]
COMMAND: Final = [sys.executable, "-m", "weather_mcp"]
ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": os.pathsep.join(FOLDERS)}
ARGUMENTS: Final = {"location": "Paris", "units": "metric"}


@asynccontextmanager
async def serve() -> AsyncIterator[str]:
    """Run the server over HTTP. Yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = await asyncio.create_subprocess_exec(
        *COMMAND, "--http", f"127.0.0.1:{port}", env=ENVIRONMENT, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        await server.wait()


async def race(label: str, make_sdk: Callable[[], Any], make_typed: Callable[[], Any], calls: int, rounds: int) -> None:
    """Call the server with each client in turns, and print the ratios."""

    async def connect_sdk() -> None:
        async with make_sdk() as client:
            await client.call_tool("get_weather", ARGUMENTS)

    async def connect_typed() -> None:
        async with make_typed() as client:
            await client.get_weather(**ARGUMENTS)

    async with make_sdk() as plain, make_typed() as typed:
        await compare(
            label,
            {
                "mcp.Client": lambda: plain.call_tool("get_weather", ARGUMENTS),
                "typed": lambda: typed.get_weather(**ARGUMENTS),
                "untyped": lambda: typed.raw.call_tool("get_weather", ARGUMENTS),
            },
            calls,
            rounds,
        )
    await compare(f"{label}, connecting", {"mcp.Client": connect_sdk, "typed": connect_typed}, 5, rounds)


async def compare(label: str, contestants: Mapping[str, Callable[[], Awaitable[Any]]], calls: int, rounds: int) -> None:
    """Run all clients in turns, and print their CPU times as ratios of the first."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, call in contestants.items():
            gc.collect()
            start = time.process_time()
            for _ in range(calls if number else min(calls, 20)):
                await call()
            if number:  # the first round warms up
                seconds[name].append((time.process_time() - start) / calls)
    first = next(iter(contestants))
    for name, each in seconds.items():
        ratios = [own / base for own, base in zip(each, seconds[first], strict=True)]
        print(
            f"{label:28} {name:10} {statistics.median(each) * 1e6:6.0f} us  "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )


async def main(calls: int, rounds: int) -> None:
    """Race over each transport."""
    sys.path[:0] = FOLDERS
    from weather_mcp import WeatherClient

    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=ENVIRONMENT)
    await race(
        "stdio",
        lambda: mcp.Client(parameters),
        lambda: WeatherClient.connect(COMMAND, env=ENVIRONMENT),
        calls,
        rounds,
    )
    async with serve() as url:
        for mode, label in (("auto", "HTTP 2026-07-28"), ("legacy", "HTTP 2025-11-25")):
            await race(
                label, partial(mcp.Client, url, mode=mode), partial(connect, WeatherClient, url, mode), calls, rounds
            )


def connect(kind: Any, url: str, mode: str) -> Any:
    """Return a typed client that negotiates as `mcp.Client` does in this mode."""
    connecting = kind.connect(url)
    connecting._client.mode = mode
    return connecting


if __name__ == "__main__":
    logging.disable(logging.INFO)
    asyncio.run(main(*map(int, [*sys.argv[1:], "300", "7"][:2])))
