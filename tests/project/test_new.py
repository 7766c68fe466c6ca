"""`stubwright new`: the initial project."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import amounts
import forked
import wheels
from command_line import stubwright
from forked import ALONE
from processes import start_process
from stubwright.project import scaffold

ROOT = Path(__file__).parents[2]


def run(*command: str, cwd: Path, path: list[Path] | None = None, stdin: str = "") -> str:
    """Run a command that must succeed, and return its output."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path or []))}
    done = subprocess.run(
        command, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wheel(project: Path, folder: Path) -> Path:
    """Build a project's wheel as an installer would, and unpack it as one."""
    site = folder / "site"
    wheels.install(site, wheels.build(project, folder))
    return site


@pytest.mark.parametrize("name", amounts.sample(["calendar", "my-mcp-server", "true", "X509 tools", "mcp", "test"], 1))
def test_a_new_project_runs_at_once(name: str, mypy: list[str], tmp_path: Path) -> None:
    done = stubwright("new", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (project,) = tmp_path.iterdir()
    assert f"cd {project.name}" in done.stdout
    own = [project, project / "generated"]
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "anyio"]
    tested = forked.python(pytest, project, own, **ALONE)
    assert "3 passed" in tested.stdout, tested.stdout  # including the manifest's example
    assert "async def client()" in (project / "tests" / "test_tools.py").read_text("utf-8")
    package = next(project.glob("generated/*_mcp")).name
    module = forked.python([*pytest, "--pyargs", f"test_{package}"], tmp_path, own, **ALONE)
    assert "1 passed" in module.stdout, module.stdout
    assert stubwright("generate", "--check", cwd=project).returncode == 0
    assert stubwright("check", "--strict", cwd=project).returncode == 0
    (handlers,) = project.glob("*_server/handlers.py")
    run(sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F,UP,B", ".", cwd=project)
    env = os.pathsep.join(map(str, own))
    typed = subprocess.run(
        [*mypy, str(handlers)],
        cwd=project,
        env={**os.environ, "MYPYPATH": env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert typed.returncode == 0, typed.stdout
    config = json.loads((project / "mcp.json").read_text())["mcpServers"][name]
    scripts = tomllib.loads((project / "pyproject.toml").read_text())["project"]["scripts"]
    assert list(scripts) == [config["command"]]


@pytest.mark.long
def test_a_new_project_installs_and_runs_without_stubwright(tmp_path: Path) -> None:
    stubwright("new", "calendar", cwd=tmp_path)
    site = wheel(tmp_path / "calendar", tmp_path / "dist")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    requests = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "roll_dice", "arguments": {"sides": 2}}},
    ]
    program = (
        "import sys; sys.modules['stubwright'] = None\n"
        "from importlib.metadata import entry_points\n"
        "sys.argv = ['calendar-mcp']\n"
        "entry_points(group='console_scripts', name='calendar-mcp')['calendar-mcp'].load()()"
    )
    with start_process(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for request in requests:
            process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.wait(60) == 0
    assert answers[1]["result"]["structuredContent"]["total"] in (1, 2)


@pytest.mark.parametrize("name", ["", "-x-", "a/b", "1st", "x" * 61])
def test_a_name_that_cannot_be_used_is_refused(name: str, tmp_path: Path) -> None:
    done = stubwright("new", "--", name, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"stubwright: `{name}` is not a valid server name: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_link_to_an_empty_folder_is_filled_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    for name, leads in (("empty", "real"), ("fresh", "made")):
        (tmp_path / name).symlink_to(leads)
        done = stubwright("new", "calendar", "--dir", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / leads / "pyproject.toml").is_file()
    (tmp_path / "full").symlink_to("real")
    before = (tmp_path / "real/pyproject.toml").stat()
    assert stubwright("new", "calendar", "--dir", "full", cwd=tmp_path).returncode == 1
    assert (tmp_path / "real/pyproject.toml").stat() == before


def test_the_folder_where_the_shell_is_stays_the_same(tmp_path: Path) -> None:
    before = tmp_path.stat().st_ino
    done = stubwright("new", "calendar", "--dir", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert tmp_path.stat().st_ino == before
    assert (tmp_path / "pyproject.toml").is_file()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "calendar").mkdir()
    (tmp_path / "calendar/notes").write_text("mine")
    done = stubwright("new", "calendar", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        "stubwright: `calendar` already exists: choose another folder with --dir\n",
    )
    assert [path.name for path in (tmp_path / "calendar").iterdir()] == ["notes"]


def test_a_full_disk_leaves_the_folder_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copy

    def fill_up(source: Path, target: Path) -> None:
        if target.name == "pyproject.toml":
            raise OSError(errno.ENOSPC, "No space left on device", str(source), None, str(target))
        copy(source, target)

    monkeypatch.setattr(shutil, "copy", fill_up)
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "new"):
        with pytest.raises(scaffold.ScaffoldError, match=f"^cannot write `{folder}/pyproject.toml`: No space left"):
            scaffold.create("calendar", folder, is_published=True)
    assert [[path.name, *path.iterdir()] for path in tmp_path.iterdir()] == [["empty"]]


@pytest.mark.parametrize("name", ["pyproject.toml", "specs/calendar.yaml", "tests/notes"])
def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    folder = tmp_path / "calendar"
    copy = shutil.copy

    def race(source: Path, target: Path) -> None:
        if target.suffix == ".toml":
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        copy(source, target)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine")

    monkeypatch.setattr(shutil, "copy", race)
    with pytest.raises(scaffold.ScaffoldError, match=r"^cannot write `"):
        scaffold.create("calendar", folder, is_published=True)
    assert (folder / name).read_text() == "mine"
    assert [path for path in folder.rglob("*") if path.is_file()] == [folder / name]
