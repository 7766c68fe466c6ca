"""`stubwright refresh` imports again unless the import was edited, and never runs a command."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import amounts
from command_line import stubwright
from stubwright.compile.syntax import yamlwriter

IMPORT = ("import", "openapi", "api.json", "--name", "acme", "--fragment", "-o", "parts/acme.yaml")


def write_document(folder: Path, *, required: bool) -> None:
    query = {"name": "q", "in": "query", "required": required, "schema": {"type": "string"}}
    paths = {"/calls": {"get": {"operationId": "list_calls", "summary": "Lists.", "parameters": [query]}}}
    document = {"openapi": "3.1.0", "info": {"title": "Acme", "version": "1"}, "security": [], "paths": paths}
    (folder / "api.json").write_text(json.dumps({**document, "servers": [{"url": "https://h.example"}]}))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_document(tmp_path, required=False)
    (tmp_path / "acme.yaml").write_text(
        "stubwright: 1\nserver: {name: acme, version: 1.0.0}\ninclude: [parts/acme.yaml]\n"
        "overlay: {tools: {list_calls: {description: Lists calls.}}}\n"
    )
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.stubwright]\nmanifests = ["acme.yaml"]\n')
    done = stubwright(*IMPORT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.parametrize("manifest", amounts.sample(["acme.yaml", None], 1))
def test_what_changed_is_shown_and_written(manifest: str | None, project: Path) -> None:
    words = () if manifest is None else (manifest,)
    imported = project / "parts/acme.yaml"
    again = stubwright("refresh", *words, cwd=project)
    assert (again.returncode, again.stdout) == (0, "parts/acme.yaml: up to date\n"), again.stderr
    assert stubwright("refresh", *words, "--check", cwd=project).returncode == 0
    write_document(project, required=True)
    before = imported.read_text()
    checked = stubwright("refresh", *words, "--check", cwd=project)
    assert checked.returncode == 1
    assert "tool `list_calls`, argument `q`: it is now required" in checked.stdout
    assert checked.stdout.endswith("parts/acme.yaml: would change\n")
    if manifest is None:
        listed = stubwright("refresh", "--check", "--json", cwd=project)
        assert listed.returncode == 1
        value = json.loads(listed.stdout)
        assert value["files"] == [{"file": "parts/acme.yaml", "state": "would change"}]
        assert "it is now required" in value["manifests"][0]["changes"][0]["message"]
    assert imported.read_text() == before
    done = stubwright("refresh", *words, cwd=project)
    assert done.returncode == 0, done.stderr
    assert "it is now required" in done.stdout
    assert done.stdout.endswith("parts/acme.yaml: refreshed\n")
    direct = project / "direct"
    direct.mkdir()
    assert stubwright(*IMPORT, cwd=project).returncode == 0
    assert imported.read_text() != before
    assert stubwright("refresh", "--check", cwd=project).returncode == 0


def test_a_file_that_was_edited_is_left_as_it_is(project: Path) -> None:
    imported = project / "parts/acme.yaml"
    edited = imported.read_text().replace("Lists.", "Lists all.")
    imported.write_text(edited)
    write_document(project, required=True)
    for done in (stubwright("refresh", cwd=project), stubwright(*IMPORT, cwd=project)):
        assert done.returncode == 1
        assert "error[SW403]: this file was edited after it was imported, so it was left unchanged" in done.stderr
        assert imported.read_text() == edited
    assert stubwright("refresh", "--force", cwd=project).returncode == 0
    assert "Lists." in imported.read_text()
    imported.write_text(edited)
    assert stubwright(*IMPORT, "--force", cwd=project).returncode == 0
    assert "Lists." in imported.read_text()


@pytest.mark.parametrize("name", ["parts.yaml", "parts.json"])
@pytest.mark.parametrize("command", [None, 'stubwright import openapi "a b" -o x'])
def test_a_file_says_where_it_is_from_and_whether_it_was_edited(name: str, command: str | None) -> None:
    value: dict[str, Any] = {"tools": [{"name": "a", "description": "d\x85\u2028 é"}]}
    text = yamlwriter.format_imported(value, name, command)
    assert yamlwriter.parse_origin(text) == yamlwriter.Origin(command, is_edited=False)
    assert yamlwriter.parse_origin(text.replace("\n", "\r\n")) == yamlwriter.Origin(command, is_edited=False)
    assert yamlwriter.parse_origin(text.replace("é", "e")) == yamlwriter.Origin(command, is_edited=True)
    assert yamlwriter.parse_origin(text.replace("Imported by", "Written by")) is None
    head = "\n".join(line for line in text.split("\n") if "sha256:" not in line)
    assert yamlwriter.parse_origin(head) == yamlwriter.Origin(command, is_edited=False)  # by an older stubwright


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("stubwright import mcp -- touch here", "a live server must be imported manually"),
        ("stubwright import openapi --what", "the command in its first lines is invalid"),
        ("stubwright import openapi 'a", "an unclosed quote"),
        ("stubwright generate -o parts/acme.yaml", "the command in its first lines is not `stubwright import`"),
        ("stubwright import openapi - -o parts/acme.yaml", "from standard input"),
        ("stubwright import openapi api.json", "was written to `standard output`"),
        ("stubwright import openapi api.json -o other.yaml", "was written to `other.yaml`"),
        ("stubwright import openapi api.json --rename a -o parts/acme.yaml", "--rename is `a`"),
        ("stubwright import openapi api.json --help -o parts/acme.yaml", "is not `stubwright import`"),
        ("stubwright import openapi nothing.json -o parts/acme.yaml", "`nothing.json` does not exist"),
    ],
)
def test_first_lines_run_no_command_and_write_nothing_else(command: str, why: str, project: Path) -> None:
    imported = project / "parts/acme.yaml"
    lines = imported.read_text().splitlines(keepends=True)
    imported.write_text("".join([lines[0], f"# {command}\n", *lines[2:]]))
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    done = stubwright("refresh", cwd=project)
    assert done.returncode == 1
    assert why in done.stderr
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_an_overlay_that_no_longer_fits_is_told(project: Path) -> None:
    document = json.loads((project / "api.json").read_text())
    document["paths"]["/calls"]["get"]["operationId"] = "find_calls"
    (project / "api.json").write_text(json.dumps(document))
    done = stubwright("refresh", cwd=project)
    assert done.returncode == 1
    assert "acme.yaml, refreshed cannot be compared" in done.stderr
    assert "cannot overlay the unknown tool `list_calls`" in done.stderr
    assert "find_calls" in (project / "parts/acme.yaml").read_text()  # the overlay can follow now


def test_it_works_from_another_folder(project: Path) -> None:
    write_document(project, required=True)
    path = os.path.relpath(project / "acme.yaml", project / "parts")
    done = stubwright("refresh", path, cwd=project / "parts")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(": refreshed\n")
    assert stubwright("refresh", "--check", cwd=project).returncode == 0


def test_a_saved_list_is_refreshed_too(tmp_path: Path) -> None:
    listed = {"tools": [{"name": "a", "description": "A.", "inputSchema": {"type": "object"}}]}
    (tmp_path / "saved.json").write_text(json.dumps(listed))
    done = stubwright(
        "import", "tools", "saved.json", "--name", "some", "--prefix", "p_", "-o", "some.yaml", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    listed["tools"].append({"name": "b", "description": "B.", "inputSchema": {"type": "object"}})
    (tmp_path / "saved.json").write_text(json.dumps(listed))
    refreshed = stubwright("refresh", "some.yaml", cwd=tmp_path)
    assert refreshed.returncode == 0, refreshed.stderr
    assert "tool `p_b`" in refreshed.stdout


def test_what_was_not_imported_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("stubwright: 1\nserver: {name: a, version: '1'}\n")
    done = stubwright("refresh", "m.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "no manifest" in done.stderr
    assert "no manifest is given" in stubwright("refresh", cwd=tmp_path).stderr
    assert stubwright("refresh", "nothing.yaml", cwd=tmp_path).returncode == 1


def test_a_missing_manifest_is_a_diagnostic_in_json(tmp_path: Path) -> None:
    done = stubwright("refresh", "--json", "missing.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert [each["code"] for each in json.loads(done.stdout)] == ["SW001"]
