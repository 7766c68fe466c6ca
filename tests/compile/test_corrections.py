"""`check --fix` makes exactly the changes that the help of the diagnostics describes."""

from __future__ import annotations

import io
import re
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from amounts import sample
from stubwright import cli
from stubwright.commands import check as command
from stubwright.compile import corrections, pipeline
from stubwright.diagnostics.suggestions import Advice, Insert, Rename
from stubwright.project.files.disk import Disk

CASES = Path(__file__).parents[1] / "cases"
ADVICE = re.compile(r"help: (did you mean|remove the quotes|put it in quotes|add `type: object`)")
NAMES = sorted(
    path.parent.name
    for path in CASES.glob("*/stderr.txt")
    if ADVICE.search(path.read_text()) and not (path.parent / "command").exists()
)
HEAD = "stubwright: 1\nserver: {name: a, version: '1'}\n"


@pytest.mark.parametrize("name", sample(NAMES, 12))  # the others are marked `pytest.mark.long`
def test_only_what_a_help_says_changes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES / name)
    results: list[pipeline.Result] = []
    compiled = pipeline.compile_manifest

    def record(*args: object, **options: object) -> pipeline.Result:
        results.append(compiled(*args, **options))  # type: ignore[arg-type]
        return results[-1]

    monkeypatch.setattr(pipeline, "compile_manifest", record)
    changes = corrections.correct("manifest.yaml", Disk())
    said = {d.help.correction for result in results for d in result.diagnostics if isinstance(d.help, Advice)}
    for old, new in changes.values():
        before, after = (re.findall(r"[\w.$?/-]+|[^\w\s'\"]|\s+", data.decode()) for data in (old, new))
        for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if kind == "replace":
                assert {Rename(*pair) for pair in zip(before[i:j], after[k:m], strict=True)} <= said
            elif kind != "equal":
                assert (kind, "".join(after[k:m]).strip(", \n")) == ("insert", "type: object")
                assert Insert("type", "object") in said
    first, last = results[0], results[-1]
    assert bool(changes) == (first.diagnostics != last.diagnostics)
    assert not {d.code for d in last.diagnostics if d.code < "SW1"} - {d.code for d in first.diagnostics}


def fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, name: str = "manifest.yaml", *options: str
) -> tuple[bytes, int]:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(data)
    status = cli.run(["check", "--fix", *options, name])
    return Path(name).read_bytes(), status


TOOL = "tools:\n  - name: get\n    description: Get.\n    annotations: {readOnlyHint: true}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    {
        "a comment, line breaks and a byte order mark": (
            f"\ufeff{HEAD}{TOOL}    inputSchema:  # of ids\n      tpye: object\n".replace("\n", "\r\n"),
            f"\ufeff{HEAD}{TOOL}    inputSchema:  # of ids\n      type: object\n".replace("\n", "\r\n"),
        ),
        "a quoted key": (
            f"{HEAD}{TOOL}    inputSchema: {{type: object, 'requierd': [], \"propertise\": {{}}, minlenght: 0}}\n",
            f"{HEAD}{TOOL}    inputSchema: {{type: object, 'required': [], \"properties\": {{}}, minLength: 0}}\n",
        ),
        "several mistakes in one line, with swapped letters": (
            f"{HEAD}{TOOL}    inputSchema: {{tpye: objcet, propertys: {{a: {{tpye: strng, enmu: [a]}}}}}}\n",
            f"{HEAD}{TOOL}    inputSchema: {{type: object, properties: {{a: {{type: string, enum: [a]}}}}}}\n",
        ),
        "explicit keys, one of which hides the other": (
            f'{HEAD}{TOOL}    ? inputShema # of ids\n    : type: object\n      ? "propertys"\n      : id: {{}}\n',
            f'{HEAD}{TOOL}    ? inputSchema # of ids\n    : type: object\n      ? "properties"\n      : id: {{}}\n',
        ),
        "a missing type in a block": (
            f"{HEAD}{TOOL}    inputSchema:\n      # none\n      properties: {{}}\n",
            f"{HEAD}{TOOL}    inputSchema:\n      # none\n      type: object\n      properties: {{}}\n",
        ),
        "a missing type in an empty mapping with an anchor": (
            f"{HEAD}{TOOL}    inputSchema: &none {{}}\n",
            f"{HEAD}{TOOL}    inputSchema: &none {{type: object}}\n",
        ),
        "a number that is text": (
            f"{HEAD}{TOOL}    inputSchema: {{type: object, description: 1.10}}\n".replace("'", ""),
            f"{HEAD}{TOOL}    inputSchema: {{type: object, description: '1.10'}}\n".replace("'", '"'),
        ),
        "a mistake behind a mistake": (
            f"{HEAD}tool:\n{TOOL.partition(chr(10))[2]}    inputSchema: {{type: objcet}}\n",
            f"{HEAD}{TOOL}    inputSchema: {{type: object}}\n",
        ),
    }.values(),
)
def test_the_text_around_a_correction_stays(
    before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, status = fix(tmp_path, monkeypatch, before.encode())
    assert data.decode() == after
    assert status == 0


def test_json_gets_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = '{"name": "b", "inputSchema": {"titel": ""}}'
    text = f'{{"stubwright": 1, "server": {{"name": "a", "version": 1}}, "tools": [{tool}]}}'
    data, _ = fix(tmp_path, monkeypatch, text.encode(), "manifest.json")
    right = text.replace('"version": 1', '"version": "1"').replace('{"titel"', '{"type": "object", "title"')
    assert data.decode() == right


@pytest.mark.parametrize(
    "text",
    {
        "the right key is there": f"{HEAD}{TOOL}    desciption: Got.\n    inputSchema: {{type: object}}\n",
        "a warning would become an error": f"{HEAD}{TOOL}    titel: 5\n    inputSchema: {{type: object}}\n",
    }.values(),
)
def test_a_correction_that_harms_is_taken_back(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fix(tmp_path, monkeypatch, text.encode())[0] == text.encode()


WRONG = f"{HEAD}{TOOL}    inputSchema: {{tpye: object}}\n".encode()


@pytest.mark.parametrize(
    ("answer", "options", "is_written"), [("y", (), True), ("n", (), False), ("", ("--yes",), True)]
)
def test_a_person_sees_the_changes_and_is_asked(
    answer: str,
    options: tuple[str, ...],
    is_written: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "is_interactive", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
    data, status = fix(tmp_path, monkeypatch, WRONG, "manifest.yaml", *options)
    shown = capsys.readouterr()
    assert "+    inputSchema: {type: object}" in (shown.out if options else shown.err)
    assert ("Write these changes? [y/n]" in shown.err) == (not options)
    assert (data != WRONG) == is_written
    assert status == (0 if is_written else 1)


@pytest.mark.parametrize("why", ["it is a link, so it was left unchanged", "it is read-only"])
def test_a_link_and_a_read_only_file_are_left_alone(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = tmp_path / ("real.yaml" if "link" in why else "manifest.yaml")
    real.write_bytes(WRONG)
    if "link" in why:
        (tmp_path / "manifest.yaml").symlink_to("real.yaml")
    else:
        real.chmod(0o444)
    monkeypatch.chdir(tmp_path)
    assert cli.run(["check", "--fix", "manifest.yaml"]) == 1
    assert real.read_bytes() == WRONG
    assert f"error[SW406]: cannot write `manifest.yaml`: {why}\n" in capsys.readouterr().err
