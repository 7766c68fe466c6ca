"""The runtime next to version 1 of the MCP SDK, which many agent frameworks bring."""

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
from weather_mcp import WeatherClient, build_server


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
    try:
        WeatherClient.connect(FastMCP("old"))
    except TypeError as error:
        print(str(error)[:17])


asyncio.run(main())
"""


def test_the_runtime_works_next_to_version_1_of_the_sdk() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "bench"))
        peers = importlib.import_module("peers")
    try:
        python: Path = peers.framework("mcp-1")
    except peers.NotThereError as error:
        pytest.skip(f"version 1 of the SDK is not installed: {error}")
    path = f"{ROOT / 'generated'}{os.pathsep}{ROOT / 'examples'}"
    script = f"PATHS = {{'PYTHONPATH': {path!r}}}\n{SCRIPT}"
    done = subprocess.run(
        [str(python), "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Snow", "Snow", "no weather today", "Snow", "cannot connect to"]
