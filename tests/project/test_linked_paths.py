"""Commands never write through a link in a checkout, except for a folder that the user names."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import stubwright
from packages import tool
from stubwright.project.files import append_only, disk, inside

MANIFEST = '{"stubwright": 1, "server": {"name": "desk", "version": "1"}, "tools": [%s]}'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with links to a folder outside of it."""
    import json

    (tmp_path / "outside").mkdir()
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "desk.json").write_text(MANIFEST % json.dumps(tool("ask")))
    for name in ("contracts", "site"):
        (folder / name).symlink_to("../outside", target_is_directory=True)
    (folder / "recording.jsonl").symlink_to("../outside/recorded")
    return folder


@pytest.mark.parametrize(
    ("words", "link"),
    [
        (["lock", "desk.json"], "contracts"),
        (["lock", "desk.json", "-o", "contracts/new/desk.yaml"], "contracts"),
        (["record", "--", "true"], "recording.jsonl"),
        (["record", "-o", "site/new.jsonl", "--", "true"], "site"),
        (["docs", "desk.json", "-o", "site/desk.html"], "site"),
        (["export", "desk.json", "--target", "openai", "-o", "site/desk.json"], "site/desk.json"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else words,
)
def test_commands(project: Path, words: list[str], link: str) -> None:
    done = stubwright(*words, cwd=project)
    assert done.returncode != 0
    assert "it is a link, so it was left unchanged" in done.stderr
    assert f"`{link}`" in done.stderr
    assert list((project.parent / "outside").iterdir()) == []


def test_a_folder_that_is_named_is_written_to(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    disk.create(project / "contracts" / "one.txt", "1")
    disk.create(Path("../outside/two.txt"), "2")
    (project / "inner").mkdir()
    (project / "within").symlink_to("inner", target_is_directory=True)
    disk.create(Path("within/three.txt"), "3")
    assert {path.name for path in (project.parent / "outside").iterdir()} == {"one.txt", "two.txt"}
    with pytest.raises(inside.NotWritableError):
        disk.create(Path("contracts/four.txt"), "4")
    with pytest.raises(inside.NotWritableError):
        append_only.AppendedFile(project / "recording.jsonl")
