"""The change of token costs in the output of `diff`, in each format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from packages import manifest, tool
from stubwright import cli, tokens
from stubwright.compile import pipeline
from stubwright.compile.audience import costs
from stubwright.diff.costs import compare_costs
from stubwright.project.files import disk

PROMPT = {"name": "hello", "description": "Say hello.", "stubwright": {"messages": [{"role": "user", "text": "Hi"}]}}
OLD = manifest([tool("same"), tool("gone"), tool("less", {"a": {"type": "string"}}), tool("more")])
NEW = manifest(
    [tool("same"), tool("less"), tool("more", {"a": {"type": "string", "description": "x" * 4400}}), tool("new")],
    prompts=[PROMPT],
)


def compiled(folder: Path, name: str, value: Any) -> Any:
    path = folder / name
    path.write_text(json.dumps(value))
    return pipeline.compile_manifest(str(path), disk.Disk(), name).manifest


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tokens, "_encoder", lambda: None)
    return compiled(tmp_path, "old.json", OLD), compiled(tmp_path, "new.json", NEW)


def test_the_numbers_are_those_of_the_lists(sides: tuple[Any, Any]) -> None:
    change = compare_costs(*sides)
    before, after = (costs.measure(side) for side in sides)
    assert (change.old, change.new) == (before.server, after.server)
    assert {cost.name: (cost.old, cost.new) for cost in change.tools} == {
        name: (before.tools.get(name), after.tools.get(name)) for name in ("less", "more", "new", "gone")
    }
    prompt = after.server - sum(after.tools.values())
    assert prompt > 0
    assert change.difference == sum(cost.difference for cost in change.tools) + prompt


LINES = """\
cost: +1,012 tokens, estimated; now 1,105
  -5  tool `less`; now 22
  +1,008  tool `more`; now 1,030
  +21  tool `new` (new)
  -22  tool `gone` (removed)
"""


def shown(capsys: pytest.CaptureFixture[str], shape: str, *paths: str) -> str:
    assert cli.run(["diff", "--fail-on", "never", "--format", shape, *paths]) == 0
    return capsys.readouterr().out


def test_text_has_them_above_the_summary(sides: tuple[Any, Any], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "text", "old.json", "new.json")
    assert text[text.index("cost: ") :].partition("\n\n")[0] + "\n" == LINES
    assert text.splitlines()[-1].startswith("6 breaking")


def test_json_has_the_numbers(sides: tuple[Any, Any], capsys: pytest.CaptureFixture[str]) -> None:
    cost = json.loads(shown(capsys, "json", "old.json", "new.json"))["cost"]
    assert cost["new"] - cost["old"] == 1012
    assert cost["unit"] == "tokens, estimated"
    assert [(each["name"], each["old"], each["new"]) for each in cost["tools"]][-2:] == [
        ("new", None, 21),
        ("gone", 22, None),
    ]


def test_markdown_and_notes_of_github_have_the_lines(
    sides: tuple[Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, "md", "old.json", "new.json")
    assert (
        "<details><summary>cost: +1,012 tokens, estimated; now 1,105</summary>\n\n- -5  tool <code>less</code>" in text
    )
    assert text.endswith("- -22  tool <code>gone</code> (removed)\n\n</details>\n")
    notes = shown(capsys, "github", "old.json", "new.json").splitlines()
    assert notes[-1] == "::notice title=cost::" + LINES.rstrip("\n").replace("\n", "%0A")


@pytest.mark.parametrize("shape", ["text", "md", "github"])
def test_nothing_is_said_where_nothing_changed(
    shape: str, sides: tuple[Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "cost" not in shown(capsys, shape, "old.json", "old.json")
