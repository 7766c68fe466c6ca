"""`stubwright diff`: golden output, sources of both sides, exit statuses, and the suggested version.

`tests/diffs/NAME/` has `old.yaml`, `new.yaml` and the output. `pytest --update` rewrites the output.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import amounts
import forked
from stubwright import cli
from stubwright.diff.changes import CODES, Change, find_worst_impact, raise_version, suggest_bump

CASES = Path(__file__).parents[1] / "diffs"
NAMES = sorted(path.name for path in CASES.iterdir() if path.is_dir())

MANIFEST = """\
stubwright: 1
server: {name: tiny, version: 1.0.0}
tools:
  - name: ping
    description: Ping.
    inputSchema: {type: object, properties: {n: {type: number}}}
"""


@pytest.mark.parametrize("name", NAMES)
def test_case(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], update: bool
) -> None:
    shutil.copytree(CASES / name, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    status = cli.run(["diff", "old.yaml", "new.yaml"])
    printed = capsys.readouterr()
    assert printed.err == ""
    expected = CASES / name / "expected.txt"
    text = f"{printed.out}exit {status}\n"
    if update:
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.long
def test_no_order_depends_on_the_hash_seed() -> None:
    program = """
import sys
from stubwright import cli
for name in sys.argv[1:]:
    cli.run(["diff", f"{name}/old.yaml", f"{name}/new.yaml"])
