"""`runtime = "vendored"`: the runtime in the output folder, next to the packages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import amounts
import third_party
from stubwright import cli, package_data
from stubwright.project import vendoring
from stubwright.project.files import lock, tree

PROJECT = """[project]
name = "sample"
version = "1"
dependencies = [{dependencies}]

[tool.stubwright]
manifests = ["specs/*.yaml"]
runtime = "{runtime}"
"""
FOLDER = Path("generated/stubwright_runtime")
OWN = FOLDER / "server" / "own.py"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    for name in ("weather.yaml", "weather.md"):
        shutil.copy(ROOT / "specs" / name, "specs")
    shutil.copy(ROOT / "examples" / "weather.py", ".")
    say("vendored")
    return tmp_path


def say(runtime: str, *dependencies: str) -> None:
    listed = ", ".join(map(json.dumps, dependencies))
    Path("pyproject.toml").write_text(PROJECT.format(runtime=runtime, dependencies=listed))


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_it_is_written_once_and_verbatim(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["generate"]) == 0
    there = files(FOLDER)
    attributes = there.pop(".gitattributes")
    assert there == files(package_data.RUNTIME)
    assert attributes == b"* linguist-generated=true text eol=lf\n"
    assert f"generated/stubwright_runtime: {len(there) + 1} files written\n" in capsys.readouterr().out
    assert cli.run(["generate"]) == 0
    assert capsys.readouterr().out == "specs/weather.yaml: up to date\n"
    assert cli.run(["generate", "--check"]) == 0
    assert cli.run(["generate", "specs/weather.yaml"]) == 0
    assert files(FOLDER).keys() == {*there, ".gitattributes"}, "also where a manifest is named"


@pytest.mark.long
def test_packages_are_the_same_with_either(capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["generate"])
    vendored = files(Path("generated/weather_mcp"))
    say("installed")
    assert cli.run(["generate"]) == 0
    assert "removed, because the runtime is not vendored" in capsys.readouterr().out
    assert files(Path("generated/weather_mcp")) == vendored
    assert not FOLDER.exists()
    assert "stubwright_runtime/" not in Path("generated", lock.NAME).read_text()


@pytest.mark.long
def test_switching_back_leaves_what_it_did_not_write(capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["generate"])
    OWN.write_text("x = 1\n")
    edited = FOLDER / "lazy.py"
    edited.write_text("# edited\n")
    say("installed")
    assert cli.run(["generate"]) == 0
    assert {path for path in FOLDER.rglob("*") if path.is_file()} == {OWN, edited}
    assert "generated/stubwright_runtime/lazy.py:1:1: warning[SW404]" in capsys.readouterr().err


def test_a_stale_runtime_is_told_and_made_anew(capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["generate"])
    (FOLDER / "lazy.py").unlink()
    capsys.readouterr()
    assert cli.run(["generate", "--check"]) == 1
    told = capsys.readouterr()
    assert "generated/stubwright_runtime/lazy.py:1:1: error[SW407]: this file is missing" in told.err
    assert "def lazy" not in told.out, "nobody reviews the text of the runtime there"
    assert cli.run(["generate"]) == 0
    assert files(FOLDER)["lazy.py"] == (package_data.RUNTIME / "lazy.py").read_bytes()


def test_the_runtime_begins_with_its_mark() -> None:
    assert (package_data.RUNTIME / "__init__.py").read_bytes().startswith(tree.RUNTIME_START)


@pytest.mark.long
@pytest.mark.parametrize("lock_is_lost", amounts.sample([False, True], 1))
def test_what_was_edited_by_hand_is_left_until_forced(
    *, lock_is_lost: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.run(["generate"])
    edited = FOLDER / "lazy.py"
    edited.write_text("# edited\n")
    if lock_is_lost:
        Path("generated", lock.NAME).unlink()
    capsys.readouterr()
    assert cli.run(["generate"]) == 1
    assert "generated/stubwright_runtime/lazy.py:1:1: error[SW402]" in capsys.readouterr().err
    assert edited.read_text() == "# edited\n"
    assert cli.run(["generate", "--force"]) == 0
    assert edited.read_bytes() == (package_data.RUNTIME / "lazy.py").read_bytes()


def test_a_folder_of_that_name_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    FOLDER.mkdir(parents=True)
    (FOLDER / "__init__.py").write_text("mine = 1\n")
    assert cli.run(["generate"]) == 1
    assert "error[SW403]" in capsys.readouterr().err
    assert files(FOLDER) == {"__init__.py": b"mine = 1\n"}


def test_a_wrong_word_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    say("copied")
    assert cli.run(["generate"]) == 1
    told = capsys.readouterr().err
    assert '`runtime` in `[tool.stubwright]` must be "installed" or "vendored"' in told
    assert "pyproject.toml:8:1" in told


def test_it_needs_what_the_runtime_needs(capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["generate"])
    assert "  it needs anyio>=4.10, cryptography>=43, " in capsys.readouterr().out
    say("vendored", "mcp", "pydantic")
    assert cli.run(["check"]) == 0
    assert "requires `jsonschema-rs>=0.61`" in capsys.readouterr().err
    say(
        "vendored",
        *(wanted.replace("jsonschema-rs", "jsonschema_rs") for wanted in vendoring.list_requirements()),
    )
    assert cli.run(["check", "--strict"]) == 0, capsys.readouterr().err


@pytest.mark.long
def test_a_server_runs_on_it_alone(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No `stubwright_runtime` is installed, nor stubwright, nor anything else that a server does not need."""
    cli.run(["generate", "-q"])
    site = third_party.site(tmp_path_factory.mktemp("site"), "stubwright-runtime")
    program = """
import asyncio, os, sys
import stubwright_runtime, weather_mcp

async def ask():
    command = ["env", f"PYTHONPATH={os.environ['PYTHONPATH']}", sys.executable, "-S", "-m", "weather_mcp"]
    async with weather_mcp.WeatherClient.connect(command) as weather:
        return (await weather.get_weather(location="Paris")).conditions

print(stubwright_runtime.__file__, asyncio.run(ask()))
"""
    path = os.pathsep.join(map(str, (project / "generated", project, site)))
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=project,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(project / FOLDER))
