"""Differences on Windows that other systems can simulate."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import pytest

from stubwright import cli, paths
from stubwright.mock import server
from stubwright.project.files import disk, locking
from stubwright_runtime.server import worker
from stubwright_runtime.server.execution import signals

ROOT = Path(__file__).parents[2]
HEAD = {"stubwright": 1, "server": {"name": "all", "version": "1"}}
HOLD = """
import sys
from pathlib import Path, PureWindowsPath
from stubwright.project.files import locking
with locking.file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(folder: Path, temporary: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(folder)]
    env = {"TMPDIR": str(temporary)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)


def test_a_file_keeps_other_processes_waiting(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    folder = tmp_path / "folder"
    with holding(folder, temporary) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with holding(tmp_path / "another", temporary) as other:
            assert other.communicate("")[0] == "held\n", "another folder is free"
        with holding(folder, temporary) as second:
            assert second.poll() is None
            first.communicate("")
            assert second.communicate("")[0] == "held\n"
    assert not folder.exists()


def test_this_process_can_hold_a_folder_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with locking.file_lock(Path("x")):
        assert [path.suffix for path in tmp_path.iterdir()] in ([".lock"], [])


def refuse(*_: object) -> None:
    raise NotImplementedError


@pytest.fixture
def break_signal(monkeypatch: pytest.MonkeyPatch) -> signal.Signals:
    """Define a signal in place of Ctrl-Break, and remove SIGHUP."""
    monkeypatch.setattr(signal, "SIGBREAK", signal.SIGUSR1, raising=False)
    monkeypatch.delattr(signal, "SIGHUP")
    return signal.SIGUSR1


@pytest.mark.skipif(os.name == "nt", reason="another signal stands for Ctrl-Break")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, None])
def test_a_worker_is_stopped_by_signals_that_its_loop_does_not_take(
    number: signal.Signals | None, break_signal: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    class Server:
        package = SimpleNamespace(manifest={"server": {"name": "x"}})

        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            asyncio.get_running_loop().call_soon(signal.raise_signal, number or break_signal)
            yield
            done.append("left")

        def stop(self) -> None:
            done.append("stopped")

    async def work() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "add_signal_handler", refuse)
        server: Any = Server()
        await asyncio.wait_for(worker._work(server, 1, until_eof=False), 10)

    before = [signal.getsignal(each) for each in signals.stop_signals()]
    asyncio.run(work())
    assert done == ["stopped", "left"]
    assert [signal.getsignal(each) for each in signals.stop_signals()] == before


@pytest.mark.skipif(os.name == "nt", reason="another signal stands for Ctrl-Break")
def test_ctrl_break_asks_for_a_stop(break_signal: signal.Signals) -> None:
    assert signals.stop_signals() == (signal.SIGINT, signal.SIGTERM, break_signal)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths on the command line are taken as on Windows."""
    monkeypatch.setattr(paths, "PurePath", PureWindowsPath)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with what can be imported, and with manifests."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    (tmp_path / "saved").mkdir()
    tool = {"name": "go", "description": "Go.", "inputSchema": {"type": "object"}}
    (tmp_path / "saved/list.json").write_text(json.dumps({"tools": [tool]}))
    (tmp_path / "saved/parts.yaml").write_text("get: {operationId: one, responses: {}}\n")
    servers = 'servers: [{url: "https://api.example.com"}]'
    document = (
        f'openapi: 3.1.0\ninfo: {{title: Sample, version: "1"}}\n{servers}\npaths: {{/x: {{$ref: parts.yaml}}}}\n'
    )
    (tmp_path / "saved/api.yaml").write_text(document)
    (tmp_path / "specs/own.yaml").write_text(json.dumps({**HEAD, "tools": [tool]}))
    (tmp_path / "specs/all.yaml").write_text(json.dumps({**HEAD, "include": ["imported.yaml"]}))
    return tmp_path


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("given", "path"), [(r"specs\weather.yaml", "specs/weather.yaml"), (r".\a\..\b.yaml", "b.yaml"), ("a/b", "a/b")]
)
def test_a_manifest_may_be_given_with_backslashes(given: str, path: str) -> None:
    assert paths.normalize(given) == path


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(("kind", "name"), [("tools", "list.json"), ("openapi", "api.yaml")])
@pytest.mark.parametrize("to", ["made.yaml", "made.json"])
def test_what_is_imported_names_its_source_with_slashes(kind: str, name: str, to: str, folder: Path) -> None:
    assert cli.run(["import", kind, f"saved\\{name}", "-o", f"specs\\{to}"]) == 0
    text = (folder / "specs" / to).read_text()
    assert f"stubwright import {kind} saved/{name} -o specs/{to}" in text
    assert "\\" not in text
    assert sorted(path.name for path in folder.iterdir()) == ["saved", "specs"]


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    "head", ["saved/api.yaml -o specs/imported.yaml", r"'saved\api.yaml' -o 'specs\imported.yaml'"]
)
def test_refresh_takes_backslashes(head: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line, and in the output of an earlier release."""
    imported = folder / "specs/imported.yaml"
    assert cli.run(["import", "openapi", r"saved\api.yaml", "--fragment", "-o", r"specs\imported.yaml"]) == 0
    text = imported.read_text()
    command = "saved/api.yaml --fragment -o specs/imported.yaml"
    assert command in text
    imported.write_text(text.replace(command, f"{head} --fragment"))
    (folder / "saved/parts.yaml").write_text("get: {operationId: two, responses: {}}\n")
    capsys.readouterr()
    assert cli.run(["refresh", r"specs\all.yaml"]) == 0
    assert "specs/imported.yaml: refreshed\n" in capsys.readouterr().out
    assert "name: two" in imported.read_text()


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    "argv",
    [
        ["export", r"specs\own.yaml", "--target", "openai"],
        ["diff", r"specs\own.yaml", r".\specs\own.yaml"],
        ["mock", r"specs\own.yaml"],
        ["docs", r"specs\own.yaml", "-o", "pages"],
    ],
)
def test_a_command_takes_a_manifest_with_backslashes(
    argv: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "serve", lambda *_, **__: 0)
    assert cli.run(argv) == 0


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nul", "Windows reserves the name `nul`"),
        ("a/AUX.tar.gz", "Windows reserves the name `AUX.tar.gz`"),
        ("lpt³/a", "Windows reserves the name `lpt³`"),
        ("con .txt", "Windows reserves the name `con .txt`"),
        ("a/b.", "Windows drops the dot at the end of `b.`"),
        ("a /b", "Windows drops the space at the end of `a `"),
        ("a/b?", "Windows does not allow `?` in a file name"),
        *((path, None) for path in ("../a.txt", "./.env", "console.txt", "com10", "a.con", "a b/c..d", "é/ß.txt")),
    ],
)
def test_windows_has_no_file_of_every_name(path: str, reason: str | None) -> None:
    assert paths.find_misfit(path) == reason


