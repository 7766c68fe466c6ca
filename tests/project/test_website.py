"""The website: its navigation is complete, and its pages have the same contents as on GitHub."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest
from conftest import ROOT
from markdown_it import MarkdownIt

SCRIPT: Final[dict[str, Any]] = runpy.run_path(str(ROOT / "docs" / "website.py"))
CONFIGURATION: Final = tomllib.loads((ROOT / "docs" / "website.toml").read_text("utf-8"))
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    group.title: group.paths for group in SCRIPT["navigation"](CONFIGURATION["project"]["nav"])
}
PATHS: Final = [path for paths in GROUPS.values() for path in paths]
GALLERY: Final = SCRIPT["GALLERY"]
TEXTS: Final = {
    path: "# Gallery\n\nAn index.\n" if path == GALLERY else (ROOT / path).read_text("utf-8") for path in PATHS
}
ADDRESS: Final = CONFIGURATION["project"].get("site_url", "")
COUNTED: Final = frozenset({"code", "h1", "h2", "h3", "h4", "img", "li", "ol", "pre", "strong", "td", "th", "tr", "ul"})


def test_each_page_is_in_the_navigation_once() -> None:
    pages = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert 25 <= len(pages) <= 30
    assert {path: count for path, count in Counter(PATHS).items() if count > 1} == {}
    assert {*pages} - {*PATHS} == set()


def test_the_groups_are_those_of_the_readme() -> None:
    bullets = re.findall(r"^- \*\*([\w ]+):\*\* (.*)$", TEXTS["README.md"], re.MULTILINE)
    assert [title for title, _ in bullets] == [title for title in GROUPS if title]
    for title, links in bullets:
        linked = re.findall(r"\]\(([\w/.-]+)\)", links)
        assert [path for path in GROUPS[title] if path in linked] == linked
        assert {*GROUPS[title]} - {*linked} <= {"examples/database.md", "examples/shop.md", "bench/README.md", GALLERY}


def test_pages_have_titles_of_their_own() -> None:
    titles = [SCRIPT["title"](text) for text in TEXTS.values()]
    assert all(titles)
    assert len({*titles}) == len(titles)


def test_the_address_is_the_repositorys() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    homepage = project.get("urls", {}).get("Homepage", "")
    assert re.sub(r"https://github\.com/(.+)/(.+)", r"https://\1.github.io/\2/", homepage) == ADDRESS


def test_llms_txt_has_a_line_for_each_page() -> None:
    lines = SCRIPT["llms"](SCRIPT["navigation"](CONFIGURATION["project"]["nav"]), TEXTS, ADDRESS).splitlines()
    assert lines[0] == "# stubwright"
    assert lines[2].startswith("> stubwright compiles ")
    entries = [line for line in lines if line.startswith("- ")]
    found = [re.fullmatch(rf"- \[(.+)\]\({re.escape(ADDRESS)}(.+)\): (\S.+[.?])", line) for line in entries]
    assert [match and match[2] for match in found] == PATHS[1:]
    assert len(lines) == 3 + len(entries) + 3 * (len(GROUPS) - 1)


def adapted(*lines: str, source: str | None = "https://example.com/stubwright") -> list[str]:
    text: str = SCRIPT["adapt"]("\n".join(lines), "docs/overview.md", PATHS, source)
    return text.splitlines()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["```yaml compose.yaml", "a: 1", "```"], ['```yaml title="compose.yaml"', "a: 1", "```"]),
        (["- a", "", "  b", "", "c"], ["- a", "", "    b", "", "c"]),
        (["1. a", "", "   ```", "   - b", "   ```"], ["1. a", "", "    ```", "    - b", "    ```"]),
        (["- a", "", "  b", "- c", "- d"], ["- a", "", "    b", "", "- c", "- d"]),
        (["- a", "```", "  b", "```"], ["- a", "```", "  b", "```"]),
        ([r"| `a\|b` | c\|d |"], [r"| `a|b` | c\|d |"]),
        (["[a](diff.md#codes)"], ["[a](diff.md#codes)"]),
        (["[a](../specs)"], ["[a](https://example.com/stubwright/tree/main/specs)"]),
        (["[a](../LICENSE)"], ["[a](https://example.com/stubwright/blob/main/LICENSE)"]),
        (["```", "[a](nowhere.md)", "```"], ["```", "[a](nowhere.md)", "```"]),
    ],
    ids=["file", "item", "fence", "second", "fence after", "pipe", "page", "folder", "no page", "code"],
)
def test_markdown_is_adapted(given: Sequence[str], expected: Sequence[str]) -> None:
    assert adapted(*given) == expected


def test_without_an_address_a_link_to_a_file_is_its_text() -> None:
    line = "- [a](diff.md#codes), [b `c`](../LICENSE), [d](../specs), [f](https://example.com)"
    assert adapted(line, source=None) == ["- [a](diff.md#codes), b `c`, d, [f](https://example.com)"]
    with pytest.raises(FileNotFoundError, match=r"docs/overview\.md links to nowhere\.md"):
        adapted("[a](nowhere.md)", source=None)
    with pytest.raises(ValueError, match=r"docs/overview\.md: write the whole link to \.\./LICENSE on one line"):
        adapted("[the", "licence](../LICENSE)", source=None)


def test_a_link_to_nothing_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/overview\.md links to nowhere\.md"):
        adapted("[a](nowhere.md)")


def test_what_a_page_would_fetch_is_reported(tmp_path: Path) -> None:
    page = '<link rel="canonical" href="https://a.example"><a href="https://b.example"></a><img src="x.png">'
    (tmp_path / "good.html").write_text(page)
    assert [*SCRIPT["foreign"](tmp_path)] == []
    page = '<link rel="preload stylesheet" href="https://a.example"><script src="//b.example"></script>'
    (tmp_path / "bad.html").write_text(page)
    assert [*SCRIPT["foreign"](tmp_path)] == ["bad.html: https://a.example", "bad.html: //b.example"]


class Content(HTMLParser):
    """The words of a page without spaces, and how many there are of each kind of element."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.words = ""
        self.elements: Counter[str] = Counter()
        self._within: list[str] = []
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if dict(attrs).get("class") in ("headerlink", "filename"):
            self._within.append(tag)
        elif tag in COUNTED:
            self.elements[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if self._within[-1:] == [tag]:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.words += "".join(data.split())


@pytest.mark.long
def test_pages_say_what_they_say_on_github() -> None:
    """Compare with CommonMark, which GitHub extends; Zensical has other rules for lists, tables and fences."""
    subprocess.run(["make", "site", f"PYTHON={sys.executable}"], cwd=ROOT, check=True)
    commonmark = MarkdownIt("commonmark").enable("table")
    for path in PATHS:
        page = (ROOT / "build" / "site" / path).with_suffix("") / "index.html"
        if page.parent.name in ("README", "index"):
            page = page.parents[1] / "index.html"
        source = (ROOT / "build" / "pages" / path if path == GALLERY else ROOT / path).read_text("utf-8")
        markup = re.findall(r"<article.*?</article>", page.read_text("utf-8"), re.DOTALL)
        here, there = Content(markup[0]), Content(commonmark.render(source))
        assert here.words == there.words, path
        assert here.elements == there.elements, path
    assert (ROOT / "build" / "site" / "llms.txt").is_file()
