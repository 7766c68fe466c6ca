"""Generated files without a manifest, as after the loss of a lock: reported, and removed with force."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from packages import manifest, tool
from stubwright import cli
from stubwright.project.files import lock

GONE = Path("generated/sample_mcp/models/gone.py")
OWN = Path("generated/sample_mcp/models/own.py")
LOCK = Path("generated", lock.NAME)


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of a tool that is gone by now, whose lock was lost."""
    monkeypatch.chdir(tmp_path)
    write("sample", "one", "gone")
    write("other", "one")
    assert cli.run(["generate", "sample.json", "-q"]) == cli.run(["generate", "other.json", "-q"]) == 0
    OWN.write_text("x = 1\n")
    stale = GONE.read_bytes()
    write("sample", "one")
    assert cli.run(["generate", "sample.json", "-q"]) == 0
    GONE.write_bytes(stale)
    LOCK.unlink()


def write(name: str, *tools: str) -> None:
    Path(f"{name}.json").write_text(json.dumps(manifest([*map(tool, tools)], name=name)))


def warned(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.partition(":")[0] for line in capsys.readouterr().err.splitlines() if "warning[SW412]" in line]


@pytest.mark.parametrize("options", [[], ["--check"]])
def test_files_of_no_package_are_named(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["generate", "sample.json", *options])
    assert warned(capsys) == [str(GONE)]
    assert GONE.exists()
    assert cli.run(["generate", "sample.json"]) == 0
    assert warned(capsys) == [str(GONE)], "also where all is up to date"


def test_force_removes_them_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    before = {*Path("generated").rglob("*")}
    assert cli.run(["generate", "sample.json", "--force"]) == 0
    assert before - {*Path("generated").rglob("*")} == {GONE}, (
        "neither what people wrote nor another manifest's package"
    )
    assert "generated/sample_mcp: 1 file removed" in capsys.readouterr().out
    assert cli.run(["generate", "sample.json", "--check"]) == 0
    assert warned(capsys) == []


def test_a_project_knows_which_packages_are_nobodys(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["sample.json"]\n')
    assert cli.run(["generate"]) == 0
    named = warned(capsys)
    assert str(GONE) in named
    assert 1 < len([path for path in named if "other_mcp" in path]) <= 10
    assert cli.run(["generate", "--force"]) == 0
    assert not Path("generated/other_mcp").exists()
    assert {path.name for path in Path("generated").iterdir()} == {"sample_mcp", lock.NAME}
    assert OWN.exists()


def test_files_behind_links_are_left_alone(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    GONE.rename(away / "gone.py")
    (GONE.parent / "link").symlink_to(away)
    GONE.symlink_to(away / "gone.py")
    assert cli.run(["generate", "sample.json", "--force", "-q"]) == 0
    assert (away / "gone.py").exists()
    assert GONE.is_symlink()
