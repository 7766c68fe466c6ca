"""Folders with skills: included and ignored files."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from packages import check, manifest
from stubwright.compile import pipeline
from stubwright.compile.skills import folders
from stubwright.docs import views
from stubwright.project.files import disk

START = "---\nname: {}\ndescription: d\n---\n"


def write(folder: Path, name: str, data: str | bytes = "") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else (data or START.format(path.parent.name)).encode())
    return path


def said(folder: Path, *named: str, **more: Any) -> list[str]:
    return [f"{each.code} {each.message}" for each in check(folder, manifest([], skills=list(named), **more))]


def lowered(folder: Path, *named: str, **more: Any) -> Any:
    path = folder / "m.json"
    path.write_text(json.dumps(manifest([], skills=list(named), **more)))
    checked = pipeline.compile_manifest(str(path), disk.Disk())
    assert checked.manifest is not None, checked.diagnostics
    return checked.manifest


def test_each_folder_with_the_file_is_a_skill(tmp_path: Path) -> None:
    for name in ("one/SKILL.md", "team/two/SKILL.md", "team/two/inner/SKILL.md", "three/readme.md"):
        write(tmp_path, f"skills/{name}")
    made = lowered(tmp_path, "skills")
    assert [skill["uri"] for skill in made.skills] == [
        "skill://one/SKILL.md",
        "skill://team/two/SKILL.md",
        "skill://team/two/inner/SKILL.md",
    ]
    assert made.skill_files == tuple(skill["uri"] for skill in made.skills)
    assert sorted(made.files) == [f"files/skills/{name}/SKILL.md" for name in ("one", "team/two", "team/two/inner")]


def test_a_folder_that_is_a_skill_has_its_name(tmp_path: Path) -> None:
    write(tmp_path, "more/one/SKILL.md")
    assert [skill["uri"] for skill in lowered(tmp_path, "more/one/").skills] == ["skill://one/SKILL.md"]


def test_a_digest_is_of_the_bytes(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf---\r\nname: one\r\ndescription: d\r\n---\r\n"
    write(tmp_path, "skills/one/SKILL.md", data)
    [skill] = lowered(tmp_path, "skills").skills
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert skill["resources"] == [{"uri": skill["uri"], "digest": digest, "size": len(data)}]
    assert skill["frontmatter"] == {"name": "one", "description": "d"}


def test_a_client_has_no_skills(tmp_path: Path) -> None:
    write(tmp_path, "skills/one/SKILL.md")
    made = lowered(tmp_path, "skills", emit=["client"])
    assert (made.files, made.skill_files) == ({}, ())
    assert not {"skills", "resources"} & made.document.keys()


def test_hidden_files_stay_where_they_are(tmp_path: Path) -> None:
    write(tmp_path, "skills/one/SKILL.md")
    for name in (".env", ".git/config", "a/.b/c", "__pycache__/a.pyc"):
        write(tmp_path, f"skills/one/{name}", b"secret")
    assert lowered(tmp_path, "skills").skill_files == ("skill://one/SKILL.md",)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_no_link_leads_out_of_its_folder(tmp_path: Path) -> None:
    write(tmp_path, "skills/one/SKILL.md")
    write(tmp_path, "secret.txt", b"secret")
    (tmp_path / "skills/one/a.txt").symlink_to("../../secret.txt")
    assert said(tmp_path, "skills") == [
        f"SW012 `{tmp_path}/skills/one/a.txt` links to a file outside its folder",
    ]
    (tmp_path / "skills/one/a.txt").unlink()
    (tmp_path / "skills/one/more").symlink_to(tmp_path, target_is_directory=True)
    assert lowered(tmp_path, "skills").skill_files == ("skill://one/SKILL.md",)
    (tmp_path / "linked").symlink_to(os.sep, target_is_directory=True)
    assert said(tmp_path, "linked") == ["SW012 `linked` links to a file outside the manifest's folder"]


@pytest.mark.parametrize("name", ["..", "../elsewhere", "/etc", "https://example.com/skills", "a\x01b"])
def test_no_path_leaves_the_folder_of_the_manifest(name: str, tmp_path: Path) -> None:
    assert said(tmp_path, name) == [f"SW012 `{name}` is outside the manifest's folder"]


def test_a_skill_is_as_large_as_hosts_accept(tmp_path: Path) -> None:
    data = START.format("one").encode()
    write(tmp_path, "skills/one/SKILL.md", data)
    write(tmp_path, "skills/one/a.bin", bytes(folders.MAX_BYTES - len(data)))
    assert said(tmp_path, "skills") == []
    write(tmp_path, "skills/one/b.bin", b"1")
    root = f"{tmp_path}/skills/one"
    assert said(tmp_path, "skills") == [
        f"SW275 the skill `{root}` is larger than 16 MiB, the maximum that hosts accept"
    ]


def test_a_skill_has_as_many_files_as_hosts_accept(tmp_path: Path) -> None:
    write(tmp_path, "skills/one/SKILL.md")
    for number in range(folders.MAX_FILES - 1):
        write(tmp_path, f"skills/one/{number}.txt", b"1")
    assert said(tmp_path, "skills") == []
    write(tmp_path, "skills/one/more.txt", b"1")
    root = f"{tmp_path}/skills/one"
    assert said(tmp_path, "skills") == [f"SW275 the skill `{root}` has 513 files, and hosts accept at most 512"]


def test_a_new_file_is_an_input_of_the_next_run(tmp_path: Path) -> None:
    write(tmp_path, "skills/one/SKILL.md")
    seen = []
    for name in ("SKILL.md", "new.txt"):
        write(tmp_path, f"skills/one/{name}", START.format("one").encode())
        reader = disk.Disk()
        path = tmp_path / "m.json"
        path.write_text(json.dumps(manifest([], skills=["skills"])))
        pipeline.compile_manifest(str(path), reader)
        seen.append(dict(reader.inputs))
    [listing] = [key for key in seen[0] if disk.LISTING in key.removeprefix("/")]
    assert seen[0][listing] != seen[1][listing]


def test_the_page_for_people_lists_no_files_of_skills(tmp_path: Path) -> None:
    write(tmp_path, "skills/one/SKILL.md")
    plain = {"uri": "x://a", "name": "a", "stubwright": {"text": "a"}}
    made = lowered(tmp_path, "skills", resources=[plain])
    shown = views.view(made, {})
    assert [entry.key for section in shown.sections for entry in section.entries] == ["x://a"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_frontmatter_ends_with_its_line_whatever_the_ends_of_lines_are(end: str) -> None:
    start = f"---{end}name: a{end}"
    for rest in (f"---{end}Body{end}---{end}", "---", f"--- \t{end}"):
        assert folders.split(start + rest) == start
    assert folders.split(start + 20_000 * f"b: c{end}") == "", "found in the time of one pass"
