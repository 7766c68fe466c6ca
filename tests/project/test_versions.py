"""The version of a project and the version of its server."""

from __future__ import annotations

from pathlib import Path

import pytest

from stubwright import cli
from stubwright.compile.syntax import yamlwriter

MANIFEST = {"stubwright": 1, "server": {"name": "weather", "version": "1.0.0"}, "tools": []}
SERVER = "stubwright: 1\nserver: {name: weather, version: 1.0.0}\ntools: []\n"
PROJECT = '[project]\nname = "weather"\nversion = "1.1.0"\n\n[tool.stubwright]\nmanifests = ["*.yaml"]\n'


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Checked:
    monkeypatch.chdir(tmp_path)
    return Checked(tmp_path, capsys)


class Checked:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def __call__(self, project: str = PROJECT, *arguments: str, **manifests: str) -> str:
        """Return the output of `check` for a project with these manifests."""
        (self.folder / "pyproject.toml").write_text(project)
        for name, text in manifests.items():
            (self.folder / f"{name}.yaml").write_text(text)
        cli.run(["check", *arguments])
        return self.capsys.readouterr().err


def test_versions_that_differ(checked: Checked) -> None:
    told = "weather.yaml:2:34: warning[SW413]: the server's version is `1.0.0`, but `pyproject.toml` has `1.1.0`\n"
    assert checked(weather=SERVER).startswith(told)
    assert checked(PROJECT, "./weather.yaml", weather=SERVER).startswith(told)


def test_imported_manifests_and_clients_beside_it(checked: Checked) -> None:
    imported = yamlwriter.format_imported({**MANIFEST, "server": {"name": "other", "version": "7"}}, "", None)
    said = checked(weather=SERVER, other=imported)
    assert said.count("SW413") == 1
    assert "weather.yaml:2:34" in said


@pytest.mark.parametrize("version", ["1", "1.0", "1.0.0", "v1.0.0"])
def test_versions_that_are_the_same(checked: Checked, version: str) -> None:
    assert "SW413" not in checked(PROJECT.replace("1.1.0", version), weather=SERVER)


def test_pre_releases_are_compared_as_packages_count(checked: Checked) -> None:
    server = SERVER.replace("1.0.0", "2.0.0-rc.1")
    assert "SW413" not in checked(PROJECT.replace("1.1.0", "2.0rc1"), weather=server)
    assert "SW413" in checked(PROJECT.replace("1.1.0", "2.0rc2"), weather=server)
    assert "SW413" in checked(PROJECT, weather=SERVER.replace("1.0.0", "spring"))


@pytest.mark.parametrize(
    "project",
    [
        PROJECT.replace('version = "1.1.0"', 'dynamic = ["version"]'),
        PROJECT.replace('[project]\nname = "weather"\nversion = "1.1.0"\n', ""),
        PROJECT.replace('"*.yaml"', ""),
    ],
)
def test_projects_that_say_no_version_or_no_manifest(checked: Checked, project: str) -> None:
    assert "SW413" not in checked(project, "weather.yaml", weather=SERVER)


def test_manifests_that_are_not_the_project_s_one_server(checked: Checked) -> None:
    other = SERVER.replace("weather", "other")
    assert "SW413" not in checked(weather=SERVER, other=other)
    assert "SW413" not in checked(PROJECT, "weather.yaml", weather=SERVER, other=other)


def test_clients_and_imports_have_versions_of_their_own(checked: Checked) -> None:
    assert "SW413" not in checked(weather=f"{SERVER}emit: [client]\n")
    assert "SW413" not in checked(weather=yamlwriter.format_imported(MANIFEST, "", None))


def test_the_warning_can_be_ignored(checked: Checked) -> None:
    assert "SW413" not in checked(weather=f"{SERVER}lint: {{ignore: [SW413]}}\n")
