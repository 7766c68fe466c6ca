"""Compatibility of packages and runtimes, and packages of earlier releases."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

import forked
from packages import generate, imported, manifest, tool

lazy = importlib.import_module("stubwright_runtime.lazy")  # the package has a function of that name
RELEASES = sorted(path.name for path in (ROOT / "tests" / "releases").iterdir() if path.is_dir())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    generate(tmp_path, manifest([tool("one")]))
    yield tmp_path
    sys.modules.pop("sample_mcp", None)


@pytest.mark.parametrize(
    ("needed", "oldest", "newest", "served", "remedy"),
    [
        (2, 1, 1, "version 1", "upgrade the runtime"),
        (4, 2, 3, "versions 2 to 3", "upgrade the runtime"),
        (1, 2, 3, "versions 2 to 3", "run `stubwright generate`"),
    ],
)
def test_what_does_not_fit_is_one_error_that_says_what_to_run(
    needed: int, oldest: int, newest: int, served: str, remedy: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "sample_mcp" / "__init__.py"
    file.write_text(file.read_text().replace("api=1", f"api={needed}"))
    monkeypatch.setattr(lazy, "OLDEST", oldest)
    monkeypatch.setattr(lazy, "API", newest)
    with pytest.raises(lazy.IncompatibleRuntimeError) as raised, imported(folder, "sample_mcp"):
        pass
    assert str(raised.value) == (
        f"sample_mcp was generated for interface version {needed} of stubwright_runtime; "
        f"the installed runtime supports {served}; {remedy}"
    )
    assert isinstance(raised.value, ImportError)
    assert raised.value.name == "sample_mcp"


@pytest.mark.parametrize("module", ["client", "server", "models", "__main__", "models.one"])
def test_it_is_the_first_thing_that_any_import_meets(
    module: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy, "API", 0)
    with pytest.raises(lazy.IncompatibleRuntimeError), imported(folder, f"sample_mcp.{module}"):
        pass


def test_a_vendored_runtime_is_mended_by_generating(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "API", 0)
    monkeypatch.setattr(lazy, "__file__", str(folder / "stubwright_runtime" / "lazy.py"))
    with pytest.raises(lazy.IncompatibleRuntimeError) as raised, imported(folder, "sample_mcp"):
        pass
    assert str(raised.value).endswith("; run `stubwright generate`")


def test_the_interface_before_this_one_is_served() -> None:
    assert max(1, lazy.API - 1) >= lazy.OLDEST


def test_a_server_with_a_policy_of_tomorrow_does_not_start(tmp_path: Path) -> None:
    generate(tmp_path, manifest([tool("one", stubwright={"policy": {"timeout": "1s"}})]))
    (tmp_path / "desk.py").write_text("class Desk:\n    def one(self, args, ctx): return ''\n")
    file = tmp_path / "sample_mcp" / "manifest.json"
    file.write_text(file.read_text().replace('"timeout"', '"quota"'))
    done = forked.python(["-m", "sample_mcp", "--handlers", "desk:Desk"], tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert (
        done.stderr
        == "sample_mcp: the manifest of sample_mcp declares `policy.quota`, which this version of stubwright-runtime"
        " does not support; install a newer release\n"
    )


RUN = """
import asyncio, os, sys
import weather, weather_mcp
from weather_mcp import OMIT, ToolFailed, WeatherClient, build_server

async def use(target):
    async with WeatherClient.connect(target, drift="error") as client:
        report = await client.get_weather(location="Paris", units=OMIT)
        days = (await client.get_forecast(location="Paris", days=2)).days
        try:
            await client.get_weather(location="Atlantis")
        except ToolFailed as error:
            said = error.text if hasattr(error, "text") else str(error)
        await client.list_stations()
        await client.read_about()
        await client.read_current(city="Paris")
        await client.prompt_plan_day(city="Paris")
        await client.complete_read_current("city", "L")
        raw = await client.with_raw_response.get_weather(location="Paris")
        print(report.temperature, len(days), "Atlantis" in said, raw.model == report)

async def main():
    await use(build_server(weather.Weather()))
    await use(["env", "PYTHONPATH=" + os.environ["PYTHONPATH"], sys.argv[1], "-m", "weather_mcp"])

print(os.path.dirname(weather_mcp.__file__))
asyncio.run(main())
"""


@pytest.mark.parametrize("release", RELEASES)
def test_packages_of_earlier_releases_run(release: str, tmp_path: Path) -> None:
    folder = ROOT / "tests" / "releases" / release
    interpreter = str(forked.interpreter_in(tmp_path))
    done = forked.python(["-c", RUN, interpreter], tmp_path, [folder, ROOT / "examples"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(folder / "weather_mcp"), *["22.5 2 True True"] * 2]
