"""A project from before stubwright had its name: what its owner is told, and that it is enough."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from conftest import ROOT

from stubwright import cli
from stubwright.compile import old_name

OLD = old_name.NAME


def rename_back(text: str) -> str:
    """Write a text as it was before."""
    return text.replace("stubwright", OLD).replace("STUBWRIGHT", OLD.upper())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The weather as it was generated before, with its lock."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nname = "weather"\nversion = "1"\n\n'
        f'[tool.{OLD}]\nmanifests = ["specs/*.yaml"]\noutput = "generated"\n'
    )
    (tmp_path / "specs" / "weather.yaml").write_text(rename_back((ROOT / "specs" / "weather.yaml").read_text()))
    shutil.copy(ROOT / "specs" / "weather.md", tmp_path / "specs")
    shutil.copytree(ROOT / "generated" / "weather_mcp", tmp_path / "generated" / "weather_mcp")
    files: dict[str, str] = {}
    for path in sorted((tmp_path / "generated").rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            path.write_text(rename_back(path.read_text()))
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            files[path.relative_to(tmp_path / "generated").as_posix()] = f"sha256:{digest}"
    row = {"hash": f"sha256:{'0' * 64}", "files": files}
    lock = {"generator": "0.2.0", "manifests": {"specs/weather.yaml": row}}
    (tmp_path / "generated" / f"{OLD}.lock.json").write_text(json.dumps(lock, indent=2) + "\n")
    return tmp_path


def test_all_that_is_told_is_enough(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["generate"]) == 1
    told = capsys.readouterr().err
    assert f"pyproject.toml:5:1: error[SW107]: `[tool.{OLD}]` is called `[tool.stubwright]` now" in told
    file = project / "pyproject.toml"
    file.write_text(file.read_text().replace(f"[tool.{OLD}]", "[tool.stubwright]"))

    assert cli.run(["generate"]) == 1
    told = capsys.readouterr().err
    assert told.count("error[") == 1
    assert f"specs/weather.yaml:2:1: error[SW107]: `{OLD}` is called `stubwright` now" in told
    assert (project / "generated" / f"{OLD}.lock.json").exists()  # a run that failed changed nothing
    shutil.copy(ROOT / "specs" / "weather.yaml", project / "specs")

    assert cli.run(["generate"]) == 0, capsys.readouterr().err
    assert not (project / "generated" / f"{OLD}.lock.json").exists()
    assert (project / "generated" / "stubwright.lock.json").exists()
    assert OLD not in (project / "generated" / "weather_mcp" / "__init__.py").read_text()
    assert cli.run(["generate", "--check"]) == 0


def test_what_was_edited_by_hand_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "pyproject.toml"
    file.write_text(file.read_text().replace(f"[tool.{OLD}]", "[tool.stubwright]"))
    shutil.copy(ROOT / "specs" / "weather.yaml", project / "specs")
    edited = project / "generated" / "weather_mcp" / "handlers.py"
    edited.write_text(edited.read_text() + "# mine\n")
    before = edited.read_bytes()
    assert cli.run(["generate"]) == 1
    assert "generated/weather_mcp/handlers.py:1:1: error[SW402]" in capsys.readouterr().err
    assert edited.read_bytes() == before


def test_a_table_of_another_project_is_not_ours(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "pyproject.toml"
    file.write_text(file.read_text().replace("manifests =", "policies ="))
    shutil.copy(ROOT / "specs" / "weather.yaml", project / "specs")
    assert cli.run(["check", "specs/weather.yaml"]) == 0
    assert "SW107" not in capsys.readouterr().err
