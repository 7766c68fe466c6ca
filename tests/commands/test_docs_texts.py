"""Descriptions on pages of `stubwright docs`: untrusted CommonMark, and names with line breaks."""

from __future__ import annotations

import re

import pytest

from pages import Page
from stubwright.docs import markdown
from stubwright.docs.texts import split_name


def shown(text: str, level: int = 4) -> str:
    """A text as HTML on one line."""
    return re.sub(r" *\n *", "", markdown.render_html(text, level))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "<p>plain</p>"),
        ("", ""),
        ("**a** *b* `c_d` snake_case_name", "<p><strong>a</strong> <em>b</em> <code>c_d</code> snake_case_name</p>"),
        ("one\ntwo", "<p>one<br>two</p>"),
        ("- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("a\u061cb\u00adc\u202e", "<p>a\\u061cb\\u00adc\\u202e</p>"),
        ("> said", "<blockquote><p>said</p></blockquote>"),
        ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
        ("[a](https://x.org/?b=1&c)", '<p><a href="https://x.org/?b=1&amp;c" rel="noreferrer">a</a></p>'),
        ("[a](HTTP://x.org 'title')", '<p><a href="HTTP://x.org" rel="noreferrer">a</a></p>'),
        ("<mailto:a@x.org>", '<p><a href="mailto:a@x.org" rel="noreferrer">mailto:a@x.org</a></p>'),
    ],
)
def test_markdown(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_code_has_a_label_and_is_text() -> None:
    assert shown("```json x\n{\"a\": '<b>'}\n```") == (
        '<div class="code"><div class="label"><span>json</span></div>'
        "<pre><code>{&#34;a&#34;: &#39;&lt;b&gt;&#39;}</code></pre></div>"
    )
    assert "<span>Code</span>" in shown("```\nx\n```")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<a href='javascript:alert(1)'>x</a>",
        "<!-- x -->",
        "</div></main><style>*{display:none}</style>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java&#10;script:alert(1))",
        "[x](javascript&colon;alert(1))",
        "[x](&#x6A;avascript:alert(1))",
        "[x](vbscript:x)",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](data:image/svg+xml;base64,AAAA)",
        "[x](file:///etc/passwd)",
        "[x](//evil.example)",
        "[x](/evil)",
        "[x](#content)",
        "[x](http:evil)",
        "[x][y]\n\n[y]: javascript:alert(1)",
        "<javascript:alert(1)>",
        "![x](javascript:alert(1))",
        "![x](data:image/png;base64,AAAA)",
        "![x](pixel.png)",
        "[![x](javascript:alert(1))](javascript:alert(2))",
        "```<script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n```",
        '```" onload=alert(1) x="\n```',
        "`</code><script>alert(1)</script>`",
        "    </pre><script>alert(1)</script>",
        "# <script>alert(1)</script>",
        '[x](https://x.org/"onmouseover="alert(1))',
        "[x](https://x.org 'a\" onmouseover=\"alert(1)')",
        "*" * 500 + "x" + "*" * 500,
        "> " * 200 + "x",
        "[" * 200 + "](" * 200,
    ],
)
def test_a_description_brings_nothing_along(text: str) -> None:
    page = Page(f'<div class="text">{markdown.render_html(text, 4)}</div>')
    assert page.unsafe() == []
    assert all(link.startswith("https://x.org") for link in page.having("href"))


def test_a_text_of_no_sensible_length_is_shown_as_it_is() -> None:
    long = "![" * markdown.MOST + "<b>*x*"
    assert shown(long).endswith("![&lt;b&gt;*x*</code></pre></div>")
    assert markdown.shorten(long, 20) == "![" * 9 + "!…"


def test_an_image_is_a_link_to_it() -> None:
    link = '<a href="https://x.org/a.png" rel="noreferrer">{}</a>'
    assert shown("![A *b*](https://x.org/a.png)") == f"<p>{link.format('A b')}</p>"
    assert shown("![](https://x.org/a.png)") == f"<p>{link.format('image')}</p>"
    assert shown("[![a](https://x.org/b.png)](https://x.org/a.png)") == f"<p>{link.format('a')}</p>"


@pytest.mark.parametrize("text", ["a\u202eb", "a&#x202e;b", "`a\u202eb`", "```\na\u202eb\n```", "# a\u202eb"])
def test_what_turns_text_is_shown_by_its_number(text: str) -> None:
    assert "a\\u202eb" in shown(text)
    assert "\u202e" not in shown(text)
    assert markdown.shorten(text, 99) == "a\\u202eb"


def test_a_link_does_not_turn_its_text() -> None:
    assert "\u202e" not in shown("<https://x.org/%E2%80%AEb> [a\u202e](https://x.org/\u202e)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# a\n## b\n# c", ["h4", "h5", "h4"]),
        ("### a\n# b\n###### c\n### d\n## e", ["h4", "h4", "h5", "h5", "h5"]),
        ("# a\n## b\n### c\n#### d", ["h4", "h5", "h6", "h6"]),
        ("a\n===\nb\n---", ["h4", "h5"]),
    ],
)
def test_headings_go_below_that_of_the_page_without_a_gap(text: str, expected: list[str]) -> None:
    assert re.findall(r"<(h\d)>", markdown.render_html(text, 4)) == expected


def test_a_docstring_loses_the_indentation_of_its_code() -> None:
    text = "Gets it.\n\n        Args:\n            x: the x\n\n        - one\n        - two\n    "
    assert shown(text.replace("    ", "  ")) == shown(text).replace("\u00a0" * 4, "\u00a0" * 2)
    assert (
        shown(text)
        == "<p>Gets it.</p><p>Args:<br>\u00a0\u00a0\u00a0\u00a0x: the x</p><ul><li>one</li><li>two</li></ul>"
    )
    assert "<pre>" in shown("Call it:\n\n    like this")
    assert "<pre>" in shown("Gets it.\n\nAs in\n\n    this")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Gets *it*.\nAnd more.\n\nNot this.", "Gets it. And more."),
        ("# Heading\n\nWhat it does", "What it does"),
        ("# Heading", "Heading"),
        ("```\ncode\n```", "code"),
        ("- `one`\n- two", "one"),
        ("[a](https://x.org) ![b](c)", "a b"),
        ("<b>x</b>", "<b>x</b>"),
        ("", ""),
        ("---", ""),
        ("x" * 30, "x" * 19 + "…"),
    ],
)
def test_the_first_paragraph(text: str, expected: str) -> None:
    assert markdown.shorten(text, 20) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("get_weather", ["get_", "weather"]),
        ("a-b__c", ["a-", "b__", "c"]),
        ("_private_", ["_private_"]),
        ("x://a/b.c", ["x://", "a/", "b.", "c"]),
        ("a\u202e_b", ["a\\u202e_", "b"]),
        ("plain", ["plain"]),
        ("", [""]),
    ],
)
def test_names_break_behind_their_separators(text: str, expected: list[str]) -> None:
    assert split_name(text) == expected
