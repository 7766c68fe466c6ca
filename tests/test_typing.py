"""What type checkers say of handlers and callers: right ones pass, wrong ones are found, without a plugin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RIGHT = """
from collections.abc import Sequence

from weather_mcp import (
    OMIT, Content, Context, GetForecastInput, GetForecastOutput, GetForecastOutputDays, GetWeatherInput,
    GetWeatherOutput, ListStationsInput, ReadCurrentParams, Reply, WeatherClient, WeatherHandlers, build_server, text,
)


class Async(WeatherHandlers):
    async def get_weather(self, args: GetWeatherInput, ctx: Context) -> GetWeatherOutput:
        await ctx.progress(1, 2, args.location.upper())
        return GetWeatherOutput(temperature=1, conditions=args.units, humidity=65)

    async def get_forecast(self, args: GetForecastInput, ctx: Context) -> Reply[GetForecastOutput]:
        day = GetForecastOutputDays(date="2026-07-28", low=1.5, high=2, conditions="Sunny")
        return Reply(GetForecastOutput(days=[day] * args.days), content=[text("Sunny")])

    async def list_stations(self, args: ListStationsInput, ctx: Context) -> str:
        return "Paris"

    async def read_current(self, params: ReadCurrentParams, ctx: Context) -> str | None:
        return params.city if ctx.can("roots") else None


class Sync(WeatherHandlers):
    def get_weather(self, args: GetWeatherInput, ctx: Context) -> GetWeatherOutput:
        ctx.wait(ctx.log("info", {"location": args.location}))
        return GetWeatherOutput(temperature=1.5, conditions="Sunny", humidity=65)

    def get_forecast(self, args: GetForecastInput, ctx: Context) -> GetForecastOutput | Reply[GetForecastOutput]:
        return GetForecastOutput(days=[])

    def list_stations(self, args: ListStationsInput, ctx: Context) -> Content:
        return [text("Paris"), text("Oslo")]

    def read_current(self, params: ReadCurrentParams, ctx: Context) -> bytes:
        return params.city.encode()


async def use() -> float:
    async with WeatherClient.connect(build_server(Async())) as weather:
        report = await weather.get_weather(location="Paris", units=OMIT)
        forecast = await weather.with_options(timeout=5).get_forecast(location="Oslo")
        days: Sequence[GetForecastOutputDays] = forecast.days
        return report.temperature + days[0].low
"""
WRONG = """
from weather_mcp import (
    Context, GetForecastOutput, GetWeatherInput, GetWeatherOutput, ListStationsInput, WeatherClient,
    WeatherHandlers,
)


class Wrong(WeatherHandlers):
    async def get_weather(self, args: GetWeatherInput, ctx: Context) -> str:  # error
        return "warm"

    def get_forecast(self, args: GetWeatherInput, ctx: Context) -> GetForecastOutput:  # error
        return GetForecastOutput(days="none")  # error

    def list_stations(self, args: ListStationsInput) -> int:  # error
        return 1


class Missing(WeatherHandlers):
    async def get_weather(self, args: GetWeatherInput, ctx: Context) -> GetWeatherOutput:
        return GetWeatherOutput(conditions=args.place)  # error


Missing()  # error


async def use(weather: WeatherClient) -> None:
    await weather.get_weather("Paris")  # error
    await weather.get_weather(location="Paris", units="kelvin")  # error
    await weather.get_wether(location="Paris")  # error
"""


def checker(name: str) -> list[str]:
    """The command of a type checker."""
    if name == "mypy":
        return [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-incremental"]
    found = Path(sys.executable).with_name("pyright")
    if not found.exists() and "CI" not in os.environ:
        pytest.skip("pyright is not installed")
    return [str(found), "--pythonpath", sys.executable]


def lines(name: str, text: str, folder: Path) -> tuple[set[int], str]:
    """The lines that a type checker finds wrong."""
    path = folder / "handlers.py"
    path.write_text(text)
    (folder / "pyrightconfig.json").write_text(
        f'{{"extraPaths": ["{ROOT / "generated"}"], "typeCheckingMode": "strict"}}'
    )
    env = {**os.environ, "MYPYPATH": str(ROOT / "generated")}
    done = subprocess.run([*checker(name), str(path)], cwd=folder, env=env, capture_output=True, text=True, check=False)
    found = re.findall(r"handlers\.py:(\d+)(?::\d+)?(?: -|:) error", done.stdout)
    return {int(line) for line in found}, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["mypy", "pyright"])
def test_right_handlers_pass(name: str, tmp_path: Path) -> None:
    found, printed = lines(name, RIGHT, tmp_path)
    assert found == set(), printed
    assert "rror:" not in printed


@pytest.mark.parametrize("name", ["mypy", "pyright"])
def test_wrong_handlers_are_found(name: str, tmp_path: Path) -> None:
    found, printed = lines(name, WRONG, tmp_path)
    expected = {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# error")}
    assert found == expected, printed
