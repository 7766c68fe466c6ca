"""Renders untrusted CommonMark descriptions as HTML.

HTML is shown as text. Only web and mail links work. Images, which the page would have to fetch, become links. Headings
are demoted below their section's heading. Line breaks are preserved, because most descriptions are docstrings. Overlong
text is shown verbatim.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from stubwright.docs.texts import escape_invisible

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore

LOWEST: Final = 6
"""The lowest heading level in HTML."""

MOST: Final = 20_000
"""The maximum length of Markdown, because parsing can take quadratic time."""

_BEGINNING: Final = 2_000
"""The maximum number of characters to search for the first paragraph."""

_LINK: Final = re.compile(r"https?://[^/]|mailto:.", re.IGNORECASE)
_INDENT: Final = re.compile(r"(?<=\n)[ \t]+")
_BLOCK: Final = re.compile(r"\s*([-*+>]|\d+[.)]|```|~~~)")
"""The start of a text with indentation that is significant in CommonMark."""


def render_html(text: str, level: int) -> Markup:
    """Render untrusted Markdown as HTML blocks.

    Args:
        level: The level for the highest heading; lower headings follow without gaps.
    """
    if len(text) > MOST:
        return render_block(text, "Text")
    parser = _make_parser()
    tokens = parser.parse(escape_invisible(_remove_indentation(text)))
    _lower_headings(tokens, level)
    for token in tokens:
        if token.children is not None:
            token.children = [*_make_inert(token.children)]
        elif token.type in ("fence", "code_block"):
            token.content = render_block(token.content, next(iter(token.info.split()), "Code"))
            token.type = "html_block"  # rendered verbatim; never parsed from the text
    rendered: str = parser.renderer.render(tokens, parser.options, {})
    return Markup(rendered)  # noqa: S704 - the renderer escapes everything from the text


def shorten(text: str, most: int) -> str:
    """Return the first paragraph of a text on one line without markup, truncated after `most` characters."""
    tokens = _make_parser().parse(escape_invisible(_remove_indentation(text[:_BEGINNING])))
    texts = [token for token in tokens if token.type in ("inline", "fence", "code_block")]
    paragraphs = [token for previous, token in itertools.pairwise(tokens) if previous.type == "paragraph_open"]
    first = next(iter([*paragraphs, *texts]), None)
    if first is None:
        return ""
    words = " ".join(escape_invisible(_get_text(first.children or [first])).split())
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


def _get_text(tokens: Sequence[Token]) -> str:
    return "".join(
        (
            " "
            if token.type in ("softbreak", "hardbreak")
            else _get_text(token.children)
            if token.children
            else token.content
        )
        for token in tokens
    )


def _remove_indentation(text: str) -> str:
    """Remove a docstring's indentation (PEP 257). CommonMark handles other indentation.

    All lines of a docstring except the first are indented. The lines of an example or a list after a first line are
    also indented, but their indentation must be preserved.
    """
    first, _, rest = text.partition("\n")
    if not rest or _BLOCK.match(first) or (first.rstrip().endswith(":") and not rest.partition("\n")[0].strip()):
        return text
    return inspect.cleandoc(text)


def _lower_headings(tokens: Sequence[Token], level: int) -> None:
    """Shift headings to `level` and below, each at most one level below the previous one."""
    above: list[str] = []
    for token in tokens:
        if token.type == "heading_open":
            while above and above[-1] >= token.tag:
                above.pop()
            above.append(token.tag)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(level + len(above) - 1, LOWEST)}"


def _make_inert(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield a line's tokens in a form that loads nothing: links keep only their address, and images become links."""
    are_kept: list[bool] = []  # whether the target is allowed, for each open link
    for token in tokens:
        if token.type == "link_open":
            are_kept.append(_LINK.match(str(token.attrs["href"])) is not None)
            if are_kept[-1]:
                yield _link(str(token.attrs["href"]))
        elif token.type == "link_close":
            if are_kept.pop():
                yield token
        elif token.type == "image":
            label = Token("text", "", 0, content=escape_invisible(_get_text(token.children or [])) or "image")
            # HTML does not allow nested links.
            if _LINK.match(str(token.attrs["src"])) and not any(are_kept):
                yield from (_link(str(token.attrs["src"])), label, Token("link_close", "a", -1))
            else:
                yield label
        else:
            token.content = escape_invisible(token.content)
            yield token


def _link(address: str) -> Token:
    return Token("link_open", "a", 1, attrs={"href": escape_invisible(address), "rel": "noreferrer"})


@cache
def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "xhtmlOut": False})
    parser.core.ruler.before("inline", "indents", _keep_indents)
    return parser


def _keep_indents(state: StateCore) -> None:
    """Preserve the indentation of paragraph lines, which CommonMark removes (0.31.2, section 4.8)."""
    for token in state.tokens:
        if token.type == "inline":
            token.content = _INDENT.sub(lambda match: "\u00a0" * len(match[0].expandtabs(4)), token.content)


def render_block(code: str, label: str) -> Markup:
    """Render code below a label; the page's script adds a copy button to the label."""
    return Markup(
        '<div class="code"><div class="label"><span>{}</span></div><pre><code>{}</code></pre></div>\n'
    ).format(escape_invisible(label), escape_invisible(code))
