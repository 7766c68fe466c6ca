"""The runtime next to FastMCP, and to version 1 of the MCP SDK, which many agent frameworks require."""

from __future__ import annotations

import importlib
import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.long

SCRIPT = """
import asyncio
import sys

from mcp import ClientSession
from mcp.server.fastmcp import FastMCP
from stubwright_runtime import MCPError
from weather import Weather
from weather_mcp import WeatherClient, build_server, list_tools


class Refusing(Weather):
    async def get_weather(self, args, ctx):
        raise MCPError(-32000, "no weather today")


async def main():
    async with WeatherClient.connect(build_server(Weather())) as weather:
        print((await weather.get_weather(location="Oslo")).conditions)
    async with WeatherClient.connect([sys.executable, "-m", "weather_mcp"], env=PATHS) as weather:
        print((await weather.get_weather(location="Oslo")).conditions)
    async with WeatherClient.connect(build_server(Refusing())) as weather:
        try:
            await weather.get_weather(location="Oslo")
        except MCPError as error:
            print(error)
    async with build_server(Weather()) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        print((await session.call_tool("get_weather", {"location": "Oslo"})).structuredContent["conditions"])
        for _ in range(2):
            async with WeatherClient.connect(session) as weather:
                print((await weather.get_weather(location="Oslo")).conditions, len(await list_tools(weather)))
    async with build_server(Refusing()) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        async with WeatherClient.connect(session) as weather:
            try:
                await weather.get_weather(location="Oslo")
            except MCPError as error:
                print(error)
    try:
        WeatherClient.connect(FastMCP("old"))
    except TypeError as error:
        print(str(error)[:17])


asyncio.run(main())
"""

FASTMCP = """
import asyncio
import sys

import fastmcp
from fastmcp.client.transports import StdioTransport
from weather_mcp import WeatherClient


async def main():
    client = fastmcp.Client(StdioTransport(sys.executable, ["-m", "weather_mcp"], env=PATHS))
    async with WeatherClient.connect(client) as weather:
        print((await weather.get_weather(location="Oslo")).conditions, client.is_connected())
    print(client.is_connected())
    async with client:
        async with WeatherClient.connect(client) as weather:
            print((await weather.get_weather(location="Oslo")).conditions)
        print(client.is_connected())


asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("framework", "script", "expected"),
    [
        (
            "mcp-1",
            SCRIPT,
            ["Snow", "Snow", "no weather today", "Snow", "Snow 3", "Snow 3", "no weather today", "cannot connect to"],
        ),
        ("fastmcp", FASTMCP, ["Snow True", "False", "Snow", "True"]),
    ],
)
def test_the_runtime_works_next_to_other_clients(framework: str, script: str, expected: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "bench"))
        peers = importlib.import_module("peers")
    try:
        python: Path = peers.framework(framework)
    except peers.NotThereError as error:
        pytest.skip(f"{framework} is not installed: {error}")
    path = f"{ROOT / 'generated'}{os.pathsep}{ROOT / 'examples'}"
    done = subprocess.run(
        [str(python), "-c", f"PATHS = {{'PYTHONPATH': {path!r}}}\n{script}"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected
