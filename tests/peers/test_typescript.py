"""Generated TypeScript as others see it: tsc checks the modules, and Node calls a generated server by one of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from corpus import files as corpus_files
from stubwright import cli

HERE = Path(__file__).parent / "typescript"
ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "cases" / "a-client-in-typescript" / "manifest.yaml"
SPECS = [*sorted((ROOT / "specs").glob("*.yaml")), ROOT / "specs" / "everything" / "everything.yaml"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of npm with the modules of the specs, of the golden case and of `desk.yaml`, and their packages."""
    if shutil.which("npm") is None:
        if os.environ.get("CI") == "true":
            raise FileNotFoundError("npm is not installed")
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("typescript")
    shutil.copytree(HERE, folder, dirs_exist_ok=True)
    (folder / "handlers.txt").rename(folder / "desk.py")
    made = ["-q", "-o", str(folder / "generated")]
    assert cli.run(["generate", *map(str, SPECS), str(GOLDEN), "--emit", "typescript", *made]) == 0
    assert cli.run(["generate", str(folder / "desk.yaml"), *made]) == 0
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--no-package-lock"]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True)
    if done.returncode and os.environ.get("CI") != "true":
        pytest.skip(f"npm cannot install the SDK and TypeScript: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return folder


def check(folder: Path, *options: str) -> str:
    """Run tsc, and return what it prints."""
    command = ["npx", "tsc", "--pretty", "false", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


@pytest.mark.long
def test_tools_of_public_servers_pass_tsc(project: Path, corpus: Path) -> None:
    made = project / "public"
    for path in corpus_files(corpus):
        manifest = project / f"{path.stem}.yaml"
        assert cli.run(["import", "tools", str(path), "--name", path.stem, "-o", str(manifest)]) == 0
        assert cli.run(["generate", str(manifest), "--emit", "typescript", "-q", "-o", str(made)]) == 0
    (made / "tsconfig.json").write_text('{"extends": "../tsconfig.json", "include": ["typescript/*.ts"]}')
    assert check(project, "-p", str(made), "--noEmit") == ""


@pytest.mark.long
def test_modules_pass_tsc_and_call_a_generated_server(project: Path) -> None:
    assert check(project) == ""
    path = os.pathsep.join(map(str, (project / "generated", project)))
    command = ["node", "built/calls.js", sys.executable, "-m", "desk_mcp"]
    done = subprocess.run(
        command, cwd=project, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert "timed out" in got.pop("late")
    assert got == {
        "ids": [0, 1, 2, 3, 4],
        "first": 2,
        "refused": "the call of delete_notes was not confirmed",
        "failed": "2 notes are locked",
        "asked": [["delete_notes", {"ids": [1]}], ["delete_notes", {"ids": [1, 2]}]],
        "progress": [{"progress": 1, "total": 2, "message": "waiting"}],
        "aborted": True,
        "note": "note a b",
        "message": {"type": "text", "text": "Summarize note 3."},
        "revision": "2026-07-28",
        "server": "desk",
    }