@pytest.mark.skipif(os.name == "nt", reason="one of its files cannot be there")
def test_a_package_with_attached_files_that_collide_elsewhere_is_made_and_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    names = ["a/one.txt", "a/One.txt", "a/con.txt"]
    for name in names:
        (tmp_path / name).write_text("x")
    resources = [{"uri": f"docs://{i}", "name": str(i), "stubwright": {"file": names[i]}} for i in range(3)]
    Path("m.json").write_text(json.dumps({**HEAD, "resources": [*resources, {**resources[0], "uri": "docs://3"}]}))
    assert cli.run(["check", "m.json"]) == 0
    told = capsys.readouterr().err
    assert told.count("warning[SW345]") == 2
    assert "`a/One.txt` and `a/one.txt` are the same file on case-insensitive systems" in told
    assert cli.run(["generate", "m.json"]) == 0
    assert sorted(path.name for path in Path("generated/all_mcp/files/a").iterdir()) == [
        "One.txt",
        "con.txt",
        "one.txt",
    ]


@pytest.mark.usefixtures("windows")
def test_an_attached_file_that_is_named_with_a_backslash_is_packed_with_slashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    Path("a/one.txt").write_text("x")
    resource = {"uri": "docs://a", "name": "a", "stubwright": {"file": r"a\one.txt"}}
    Path("m.json").write_text(json.dumps({**HEAD, "resources": [resource]}))
    assert cli.run(["generate", "m.json"]) == 0
    made = json.loads(Path("generated/all_mcp/manifest.json").read_text())
    assert made["resources"][0]["stubwright"]["file"] == "files/a/one.txt"
    assert cli.run(["check", "m.json"]) == 0
    assert "warning[SW345]" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="a backslash is between folders there")
def test_a_backslash_is_part_of_a_name_elsewhere() -> None:
    assert paths.normalize(r"./specs\weather.yaml") == r"specs\weather.yaml"


@pytest.mark.parametrize(("refusals", "moves"), [(0, True), (2, True), (3, True), (4, False)])
def test_a_file_that_is_open_elsewhere_is_tried_again(
    refusals: int, moves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_PAUSES", (0, 0, 0))
    left = [PermissionError(13, "it is open elsewhere")] * refusals
    replace = Path.replace

    def refusing(path: Path, target: Path) -> Path:
        if left:
            raise left.pop()
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", refusing)
    (tmp_path / "a").write_text("old")
    if moves:
        disk.write(tmp_path / "a", b"new")
    else:
        with pytest.raises(OSError, match="it is open elsewhere"):
            disk.write(tmp_path / "a", b"new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "new" if moves else "old"}


@pytest.mark.long
def test_the_source_distribution_has_what_it_needs_and_no_more(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = tmp_path.iterdir()
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {name.partition("/")[0] for name in names} == {
        ".gitignore",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "generator",
        "hatch_build.py",
        "pyproject.toml",
        "templates",
    }
    assert {name for name in names if name.endswith("README.md")} == {"README.md"}
