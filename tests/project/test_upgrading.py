"""Projects of earlier releases: the reports are sufficient to upgrade them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import forked

RELEASES = Path(__file__).parents[1] / "upgrades"

IN_MANIFEST = """\
diary.yaml:3:35: warning[SW342]: `python.features` has no effect: every package has all features
    3 | python: {handlers: "diary:Diary", features: [sampling, changes]}
      |                                   ^^^^^^^^
   help: remove it; the next release rejects it
"""
IN_PROJECT = """\
pyproject.toml:4:1: warning[SW411]: the server generated from `diary.yaml` requires `stubwright-runtime`
    4 | dependencies = ["mcp", "pydantic", "jsonschema-rs"]
      | ^^^^^^^^^^^^
   help: add it to `dependencies` under `[project]`
"""

DONE = {
    "diary.yaml": [(", features: [sampling, changes]", "")],
    "diary.py": [
        ("import diary_mcp._runtime.revisions\n", ""),
        (", diary_mcp._runtime.revisions)", ")"),
        ("from diary_mcp._runtime.errors import ToolError", "from diary_mcp import ToolError"),
    ],
    "diary_notes.py": [
        ("from diary_mcp._runtime.server.context import LOG_LEVELS, LogLevel\n", ""),
        ("LEVELS: tuple[LogLevel, ...] = LOG_LEVELS", 'LEVELS = ("debug",)'),
    ],
    "pyproject.toml": [('"mcp", "pydantic", "jsonschema-rs"', '"stubwright-runtime"')],
}
"""The upgrade: the replacements in each file."""

USED = """\
import asyncio

from diary import Diary
from diary_mcp import DiaryClient, ToolFailed, build_server


async def main() -> None:
    async with DiaryClient.connect(build_server(Diary())) as diary:
        print((await diary.write(text="Rain."))[0].text)
        try:
            await diary.write(text=" ")
        except ToolFailed as error:
            print(error)
        print((await diary.summarize())[0].text, (await diary.read_today())[0].text)


asyncio.run(main())
"""


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    """A project of 0.1, with few of the files of its `_runtime/`."""
    return Path(shutil.copytree(RELEASES / "0.1" / "diary", tmp_path / "diary"))


def test_a_project_of_0_1_is_told_what_is_gone_and_nothing_else(diary: Path) -> None:
    checked = forked.run(["check"], diary)
    everything = f"{IN_MANIFEST}{IN_PROJECT}2 warnings in 2 files\n"
    assert (checked.returncode, checked.stderr) == (0, everything)
    generated = forked.run(["generate"], diary)
    assert (generated.returncode, generated.stderr) == (0, "")
    assert "diary.yaml: 1 warning, which `stubwright check` lists" in generated.stdout
    assert "it needs stubwright-runtime\n" in generated.stdout
    assert not (diary / "generated" / "diary_mcp" / "_runtime").exists()


@pytest.mark.long
def test_a_project_of_0_1_runs_after_what_it_is_told_is_done(diary: Path) -> None:
    forked.run(["generate"], diary)
    before = forked.python(["-c", "import diary"], diary, path=[diary / "generated", diary])
    assert "No module named 'diary_mcp._runtime" in before.stderr
    for name, replacements in DONE.items():
        text = (diary / name).read_text()
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (diary / name).write_text(text)
    for command in (["generate"], ["check", "--strict"]):
        done = forked.run(command, diary)
        assert (done.returncode, done.stderr) == (0, "")
    used = forked.python(["-c", USED], diary, path=[diary / "generated", diary])
    assert (used.stdout, used.stderr) == ("written\nthere is nothing to write\nRain. Rain.\n", "")
