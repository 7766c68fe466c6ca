"""The wheels of the compiler and the runtime, outside the checkout: together, without extras, and the runtime alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import venv
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import third_party
import wheels
from stubwright import __version__
from stubwright.project import optional_dependencies
from stubwright.project import wheels as project_wheels

pytestmark = pytest.mark.long  # it builds wheels and environments

COMPILER = ("black", "jinja2", "datamodel_code_generator", "stubwright")

FOUND = "import importlib.util as u, sys; print([name for name in sys.argv[1:] if u.find_spec(name)])"

USE = """
import asyncio, os, sys, weather_mcp

async def use():
    command = ["env", "PYTHONPATH=" + os.environ["PYTHONPATH"], *sys.argv[1:]]
    async with weather_mcp.WeatherClient.connect(command) as client:
        return (await client.get_weather(location="Paris")).temperature

print(asyncio.run(use()))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheels of the compiler and the runtime."""
    folder = tmp_path_factory.mktemp("wheels")
    return wheels.build(ROOT, folder), wheels.build(ROOT / "runtime", folder)


@cache
def installed(wheel: Path) -> Path:
    """Install a wheel and its compiled modules into a folder next to the wheel."""
    folder = wheel.with_suffix("")
    wheels.install(folder, wheel)
    return folder


def environment(folder: Path, site: Path, *built: Path) -> Path:
    """A fresh environment with wheels, and with links to what these need; the path of its Python."""
    venv.create(folder, symlinks=True)
    [own] = folder.glob("lib/python*/site-packages")
    for wheel in built:
        shutil.copytree(installed(wheel), own, dirs_exist_ok=True)
    (own / "third_party.pth").write_text(f"{site}\n")
    return folder / "bin" / "python"


def run(python: Path, *words: str, cwd: Path, path: str = "") -> str:
    done = attempt(python, *words, cwd=cwd, path=path)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def attempt(python: Path, *words: str, cwd: Path, path: str = "") -> subprocess.CompletedProcess[Any]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "STUBWRIGHT_CACHE_DIR": str(cwd / "cache")}
    return subprocess.run(
        [str(python), *words], cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture(scope="module")
def compiled(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which both wheels have compiled the weather, and its server has run."""
    folder = tmp_path_factory.mktemp("both")
    site = third_party.site(folder / "site", "stubwright", "stubwright-runtime[all]")
    python = environment(folder / "venv", site, *built)
    project = folder / "project"
    (project / "specs").mkdir(parents=True)
    for name in ("weather.yaml", "weather.md"):
        shutil.copy(ROOT / "specs" / name, project / "specs")
    shutil.copy(ROOT / "examples" / "weather.py", project)
    assert "files written" in run(python, "-m", "stubwright", "generate", "specs/weather.yaml", cwd=project)
    program = "import stubwright, stubwright_runtime as r; print(stubwright.__file__, r.__file__)"
    where = run(python, "-c", program, cwd=project)
    assert all(path.startswith(str(folder / "venv")) for path in where.split()), where
    return project


def test_the_lock_says_the_same_as_the_checkout(compiled: Path) -> None:
    """Otherwise the installed wheel changes the lock of a project that others compile from a checkout."""
    theirs = json.loads((compiled / "generated" / "stubwright.lock.json").read_text())["manifests"]
    ours = json.loads((ROOT / "generated" / "stubwright.lock.json").read_text())["manifests"]
    assert theirs["specs/weather.yaml"] == ours["specs/weather.yaml"]


def test_both_wheels_compile_as_the_checkout_does(compiled: Path) -> None:
    for file in (ROOT / "generated" / "weather_mcp").rglob("*.py"):
        made = compiled / "generated" / file.relative_to(ROOT / "generated")
        assert made.read_text("utf-8") == file.read_text("utf-8")


def test_a_server_and_a_client_need_the_runtime_alone(compiled: Path, built: tuple[Path, Path], tmp_path: Path) -> None:
    site = third_party.site(tmp_path / "site", "stubwright-runtime")
    python = environment(tmp_path / "venv", site, built[1])
    assert run(python, "-c", FOUND, *COMPILER, "redis", cwd=tmp_path) == "[]\n"
    path = os.pathsep.join([str(compiled / "generated"), str(compiled)])
    assert run(python, "-c", USE, str(python), "-m", "weather_mcp", cwd=tmp_path, path=path) == "22.5\n"


