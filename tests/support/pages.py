"""Parses a page of `stubwright docs` into its frame, which is trusted, and its descriptions, which are not."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "hr", "wbr"}

PROSE = {"p", "br", "hr", "em", "strong", "code", "pre", "ul", "ol", "li", "blockquote", "a", "div", "span"}
"""The tags that Markdown may produce, except headings."""

_SAFE = re.compile(r"https?://|mailto:")
_OURS = {("div", "code"), ("div", "label")}


class Page(HTMLParser):
    """The tags of a page, which must be balanced, with its ids, its internal links, and its text.

    `frame` has the tags outside descriptions, except breaks in names, and `prose` the tags in descriptions.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.frame: list[tuple[str, ...]] = []
        self.prose: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self._prose = 0
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if self._prose:
            self.prose.append((tag, dict(attrs)))
        elif tag != "wbr":
            self.frame.append((tag, *(name for name, _ in attrs)))
        if tag not in VOID:
            self._open.append(tag)
            if not self._prose and ("class", "text") in attrs:
                self._prose = len(self._open)

    def handle_endtag(self, tag: str) -> None:
        if len(self._open) == self._prose:
            self._prose = 0
        if not self._prose:
            self.frame.append((f"/{tag}",))
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def having(self, attribute: str) -> list[str]:
        return [str(attrs[attribute]) for _, attrs in self.tags if attribute in attrs]

    def unsafe(self) -> list[tuple[str, dict[str, str | None]]]:
        """Return the forbidden parts of descriptions: other tags, active attributes, other links."""
        return [(tag, attrs) for tag, attrs in self.prose if not _is_safe(tag, attrs)]


def _is_safe(tag: str, attrs: dict[str, str | None]) -> bool:
    if tag == "a":
        return attrs.keys() == {"href", "rel"} and _SAFE.match(attrs["href"] or "") is not None
    if attrs.keys() == {"class"}:
        return (tag, attrs["class"]) in _OURS
    return (tag in PROSE or re.fullmatch("h[3-6]", tag) is not None) and attrs.keys() <= {"start"}
