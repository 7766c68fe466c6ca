"""The exact output of the text, JSON and GitHub printers."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from stubwright.compile.source import Document
from stubwright.diagnostics import Diagnostic, Place, Span, printers

TEXT = "stubwright: 1\nserver: {name: weather}\nschemas:\n  Place:\n    type: strng\n"
DOCUMENTS = {"specs/weather.yaml": Document("specs/weather.yaml", TEXT, None)}
STRNG = Diagnostic(
    "SW203",
    "`strng` is not a JSON Schema type",
    Place("specs/weather.yaml", ("schemas", "Place", "type")),
    "did you mean `string`?",
)
NO_TITLE = Diagnostic("SW300", "no title", Place("specs/weather.yaml", ("server",)).point_at_key())
NO_FILE = Diagnostic("SW001", "`a.yaml` does not exist", None, "check the path")


def shown(line: str, column: int, end: int) -> list[str]:
    """The source line and the carets for a span in a file of one line."""
    document = Document("a.yaml", line, None)
    found = Diagnostic("SW102", "x", Span("a.yaml", 1, column, 1, end))
    return printers.text.render([found], {"a.yaml": document}, color=False).splitlines()[1:3]


def test_text() -> None:
    assert printers.text.render([STRNG, NO_TITLE, NO_FILE, STRNG], DOCUMENTS, color=False) == (
        "error[SW001]: `a.yaml` does not exist\n"
        "   help: check the path\n"
        "specs/weather.yaml:2:1: warning[SW300]: no title\n"
        "    2 | server: {name: weather}\n"
        "      | ^^^^^^\n"
        "specs/weather.yaml:5:11: error[SW203]: `strng` is not a JSON Schema type\n"
        "    5 |     type: strng\n"
        "      |           ^^^^^\n"
        "   help: did you mean `string`?\n"
        "2 errors, 1 warning in 1 file\n"
    )


@pytest.mark.parametrize("printer", [printers.json, printers.github])
def test_what_an_alias_repeats_is_one_finding(printer: Any) -> None:
    text = "a: &x {type: strng}\nb: *x\nc: *x\nd: {type: strng}\n"
    document = Document("a.yaml", text, None)
    found = [Diagnostic("SW203", "no type", Place("a.yaml", (key, "type"))) for key in "abcd"]
    other = Diagnostic("SW203", "another fault", Place("a.yaml", ("b", "type")))
    printed = printer.render([*found, other], {"a.yaml": document})
    assert (printed.count("no type"), printed.count("another fault")) == (2, 1)


def test_one_unknown_key_of_many_tools_is_one_finding_for_people() -> None:
    text = "".join(f"t{index}: {{summary: a, other: b}}\n" for index in range(60))
    sources = {"a.yaml": Document("a.yaml", text, None)}
    found = [
        Diagnostic("SW300", f"`{key}` is unknown", Place("a.yaml", (f"t{index}", key)).point_at_key())
        for key in ("summary", "other")
        for index in range(60)
    ]
    shown = printers.text.render(found, sources, color=False)
    assert (shown.count("`summary` is unknown"), shown.count("`other` is unknown")) == (1, 1)
    assert "a.yaml:1:6: warning[SW300]: `summary` is unknown" in shown
    assert "also at: a.yaml:2:6, a.yaml:3:6" in shown
    assert ", and 49 more" in shown
    assert shown.endswith("120 warnings in 1 file\n")
    assert len(json.loads(printers.json.render(found, sources))) == 120
    assert printers.github.render(found, sources).count("::warning") == 120


def test_nothing_is_printed_for_nothing() -> None:
    assert printers.text.render([], {}, color=True) == ""
    assert printers.json.render([], {}) == "[]\n"
    assert printers.github.render([], {}) == ""


@pytest.mark.parametrize(
    ("found", "summary"),
    [
        ([NO_FILE], "1 error"),
        ([NO_TITLE], "1 warning in 1 file"),
        ([STRNG, NO_FILE], "2 errors in 1 file"),
        ([STRNG, Diagnostic("SW102", "x", Span("b.yaml", 1, 1, 1, 2))], "2 errors in 2 files"),
    ],
)
def test_the_summary(found: list[Diagnostic], summary: str) -> None:
    assert printers.text.render(found, DOCUMENTS, color=False).splitlines()[-1] == summary


def test_colour_adds_nothing_but_escapes() -> None:
    plain = printers.text.render([STRNG, NO_TITLE, NO_FILE], DOCUMENTS, color=False)
    colored = printers.text.render([STRNG, NO_TITLE, NO_FILE], DOCUMENTS, color=True)
    assert "\x1b[1;31merror[SW203]\x1b[0m" in colored
    assert "\x1b[1;33mwarning[SW300]\x1b[0m" in colored
    for code in ("[0m", "[1m", "[1;31m", "[1;33m", "[1;34m", "[36m"):
        colored = colored.replace(f"\x1b{code}", "")
    assert colored == plain


def test_the_order_is_by_place() -> None:
    spans = [("b", 1, 1), ("a", 10, 1), ("a", 2, 9), ("a", 2, 10), ("a", 2, 9)]
    found = [
        Diagnostic("SW102", f"{n}", Span(file, line, col, line, col + 1)) for n, (file, line, col) in enumerate(spans)
    ]
    rows = json.loads(printers.json.render(found, {}))
    assert [row["message"] for row in rows] == ["2", "4", "3", "1", "0"]
    assert printers.json.render(reversed(found), {}) == printers.json.render(found, {})


def test_wide_lines_are_clipped_around_the_caret() -> None:
    line = "a" * 300 + "BAD" + "b" * 300
    source, caret = shown(line, 301, 304)
    assert source == "    1 | …" + "a" * 40 + "BAD" + "b" * 77 + "…"
    assert caret == "      | " + " " * 41 + "^^^"
    source, caret = shown(line, 1, 2)
    assert source == "    1 | " + "a" * 120 + "…"
    assert caret == "      | ^"
    source, caret = shown("x" * 300, 1, 301)
    assert caret == "      | " + "^" * 120


class Counted(str):
    """A text that counts how many of its characters were looked at, one by one or in pieces."""

    looked = 0

    def __getitem__(self, key: Any) -> str:
        piece = super().__getitem__(key)
        self.looked += len(piece)
        return piece


@pytest.mark.parametrize(
    "printed", [partial(printers.text.render, color=False), printers.json.render, printers.github.render]
)
def test_a_diagnostic_costs_the_same_however_long_its_line_is(printed: Callable[..., str]) -> None:
    def looked(entries: int) -> float:
        text = Counted(json.dumps({"tools": [{"name": "n" * 60}] * entries}))
        found = [Diagnostic("SW312", "x", Place("a.json", ("tools", index, "name"))) for index in range(entries)]
        assert printed(found, {"a.json": Document("a.json", text, None)}).count("SW312") == entries
        return text.looked / entries

    assert looked(1000) <= 1.1 * looked(100) <= 1000


def test_a_long_line_is_shown_as_its_part_would_be() -> None:
    part = "a: \x1b[31m名\u202e\tb e\u0301\u200d😀" * 40
    for column in (1, 41, 42, 200, 400, 470):
        for first in (0, 10_000):
            source, caret = shown("x" * first + part + "y" * 10_000, first + column, first + column + 3)
            assert source.endswith("…")
            assert len(source) < 300
            assert caret.endswith("^")
            if column > 41:
                assert (source, caret) == tuple(shown(part[: column + 200], column, column + 3))


def test_carets_stand_below_their_token() -> None:
    assert shown("a:\tb", 4, 5) == ["    1 | a: b", "      |    ^"]
    assert shown("名: 前x", 4, 6) == ["    1 | 名: 前x", "      |     ^^^"]
    assert shown("e\u0301a: b", 3, 4) == ["    1 | e\u0301a: b", "      |  ^"]
    assert shown("😀: b", 4, 5) == ["    1 | 😀: b", "      |     ^"]


def test_the_terminal_is_left_alone() -> None:
    source, caret = shown("a: \x1b[31m\u202eb", 9, 10)
    assert source == "    1 | a: �[31m�b"
    assert caret == "      |         ^"
    found = Diagnostic("SW102", "found \x1b[2J", None, "a\tb")
    assert printers.text.render([found], {}, color=False) == "error[SW102]: found �[2J\n   help: a b\n1 error\n"


def test_places_without_a_line() -> None:
    empty = {"a.yaml": Document("a.yaml", "\n\n", None)}
    found = Diagnostic("SW003", "the file is empty", Span("a.yaml", 1, 1, 1, 2))
    assert (
        printers.text.render([found], empty, color=False)
        == "a.yaml:1:1: error[SW003]: the file is empty\n1 error in 1 file\n"
    )
    beyond = Diagnostic("SW003", "x", Span("a.yaml", 99, 1, 99, 2))
    assert printers.text.render([beyond], empty, color=False).startswith("a.yaml:99:1: error[SW003]: x\n1 error")
    unknown = Diagnostic("SW003", "x", Place("b.yaml", ("a",)))
    assert printers.text.render([unknown], empty, color=False).startswith("b.yaml:1:1: error[SW003]: x\n1 error")


def test_line_numbers_may_be_long() -> None:
    document = Document("a.yaml", "\n" * 99_999 + "a: b", None)
    found = Diagnostic("SW102", "x", Place("a.yaml", ("a",)))
    assert printers.text.render([found], {"a.yaml": document}, color=False).splitlines()[1:3] == [
        "  100000 | a: b",
        "         |    ^",
    ]


def test_json() -> None:
    assert json.loads(printers.json.render([STRNG, NO_FILE], DOCUMENTS)) == [
        {
            "code": "SW001",
            "severity": "error",
            "message": "`a.yaml` does not exist",
            "help": "check the path",
            "file": None,
            "line": None,
            "column": None,
            "endLine": None,
            "endColumn": None,
        },
        {
            "code": "SW203",
            "severity": "error",
            "message": "`strng` is not a JSON Schema type",
            "help": "did you mean `string`?",
            "file": "specs/weather.yaml",
            "line": 5,
            "column": 11,
            "endLine": 5,
            "endColumn": 16,
        },
    ]


def test_github() -> None:
    odd = Diagnostic("SW300", "100% :: a,b\nc", Span("a,b:c%.yaml", 1, 2, 3, 4))
    assert printers.github.render([STRNG, odd, NO_FILE], DOCUMENTS) == (
        "::error title=SW001::`a.yaml` does not exist%0Ahelp: check the path\n"
        "::warning file=a%2Cb%3Ac%25.yaml,line=1,col=2,endLine=3,endColumn=4,title=SW300::100%25 :: a,b%0Ac\n"
        "::error file=specs/weather.yaml,line=5,col=11,endLine=5,endColumn=16,title=SW203::"
        "`strng` is not a JSON Schema type%0Ahelp: did you mean `string`?\n"
    )


def test_differences() -> None:
    assert (
        printers.unified_diff.render("x.py", b"a\nb\n", b"a\nc\n")
        == "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c"
    )
    assert printers.unified_diff.render("x.py", None, b"a\n") == "--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+a"
    assert printers.unified_diff.render("x.py", b"a\n", None) == "--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a"
    assert printers.unified_diff.render("x.py", b"a\r\n", b"a\n") == "x.py: only line breaks differ"
    assert printers.unified_diff.render("x.py", b"\xff\n", b"a\n").endswith("-\ufffd\n+a")
    assert printers.unified_diff.render("x.py", None, b"") == "--- /dev/null\n+++ b/x.py"
    assert printers.unified_diff.render("x.py", b"", None) == "--- a/x.py\n+++ /dev/null"