@pytest.fixture(scope="module")
def lightly(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a light installation, by the list that the wheels contain."""
    folder = tmp_path_factory.mktemp("light")
    bare = environment(folder / "bare", folder / "nothing", *built)
    printed = run(bare, "-m", "stubwright", "wheels", "--light", cwd=folder)
    assert printed.splitlines()[2:] == ["wheels/light.txt"]
    lines = (folder / "wheels" / "light.txt").read_text("utf-8").splitlines()
    site = third_party.site(folder / "site", *lines[1:])
    return environment(folder / "venv", site, *built)


def test_servers_of_others_are_judged_without_the_compiler(lightly: Path, compiled: Path, tmp_path: Path) -> None:
    modules = sorted(
        {"markdown-it-py": "markdown_it"}.get(name, name.replace("-", "_")) for name in optional_dependencies.EXCLUDED
    )
    assert run(lightly, "-c", FOUND, *modules, cwd=tmp_path) == "[]\n"
    path = os.pathsep.join([str(compiled / "generated"), str(compiled)])

    def stubwright(*words: str) -> str:
        return run(lightly, "-m", "stubwright", *words, cwd=tmp_path, path=path)

    server = ("--env", "PYTHONPATH", "--", str(lightly), "-m", "weather_mcp")
    assert stubwright("lock", *server) == "contracts/weather.yaml: locked\n"
    assert stubwright("verify") == "contracts/weather.yaml: unchanged\n"
    assert "0 errors and 0 warnings in " in stubwright("test", "contracts/weather.yaml")
    assert record_and_replay(lightly, lightly, path, tmp_path) == 22.5


def test_stdio_is_recorded_and_replayed_with_three_packages(
    built: tuple[Path, Path], lightly: Path, compiled: Path, tmp_path: Path
) -> None:
    site = third_party.site(tmp_path / "site", "jsonschema-rs", "pydantic-core", "pyyaml")
    python = environment(tmp_path / "venv", site, *built)
    assert run(python, "-c", FOUND, "mcp", "mcp_types", "anyio", "pydantic", cwd=tmp_path) == "[]\n"
    path = os.pathsep.join([str(compiled / "generated"), str(compiled)])
    assert record_and_replay(python, lightly, path, tmp_path) == 22.5


def record_and_replay(python: Path, client: Path, path: str, folder: Path) -> float:
    """Call a tool by way of a recorder, and of its replay, with the same result; a number in it."""
    call = ("-m", "stubwright", "call", "get_weather", "location=Paris", "--env", "PYTHONPATH", "--", str(python))
    server = ("--env", "PYTHONPATH", "--", str(client), "-m", "weather_mcp")
    words = (*call, "-m", "stubwright", "record", "-o", "weather.jsonl", *server)
    recorded = run(client, *words, cwd=folder, path=path)
    replayed = run(client, *call, "-m", "stubwright", "replay", "weather.jsonl", cwd=folder, path=path)
    assert replayed == recorded
    return float(json.loads(recorded)["temperature"])


@pytest.mark.parametrize("module", ["black.mode", "weather", ""])
def test_what_is_installed_or_not_ours_is_not_explained(module: str) -> None:
    """It is a bug, or the user's own module: its traceback says more."""
    assert optional_dependencies.explain_missing(ModuleNotFoundError("no module", name=module)) is None


def test_docs_ci_counts_what_is_installed(lightly: Path) -> None:
    lines = (lightly.parents[2] / "wheels" / "light.txt").read_text("utf-8").splitlines()
    needed = len({*third_party.closure(*lines[1:]), "stubwright", "stubwright-runtime"})
    text = " ".join((ROOT / "docs" / "ci.md").read_text("utf-8").split())
    assert f"installs {needed} distributions instead of {len(third_party.closure('stubwright'))}: " in text


def test_docs_ci_gives_the_size_of_the_wheels(tmp_path: Path) -> None:
    size = sum(path.stat().st_size for path in project_wheels.write(tmp_path, runtime_only=False))
    stated = re.search(r"\(([\d.]+) MB in total\)", " ".join((ROOT / "docs" / "ci.md").read_text("utf-8").split()))
    assert stated is not None
    assert float(stated[1]) == pytest.approx(size / 1_000_000, abs=0.1)


def test_a_light_installation_says_what_a_command_lacks(lightly: Path, compiled: Path, tmp_path: Path) -> None:
    """Each command once whose first missing library is another one."""
    for command, package in {
        "generate --force specs/weather.yaml": "jinja2",
        "completion bash": "shtab",
        "new lending": "jinja2",
    }.items():
        done = attempt(lightly, "-m", "stubwright", *command.split(), cwd=compiled)
        [line] = done.stderr.splitlines()
        assert line.startswith(f"stubwright: this requires the package {package}; run pip install 'black>=")
        assert f" '{package}>=" in line
        assert "pyyaml" not in line
        assert (done.returncode, done.stdout) == (2, "")


def test_the_compiler_needs_the_runtime_of_its_own_version(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        said = wheel.read(f"stubwright-{__version__}.dist-info/METADATA").decode()
    assert f"Requires-Dist: stubwright-runtime=={__version__}\n" in said
    assert built[1].name == f"stubwright_runtime-{__version__}-py3-none-any.whl"
