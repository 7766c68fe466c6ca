"""The README: its output is real, and its lists are complete."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from conftest import ROOT

from stubwright import cli
from walkthrough import Walkthrough

PAGE: Final = (ROOT / "README.md").read_text("utf-8")
AUTHOR: Final = {
    f"GIT_{role}_{key}": "reader@example.com" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
}


def test_it_is_short() -> None:
    assert len(PAGE.splitlines()) <= 120


def test_it_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in AUTHOR.items():
        monkeypatch.setenv(name, value)
    with Walkthrough(tmp_path) as walk:
        walk.play(PAGE)
        assert (walk.count, len(walk.blocks)) == (5, 1)
    [setup] = walk.blocks
    assert setup in (ROOT / "docs" / "tutorial.md").read_text("utf-8"), "both pages have the same set-up"


def commands() -> Iterator[str]:
    """All commands of the command line that `--help` shows."""
    for action in cli._parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (choice.dest for choice in action._choices_actions)


@pytest.mark.parametrize("name", ["README.md", "docs/commands.md"])
def test_each_command_has_a_row(name: str) -> None:
    cells = re.findall(r"^\| (`stubwright .*?) \| ", (ROOT / name).read_text("utf-8"), re.MULTILINE)
    rows = [command for cell in cells for command in re.findall(r"`stubwright (\S+?)[ `]", cell)]
    assert {*rows} == {*commands()}
    if name == "README.md":
        assert len(rows) == len({*rows})


def test_it_leads_to_each_page() -> None:
    linked = re.findall(r"\]\(([\w/.-]+)\)", PAGE)
    pages = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")]
    examples = (ROOT / "examples" / "README.md").read_text("utf-8")
    assert {*pages} <= {*linked, *(f"docs/{name}" for name in re.findall(r"\]\(\.\./docs/([\w-]+\.md)", examples))}


def test_all_pages_link_to_what_there_is() -> None:
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        ROOT / "bench" / "README.md",
    ]
    broken = []
    for page in pages:
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(((?!https?:|mailto:)[^)\s]+)\)", text):
            name, _, anchor = link.partition("#")
            there = (page.parent / name) if name else page
            if not there.exists() or (anchor and anchor not in anchors(there)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    titles = [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_make_has_what_it_names() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    named = re.findall(r"(?:^|`)make (\w+)", PAGE, re.MULTILINE)
    assert named == ["demo", "test"]
    assert {*named} <= {*targets}
