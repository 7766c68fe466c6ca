"""Text to values and positions: YAML and JSON semantics, rejected input, `include` and `$ref`."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import amounts
from stubwright.compile import source
from stubwright.compile.source import Document, Fragment
from stubwright.compile.syntax import jsontext, yamltext
from stubwright.compile.syntax.positions import MAX_DEPTH
from stubwright.diagnostics import Diagnostic, Place, Span

# No private use: how YAML's reader keeps surrogate escapes apart rules such characters out of texts that have both.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Co"]), max_size=80)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        # A key in YAML has at most 1,024 characters (YAML 1.2.2, 7.4.2), and JSON may write one as twelve.
        | st.dictionaries(TEXTS, inner)
    ),
    max_leaves=12,
)


class Files:
    """A reader over bytes, texts and failures by path."""

    def __init__(self, files: dict[str, str | bytes | OSError]) -> None:
        self._files = files
        self.reads: list[str] = []

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        found = self._files.get(path, FileNotFoundError(2, "No such file", path))
        if isinstance(found, OSError):
            raise found
        return found.encode() if isinstance(found, str) else found

    def glob(self, folder: str, pattern: str) -> list[str]:
        return sorted(fnmatch.filter(self._files, f"{folder}/{pattern}" if folder else pattern))

    def is_within(self, path: str, folder: str) -> bool:
        return path.startswith(folder)


NO_BREAK_SPACE = "this looks like a space, but is U+00A0 (no-break space)"
WIDE_SPACE = "this looks like a space, but is U+3000 (ideographic space)"


def load(
    files: dict[str, str | bytes | OSError], entry: str = "m.yaml"
) -> tuple[source.Bundle | None, list[Diagnostic]]:
    return source.load(entry, Files(files))


def only(text: str | bytes | OSError, entry: str = "m.yaml") -> Diagnostic:
    """The one diagnostic that a file gives."""
    _, found = load({entry: text}, entry)
    assert len(found) == 1, found
    return found[0]


def value(text: str, entry: str = "m.yaml") -> Any:
    bundle, found = load({entry: text}, entry)
    assert found == []
    assert bundle is not None
    return bundle.documents[entry].value


def where(diagnostic: Diagnostic) -> tuple[int, int, int]:
    assert isinstance(diagnostic.at, Span)
    return diagnostic.at.line, diagnostic.at.column, diagnostic.at.end_column


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on", "on"),
        ("no", "no"),
        ("Yes", "Yes"),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("~", None),
        ("Null", None),
        ("", None),
        ("nULL", "nULL"),
        ("2026-07-28", "2026-07-28"),
        ("2026-07-28T10:00:00Z", "2026-07-28T10:00:00Z"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("012", 12),
        ("+12", 12),
        ("-0", 0),
        ("0o17", 15),
        ("0xFf", 255),
        ("0b11", "0b11"),
        ("-0x1", "-0x1"),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1.5e3", -1500.0),
        ("1e3", 1000.0),
        (".", "."),
        ("1.2.0", "1.2.0"),
        ("+", "+"),
        ("=", "="),
        ("'1'", "1"),
        ('"null"', "null"),
        ("!!str 12", "12"),
        ("! 12", "12"),
        ("9007199254740993", 9007199254740993),
        ('"\\ud83d\\ude00 \\u00e9"', "😀 é"),
        ("'\\ud83d\\ude00'", "\\ud83d\\ude00"),
        ('"\\\\ud83d"', "\\ud83d"),
        ("\\uD83d", "\\uD83d"),
    ],
)
def test_scalars_follow_the_core_schema(text: str, expected: object) -> None:
    for anchor in ("", "&x "):  # texts with anchors are read in another way
        made = value(f"a: {anchor}{text}\n")["a"]
        assert made == expected
        assert type(made) is type(expected)


@pytest.mark.parametrize("name", ["weather.yaml"])
def test_texts_with_and_without_anchors_mean_the_same(name: str) -> None:
    text = (Path(__file__).parents[2] / "specs" / name).read_text("utf-8")
    made, problems = yamltext.parse(text)
    assert problems == []
    assert yamltext.parse(f"{text}\nx-anchor: &x 1\n") == ({**made, "x-anchor": 1}, [])


@pytest.mark.parametrize("name", ["m.yaml", "m.yml", "m.YAML", "m", "m.json", "m.JSON"])
def test_the_extension_decides(name: str) -> None:
    assert value('{"a": 1}', name) == {"a": 1}
    if name.lower().endswith(".json"):
        assert only("a: 1", name).message == "expected a value"
    else:
        assert value("a: 1", name) == {"a": 1}


def test_json_numbers_stay_exact() -> None:
    made = value('{"a": 9007199254740993, "b": 1.0, "c": 1, "d": -0.0, "e": 1e2}', "m.json")
    assert [repr(one) for one in made.values()] == ["9007199254740993", "1.0", "1", "-0.0", "100.0"]


def test_a_byte_order_mark_is_no_character() -> None:
    assert value("\ufeffa: 1") == {"a": 1}
    assert value('\ufeff{"a": 1}', "m.json") == {"a": 1}
    assert where(only("\ufeffa: .inf")) == (1, 4, 8)


def test_keys_keep_their_order() -> None:
    assert list(value("b: 1\na: 2\nc: 3")) == ["b", "a", "c"]
    assert list(value('{"b": 1, "a": 2}', "m.json")) == ["b", "a"]


def test_aliases_share_their_value() -> None:
    made = value("a: &x {b: [1]}\nc: *x\n")
    assert made == {"a": {"b": [1]}, "c": {"b": [1]}}
    assert made["a"] is made["c"]
    assert value("a: &k key\n*k : 1") == {"a": "key", "key": 1}


@pytest.mark.parametrize(
    ("text", "code", "place", "message"),
    [
        ("a: 1\nb: 2\na: 3", "SW005", (3, 1, 2), "duplicate key `a`; the first one is on line 1"),
        ("a:\n  b: 1\n  b: 1", "SW005", (3, 3, 4), "duplicate key `b`; the first one is on line 2"),
        ("1: a", "SW006", (1, 1, 2), "a key must be a string, and `1` is a number"),
        ("null: a", "SW006", (1, 1, 5), "a key must be a string, and `null` is `null`"),
        ("? \n: a", "SW006", (1, 2, 3), "a key is missing before this `:`"),
        ("? {a: 1}\n: b", "SW006", (1, 3, 4), "a key must be a string, not a mapping"),
        ("a: -.INF", "SW007", (1, 4, 9), "`-.INF` is not a JSON value"),
        ("a: 1e999", "SW007", (1, 4, 9), "`1e999` is too large for a number"),
        (f"a: {'1' * 4301}", "SW007", (1, 4, 4305), "this number has more than 4300 digits"),
        (f"a: 0x{'f' * 4000}", "SW007", (1, 4, 4006), "this number has too many digits"),
        ("a: [&x [*x]]", "SW009", (1, 9, 11), "the alias `*x` is inside its own anchor"),
        ("a: *x", "SW004", (1, 4, 6), "the anchor `&x` is not defined before this alias"),
        ("a: !foo x", "SW009", (1, 4, 5), "the tag `!foo` is not supported"),
        ("a: !!set {x: y}", "SW009", (1, 4, 5), "the tag `!!set` is not supported"),
        ("a: 1\n---\nb: 2", "SW009", (2, 1, 4), "a second YAML document starts here"),
        ("<<: {a: 1}", "SW009", (1, 1, 3), "merge keys (`<<`) are not part of YAML 1.2"),
        ('a: "\\ud83d"', "SW010", (1, 4, 12), "this string contains half a surrogate pair, which is not a character"),
        ("a:\n\t- b", "SW004", (2, 1, 2), "YAML cannot be indented with tabs"),
        ("a: {b:\u00a0{c: d}}", "SW004", (1, 7, 8), NO_BREAK_SPACE),
        ("a: {b: 1,\n \u00a0 c:\u00a0[d, {e: f}]}", "SW004", (2, 2, 3), NO_BREAK_SPACE),
        ("a: b\n\u00a0\u00a0c: d: e", "SW004", (2, 1, 2), NO_BREAK_SPACE),
        ("a: b\nc:\u3000[d]: e: f", "SW004", (2, 3, 4), WIDE_SPACE),
        ("a: [b c\u00a0d, {e: f]", "SW004", (1, 12, 13), "this `{` is not closed, or a comma is missing in it"),
        ("a: [b\nc: d", "SW004", (1, 4, 5), "this `[` is not closed, or a comma is missing in it"),
        ("a: 'it's'", "SW004", (1, 8, 9), "expected a key"),
        ('a: "\\q"', "SW004", (1, 5, 6), "unknown escape in YAML"),
        ("a: @b", "SW004", (1, 4, 5), "a value cannot start with `@`"),
        ("a: `b`", "SW004", (1, 4, 5), "a value cannot start with ```"),
        ("a: |\n b\nc", "SW004", (3, 1, 2), "a `:` is missing after this key"),
        ("- a\nb: c", "SW004", (2, 1, 2), "a list item should start here"),
        ("a: b\x07", "SW004", (1, 5, 6), "the character U+0007 is not allowed in YAML"),
        ("%YAML 3.0\n---\na: 1", "SW004", (1, 1, 2), "unknown version of YAML"),
        ("a: !e!x b", "SW004", (1, 4, 5), "unknown tag"),
    ],
)
def test_yaml_that_is_refused(text: str, code: str, place: tuple[int, int, int], message: str) -> None:
    found = only(text)
    assert (found.code, where(found), found.message) == (code, place, message)


@pytest.mark.parametrize(
    ("text", "code", "place", "message"),
    [
        ('{"a": 1,\n "a": 2}', "SW005", (2, 2, 5), "duplicate key `a`; the first one is on line 1"),
        ('{"\\u0061": 1, "a": 2}', "SW005", (1, 15, 18), "duplicate key `a`; the first one is on line 1"),
        ('{"a":\u00a01}', "SW004", (1, 6, 7), NO_BREAK_SPACE),
        ('{"a": 1,\n \u00a0"b": 2}', "SW004", (2, 2, 3), NO_BREAK_SPACE),
        ('{"a": 1\u00a0, "b": 2}', "SW004", (1, 8, 9), NO_BREAK_SPACE),
        ('{"a"\u3000: 1}', "SW004", (1, 5, 6), WIDE_SPACE),
        ('{"a": 1}\u00a0', "SW004", (1, 9, 10), NO_BREAK_SPACE),
        ('{"a": NaN}', "SW007", (1, 7, 10), "`NaN` is not a JSON value"),
        ('{"a": [-Infinity]}', "SW007", (1, 8, 17), "`-Infinity` is not a JSON value"),
        ('{"a": 1e999}', "SW007", (1, 7, 12), "`1e999` is too large for a number"),
        (f"[{'1' * 5000}]", "SW007", (1, 2, 5002), "this number has more than 4300 digits"),
        (
            '["\\ud83d \\ude00"]',
            "SW010",
            (1, 2, 17),
            "this string contains half a surrogate pair, which is not a character",
        ),
        ('{"a": 1,}', "SW004", (1, 8, 9), "unexpected comma after the last entry"),
        ("[1, ]", "SW004", (1, 3, 4), "unexpected comma after the last item"),
        ("{,}", "SW004", (1, 2, 3), "expected a key in double quotes"),
        ('{"a" 1}', "SW004", (1, 6, 7), "a `:` is missing between the key and its value"),
        ("[1 2]", "SW004", (1, 4, 5), "expected a comma, or the end of the list or object"),
        ('["a', "SW004", (1, 2, 3), "this string is not closed"),
        ('["a\tb"]', "SW004", (1, 4, 5), "a string contains a raw line break or control character"),
        ('["\\q"]', "SW004", (1, 3, 4), "unknown escape in JSON"),
        ("{} {}", "SW004", (1, 4, 5), "unexpected text after the JSON value"),
        ('{"a": [1', "SW004", (1, 9, 10), "unexpected end of the text"),
    ],
)
def test_json_that_is_refused(text: str, code: str, place: tuple[int, int, int], message: str) -> None:
    found = only(text, "m.json")
    assert (found.code, where(found), found.message) == (code, place, message)


def test_all_that_is_odd_comes_at_once() -> None:
    _, found = load({"m.yaml": "1: .inf\na: 1\na: !x 2\n"})
    assert [diagnostic.code for diagnostic in found] == ["SW006", "SW007", "SW005", "SW009"]
    _, found = load({"m.json": '{"a": NaN, "a": 1e999, "b": "\\udead"}'}, "m.json")
    assert [diagnostic.code for diagnostic in found] == ["SW007", "SW007", "SW005", "SW010"]


@pytest.mark.parametrize("depth", amounts.sample([MAX_DEPTH + 1, 1_000, 100_000], 2))
@pytest.mark.parametrize("entry", ["m.json", "m.yaml"])
def test_depth_has_a_limit(depth: int, entry: str) -> None:
    assert value("[" * MAX_DEPTH + "]" * MAX_DEPTH, entry) is not None
    found = only("[" * depth + "]" * depth, entry)
    assert (found.code, where(found)) == ("SW008", (1, MAX_DEPTH + 1, MAX_DEPTH + 2))


def test_depth_has_a_limit_through_aliases() -> None:
    text = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [[*a{n - 1}]]\n" for n in range(1, MAX_DEPTH))
    assert only(text).message == f"this is nested more than {MAX_DEPTH} levels deep"


def test_aliases_have_a_limit() -> None:
    bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert only(bomb).message == f"aliases expand to more than {yamltext.MAX_ALIASED:,} values up to here"


@pytest.mark.parametrize(
    ("file", "code", "message"),
    [
        (FileNotFoundError(2, "No such file"), "SW001", "`m.yaml` does not exist"),
        (IsADirectoryError(21, "Is a directory"), "SW001", "`m.yaml` is a folder"),
        (PermissionError(13, "Permission denied"), "SW001", "`m.yaml` cannot be read: permission denied"),
        (OSError(5, "Input/output error"), "SW001", "`m.yaml` cannot be read: Input/output error"),
        (OSError("it is larger than 64 MiB"), "SW001", "`m.yaml` cannot be read: it is larger than 64 MiB"),
        (b"\xff\xfea\0", "SW002", "the file is in UTF-16"),
        (b"a: \0", "SW002", "the file is binary"),
        (b"\x89PNG\r\n\x1a\n\0", "SW002", "the file is binary"),
        (b"", "SW003", "the file is empty"),
        (b" \n\n", "SW003", "the file is empty"),
        (b"# comment\n", "SW003", "the file contains only comments"),
    ],
)
def test_files_that_cannot_be_used(file: bytes | OSError, code: str, message: str) -> None:
    found = only(file)
    assert (found.code, found.message) == (code, message)
    assert (found.at is None) == (code == "SW001")


def test_broken_utf_8_has_a_place() -> None:
    found = only("# 😀é\na: ö".encode() + b"\xe9\n")
    assert (found.message, where(found)) == ("the byte 0xe9 is not UTF-8", (2, 5, 6))


def test_a_broken_file_can_still_be_shown() -> None:
    bundle, found = load({"m.yaml": "a: [1\n"})
    assert found
    assert bundle is not None
    assert bundle.documents["m.yaml"].lines.get_part(1, 1, 100) == "a: [1"


TEXT = (
    'a: {b: 1}\r\nc:\r\n  - x: "😀" \r\n    y: [1, 2]\r\n  - [3]\r\n  -\r\n'
    'd:\r\n"e": "😀😀" # z\r\nf: |\r\n  g\r\nh: &h\r\n  i: 1\r\nj: *h\r\n'
)


@pytest.mark.parametrize(
    ("pointer", "on", "expected"),
    [
        (("a",), "value", (1, 1, "a")),
        (("a", "b"), "value", (1, 8, "1")),
        (("a", "b"), "key", (1, 5, "b")),
        (("c",), "value", (2, 1, "c")),
        (("c", 0), "value", (3, 5, "x")),
        (("c", 0), "key", (3, 5, "x")),
        (("c", 0, "x"), "value", (3, 8, '"😀"')),
        (("c", 0, "y"), "value", (4, 5, "y")),
        (("c", 0, "y", 1), "value", (4, 12, "2")),
        (("c", 1), "value", (5, 5, "[")),
        (("c", 1, 0), "value", (5, 6, "3")),
        (("d",), "value", (7, 1, "d")),
        (("e",), "value", (8, 6, '"😀😀"')),
        (("e",), "key", (8, 1, '"e"')),
        (("f",), "value", (9, 4, "|")),
        (("j",), "value", (13, 1, "j")),
        (("j", "i"), "value", (12, 6, "1")),
        ((), "value", (1, 1, "a")),
        (("none", 1), "value", (1, 1, "a")),
        (("c", 0, "none"), "key", (3, 5, "x")),
        (("a", "b", "none"), "value", (1, 8, "1")),
    ],
)
def test_spans_are_one_token(pointer: tuple[str | int, ...], on: Any, expected: tuple[int, int, str]) -> None:
    document = Document("m.yaml", TEXT, None)
    span = document.find_span(Place("m.yaml", pointer, on))
    line = document.lines.get_part(span.line, 1, 1000)
    assert line is not None
    assert (span.line, span.column, line[span.column - 1 : span.end_column - 1]) == expected


def test_spans_in_json_with_tabs() -> None:
    text = '{\n\t"a": "b\\tc",\n\t"d": [{"e": null}, 1e2]}'
    document = Document("m.json", text, None)
    assert document.find_span(Place("m.json", ("a",))) == Span("m.json", 2, 7, 2, 13)
    assert document.find_span(Place("m.json", ("d", 0))) == Span("m.json", 3, 8, 3, 9)
    assert document.find_span(Place("m.json", ("d", 0, "e"))) == Span("m.json", 3, 14, 3, 18)
    assert document.find_span(Place("m.json", ("d", 1))) == Span("m.json", 3, 21, 3, 24)


def scalars(here: Any, pointer: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    if isinstance(here, dict):
        return [found for key, child in here.items() for found in scalars(child, (*pointer, key))]
    if isinstance(here, list):
        return [found for index, child in enumerate(here) for found in scalars(child, (*pointer, index))]
    return [(pointer, here)]


@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 25, 60, 60))
@given(VALUES, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_json_values_and_their_tokens(data: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(data, ensure_ascii=ascii_only, indent=indent)
    made, problems = jsontext.parse(text)
    assert problems == []
    assert json.dumps(made) == json.dumps(data)
    document = Document("m.json", text, made)
    for pointer, scalar in scalars(data):
        span = document.find_span(Place("m.json", pointer))
        line = document.lines.get_part(span.line, 1, 1000) or ""
        token = json.loads(line[span.column - 1 : span.end_column - 1])
        assert json.dumps(token) == json.dumps(scalar)


@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 25, 60, 60))
@given(VALUES, st.sampled_from([None, 1]))
def test_json_means_the_same_as_yaml(data: Any, indent: Any) -> None:
    text = json.dumps(data, indent=indent)
    made, problems = yamltext.parse(text)
    assert problems == []
    assert json.dumps(made) == text if indent is None else made == data


def test_includes_come_depth_first() -> None:
    files: dict[str, str | bytes | OSError] = {
        "specs/m.yaml": "include:\n  - b.yaml\n  - tools/*.yaml\n  - {path: vendor/t.json, prefix: gh_}\n",
        "specs/b.yaml": "include: [{path: vendor/t.json, prefix: b_}]\nschemas: {}\n",
        "specs/tools/y.yaml": "tools: []\nstubwright: 1\n",
        "specs/tools/x.yaml": "include: [../deep/z.yaml]\ntools: []\n",
        "specs/deep/z.yaml": "include: [{path: ../vendor/t.json, prefix: z_}]\n",
        "specs/vendor/t.json": '{"tools": [], "nextCursor": "a", "_meta": {}}',
    }
    bundle, found = source.load("./specs/m.yaml", Files(files))
    assert found == []
    assert bundle is not None
    assert bundle.entry == "specs/m.yaml"
    assert bundle.fragments == (
        Fragment("specs/m.yaml", "", "manifest"),
        Fragment("specs/b.yaml", "", "manifest"),
        Fragment("specs/vendor/t.json", "b_", "tools-list"),
        Fragment("specs/tools/x.yaml", "", "manifest"),
        Fragment("specs/deep/z.yaml", "", "manifest"),
        Fragment("specs/vendor/t.json", "z_", "tools-list"),
        Fragment("specs/tools/y.yaml", "", "manifest"),
        Fragment("specs/vendor/t.json", "gh_", "tools-list"),
    )


def test_prefixes_add_up() -> None:
    bundle, _ = load(
        {
            "m.yaml": "include: [{path: a.yaml, prefix: x_}]",
            "a.yaml": "include: [{path: b.yaml, prefix: y_}]",
            "b.yaml": "tools: []",
        }
    )
    assert bundle is not None
    assert [fragment.prefix for fragment in bundle.fragments] == ["", "x_", "x_y_"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"tools": []}', "tools-list"),
        ('{"tools": [], "ttlMs": 1, "cacheScope": "public", "resultType": "complete"}', "tools-list"),
        ('{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}', "tools-list"),
        ('{"tools": [], "schemas": {}}', "manifest"),
        ('{"tools": [], "prompts": []}', "manifest"),
        ('{"tools": {}}', "manifest"),
        ("[]", "manifest"),
    ],
)
def test_what_an_included_file_is(text: str, kind: str) -> None:
    bundle, _ = load({"m.yaml": "include: [f.json]", "f.json": text})
    assert bundle is not None
    assert bundle.fragments[1].kind == kind


def test_a_saved_response_is_known_by_its_result() -> None:
    text = '{"jsonrpc": "2.0", "id": 1,\n "result": {"tools": [{"name": "x"}]}}'
    bundle, _ = load({"m.yaml": "include: [f.json]", "f.json": text})
    assert bundle is not None
    document = bundle.documents["f.json"]
    assert document.value == {"tools": [{"name": "x"}]}
    assert document.find_span(Place("f.json", ("tools", 0, "name"))) == Span("f.json", 2, 32, 2, 35)


@pytest.mark.parametrize(
    ("include", "code", "message"),
    [
        ("[../x.yaml]", "SW012", "`../x.yaml` is outside the manifest's folder"),
        ("[/x.yaml]", "SW012", "`/x.yaml` is outside the manifest's folder"),
        ('["C:/x.yaml"]', "SW012", "`C:/x.yaml` is outside the manifest's folder"),
        ("[a/../../*.yaml]", "SW012", "`a/../../*.yaml` is outside the manifest's folder"),
        ('[""]', "SW012", "expected a file path"),
        ('["a\\0b"]', "SW012", "expected a file path"),
        ("[x.yaml]", "SW011", "`specs/x.yaml` does not exist"),
        ("[x*.yaml]", "SW301", "`x*.yaml` matches no file"),
        ("['[b].yaml']", "SW301", "`[b].yaml` matches no file"),
        ("[m.yaml]", "SW013", "files include each other in a cycle: `specs/m.yaml` → `specs/m.yaml`"),
        ("[a.yaml, ./a.yaml]", "SW014", "`specs/a.yaml` is included twice with the same prefix"),
    ],
)
def test_includes_that_are_refused(include: str, code: str, message: str) -> None:
    _, found = load(
        {"specs/m.yaml": f"include: {include}", "specs/a.yaml": "tools: []", "x.yaml": "{}"}, "specs/m.yaml"
    )
    assert [(diagnostic.code, diagnostic.message) for diagnostic in found] == [(code, message)]
    assert isinstance(found[0].at, Place)


@pytest.mark.parametrize("include", ["a.yaml", "{a: 1}", "[1, {path: 2}, {prefix: a}, null, [a]]", "null"])
def test_includes_of_the_wrong_kind_are_left_to_the_structure(include: str) -> None:
    bundle, found = load({"m.yaml": f"include: {include}"})
    assert found == []
    assert bundle is not None
    assert len(bundle.fragments) == 1


def test_a_pattern_leaves_its_own_file_out() -> None:
    bundle, found = load({"m.yaml": "include: ['*.yaml']", "a.yaml": "tools: []"})
    assert found == []
    assert bundle is not None
    assert [fragment.path for fragment in bundle.fragments] == ["m.yaml", "a.yaml"]


def test_includes_have_a_limit() -> None:
    prefixes = [f"{{path: NEXT, prefix: {letter}}}" for letter in "abcdefghij"]
    files: dict[str, str | bytes | OSError] = {
        f"{n}.yaml": f"include: [{', '.join(prefixes)}]".replace("NEXT", f"{n + 1}.yaml") for n in range(30)
    }
    _, found = load(files, "0.yaml")
    assert "more than 10,000 files are included up to here" in [diagnostic.message for diagnostic in found]
    chain: dict[str, str | bytes | OSError] = {f"{n}.yaml": f"include: [{n + 1}.yaml]" for n in range(60)}
    _, found = load(chain, "0.yaml")
    assert [diagnostic.message for diagnostic in found] == ["includes are nested more than 50 levels deep"]


def test_references_bring_in_files() -> None:
    files = Files(
        {
            "specs/m.yaml": """
                schemas:
                  A: {$ref: "shared/a.yaml#/schemas/A"}
                  B: {$ref: "https://example.com/b.yaml#/schemas/B"}
                  C: {$ref: "../c.yaml#/schemas/C"}
                  D: {$ref: "#/schemas/A", default: {$ref: "not-a-reference.yaml"}}
                  E: {$id: "https://example.com/", $ref: "item"}
                tools:
                  - name: a
                    inputSchema: {type: object, properties: {$ref: {$ref: "shared/a%20b.yaml#/schemas/A"}}}
            """,
            "specs/shared/a.yaml": 'schemas: {A: {items: {$ref: "b.yaml#/schemas/B"}}}',
            "specs/shared/a b.yaml": 'schemas: {A: {$ref: "a.yaml#/schemas/A"}}',
            "specs/shared/b.yaml": 'schemas: {B: {not: {$ref: "../m.yaml#/schemas/A"}}}',
        }
    )
    bundle, found = source.load("specs/m.yaml", files)
    assert found == []
    assert bundle is not None
    assert sorted(bundle.documents) == [
        "specs/m.yaml",
        "specs/shared/a b.yaml",
        "specs/shared/a.yaml",
        "specs/shared/b.yaml",
    ]
    assert len(bundle.fragments) == 1
    assert sorted(files.reads) == [*sorted(["specs/item", *bundle.documents])]


def test_a_reference_to_a_file_that_is_not_there() -> None:
    _, found = load({"m.yaml": 'schemas: {A: {$ref: "a.yaml#/schemas/A"}}'})
    assert [(one.code, one.message, one.at) for one in found] == [
        ("SW011", "`a.yaml` does not exist", Place("m.yaml", ("schemas", "A", "$ref")))
    ]


@pytest.mark.long
def test_large_files_are_read() -> None:
    tool = {"inputSchema": {"type": "object", "properties": {f"p{n}": {"description": "x" * 100} for n in range(20)}}}
    text = json.dumps({"tools": [{"name": f"t{n}", **tool} for n in range(1500)]}, indent=1)
    assert len(text) > 4_000_000
    bundle, found = load({"m.json": text}, "m.json")
    assert found == []
    assert bundle is not None
    assert bundle.documents["m.json"].find_span(Place("m.json", ("tools", 1499, "name"))).line > 100_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: on\nb: [1, {c: .5}]\nd: |\n  e\n", {"a": "on", "b": [1, {"c": 0.5}], "d": "e\n"}),
        ('a: "\\ud83d\\ude00"', {"a": "😀"}),
        ("a:\n\t- b", "SW004"),
        ("a: {b: c", "SW004"),
        ("a: 'b", "SW004"),
        ("a: b: c", "SW004"),
        ("a: &x [*x]", "SW009"),
        ("a: 1\na: 2", "SW005"),
        ("", "SW003"),
        ("[" * 300, "SW008"),
    ],
)
def test_it_works_without_libyaml(text: str, expected: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamltext, "_LOADER", yaml.SafeLoader)
    made, problems = yamltext.parse(text)
    assert (problems[0].code if problems else made) == expected
