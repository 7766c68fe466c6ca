"""A project from `new --from openapi` to CI: refreshed, checked out again, and next to others in a repository."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from command_line import stubwright

NAMELESS = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}


def document(*operations: str) -> str:
    paths = {
        f"/{name}": {"get": {"operationId": name, "responses": {"200": {"description": "ok"}}}} for name in operations
    }
    info = {"title": "Pets", "version": "1"}
    return json.dumps({"openapi": "3.0.3", "info": info, "servers": [{"url": "http://localhost/"}], "paths": paths})


def git(*words: str, cwd: Path) -> str:
    identity = {**NAMELESS, "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
    done = subprocess.run(["git", *words], cwd=cwd, env={**os.environ, **identity}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(*words: str, cwd: Path, status: int = 0) -> str:
    done = stubwright(*words, cwd=cwd)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("place", "is_repository", "recorded"),
    [
        ("services/api.json", False, "../api.json"),
        ("a/api.json", True, "../../a/api.json"),
        ("../api.json", True, None),
        ("api.json", False, None),
    ],
)
def test_a_near_document_is_recorded_from_the_project(
    place: str, is_repository: bool, recorded: str | None, tmp_path: Path
) -> None:
    file, root = tmp_path / "root" / place, tmp_path / "root"
    for folder in (root / "services", file.parent, *([root / ".git"] if is_repository else [])):
        folder.mkdir(parents=True, exist_ok=True)
    file.write_text(document("cats"))
    file = file.resolve()
    run("new", "pets", "-q", "--from", "openapi", str(file), cwd=root / "services")
    command = (root / "services" / "pets" / "specs" / "imported" / "pets.yaml").read_text().splitlines()[1]
    assert command.startswith(f"# stubwright import openapi {recorded or file.as_posix()} --name pets")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a repository with an API's document and a project made from it, in a separate folder."""
    root = tmp_path_factory.mktemp("chain")
    git("init", "-q", "-b", "main", cwd=root)
    (root / "api.json").write_text(document("cats"))
    (root / "services").mkdir()
    run("new", "pets", "--from", "openapi", "../api.json", cwd=root / "services")
    git("add", "-A", cwd=root)
    git("commit", "-qm", "Start", cwd=root)
    return root


def test_a_new_project_is_refreshed_when_the_api_changes(repository: Path) -> None:
    project = repository / "services" / "pets"
    imported = project / "specs" / "imported" / "pets.yaml"
    assert run("refresh", "--check", cwd=project) == "specs/imported/pets.yaml: up to date\n"
    (repository / "api.json").write_text(document("cats", "dogs"))
    assert "specs/imported/pets.yaml: would change\n" in run("refresh", "--check", cwd=project, status=1)
    # What a checkout on Windows has.
    imported.write_bytes(imported.read_bytes().replace(b"\n", b"\r\n"))
    assert "specs/imported/pets.yaml: refreshed\n" in run("refresh", cwd=project)
    text = imported.read_bytes()
    assert b"dogs" in text
    assert text.count(b"\n") == text.count(b"\r\n")
    assert run("refresh", "--check", cwd=project) == "specs/imported/pets.yaml: up to date\n"
    assert "tool `dogs`" in run("diff", "git:HEAD", cwd=project)
    run("generate", cwd=project)
    run("generate", "--check", cwd=project)
    git("checkout", "-q", ".", cwd=repository)


