"""Type checkers accept correct handlers and callers and report wrong ones, without a plugin."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import amounts
import modules
import packages
from stubwright.codegen.models import datamodel

ROOT = Path(__file__).parents[2]
RIGHT = """
from collections.abc import Sequence
from typing import assert_type

from weather_mcp import (
    OMIT, Content, Context, GetForecastInput, GetForecastOutput, GetForecastOutputDays, GetWeatherInput,
    GetWeatherOutput, ListStationsInput, ReadCurrentParams, Reply, WeatherClient, WeatherHandlers, build_server, text,
)


class Async(WeatherHandlers):
    async def get_weather(self, args: GetWeatherInput, ctx: Context) -> GetWeatherOutput:
        await ctx.progress(1, 2, args.location.upper())
        assert_type(await ctx.once("measure", lambda: args.location), str)
        humidity = await ctx.once("humidity", self.measure)
        assert_type(await ctx.once("length", lambda key: len(key)), int)
        assert_type(await ctx.once("later", lambda: self.measure("")), int)
        return GetWeatherOutput(temperature=1, conditions=args.units, humidity=humidity)

    async def measure(self, key: str) -> int:
        return len(key)

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
        await ctx.once("measure", lambda key, unit: unit)  # error
        return GetWeatherOutput(conditions=args.place)  # error


Missing()  # error


async def use(weather: WeatherClient) -> None:
    await weather.get_weather("Paris")  # error
    await weather.get_weather(location="Paris", units="kelvin")  # error
    await weather.get_wether(location="Paris")  # error
"""

TASKS = """
from typing import assert_type

from mcp_types import BlobResourceContents, TextResourceContents
from tasks_mcp import CallResponse, ShipOutput, TasksClient, TasksShippingClient, ToolContent, ToolTask


async def right(client: TasksClient) -> None:
    task = await client.tasks.ship(order_id="7", express=True)
    assert_type(task, ToolTask[ShipOutput])
    assert_type(await task, ShipOutput)
    assert_type(await client.tasks.with_options(ttl=60).ship.resume(task.id), ShipOutput)
    assert_type(await client.tasks.say.resume(task.id).wait(timeout=5), ToolContent)
    assert_type([state.message async for state in task.updates()], list[str | None])
    assert_type([state.id async for state in client.tasks.list()], list[str])
    ends: bool = task.status == "completed" and task.done()
    print(ends)


async def wrong(client: TasksClient) -> None:
    await client.tasks.ship(order="7")  # error
    await client.tasks.ship(order_id=7)  # error
    await client.tasks.ship("7")  # error
    await client.tasks.ship()  # error
    await client.tasks.find()  # error
    client.tasks.ship.resume(7)  # error
    task: ToolTask[ShipOutput] = await client.tasks.say()  # error
    print(task.tracking)  # error


async def part(client: TasksShippingClient) -> None:
    assert_type(await client.ship(order_id="7"), ShipOutput)
    assert_type(await client.with_raw_response.ship(order_id="7"), CallResponse[ShipOutput])
    assert_type(await client.tasks.ship(order_id="7"), ToolTask[ShipOutput])
    assert_type(await client.read_rates(region="eu"), list[TextResourceContents | BlobResourceContents])
    await client.with_raw_response.ship(order=7)  # error
    await client.with_raw_response.find()  # error
    await client.tasks.say()  # error
    await client.say()  # error
"""


PAGES = """
from typing import assert_type

from library_mcp import (
    LibraryClient, LibraryHandlers, ListBooksContext, ListBooksInput, ListBooksOutput, ListBooksOutputBooks,
    PageRequest,
)


class Library(LibraryHandlers):
    async def list_books(self, args: ListBooksInput, ctx: ListBooksContext) -> ListBooksOutput:
        assert_type(ctx.page, PageRequest)
        assert_type(ctx.page.position, str | None)
        books = [ListBooksOutputBooks(title="Emma")] * ctx.page.size
        return ListBooksOutput(books=books, nextCursor=ctx.page.position)


async def right(client: LibraryClient) -> None:
    async for book in client.list_books.pages(genre="novel"):
        assert_type(book, ListBooksOutputBooks)
    async for page in client.list_books.pages().by_page():
        assert_type(page, ListBooksOutput)
    assert_type([name async for name in client.list_names.pages()], list[str | None])
    assert_type((await client.list_books(cursor="x")).nextCursor, str | None)


