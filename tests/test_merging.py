"""Two branches that each add a tool: what git cannot merge are lists of tools, and one run settles them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from toolwright import cli

LISTS = {"__init__.py", "client.py", "handlers.py", "manifest.json", "tools.py", "models/__init__.py"}
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


def add(folder: Path, *names: str) -> None:
    for name in names:
        text = f"tools:\n  - {{name: {name}, description: Does {name}., inputSchema: {{type: object}}}}\n"
        (folder / "tools" / f"{name}.yaml").write_text(text)
    assert cli.run(["generate", "-q"]) == 0
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")


@pytest.mark.parametrize("side", ["--ours", "--theirs"])
def test_branches_that_each_add_a_tool(side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "m.yaml").write_text('toolwright: 1\nserver: {name: m, version: "1"}\ninclude: ["tools/*.yaml"]\n')
    (tmp_path / "pyproject.toml").write_text('[tool.toolwright]\nmanifests = ["m.yaml"]\n')
    git(tmp_path, "init", "-q")
    add(tmp_path, "a", "f", "m", "s", "z")
    git(tmp_path, "checkout", "-qb", "one")
    add(tmp_path, "c")
    git(tmp_path, "checkout", "-q", "main")
    git(tmp_path, "checkout", "-qb", "two")
    add(tmp_path, "u")
    git(tmp_path, "merge", "one", check=False)
    conflicts = set(git(tmp_path, "diff", "--name-only", "--diff-filter=U").split())
    assert conflicts <= {"generated/toolwright.lock.json", *(f"generated/m_mcp/{name}" for name in LISTS)}
    for path in conflicts - {"generated/toolwright.lock.json"}:
        git(tmp_path, "checkout", side, path)
    assert cli.run(["generate", "-q"]) == 0
    assert cli.run(["generate", "--check", "-q"]) == 0
    merged = {path: path.read_bytes() for path in (tmp_path / "generated").rglob("*") if path.is_file()}
    for module in (tmp_path / "generated" / "m_mcp").rglob("*.py"):
        module.unlink()
    assert cli.run(["generate", "-q", "--force"]) == 0
    assert merged == {path: path.read_bytes() for path in merged}