"""
    printed = {
        subprocess.run(
            [sys.executable, "-c", program, *NAMES],
            cwd=CASES,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "0123"
    }
    assert len(printed) == 1
    assert b"breaking" in printed.pop()


def test_every_code_has_a_case() -> None:
    shown = {
        code for case in NAMES for code in re.findall(r"SW\d{3}", (CASES / case / "expected.txt").read_text("utf-8"))
    }
    assert sorted(set(CODES) - shown) == []


def test_the_codes_are_documented() -> None:
    text = (CASES.parents[1] / "docs" / "diff.md").read_text("utf-8")
    rows = dict(re.findall(r"^- (SW\d{3}): (.*)$", text, re.MULTILINE))
    assert rows == {code: meaning for code, (_, meaning) in CODES.items()}


def test_nothing_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(MANIFEST)
    assert cli.run(["diff", "a.yaml", "a.yaml", "--fail-on", "any"]) == 0
    assert capsys.readouterr().out == "nothing changed from a.yaml to a.yaml\n"


@pytest.mark.parametrize(
    ("change", "statuses"),
    [
        (("n: {type: number}", "n: {type: integer}"), {"breaking": 1, "may-break": 1, "any": 1, "never": 0}),
        (("n: {type: number}", "m: {type: number}"), {"breaking": 1, "may-break": 1, "any": 1, "never": 0}),
        (("1.0.0}", "1.0.0, title: Tiny}"), {"breaking": 0, "may-break": 0, "any": 1, "never": 0}),
    ],
)
def test_fail_on(
    change: tuple[str, str], statuses: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(MANIFEST)
    Path("b.yaml").write_text(MANIFEST.replace(*change))
    assert {name: cli.run(["diff", "a.yaml", "b.yaml", "--fail-on", name]) for name in statuses} == statuses


def repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git repository whose first commit has a manifest with an included file, and whose working tree differs."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    Path("specs/tools/more").mkdir(parents=True)
    Path("specs/a.yaml").write_text(MANIFEST + 'include: ["tools/**/*.yaml"]\n')
    Path("specs/tools/more/b.yaml").write_text(
        "tools: [{name: pong, description: Pong., inputSchema: {type: object}}]\n"
    )
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-qm", "a"], ["tag", "v1"]):
        subprocess.run(["git", *command], check=True)
    Path("specs/a.yaml").write_text(MANIFEST)


@pytest.mark.parametrize("said", ["git:HEAD", "git:v1:specs/a.yaml", "git:main"])
def test_a_revision_is_read_with_what_it_includes(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository(tmp_path, monkeypatch)
    assert cli.run(["diff", said, "specs/a.yaml"]) == 1
    printed = capsys.readouterr().out
    assert "SW510 wire    tool `pong`: the tool was removed" in printed
    assert "was at specs/tools/more/b.yaml:1:" in printed
    assert cli.run(["diff", "specs/a.yaml", said]) == 1  # handlers lack a method
    assert "SW511 wire    tool `pong`: a new tool" in capsys.readouterr().out


@pytest.mark.parametrize("style", ["text", "json", "github", "sarif"])
def test_a_fault_at_a_revision_is_not_in_the_file_of_today(
    style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository(tmp_path, monkeypatch)
    Path("specs/tools/more/b.yaml").write_text("tols: []\n")
    Path("specs/a.yaml").write_text(MANIFEST + 'include: ["tools/**/*.yaml"]\n')
    commit()
    monkeypatch.chdir("specs")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert cli.run(["diff", "git:HEAD", "a.yaml", "--format", style]) == 1
    printed = capsys.readouterr()
    assert "\ngit:HEAD:specs/tools/more/b.yaml:1:1: error[" in printed.err
    assert "\ntools/more/b.yaml:1:1: error[" in printed.err
    if style != "text":
        named = "git:HEAD:specs" if style == "json" else "git%3AHEAD%3Aspecs"
        assert printed.out.count(f"{named}/tools/more/b.yaml") == 1
        assert f"specs/{named}" not in printed.out


def commit(folder: str = ".") -> None:
    for command in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "c"]):
        subprocess.run(["git", "-C", folder, *command], check=True)


def test_files_of_submodules_are_read_at_the_commit_of_the_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository(tmp_path, monkeypatch)
    subprocess.run(["git", "init", "-q", "specs/shared"], check=True)
    tool = "tools: [{name: shared, description: Shared., inputSchema: {type: object}}]\n"
    Path("specs/shared/c.yaml").write_text(tool)
    commit("specs/shared")
    text = MANIFEST + "include: [shared/c.yaml]\n"
    Path("specs/a.yaml").write_text(text)
    commit()  # git adds a repository in a folder as a submodule
    Path("specs/shared/c.yaml").write_text(tool.replace("Shared.", "Changed."))
    commit("specs/shared")
    assert cli.run(["diff", "git:HEAD", "specs/a.yaml"]) == 0
    assert "tool `shared`: the description changed" in capsys.readouterr().out
    monkeypatch.chdir("specs/shared")
    assert cli.run(["diff", "git:HEAD:../specs/a.yaml", "../a.yaml"]) == 1


@pytest.mark.parametrize(("style", "title"), [("text", "breaking\n"), ("md", "### Breaking"), ("github", "::error")])
def test_a_change_in_a_shared_file_is_listed_once(
    style: str, title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository(tmp_path, monkeypatch)
    Path("pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["x.yaml", "y.yaml"]\n')
    for name in "xy":
        Path(f"{name}.yaml").write_text(f"stubwright: 1\nserver: {{name: {name}, version: 1.0.0}}\ninclude: [c.yaml]\n")
    fields = "{type: object, properties: {q: {type: string}}}"
    tools = f"stubwright: 1\ntools: [{{name: get, description: Get., inputSchema: {fields}}}]\n"
    Path("c.yaml").write_text(tools)
    commit()
    Path("c.yaml").write_text(tools.replace("string", "integer"))
    assert cli.run(["diff", "git:HEAD", "--format", style]) == 1
    printed = capsys.readouterr().out
    assert printed.count(title) == printed.count("SW536") == 1
    assert printed.count("3 changes in c.yaml: see above") == (style != "github")
    assert printed.count("1 breaking, 2 may break from git:HEAD to ") == (0 if style == "github" else 2)


def test_git_is_asked_once_for_the_repository_of_a_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path, monkeypatch)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    asked: list[list[str]] = []
    run = subprocess.run

    def record(command: list[str], **options: Any) -> Any:
        asked.append(command[1:3])
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", record)
    assert cli.run(["diff", "git:HEAD", "specs/a.yaml"]) == 1
    assert asked.count(["rev-parse", "--git-dir"]) == 1
    assert len(asked) > 3


@pytest.mark.parametrize(
    ("folder", "sides"),
    amounts.sample(
        [
            ("specs", ["git:HEAD", "a.yaml"]),
            ("specs", ["git:HEAD", "../specs/a.yaml"]),
            ("specs", ["git:HEAD:a.yaml", "a.yaml"]),  # there is no such file at the root
            ("specs", ["git:HEAD:./a.yaml", "a.yaml"]),
            ("specs", ["git:HEAD:specs/a.yaml", "a.yaml"]),
            ("sub", ["git:HEAD", "../specs/a.yaml"]),
            ("sub", ["git:HEAD", "{root}/specs/a.yaml"]),
            ("sub", ["git:HEAD", "{link}/specs/a.yaml"]),
            ("sub", ["git:HEAD:specs/a.yaml", "../specs/a.yaml"]),
            ("sub", ["git:HEAD:../specs/a.yaml", "../specs/a.yaml"]),
            (".", ["git:HEAD", "{root}/specs/a.yaml"]),
        ],
        7,
    ),
)
def test_a_revision_is_read_from_anywhere(
    folder: str, sides: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "repository"
    root.mkdir()
    (tmp_path / "link").symlink_to(root)
    repository(root, monkeypatch)
    (root / "sub").mkdir()
    monkeypatch.chdir(root / folder)
    assert cli.run(["diff", *(side.format(root=root, link=tmp_path / "link") for side in sides)]) == 1
    assert "tool `pong`: the tool was removed" in capsys.readouterr().out


def test_a_path_at_a_revision_counts_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository(tmp_path, monkeypatch)
    Path("specs/specs").mkdir()
    Path("specs/specs/a.yaml").write_text(MANIFEST)
    for command in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "b"]):
        subprocess.run(["git", *command], check=True)
    monkeypatch.chdir(tmp_path / "specs")
    assert cli.run(["diff", "git:v1:specs/a.yaml", "git:HEAD:./specs/a.yaml"]) == 1
    assert "tool `pong`: the tool was removed" in capsys.readouterr().out
    assert cli.run(["diff", "git:HEAD:../none.yaml", "a.yaml"]) == 1
    assert "`../none.yaml` does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "expected", "status"),
    [
        (["git:nowhere", "specs/a.yaml"], "git has no revision `nowhere` here", 1),
        (["git:--output=x", "specs/a.yaml"], "is not a revision", 1),
        (["git:HEAD", "git:HEAD"], "has no path", 2),
        (["git:HEAD:specs/none.yaml", "specs/a.yaml"], "`specs/none.yaml` does not exist", 1),
        (
            ["git:HEAD:specs/none.yaml", "specs/a.yaml"],
            "it is relative to the repository root, or to the working folder as `./PATH`",
            1,
        ),
        (["git:HEAD", "specs/none.yaml"], "did you mean `specs/a.yaml`?", 1),
        (["git:HEAD:specs", "specs/a.yaml"], "`specs` is a folder", 1),
        (["specs/none.yaml", "specs/a.yaml"], "`specs/none.yaml` does not exist", 1),
        (["specs/a.yaml"], "specify OLD and NEW", 2),
        (["specs/a.yaml", "specs/a.yaml", "--", "x"], "specify OLD and NEW", 2),
        (["specs/a.yaml", "specs/a.yaml", "--env", "A=b"], "--env is for a command after `--`", 2),
    ],
)
def test_sides_that_cannot_be_read(
    said: list[str],
    expected: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    repository(tmp_path, monkeypatch)
    assert cli.run(["diff", *said]) == status
    assert expected in capsys.readouterr().err


def test_saved_lists_of_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tool: dict[str, Any] = {"name": "ping", "inputSchema": {"type": "object", "required": ["a"]}}
    Path("old.json").write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}))
    Path("new.json").write_text(json.dumps([{**tool, "inputSchema": {"type": "object", "required": ["a", "b"]}}]))
    assert cli.run(["diff", "old.json", "new.json", "--format", "json"]) == 1
    value = json.loads(capsys.readouterr().out)
    assert [(one["code"], one["impact"]) for one in value["changes"] if one["side"] == "wire"] == [
        ("SW534", "breaking")
    ]
    assert (value["bump"], value["version"]) == (None, None)  # a list without a version
    info = {"name": "pinger", "version": "0.3.1"}
    Path("old.json").write_text(json.dumps({"serverInfo": info, "tools": [tool]}))
    assert cli.run(["diff", "old.json", "new.json"]) == 1
    assert "suggested: a minor version, 0.3.1 → 0.4.0" in capsys.readouterr().out
    assert {one["new"] for one in value["changes"]} == {None}  # a text without a file has no locations


def test_json_and_markdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(MANIFEST)
    Path("b.yaml").write_text(MANIFEST.replace("{n: {type: number}}", '{n: {enum: ["<b>|*", 1]}}'))
    assert cli.run(["diff", "a.yaml", "b.yaml", "--format", "json"]) == 1
    value = json.loads(capsys.readouterr().out)
    assert value["counts"]["breaking"] >= 1
    place = next(one["new"] for one in value["changes"] if one["code"] == "SW537")
    assert (place["file"], place["line"]) == ("b.yaml", 6)
    assert cli.run(["diff", "a.yaml", "b.yaml", "--format", "md"]) == 1
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| SW537")]
    assert len(table) == 1
    assert table[0].count("|") == 6  # what a manifest holds ends no cell
    assert set(re.findall(r"<\w+", table[0])) == {"<code", "<br"}
    assert "&#60;b&#62;&#124;&#42;" in table[0]


@pytest.mark.parametrize(
    ("version", "part", "expected"),
    [
        ("1.2.3", "major", "2.0.0"),
        ("1.2.3", "minor", "1.3.0"),
        ("1.2.3", "patch", "1.2.4"),
        ("v1.0.0-rc.1", "patch", "v1.0.1"),
        ("2024", "major", None),
    ],
)
def test_the_suggested_version(version: str, part: Any, expected: str | None) -> None:
    assert raise_version(version, part) == expected


@pytest.mark.parametrize(
    ("version", "impact", "expected"),
    [
        ("1.0.0", "breaking", "major"),
        ("1.0.0", "may break", "minor"),
        ("1.0.0", "compatible", "minor"),
        ("1.0.0", "cosmetic", "patch"),
        ("v0.2.3", "breaking", "minor"),
        ("0.2.3", "may break", "minor"),
        ("0.2.3", "compatible", "patch"),
        ("0.2.3", "cosmetic", "patch"),
        ("", "breaking", None),
    ],
)
def test_the_part_that_is_raised(version: str, impact: Any, expected: str | None) -> None:
    assert suggest_bump([Change("SW538", "wire", impact, "tool `a`", "a bound changed")], version) == expected


def test_a_deprecation_is_a_minor_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tool = "tools: [{name: a, description: d, inputSchema: {type: object}, stubwright: {STATE}}]\n"
    states = {"plain": "", "old": "deprecated: {reason: r}", "older": "deprecated: {reason: s}"}
    for name, state in states.items():
        text = "stubwright: 1\nserver: {name: x, version: 1.0.0}\n" + tool.replace("STATE", state)
        (tmp_path / f"{name}.yaml").write_text(text)
    for old, new, part in (("plain", "old", "minor"), ("old", "older", "patch"), ("old", "plain", "patch")):
        assert cli.run(["diff", f"{old}.yaml", f"{new}.yaml"]) == 0
        assert f"suggested: a {part} version" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("new", "part"),
    [
        (["a", "b"], "minor"),
        (["b"], "major"),
    ],
)
def test_a_version_speaks_to_callers(
    new: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new tool breaks the handlers, which must implement its method, but no callers of the server."""
    monkeypatch.chdir(tmp_path)
    for side, names in {"old": ["a"], "new": new}.items():
        tools = ", ".join(f"{{name: {name}, description: d, inputSchema: {{type: object}}}}" for name in names)
        text = f"stubwright: 1\nserver: {{name: x, version: 1.0.0}}\ntools: [{tools}]\n"
        (tmp_path / f"{side}.yaml").write_text(text)
    assert cli.run(["diff", "old.yaml", "new.yaml"]) == 1
    out = capsys.readouterr().out
    assert "handlers must have this method" in out
    assert f"suggested: a {part} version" in out


