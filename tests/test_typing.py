"""What type checkers say of handlers and callers: right ones pass, wrong ones are found, without a plugin."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import modules
from toolwright.codegen import datamodel

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

    async def read_current(self, args: ReadCurrentParams, ctx: Context) -> str | None:
        return args.city if ctx.revision else None


class Sync(WeatherHandlers):
    def get_weather(self, args: GetWeatherInput, ctx: Context) -> GetWeatherOutput:
        ctx.wait(ctx.log("info", {"location": args.location}))
        return GetWeatherOutput(temperature=1.5, conditions="Sunny", humidity=65)

    def get_forecast(self, args: GetForecastInput, ctx: Context) -> GetForecastOutput | Reply[GetForecastOutput]:
        return GetForecastOutput(days=[])

    def list_stations(self, args: ListStationsInput, ctx: Context) -> Content:
        return [text("Paris"), text("Oslo")]

    def read_current(self, args: ReadCurrentParams, ctx: Context) -> bytes:
        return args.city.encode()


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


@pytest.fixture(params=["mypy", "pyright"])
def checker(request: pytest.FixtureRequest, mypy: list[str]) -> list[str]:
    """The command of a type checker."""
    if request.param == "mypy":
        return [*mypy, "--no-error-summary"]
    found = Path(sys.executable).with_name("pyright")
    if not found.exists() and "CI" not in os.environ:
        pytest.skip("pyright is not installed")
    return [str(found), "--pythonpath", sys.executable]


def lines(checker: list[str], text: str, folder: Path) -> tuple[set[int], str]:
    """The lines that a type checker finds wrong."""
    path = folder / "handlers.py"
    path.write_text(text)
    (folder / "pyrightconfig.json").write_text(
        f'{{"extraPaths": ["{ROOT / "generated"}"], "typeCheckingMode": "strict"}}'
    )
    env = {**os.environ, "MYPYPATH": str(ROOT / "generated")}
    done = subprocess.run([*checker, str(path)], cwd=folder, env=env, capture_output=True, text=True, check=False)
    found = re.findall(r"handlers\.py:(\d+)(?::\d+)?(?: -|:) error", done.stdout)
    return {int(line) for line in found}, done.stdout + done.stderr


def test_right_handlers_pass(checker: list[str], tmp_path: Path) -> None:
    found, printed = lines(checker, RIGHT, tmp_path)
    assert found == set(), printed
    assert "rror:" not in printed


def test_wrong_handlers_are_found(checker: list[str], tmp_path: Path) -> None:
    found, printed = lines(checker, WRONG, tmp_path)
    expected = {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# error")}
    assert found == expected, printed


COMMITTED = sorted(path.parent.name for path in ROOT.glob("generated/*/registry.py"))


def test_committed_packages_pass_strictly(tmp_path: Path) -> None:
    """pyright's strict mode; `make lint` has it for the runtime in them, too."""
    found = Path(sys.executable).with_name("pyright")
    if not found.exists() and "CI" not in os.environ:
        pytest.skip("pyright is not installed")
    (tmp_path / "generated").symlink_to(ROOT / "generated")
    config = {"include": [f"generated/{name}" for name in COMMITTED], "exclude": ["**/_runtime"]}
    strict = {"pythonVersion": "3.11", "typeCheckingMode": "strict", "extraPaths": ["generated"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({**config, **strict}))
    command = [str(found), "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "0 errors, 0 warnings" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("folder", [ROOT / "generated", *sorted(ROOT.glob("tests/cases/*/expected"))], ids=str)
def test_ruff_finds_nothing_with_its_default_rules(folder: Path) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


POINT = {"type": "object", "properties": {"x": {"type": "number"}}}
LABEL = {"type": "object", "properties": {"text": {"type": "string"}}}
DEFAULTS: list[tuple[list[Any], list[Any]]] = [
    ([POINT, LABEL], [{"x": 1}, {}]),
    ([POINT, {"type": ["string", "null"]}], [{"x": 1}, None]),
    ([POINT, {"type": "number"}], [{}, 1]),
    ([POINT, {"enum": ["a", 1]}], [{}, "a"]),
    ([{"anyOf": [POINT, {"type": "boolean"}]}, LABEL], [True, {}]),
    ([POINT, {"type": "array", "items": {"type": "integer"}}], [{}, [1, 2]]),
    ([POINT, {"type": "array", "items": {"type": "number"}}], [{}, [1, 2]]),
    ([POINT, {"type": "array", "items": {"type": "number"}}], [{}, [1, 2.5]]),
    ([POINT, {"type": "array", "items": {"enum": ["a", "b"]}}], [{}, ["a"]]),
    ([POINT, {"type": "array", "items": {"anyOf": [POINT, LABEL]}}], [{}, [{"x": 1}]]),
    ([POINT, {"type": "array", "items": {"anyOf": [POINT, {"type": "null"}]}}], [{}, [{"x": 1}, None]]),
    ([POINT, {"type": "array", "items": POINT}], [{}, [{"x": 1}]]),
    ([POINT, {"type": "array", "items": POINT}], [{}, []]),
    ([POINT, {"type": "array"}], [{}, [1, "a"]]),
    ([POINT, {"type": "array"}], [{}, []]),
    ([POINT, {"type": "object"}], [{}, {"a": 1}]),
    ([POINT, {"type": "object", "additionalProperties": {"type": "number"}}], [{}, {"a": 1}]),
    ([POINT, {"type": ["array", "null"], "items": {"type": "integer"}}], [{}, [1]]),
]


def test_defaults_are_of_their_types(checker: list[str], tmp_path: Path) -> None:
    """Tuples of models and what is wider than its default: no error, and no cast that says nothing."""
    properties: dict[str, Any] = {}
    for number, (places, value) in enumerate(DEFAULTS):
        fixed = {"type": "array", "prefixItems": places, "minItems": 2, "maxItems": 2}
        properties[f"p{number}"] = {**fixed, "default": value}
        properties[f"q{number}"] = {"type": "array", "items": fixed, "default": [value]}
    module = datamodel.modules([modules.tool("do_it", {"type": "object", "properties": properties})])[0]
    assert all(each.default is not None for each in module.parameters)
    runtime = tmp_path / "_runtime"
    runtime.mkdir()
    (runtime / "model.py").write_text((ROOT / "generator" / "toolwright" / "runtime" / "model.py").read_text("utf-8"))
    (tmp_path / "handlers.py").write_text(module.source.replace("from .._runtime.", "from _runtime."))
    done = subprocess.run(
        [*checker, str(tmp_path / "handlers.py")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
