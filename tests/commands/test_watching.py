"""`generate --watch` runs again after a change of its inputs, and only then."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import forked
from editors import write
from processes import start_process
from stubwright.commands.shared.watching import Inputs, Pattern, wait_for_runs

MANIFEST = """\
stubwright: 1
server: {name: diary, version: 1.0.0}
python: {handlers: "diary:Diary"}
include: [one.yaml, tools/*.yaml, "parts/**/*.yaml"]
resources: [{uri: "x://a", name: a, stubwright: {file: texts/a.txt}}]
tools: []
"""
TOOL = "tools: [{name: %s, description: Does., inputSchema: {type: object}}]\n"
CLASS = "class Diary(DiaryHandlers):\n    def one(self, args, ctx): ...\n    def two(self, args, ctx): ...\n"


def test_files_are_looked_at_only_for_a_run_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "one.yaml"
    file.write_text("before")
    looked: list[Path] = []
    lstat = Path.lstat
    inputs = Inputs(frozenset({file}), frozenset())

    def look(path: Path) -> os.stat_result:
        looked.append(path)
        return lstat(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "lstat", look)
        assert next(wait_for_runs(lambda: inputs)) is inputs
        assert looked == []
        is_stale = inputs.watch()
        assert looked == [file]
    assert not is_stale()
    file.write_text("after it")
    assert is_stale()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "diary.yaml", MANIFEST)
    write(tmp_path / "one.yaml", TOOL % "one")
    write(tmp_path / "tools" / "two.yaml", TOOL % "two")
    write(tmp_path / "parts" / "deep" / "three.yaml", TOOL % "three")
    write(tmp_path / "texts" / "a.txt", "text")
    write(tmp_path / ".git" / "HEAD", "")
    write(tmp_path / "pyproject.toml", '[tool.stubwright]\nmanifests = ["diary.y*"]\n')
    return tmp_path


class Watching:
    """The command, whose output goes into a file of the folder that it watches."""

    def __init__(self, project: Path) -> None:
        self.log = project / "log"
        self.handlers = project / "generated" / "diary_mcp" / "handlers.py"
        self.runs = 0

    def count(self) -> int:
        """How often it ran: each time it prints one such line."""
        line = re.compile(r"^(\w+/diary_mcp: |diary\.yaml: up to date|stubwright: |\d+ errors?\b)", re.MULTILINE)
        return len(line.findall(self.log.read_text()))

    def runs_again(self, text: str = "", method: str = "") -> None:
        """Wait until it ran again, printed this, and made this method."""
        end = time.monotonic() + 20
        while self.count() == self.runs or text not in self.log.read_text() or method not in self.handlers.read_text():
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.02)
        self.runs = self.count()

    def stays(self) -> None:
        """It does not run again; 350 ms after a change it would have."""
        time.sleep(0.8)
        assert self.count() == self.runs, self.log.read_text()


@contextmanager
def watched(project: Path) -> Iterator[Watching]:
    watching = Watching(project)
    command = [*forked.interpreter(), "-m", "stubwright", "generate", "--watch"]
    with watching.log.open("wb") as out, start_process(command, cwd=project, stdout=out, stderr=out) as process:
        watching.runs_again("watching diary.yaml and the files that they use; interrupt to stop")
        yield watching
        assert process.poll() is None


def test_what_is_read_is_watched(project: Path) -> None:
    (project / "real").write_text(TOOL % "real")
    (project / "tools" / "link.yaml").symlink_to("../real")
    with watched(project) as watching:
        write(project / "one.yaml", TOOL % "first")
        watching.runs_again(method="def first(")
        write(project / "tools" / "four.yaml", TOOL % "four")
        watching.runs_again(method="def four(")
        write(project / "real", TOOL % "linked")
        watching.runs_again(method="def linked(")
        write(project / "parts" / "new" / "five.yaml", TOOL % "five")
        watching.runs_again(method="def five(")
        watching.stays()
        shutil.rmtree(project / "parts" / "new")
        watching.runs_again("6 files written, 1 file removed")
        assert "def five" not in watching.handlers.read_text()
        write(project / "texts" / "a.txt", "other text")
        watching.runs_again()
        write(project / "pyproject.toml", (project / "pyproject.toml").read_text() + 'output = "made"\n')
        watching.runs_again("made/diary_mcp")


def test_nothing_else_is_watched(project: Path) -> None:
    with watched(project) as watching:
        for name in (".git/HEAD", ".git/refs/x", ".venv/a.py", "notes.txt", "tools/notes.txt", "parts/notes.txt"):
            write(project / name, "x")
        for name in ("other.yaml", "new/a.yaml", "generated/x", "tools/deeper/a.yaml"):
            write(project / name, TOOL % "other")
        watching.stays()
        write(project / "one.yaml", TOOL % "first")
        watching.runs_again(method="def first(")


def test_the_handwritten_module_is_watched_also_before_it_is_there(project: Path) -> None:
    with watched(project) as watching:
        write(project / "src" / "diary.py", CLASS)
        watching.runs_again("src/diary.py:1:7: warning[SW420]: `Diary` has no method `three`")
        write(project / "src" / "diary.py", CLASS.replace("one", "won"))
        watching.runs_again("warning[SW420]: `Diary` lacks the methods `one` and `three`")
        write(project / "diary.py", CLASS)
        watching.runs_again("\ndiary.py:1:7: warning[SW420]: `Diary` has no method `three`")


@pytest.mark.long
def test_a_broken_save_loses_nothing_that_is_watched(project: Path) -> None:
    with watched(project) as watching:
        for broken, text in (("stubwright: [", "SW004"), ("", "SW003")):
            write(project / "diary.yaml", broken)
            watching.runs_again(f"error[{text}]")
            write(project / "tools" / "two.yaml", (project / "tools" / "two.yaml").read_text() + "#\n")
            watching.runs_again()
        write(project / "diary.yaml", MANIFEST.replace("tools/*.yaml", "toolls/six.yaml"))
        watching.runs_again("error[SW011]: `toolls/six.yaml` does not exist")
        write(project / "toolls" / "six.yaml", TOOL % "six")
        watching.runs_again(method="def six(")
        write(project / "pyproject.toml", "")
        watching.runs_again("no pyproject.toml here or above has [tool.stubwright]")
        write(project / "pyproject.toml", '[tool.stubwright]\nmanifests = ["diary.yaml"]\n')
        watching.runs_again()


def test_patterns(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "c" / "x.yaml", "")
    write(tmp_path / "a" / "d" / "x.json", json.dumps({}))

    def seen(pattern: str) -> tuple[list[str], list[str]]:
        found = Pattern.make_relative(tmp_path, pattern)
        folders = {path.relative_to(tmp_path).as_posix() for path in found.find_folders()}
        return sorted(folders), sorted(path.relative_to(tmp_path).as_posix() for path in found.find_files())

    assert seen("a/d/*.json") == (["a/d"], ["a/d/x.json"])
    assert seen("a/*/x.json") == (["a", "a/b", "a/d"], ["a/d/x.json"])
    assert seen("a/**/x.*") == (["a", "a/b", "a/b/c", "a/d"], ["a/b/c/x.yaml", "a/d/x.json"])
    assert seen("none/*/x") == (["none"], [])
    assert seen("a/d/x.json") == (["a/d"], ["a/d/x.json"])


def test_what_was_known_stays_while_something_is_broken() -> None:
    first, second = (Inputs(frozenset({Path(name)}), frozenset()) for name in ("/a", "/b"))
    broken = Inputs(second.files, frozenset(), is_whole=False)
    assert second.add_previous(first).files == {Path("/b")}
    assert broken.add_previous(first).files == {Path("/a"), Path("/b")}