STRING = {"type": "string"}
EQUAL = [
    ({"type": "boolean"}, {"enum": [True, False]}),
    ({"const": 1}, {"const": 1.0}),
    ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
    ({"type": "string", "minLength": 2}, {"allOf": [STRING, {"minLength": 2}]}),
    ({"oneOf": [STRING, {"type": "integer"}]}, {"anyOf": [STRING, {"type": "integer"}]}),
]
INTEGER, NUMBER = {"type": "integer"}, {"type": "number"}


def compare_fields(old: Any, new: Any, field: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return the report about two schemas of one property of an argument or a result."""
    for side, schema in (("old", old), ("new", new)):
        schemas = {"inputSchema": {"type": "object"}, field: {"type": "object", "properties": {"p": schema}}}
        manifest = {"stubwright": 1, "server": {"name": "k", "version": "1.0.0"}}
        (folder / f"{side}.json").write_text(
            json.dumps({**manifest, "tools": [{"name": "t", "description": "d", **schemas}]})
        )
    cli.run(["diff", str(folder / "old.json"), str(folder / "new.json"), "--format", "json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("field", ["inputSchema", "outputSchema"])
@pytest.mark.parametrize(("old", "new"), EQUAL)
def test_equal_schemas_need_no_new_version(
    old: Any, new: Any, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = compare_fields(old, new, field, tmp_path, capsys)
    changes = [change for change in report["changes"] if "target" not in change]
    assert {(change["impact"], change["side"], change["equal"]) for change in changes} == {("compatible", "wire", True)}
    assert report["bump"] is None or len(changes) < len(report["changes"])


@pytest.mark.parametrize(
    ("field", "old", "new", "expected"),
    [
        ("inputSchema", INTEGER, NUMBER, {"SW585": "compatible", "SW588": "may break"}),
        ("inputSchema", NUMBER, INTEGER, {"SW585": "may break", "SW588": "compatible"}),
        ("outputSchema", NUMBER, INTEGER, {"SW588": "may break"}),
        ("inputSchema", {"const": "a"}, STRING, {"SW585": "compatible", "SW588": "may break"}),
    ],
)
def test_a_type_breaks_those_whose_values_are_not_assignable(
    field: str, old: Any, new: Any, expected: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = compare_fields(old, new, field, tmp_path, capsys)["changes"]
    assert {change["code"]: change["impact"] for change in changes if change["side"] == "python"} == expected
    helps = " ".join(change["help"] or "" for change in changes if change["code"] == "SW588")
    assert "typed callers" not in helps


def test_a_value_that_results_lose_concerns_handlers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = compare_fields({"enum": ["a", "b"]}, {"enum": ["a"]}, "outputSchema", tmp_path, capsys)["changes"]
    (wire,) = (change for change in changes if change["side"] == "wire")
    assert (wire["code"], wire["impact"]) == ("SW537", "compatible")
    assert "now rejected, so handlers must not return them; callers need no change" in wire["help"]


def test_a_deprecated_argument_is_a_minor_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_fields(STRING, {**STRING, "deprecated": True}, "inputSchema", tmp_path, capsys)["bump"] == "minor"
    assert compare_fields({**STRING, "deprecated": True}, STRING, "inputSchema", tmp_path, capsys)["bump"] == "patch"


def test_a_property_that_moves_into_alternatives_is_not_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = {"type": "object", "properties": {"foo": STRING, "bar": STRING}}
    new = {"type": "object", "anyOf": [{**properties, "required": [name]} for name in ("foo", "bar")]}
    report = compare_fields({**properties, "required": ["foo", "bar"]}, new, "inputSchema", tmp_path, capsys)
    wire = [change for change in report["changes"] if change["side"] == "wire"]
    assert {(change["code"], change["impact"]) for change in wire} == {("SW541", "compatible")}
    assert "the property is now described under `anyOf`" in {change["message"] for change in wire}


def test_a_key_with_a_typed_rest_was_not_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rest = {"type": "object", "additionalProperties": STRING}
    named = [{**rest, "properties": {"b": schema}} for schema in (STRING, INTEGER)]
    equal, other = (compare_fields(rest, new, "inputSchema", tmp_path, capsys)["changes"] for new in named)
    assert [change["impact"] for change in equal if change["code"] == "SW530"] == ["compatible"]
    (found,) = (change for change in other if change["code"] == "SW530")
    assert found["impact"] == "breaking"
    assert "left this key open" not in found["help"]


def test_what_is_ignored_does_not_count() -> None:
    changes = [
        Change("SW510", "wire", "breaking", "tool `a`", "the tool was removed", ignored=True),
        Change("SW501", "wire", "cosmetic", "tool `b`", "the description changed"),
    ]
    assert find_worst_impact(changes) == "cosmetic"
    assert suggest_bump(changes, "1.0.0") == "patch"
    assert suggest_bump(changes[:1], "1.0.0") is None


def test_a_code_to_ignore_that_does_not_exist_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(MANIFEST + "diff: {ignore: [SW501, SW999]}\n")
    assert cli.run(["diff", "a.yaml", "a.yaml"]) == 0
    assert capsys.readouterr().err == "note: `diff.ignore` of a.yaml lists `SW999`, which is not a change code\n"


def test_an_unknown_code_is_a_bug() -> None:
    with pytest.raises(KeyError, match="SW599"):
        Change("SW599", "wire", "breaking", "tool `a`", "it")


def test_a_live_server_is_a_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the wire format is compared, because a server does not report its handlers."""
    paths = f"PYTHONPATH={ROOT / 'generated'}:{ROOT / 'examples'}"
    server = ["--", "env", paths, *forked.interpreter(), "-m", "weather_mcp"]
    assert cli.run(["diff", str(ROOT / "specs" / "weather.yaml"), *server]) == 0
    assert capsys.readouterr().out.startswith("nothing changed")
    other = tmp_path / "weather.yaml"
    shutil.copy(ROOT / "specs" / "weather.md", tmp_path)
    text = (ROOT / "specs" / "weather.yaml").read_text("utf-8")
    other.write_text(text.replace("maximum: 7", "maximum: 14"), "utf-8")
    assert cli.run(["diff", str(other), *server]) == 1
    assert "get_forecast" in capsys.readouterr().out
    assert cli.run(["diff", str(other), "--", str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err.startswith("stubwright: ")


ALL_OF_ITS_OWN = """\
stubwright: 1
server: {name: lent, version: 1.0.0}
audit: {arguments: true}
skills: [skills]
apis:
  pets:
    baseUrl: "http://127.0.0.1:9"
    output: lenient
    headers: {X-Tenant: main}
    bind: {account: {value: a}}
handles:
  basket: {state: {type: object, properties: {items: {type: integer}}, required: [items]}, ttl: 7d}
tools:
  - name: list_pets
    description: Pets.
    inputSchema:
      type: object
      properties: {account: {type: string}, tenant: {type: string}, after: {type: string}, limit: {type: integer}}
      required: [account]
    outputSchema: {type: object, properties: {data: {type: array, items: {type: string}}, next: {type: string}}}
    stubwright:
      aliases: [{name: pets}]
      deprecated: {reason: It is old.}
      http:
        api: pets
        url: "/{account}/pets"
        headers: {X-Tenant: "{tenant}"}
        query: {after: "{after}", limit: "{limit}"}
        page: {by: cursor, argument: after, items: /data, next: /next}
  - name: make_basket
    description: Makes a basket.
    inputSchema: {type: object}
    outputSchema: {type: object, properties: {id: {type: string, x-handle: basket}}, required: [id]}
"""
MAKER = "class Maker:\n    async def make_basket(self, args, ctx): ...\n"


@pytest.mark.parametrize("refs", amounts.sample(["bundled", "inlined"], 1))
def test_a_manifest_does_not_differ_from_its_own_server(
    refs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lists lack bound arguments, old names, handles, and unenforced output schemas; they have skills."""
    monkeypatch.chdir(tmp_path)
    skill = tmp_path / "skills" / "refunds" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: refunds\ndescription: Refund things.\n---\nDo it.\n")
    (tmp_path / "maker.py").write_text(MAKER)
    (tmp_path / "lent.yaml").write_text(f"{ALL_OF_ITS_OWN}wire: {{refs: {refs}}}\n")
    assert cli.run(["generate", "lent.yaml"]) == 0
    capsys.readouterr()
    server = ["env", f"PYTHONPATH={tmp_path / 'generated'}:{tmp_path}", *forked.interpreter(), "-m", "lent_mcp"]
    assert cli.run(["diff", "lent.yaml", "--", *server, "--handlers", "maker:Maker"]) == 0
    assert capsys.readouterr().out.startswith("nothing changed")


# --- what is told once, or not at all


SHARED = """\
stubwright: 1
server: {name: desk, version: 1.0.0}
schemas:
  Id: {type: integer, minimum: 1}
tools:
"""
USING = "  - {name: tool%d, description: D., inputSchema: {type: object, properties: {id: {$ref: '#/schemas/Id'}}}}\n"


def test_a_change_of_a_shared_schema_is_one_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SHARED + "".join(USING % number for number in range(18))
    (tmp_path / "old.yaml").write_text(text)
    (tmp_path / "new.yaml").write_text(text.replace("minimum: 1", "minimum: 2"))
    assert cli.run(["diff", "old.yaml", "new.yaml"]) == 1
    told = capsys.readouterr().out
    assert told.count("SW538") == 1
    assert "schema `Id`" in told
    assert "affects 18 places: tool `tool0`, argument" in told
    assert "and 15 more" in told


def test_an_example_that_does_not_fit_blocks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = MANIFEST + "    stubwright: {examples: [{input: {n: x}}]}\n"
    (tmp_path / "old.yaml").write_text(wrong)
    (tmp_path / "new.yaml").write_text(MANIFEST)
    assert cli.run(["check", "old.yaml"]) == 1
    capsys.readouterr()
    assert cli.run(["diff", "old.yaml", "new.yaml"]) == 0
    assert "nothing changed" in capsys.readouterr().out


def test_a_revision_alone_is_the_project_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["one.yaml", "two.yaml"]\n')
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(MANIFEST)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "two.yaml").write_text(MANIFEST.replace("name: ping", "name: pong"))
    assert cli.run(["diff", "git:HEAD"]) == 1
    told = capsys.readouterr().out
    assert "nothing changed from git:HEAD to one.yaml" in told
    assert "it was renamed to `pong`" in told
    assert cli.run(["diff", "git:HEAD", "--format", "json"]) == 2
    (tmp_path / "pyproject.toml").unlink()
    assert cli.run(["diff", "git:HEAD"]) == 2
    assert "needs a path" in capsys.readouterr().err


@pytest.mark.parametrize("refs", amounts.sample(["bundled", "inlined"], 1))
def test_a_manifest_and_its_own_server_are_the_same(refs: str, tmp_path: Path) -> None:
    (tmp_path / "desk.yaml").write_text(
        SHARED.replace(
            "schemas:", f"wire: {{refs: {refs}}}\nformats: assert\npageSize: 1\npolicy: {{confirm: true}}\nschemas:"
        )
        + USING % 1
        + USING.replace("}}}}", "}}}, outputSchema: {$ref: '#/schemas/Id'}}") % 2
    )
    assert forked.run(["generate", "-q", "desk.yaml"], tmp_path).returncode == 0
    (tmp_path / "desk.py").write_text("class Desk:\n    def tool1(self, args, ctx): ...\n    tool2 = tool1\n")
    paths = f"PYTHONPATH={tmp_path / 'generated'}:{tmp_path}"
    server = ["env", paths, *forked.interpreter(), "-m", "desk_mcp", "--handlers", "desk:Desk"]
    done = forked.run(["diff", "--fail-on", "any", "desk.yaml", "--", *server], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "nothing changed from desk.yaml to env\n", "")
