"""The GitHub Action of this repository: its steps, run by bash as on a runner, with a `gh` that records calls."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import forked

ROOT: Final = Path(__file__).parents[2]
ACTION: Final = yaml.safe_load((ROOT / ".github" / "actions" / "check" / "action.yml").read_text("utf-8"))
INPUTS: Final = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
GH: Final = """#!/usr/bin/env bash
for argument in "$@"; do
  case "$argument" in
    graphql) [ -n "$GH_AUTHOR" ] && echo "$GH_AUTHOR"; exit ;;
    --paginate) [ ! -e "$GH_EARLIER" ] || jq --raw-output "${@: -1}" "$GH_EARLIER"; exit ;;
    body=@*) cp "${argument#body=@}" "$GH_BODY" ;;
  esac
done
echo "$*" >> "$GH_CALLS"
"""
MANIFEST: Final = """\
stubwright: 1
server: {name: desk, version: 1.0.0}
tools:
  - name: find
    description: Finds tickets.
    inputSchema: {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}
    annotations: {readOnlyHint: true, openWorldHint: false}
"""


class Project:
    """A checkout in which steps run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.programs = folder / "bin"
        self.programs.mkdir()
        (self.programs / "gh").write_text(GH)
        (self.programs / "gh").chmod(0o755)
        (self.programs / "stubwright").write_text(
            f'#!/bin/sh\nexec {forked.interpreter_in(self.programs)} -m stubwright "$@"\n'
        )
        (self.programs / "stubwright").chmod(0o755)
        self.calls, self.body, self.earlier = folder / "calls", folder / "body", folder / "earlier"
        self.summary = folder / "summary"
        self.base = ""
        self.author = "github-actions[bot]"

    def step(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run a step with these inputs in place of the defaults."""
        given = {**INPUTS, "diff": self.base, **{key.replace("_", "-"): value for key, value in inputs.items()}}
        [step] = [each for each in ACTION["runs"]["steps"] if each["name"] == name]
        known = {f"inputs.{key}": value for key, value in given.items()}
        known |= {"github.event.pull_request.number": "7", "github.repository": "ann/desk"}

        def fill(text: str) -> str:
            return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: known[found[1]], text)

        path = os.pathsep.join([str(self.programs), os.environ["PATH"]])
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "GITHUB_"))},
            **{key: fill(value) for key, value in step.get("env", {}).items()},
            "PATH": path,
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GH_CALLS": str(self.calls),
            "GH_BODY": str(self.body),
            "GH_EARLIER": str(self.earlier),
            "GH_AUTHOR": self.author,
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def write(self, manifest: str) -> None:
        """Write the manifest and its generated files."""
        (self.folder / "desk.yaml").write_text(manifest)
        assert forked.run(["generate", "-q"], self.folder).returncode == 0

    def git(self, *arguments: str) -> str:
        author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *author, *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    (made.folder / "pyproject.toml").write_text("[tool.stubwright]\nmanifests = ['desk.yaml']\n")
    made.write(MANIFEST)
    made.git("init", "-q")
    made.git("add", "-A")
    made.git("commit", "-qm", "first")
    made.base = made.git("rev-parse", "HEAD")
    return made


def test_a_change_that_breaks_callers_fails_and_is_a_comment(project: Project) -> None:
    project.write(MANIFEST.replace("name: find", "name: search").replace("1.0.0", "2.0.0"))
    assert project.step("Check", strict="false").returncode == 0
    done = project.step("Compare", fail_on="breaking")
    assert done.returncode == 1, done.stderr
    assert project.body.read_text().startswith("<!-- stubwright diff -->")
    assert "tool <code>find</code> (removed)" in project.body.read_text()
    assert project.summary.read_text() == project.body.read_text()
    assert "--method POST repos/ann/desk/issues/7/comments" in project.calls.read_text()
    assert project.step("Compare").returncode == 0


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq reads the comments in place of gh")
@pytest.mark.parametrize(
    ("author", "number"),
    [
        pytest.param("github-actions[bot]", 41, id="workflow"),
        pytest.param("", 41, id="unknown", marks=pytest.mark.long),
        pytest.param("ann", 43, id="person", marks=pytest.mark.long),
        pytest.param("desk-app[bot]", None, id="another", marks=pytest.mark.long),
    ],
)
def test_only_an_own_comment_of_an_earlier_run_is_replaced(project: Project, author: str, number: int | None) -> None:
    mark = "<!-- stubwright diff -->\n"
    comments = [
        {"id": 39, "user": {"login": "mallory"}, "body": f"{mark}nothing changed"},
        {"id": 40, "user": {"login": "github-actions[bot]"}, "body": f"I read: {mark}"},
        {"id": 41, "user": {"login": "github-actions[bot]"}, "body": f"{mark}old"},
        {"id": 42, "user": {"login": "github-actions[bot]"}, "body": f"{mark}older"},
        {"id": 43, "user": {"login": "ann"}, "body": f"{mark}old"},
    ]
    project.earlier.write_text(json.dumps(comments))
    project.author = author
    project.write(MANIFEST.replace("Finds tickets", "Finds any ticket"))
    done = project.step("Compare")
    assert done.returncode == 0, done.stderr
    place = (
        "POST repos/ann/desk/issues/7/comments" if number is None else f"PATCH repos/ann/desk/issues/comments/{number}"
    )
    assert f"--method {place}" in project.calls.read_text()
    project.calls.unlink()
    assert project.step("Compare", comment="false").returncode == 0
    assert not project.calls.exists()


@pytest.mark.long
def test_a_comment_is_no_longer_than_it_may_be(project: Project) -> None:
    tool = MANIFEST[MANIFEST.index("  - name") :]
    many = "".join(tool.replace("find", f"find_{number}_{'tickets_' * 12}") for number in range(40))
    (project.folder / "desk.yaml").write_text(MANIFEST + many)
    assert project.step("Compare").returncode == 0
    assert 50_000 < len(project.body.read_bytes()) < 65_536
    assert project.body.read_text().endswith("The rest is in the summary of the job.\n")
    assert project.summary.stat().st_size > 65_536


def test_what_is_stale_or_wrong_fails(project: Project) -> None:
    (project.folder / "desk.yaml").write_text(MANIFEST.replace("Finds", "Lists"))
    stale = project.step("Check", strict="false")
    assert stale.returncode == 1
    assert "::error" in stale.stdout + stale.stderr
    (project.folder / "desk.yaml").write_text(MANIFEST.replace("inputSchema", "inputSchemas"))
    assert project.step("Check").returncode == 1
    broken = project.step("Compare")
    assert broken.returncode == 1
    assert "rename `inputSchemas`" in broken.stderr
    assert not project.calls.exists(), "what cannot be compared is no comment"


def test_an_unknown_revision_is_an_error(project: Project) -> None:
    assert project.step("Compare", diff="0" * 40).returncode != 0
    assert not project.calls.exists()


def test_each_input_is_used_and_each_step_has_a_shell() -> None:
    text = (ROOT / ".github" / "actions" / "check" / "action.yml").read_text("utf-8")
    steps: list[dict[str, Any]] = ACTION["runs"]["steps"]
    assert {step["shell"] for step in steps} == {"bash"}
    for name in INPUTS:
        assert re.search(rf"inputs\.{name}\b", text), name
    assert not [step["name"] for step in steps if "${{" in step["run"]], "expressions go through `env`"