def test_annotations_name_files_from_the_root_of_the_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = repository / "services"
    tools: list[dict[str, Any]] = [{"name": "a", "description": "d", "inputSchema": {"type": "object"}}]
    server = {"stubwright": 1, "server": {"name": "t", "version": "1.0.0"}}
    (folder / "old.yaml").write_text(json.dumps({**server, "tools": tools}))
    (folder / "new.yaml").write_text(json.dumps({**server, "tools": [{**tools[0], "name": "b"}]}))
    (folder / "wrong.yaml").write_text(json.dumps({**server, "tools": [{**tools[0], "inputSchema": {"type": "o"}}]}))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(repository))
    assert "::error file=services/wrong.yaml,line=1," in run(
        "check", "wrong.yaml", "--format", "github", cwd=folder, status=1
    )
    assert " file=services/new.yaml," in run("diff", "old.yaml", "new.yaml", "--format", "github", cwd=folder, status=1)
    sarif = json.loads(run("diff", "old.yaml", "new.yaml", "--format", "sarif", cwd=folder, status=1))
    (found,) = sarif["runs"]
    uris = {
        place["physicalLocation"]["artifactLocation"]["uri"]
        for result in found["results"]
        for place in result.get("locations", [])
    }
    assert uris == {"services/old.yaml", "services/new.yaml"}
    for rule in found["tool"]["driver"]["rules"]:
        assert rule["fullDescription"]["text"] == rule["shortDescription"]["text"]
        assert rule["help"]["text"].startswith(rule["fullDescription"]["text"])
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert f"::error file={folder.resolve().as_posix()}/wrong.yaml," in run(
        "check", "wrong.yaml", "--format", "github", cwd=folder, status=1
    )


@pytest.mark.parametrize("style", ["json", "github", "sarif"])
def test_a_broken_manifest_is_reported_in_each_format_of_diff(style: str, repository: Path) -> None:
    folder = repository / "services"
    (folder / "fine.yaml").write_text('{stubwright: 1, server: {name: t, version: "1"}}\n')
    (folder / "broken.yaml").write_text("stubwright: 1\nserver: {name: t, version: 1.0.0}\ntools: 5\n")
    broken = stubwright("diff", "fine.yaml", "broken.yaml", "--format", style, cwd=folder)
    lost = stubwright("diff", "fine.yaml", "git:no-such:broken.yaml", "--format", style, cwd=folder)
    assert (broken.returncode, lost.returncode) == (1, 1)
    assert "git has no revision `no-such`" in lost.stdout
    match style:
        case "github":
            assert broken.stdout.startswith("::error file=broken.yaml,line=3,")
            assert lost.stdout.startswith("::error title=not compared::")
        case "json":
            (found,) = json.loads(broken.stdout)["diagnostics"]
            assert found["code"].startswith("SW")
        case _:
            (of_broken,) = json.loads(broken.stdout)["runs"]
            assert [result["level"] for result in of_broken["results"]] == ["error"]
            (of_lost,) = json.loads(lost.stdout)["runs"]
            assert of_lost["invocations"][0]["executionSuccessful"] is False


def test_a_revision_is_read_in_the_hook_of_a_worktree(repository: Path, tmp_path: Path) -> None:
    """Git sets `GIT_DIR` for hooks, and then counts paths from the working folder."""
    worktree = tmp_path / "tree"
    git("worktree", "add", "-q", str(worktree), "-b", "other", cwd=repository)
    project = worktree / "services" / "pets"
    variables = {
        "GIT_DIR": git("rev-parse", "--absolute-git-dir", cwd=worktree).strip(),
        "GIT_INDEX_FILE": "index",
        "GIT_PREFIX": "services/",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        told = run("diff", "git:HEAD:./specs/pets.yaml", "specs/pets.yaml", cwd=project)
    assert told.startswith("nothing changed from git:HEAD:./specs/pets.yaml"), told


def test_projects_in_one_folder_share_a_wheel(tmp_path: Path) -> None:
    """In one workspace of uv, all members must require the same URL."""
    for name in ("one", "two"):
        run("new", name, cwd=tmp_path)
    (wheel,) = (tmp_path / "one" / "wheels").glob("*.whl")
    assert f'{{ path = "wheels/{wheel.name}" }}' in (tmp_path / "one" / "pyproject.toml").read_text()
    assert f'{{ path = "../one/wheels/{wheel.name}" }}' in (tmp_path / "two" / "pyproject.toml").read_text()
    assert (tmp_path / "two" / "wheels" / wheel.name).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize(
    ("variables", "has_escapes"),
    [({}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "0"}, False)],
)
def test_colours_are_for_terminals_that_read_them(
    variables: dict[str, str], has_escapes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    from stubwright.commands.shared import console

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shown: list[bool] = []

    def paint(color: bool) -> str:
        shown.append(color)
        return ""

    console.print_painted(paint, Terminal())
    assert shown == [has_escapes]
