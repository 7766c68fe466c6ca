"""The table of targets: every rule has a source, an implementation, and an entry in the docs."""

from __future__ import annotations

import runpy
from datetime import date
from pathlib import Path

import pytest

import forked
from stubwright import targets
from stubwright.targets import rules
from stubwright.targets.descriptions import describe

ROOT = Path(__file__).parents[2]
RULES = [(name, rule) for name, target in targets.TARGETS.items() for rule in target.rules]


@pytest.mark.parametrize(("name", "rule"), RULES)
def test_every_rule_has_its_source(name: str, rule: targets.Rule) -> None:
    assert rule.source.startswith("https://")
    assert date(2026, 1, 1) < date.fromisoformat(rule.read)
    assert rule.kind in rules.OF_TOOLS or rule.kind in rules.OF_LISTS
    assert rule.certainty in ("documented", "source code", "measured", "reported", "derived")
    assert (rule.certainty == "derived") == (name == targets.PORTABLE)
    assert describe(rule)


def test_what_was_read_over_a_year_ago_is_old() -> None:
    rule = targets.Rule("titled", False, "https://example.com/", "2026-11-26", "documented")
    assert not rule.is_old(date(2027, 11, 26))
    assert rule.is_old(date(2027, 11, 27))


def test_every_kind_is_used() -> None:
    assert {rule.kind for _, rule in RULES} == {*rules.OF_TOOLS, *rules.OF_LISTS}


def test_a_preset_becomes_its_targets() -> None:
    expanded = targets.TARGETS.expand(["crewai", "frameworks", "gemini"])
    assert (expanded[:2], expanded[-1], len(expanded)) == (("crewai", "pydantic-ai"), "gemini", 12)
    assert {*expanded} <= {*targets.TARGETS}


def test_the_page_is_made_from_the_table() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "targets.py"))
    text = (ROOT / "docs" / "targets.md").read_text("utf-8")
    assert text == script["page"](text)


def test_the_command_shows_the_table(tmp_path: Path) -> None:
    listed = forked.run(["targets"], tmp_path).stdout
    assert [line.split()[0] for line in listed.splitlines()] == ["frameworks", *targets.TARGETS]
    framework = forked.run(["targets", "agno"], tmp_path).stdout
    assert framework.splitlines()[1] == "No tool was rejected, and no schema lost a part."
    shown = forked.run(["targets", "bedrock", "--json"], tmp_path).stdout
    assert '"source": "https://docs.aws.amazon.com/' in shown
    refused = forked.run(["targets", "gemni"], tmp_path)
    assert (refused.returncode, refused.stderr) == (
        2,
        "stubwright: there is no target `gemni`; did you mean `gemini`?\n",
    )