async def wrong(client: LibraryClient) -> None:
    client.list_books.pages(gender="novel")  # error
    client.list_books.pages(genre=7)  # error
    print((await client.list_books()).next)  # error


def positions(args: ListBooksInput, ctx: ListBooksContext) -> int:
    return args.cursor or ctx.page.position  # error
"""


def pages(folder: Path) -> None:
    """Make the package that `pages.py` uses."""
    book = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    tools = [
        packages.tool(
            name,
            {"genre": {"type": "string"}},
            outputSchema={"type": "object", "properties": {items: {"type": "array", "items": of}}, "required": [items]},
            stubwright={"paginate": {"items": items, "size": 2}},
        )
        for name, items, of in (("list_books", "books", book), ("list_names", "names", {"type": ["string", "null"]}))
    ]
    tools[0]["inputSchema"]["additionalProperties"] = False
    packages.generate(folder, packages.manifest(tools, name="library"))
    (folder / "pages.py").write_text(PAGES)


def tasks(folder: Path) -> None:
    """Make the package that `tasks.py` uses."""
    schema = {"type": "object", "properties": {"order_id": {"type": "string"}, "express": {"type": "boolean"}}}
    ship = {"inputSchema": {**schema, "required": ["order_id"], "additionalProperties": False}}
    output = {"outputSchema": {"type": "object", "properties": {"tracking": {"type": "string"}}}}
    optional = {"execution": {"taskSupport": "optional"}}
    tools = [
        packages.tool("ship", **output, **optional) | ship,
        packages.tool("say", execution={"taskSupport": "required"}),
        packages.tool("old", **optional, stubwright={"deprecated": {"use": "say"}}),
        packages.tool("find"),
    ]
    more = {
        "toolsets": {"shipping": {"tools": ["ship", "old"]}},
        "resourceTemplates": [{"name": "rates", "uriTemplate": "rates://{region}", "description": "Rates."}],
    }
    packages.generate(folder, packages.manifest(tools, name="tasks", emit=["client"], **more))
    (folder / "tasks.py").write_text(TASKS)


@pytest.fixture(scope="module", params=["mypy", pytest.param("pyright", marks=pytest.mark.long)])
def checked(request: pytest.FixtureRequest, mypy: list[str], tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """Return a type checker's output for `right.py`, `wrong.py` and the like, in one run, because its start is slow."""
    folder = tmp_path_factory.mktemp("checked")
    (folder / "right.py").write_text(RIGHT)
    (folder / "wrong.py").write_text(WRONG)
    (folder / "defaults.py").write_text(defaults())
    tasks(folder)
    pages(folder)
    config = {
        "extraPaths": [str(ROOT / "generated")],
        "strict": ["right.py", "wrong.py", "defaults.py", "tasks.py", "tasks_mcp", "pages.py", "library_mcp"],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [*mypy, "--no-error-summary"]
    if request.param == "pyright":
        found = Path(sys.executable).with_name("pyright")
        if not found.exists() and "CI" not in os.environ:
            pytest.skip("pyright is not installed")
        command = [str(found), "--pythonpath", sys.executable]
    env = {**os.environ, "MYPYPATH": str(ROOT / "generated")}
    files = ["right.py", "wrong.py", "defaults.py", "tasks.py", "tasks_mcp", "pages.py", "library_mcp"]
    done = subprocess.run([*command, *files], cwd=folder, env=env, capture_output=True, text=True, check=False)
    return Checked(done.stdout + done.stderr)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a type checker printed."""

    printed: str

    def lines(self, file: str) -> set[int]:
        """The lines of a file that are wrong."""
        found = re.findall(r"^\s*(\S+\.py):(\d+)(?::\d+)?(?: -|:) error", self.printed, re.MULTILINE)
        return {int(line) for path, line in found if Path(path).name == file}


def test_right_handlers_pass(checked: Checked) -> None:
    assert checked.lines("right.py") == set(), checked.printed
    errors = [line for line in checked.printed.splitlines() if re.search(r"rror: |- error", line)]
    assert [line for line in errors if not re.search(r"(wrong|tasks|pages)\.py:", line)] == []


def test_wrong_handlers_are_found(checked: Checked) -> None:
    expected = {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# error")}
    assert checked.lines("wrong.py") == expected, checked.printed


def test_tasks_are_typed_as_their_methods(checked: Checked) -> None:
    expected = {number for number, line in enumerate(TASKS.splitlines(), 1) if line.endswith("# error")}
    assert checked.lines("tasks.py") == expected, checked.printed


def test_pages_are_typed_by_their_items(checked: Checked) -> None:
    expected = {number for number, line in enumerate(PAGES.splitlines(), 1) if line.endswith("# error")}
    assert checked.lines("pages.py") == expected, checked.printed


@pytest.mark.parametrize(
    "folder", amounts.sample([ROOT / "generated", *sorted(ROOT.glob("tests/cases/*/expected"))], 4), ids=str
)
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


LETTERS = {"type": "array", "items": {"enum": ["A", "B"]}}
NAMES = {"type": "object", "additionalProperties": {"enum": ["A", 1]}}
NUMBERS = {"type": "array", "items": {"type": "number"}}
NULL = {"type": "null"}
WIDER: list[tuple[dict[str, Any], list[Any]]] = [
    ({"anyOf": [LETTERS, NULL]}, [["A"], ["A", "B"], []]),
    ({"anyOf": [NAMES, NULL]}, [{"a": "A"}, {"a": "A", "b": 1}, {}]),
    ({"anyOf": [{"type": "array", "items": LETTERS}, NULL]}, [[["A"]], [[]]]),
    ({"anyOf": [{"type": "array", "items": {"anyOf": [LETTERS, NULL]}}, NULL]}, [[["A"], None], [None]]),
    ({"anyOf": [{"type": "array", "items": {"type": "string"}, "uniqueItems": True}, NULL]}, [["A"], []]),
    ({"anyOf": [LETTERS, LETTERS]}, [["A"]]),
    ({"anyOf": [{"type": "array", "items": {"type": "integer"}}, NUMBERS]}, [[1], [1.5], [1, 1.5]]),
    ({"anyOf": [LETTERS, NAMES]}, [["A"], {"a": 1}]),
    ({"type": "array", "items": {"anyOf": [LETTERS, NUMBERS]}}, [[["A"]], [[1]], [[1.5]], [["A"], [1]], [[]]]),
    ({"type": "object", "additionalProperties": {"anyOf": [LETTERS, NAMES]}}, [{"a": ["A"]}, {"a": {"b": 1}}]),
    (
        {"anyOf": [{"type": "array", "prefixItems": [LETTERS, NUMBERS], "minItems": 2, "maxItems": 2}, NULL]},
        [[["A"], [1]]],
    ),
    (
        {"type": "array", "prefixItems": [{"anyOf": [LETTERS, NUMBERS]}, NULL], "minItems": 2, "maxItems": 2},
        [[["A"], None], [[1], None]],
    ),
    (
        {"anyOf": [{"type": "array", "items": {"anyOf": [POINT, {"enum": ["A"]}]}}, NULL]},
        [[{"x": 1}], ["A"], ["A", {}]],
    ),
    ({}, [[], {}, [[]], {"a": {"b": []}}, ["A", None]]),
]


def defaults() -> str:
    """Fields that may be more than their defaults, and tuples of models, as the module of a tool."""
    properties: dict[str, Any] = {}
    for number, (places, value) in enumerate(DEFAULTS):
        fixed = {"type": "array", "prefixItems": places, "minItems": 2, "maxItems": 2}
        properties[f"p{number}"] = {**fixed, "default": value}
        properties[f"q{number}"] = {"type": "array", "items": fixed, "default": [value]}
    for number, (schema, values) in enumerate(WIDER):
        properties |= {f"w{number}_{index}": {**schema, "default": value} for index, value in enumerate(values)}
    module = datamodel.make_modules([modules.tool("do_it", {"type": "object", "properties": properties})])[0]
    assert all(each.default is not None for each in module.parameters)
    return module.source


def test_defaults_are_of_their_types(checked: Checked) -> None:
    """No error, and no redundant cast."""
    assert checked.lines("defaults.py") == set(), checked.printed
