"""The CPU time of typed and untyped calls, as a ratio of `mcp.Client`: over stdio, and over HTTP in both eras.

All clients call the same weather server in turns, in one process. Usage: python bench/typed_calls.py [CALLS] [ROUNDS]
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
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
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
async def serving() -> AsyncIterator[str]:
    """Run the server over HTTP; yield its URL."""
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


async def race(label: str, sdk: Any, connecting: Any, calls: int, rounds: int) -> None:
    """Call the server with each client in turns, and print the ratios."""
    async with sdk as plain, connecting as typed:
        contestants: dict[str, Callable[[], Awaitable[Any]]] = {
            "mcp.Client": lambda: plain.call_tool("get_weather", ARGUMENTS),
            "typed": lambda: typed.get_weather(**ARGUMENTS),
            "untyped": lambda: typed.raw.call_tool("get_weather", ARGUMENTS),
        }
        seconds: dict[str, list[float]] = {name: [] for name in contestants}
        for number in range(rounds + 1):
            for name, call in contestants.items():
                gc.collect()
                start = time.process_time()
                for _ in range(calls if number else 20):
                    await call()
                if number:  # the first round warms up
                    seconds[name].append((time.process_time() - start) / calls)
    for name, each in seconds.items():
        ratios = [own / base for own, base in zip(each, seconds["mcp.Client"], strict=True)]
        print(
            f"{label:18} {name:10} {statistics.median(each) * 1e6:6.0f} us  "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )


async def main(calls: int, rounds: int) -> None:
    """Race over each transport."""
    sys.path[:0] = FOLDERS
    from weather_mcp import WeatherClient

    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=ENVIRONMENT)
    await race("stdio", mcp.Client(parameters), WeatherClient.connect(COMMAND, env=ENVIRONMENT), calls, rounds)
    async with serving() as url:
        for mode, label in (("auto", "HTTP 2026-07-28"), ("legacy", "HTTP 2025-11-25")):
            connecting: Any = WeatherClient.connect(url)
            connecting._client.mode = mode
            await race(label, mcp.Client(url, mode=mode), connecting, calls, rounds)


if __name__ == "__main__":
    logging.disable(logging.INFO)
    asyncio.run(main(*map(int, [*sys.argv[1:], "300", "7"][:2])))
