"""Two branches that each add a tool: git cannot merge only lists of tools, and one run resolves these."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import amounts
from stubwright import cli

ROOT = Path(__file__).parents[2]
LISTS = {"__init__.py", "client.py", "handlers.py", "manifest.json", "registry.py", "models/__init__.py"}
ENV = {
    **os.environ,
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "t"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.com"),
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    command = ["git", "-c", "init.defaultBranch=main", *arguments]
    done = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout


LOCK = "generated/stubwright.lock.json"


def save(folder: Path) -> None:
    assert cli.run(["generate", "-q"]) == 0
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")


def add_tools(folder: Path, *names: str) -> None:
    for name in names:
        text = f"tools:\n  - {{name: {name}, description: Does {name}., inputSchema: {{type: object}}}}\n"
        (folder / "tools" / f"{name}.yaml").write_text(text)


def add_server(folder: Path, name: str) -> None:
    text = f'stubwright: 1\nserver: {{name: {name}, version: "1"}}\ninclude: ["tools/*.yaml"]\n'
    (folder / f"{name}.yaml").write_text(text)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a server and some tools, in a repository."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["*.yaml"]\n')
    add_server(tmp_path, "m")
    add_tools(tmp_path, "a", "f", "m", "s", "z")
    git(tmp_path, "init", "-q")
    return tmp_path


def merged(folder: Path, one: Callable[[], None], two: Callable[[], None], side: str = "--ours") -> set[str]:
    """Merge two branches, take one side of all conflicts except in the lock, and generate; return the conflicts."""
    save(folder)
    git(folder, "checkout", "-qb", "one")
    one()
    save(folder)
    git(folder, "checkout", "-q", "main")
    git(folder, "checkout", "-qb", "two")
    two()
    save(folder)
    git(folder, "merge", "one", check=False)
    conflicts = set(git(folder, "diff", "--name-only", "--diff-filter=U").split())
    for path in conflicts - {LOCK}:
        git(folder, "checkout", side, path)
    assert cli.run(["generate", "-q"]) == 0
    assert cli.run(["generate", "--check", "-q"]) == 0
    return conflicts


def is_as_from_nothing(folder: Path) -> bool:
    """Return whether the generated tree equals a clean run's."""
    before = {path: path.read_bytes() for path in (folder / "generated").rglob("*") if path.is_file()}
    for module in (folder / "generated").rglob("*.py"):
        module.unlink()
    assert cli.run(["generate", "-q", "--force"]) == 0
    return before == {path: path.read_bytes() for path in before}


@pytest.mark.parametrize("side", ["--ours", amounts.mark_long("--theirs")])
def test_branches_that_each_add_a_tool(side: str, project: Path) -> None:
    conflicts = merged(project, lambda: add_tools(project, "c"), lambda: add_tools(project, "u"), side)
    assert conflicts <= {LOCK, *(f"generated/m_mcp/{name}" for name in LISTS)}
    assert is_as_from_nothing(project)


@pytest.mark.long
def test_the_lock_merges_where_git_is_told_how(project: Path) -> None:
    (project / ".gitattributes").write_text((ROOT / ".gitattributes").read_text())
    conflicts = merged(project, lambda: add_tools(project, "c"), lambda: add_tools(project, "u"))
    assert conflicts <= {f"generated/m_mcp/{name}" for name in LISTS}
    assert is_as_from_nothing(project)


@pytest.mark.long
@pytest.mark.parametrize("told", amounts.sample([True, False], 1))
def test_branches_that_each_add_a_server(project: Path, told: bool) -> None:
    if told:
        (project / ".gitattributes").write_text((ROOT / ".gitattributes").read_text())
    conflicts = merged(project, lambda: add_server(project, "h"), lambda: add_server(project, "k"))
    assert conflicts == (set() if told else {LOCK})
    assert is_as_from_nothing(project)


@pytest.mark.parametrize("lines", amounts.sample([slice(9), slice(1, None), slice(None, -1)], 1))
def test_half_a_lock_is_none(project: Path, lines: slice, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["generate", "-q"]) == 0
    text = (project / LOCK).read_text().splitlines(keepends=True)
    (project / LOCK).write_text("".join(text[lines]))
    assert cli.run(["generate", "-q"]) == 1
    assert (
        "error[SW405]: `generated/stubwright.lock.json` cannot be read: it is not valid JSON" in capsys.readouterr().err
    )
