"""The parts of a release: metadata, one version, the changelog and the workflows."""

from __future__ import annotations

import re
import runpy
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.version import Version

from stubwright import __version__

FOLDERS = {"stubwright": ROOT, "stubwright-runtime": ROOT / "runtime"}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github").rglob("*.yml"))
PYTHONS = re.findall(r"3\.\d+", (ROOT / "Makefile").read_text("utf-8").partition("\nPYTHONS :=")[2].partition("\n")[0])
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
CHANGELOG_LINES = 60  # of a version: what everyone reads who upgrades
WRITING = {  # what jobs may write, by their names
    "publish": {"id-token", "attestations"},
    "site": {"id-token", "pages"},
    "deploy": {"id-token", "pages"},
}
OLD_ADDRESSES = ("tests/releases/", "tests/upgrades/")  # as earlier releases wrote them


def metadata(name: str) -> ProjectMetadata[Any]:
    """Return hatchling's metadata of a `pyproject.toml`, as an index receives it."""
    return ProjectMetadata(str(FOLDERS[name]), PluginManager())


def load(file: Path) -> dict[Any, Any]:
    document = yaml.safe_load(file.read_text("utf-8"))
    assert isinstance(document, dict)
    return document


def parts(value: object) -> Iterator[dict[Any, Any]]:
    """Yield each mapping of a document."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(child)


@pytest.mark.parametrize("name", FOLDERS)
def test_an_index_gets_addresses_and_classifiers(name: str) -> None:
    core = metadata(name).core
    assert core.urls.keys() in (set(), {"Homepage", "Documentation", "Repository", "Changelog", "Issues"})
    assert all(url.startswith(core.urls["Homepage"]) for url in core.urls.values())
    assert "OWNER" not in "".join([*core.urls.values(), core.readme]), "leave the key out until there is an owner"
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", core.readme) == []
    assert core.readme_content_type == "text/markdown"
    prefix = "Programming Language :: Python :: "
    named = [each.removeprefix(prefix) for each in core.classifiers if each.startswith(prefix)]
    assert len(PYTHONS) >= 4
    assert [version for version in named if re.fullmatch(r"3\.\d+", version)] == PYTHONS
    assert core.requires_python == f">={PYTHONS[0]}"
    assert "Typing :: Typed" in core.classifiers
    assert core.license_expression == "MIT"
    assert core.license_files == ["LICENSE"]


def test_links_of_the_readme_lead_to_the_tag_of_the_version() -> None:
    resolve = runpy.run_path(str(ROOT / "hatch_build.py"))["resolve_links"]
    text = "see [a](docs/a.md#b), [`c`](c.md), [d](#d), [e](https://example.com/e) and ![f](f.svg)"
    base = "https://example.com/blob/v1"
    assert resolve(text, base) == (
        f"see [a]({base}/docs/a.md#b), [`c`]({base}/c.md), [d](#d), [e](https://example.com/e) and ![f](f.svg)"
    )
    assert resolve(text, None) == "see a, `c`, [d](#d), [e](https://example.com/e) and ![f](f.svg)"


def test_all_places_have_one_version() -> None:
    assert {metadata(name).version for name in FOLDERS} == {__version__}
    required = [line for line in metadata("stubwright").core.dependencies if line.startswith("stubwright-runtime")]
    assert required == [f"stubwright-runtime=={__version__}"], "run make version VERSION=…"
    assert load(ROOT / "generated" / "stubwright.lock.json")["generator"] == __version__
    assert "version" not in load(ROOT / "CITATION.cff"), "one more place to forget"


def test_the_changelog_begins_with_this_version_and_briefly() -> None:
    sections = CHANGELOG.split("\n## ")[1:]
    heading, *lines = sections[0].rstrip().splitlines()
    released = not Version(__version__).is_devrelease
    assert heading == Version(__version__).base_version + ("" if released else " (unreleased)")
    assert len(lines) < CHANGELOG_LINES, "extend a line, or replace one"
    versions = [Version(section.split()[0]) for section in sections]
    assert versions == sorted(versions, reverse=True)


def test_the_changelog_installs_nothing_by_name() -> None:
    assert not re.search(r"(pip|pipx|uv|uvx)\b[^\n`]*\b(install|add|run|uvx)\b[^\n`]*stubwright", CHANGELOG)


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.name)
def test_workflows_and_forms_are_yaml(file: Path) -> None:
    assert load(file)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_have_no_secrets_and_few_rights(file: Path) -> None:
    text = file.read_text("utf-8")
    assert not re.search(r"secrets\.|secrets:|password:|github\.token|_TOKEN|pull_request_target", text)
    workflow = load(file)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        may_write = {right for right, access in job.get("permissions", {}).items() if access == "write"}
        assert may_write == WRITING.get(name, set())
    for step in (part for part in parts(workflow["jobs"]) if str(part.get("uses", "")).count("@")):
        assert re.search(rf"uses: {re.escape(step['uses'])}  # v\d+\.\d+\.\d+\n", text), (
            "name the version of the digest"
        )
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), "a tag can be moved"
        if step["uses"].startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    for part in parts(workflow["jobs"]):
        assert "${{ github" not in str(part.get("run", "")), "what others name, such as a branch, would become code"


def test_a_release_tests_and_checks_before_it_publishes() -> None:
    jobs = load(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert {*jobs["publish"]["needs"]} == jobs.keys() - {"publish", "site"}
    assert jobs["site"]["needs"] == "publish", "the website describes what can be installed"
    folders = [
        step["with"]["packages-dir"] for step in jobs["publish"]["steps"] if "pypi-publish" in step.get("uses", "")
    ]
    assert folders == ["dist/runtime", "dist/compiler"], "the compiler requires the runtime of its version"
    assert jobs["check"]["strategy"]["matrix"]["python"] == PYTHONS


def test_what_is_published_has_the_digests_of_what_was_built() -> None:
    jobs = load(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    [made] = [step for step in jobs["build"]["steps"] if step.get("id") == "digests"]
    assert "sha256sum dist/*/*" in made["run"]
    assert jobs["build"]["outputs"] == {"digests": "${{ steps.digests.outputs.digests }}"}
    download, compare, attest, *_ = jobs["publish"]["steps"]
    assert "download-artifact" in download["uses"]
    assert compare["env"] == {"DIGESTS": "${{ needs.build.outputs.digests }}"}
    assert "sha256sum --check --strict" in compare["run"]
    assert "attest" in attest["uses"]


def test_the_docs_name_a_release_of_the_action() -> None:
    named = re.findall(r"stubwright/\.github/actions/check@(\S+)", (ROOT / "docs" / "ci.md").read_text("utf-8"))
    assert named
    assert all(re.fullmatch(r"v\d+\.\d+\.\d+", each) for each in named)


def test_ci_names_files_that_exist() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    named = {*re.findall(r"\btests/\w[\w/]*(?:\.py)?", text)}
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_file_has_a_placeholder_for_the_owner() -> None:
    """Keys that name one are added when there is one; readers complete the example in docs/ci.md."""
    pattern = r"OWNER(/|\.github\.io/)stubwright"
    command = ["git", "grep", "-cE", pattern, "--", ":!tests"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout.splitlines() == ["docs/ci.md:1"]


def test_the_repository_has_one_address() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    address = project.get("urls", {}).get("Homepage")
    pattern = r"github\.com[/:][A-Za-z0-9_.-]+/(stubwright|toolwright)"
    listed = subprocess.run(["git", "grep", "-noE", pattern], cwd=ROOT, capture_output=True, text=True, check=False)
    assert listed.returncode in (0, 1), listed.stderr  # 1: there is none
    found = [line.split(":", 2) for line in listed.stdout.splitlines()]
    others = [(path, line, text) for path, line, text in found if f"https://{text}" != address]
    assert [each for each in others if not each[0].startswith(OLD_ADDRESSES)] == []
    assert address is None or len({path for path, *_ in found}) >= 4
