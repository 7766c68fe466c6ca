"""Literals and docstrings: any text stays text, and Black does not change it."""

from __future__ import annotations

import ast
import tokenize
from typing import Any

import black
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stubwright.codegen.source.literals import format_comment, format_docstring, format_literal

NEVER_TOO_LONG = black.Mode(line_length=1_000_000)
TEXT = st.text(
    st.one_of(st.sampled_from("\"'\\\n\r\t {}$ab\x00\u202e\ud800\x0c\x85\u2028é"), st.characters()), max_size=30
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_a_literal_is_the_value(value: Any) -> None:
    assert ast.literal_eval(format_literal(value)) == value


@given(TEXT)
def test_black_leaves_strings_alone(text: str) -> None:
    source = f"x = {format_literal(text)}\n"
    assert black.format_str(source, mode=NEVER_TOO_LONG) == source


@given(TEXT)
def test_a_docstring_is_the_text_and_black_leaves_it_alone(text: str) -> None:
    source = f"class A:\n    {format_docstring(text, 4)}\n\n    x: int\n    {format_docstring(text, 4)}\n"
    (written,) = ast.parse(source).body
    assert isinstance(written, ast.ClassDef)
    words = " ".join(text.replace("\r", "\n").split())
    assert " ".join((ast.get_docstring(written) or "").split()) == words
    if words:
        assert black.format_str(source, mode=NEVER_TOO_LONG) == source


@pytest.mark.parametrize(
    ("value", "source"),
    [
        ("it's", '"it\'s"'),
        ('say "no"', "'say \"no\"'"),
        ("a\u202eb\n", '"a\\u202eb\\n"'),
        ((1,), "(1,)"),
        (("a", [1.0, None]), '("a", [1.0, None])'),
        (float("inf"), 'float("inf")'),
    ],
)
def test_literals_read_well(value: Any, source: str) -> None:
    assert format_literal(value) == source


@given(TEXT)
def test_a_comment_is_a_line_that_says_no_encoding(text: str) -> None:
    for each in (text, f"coding{text}", f"-*- coding:{text} -*-", f"vim: set fileencoding={text}:"):
        source = format_comment(each)
        assert source.isprintable()
        encoding, _ = tokenize.detect_encoding(iter([f"{source}\n".encode()]).__next__)
        assert encoding == "utf-8"


def test_only_json_is_a_literal() -> None:
    with pytest.raises(TypeError, match="object is not a JSON value"):
        format_literal(object())


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("One line.", '"""One line."""'),
        ('ends in "', '"""ends in " """'),
        ('"starts', '""" "starts"""'),
        ("ends in \\", '"""ends in \\\\"""'),
        ('has """ in it', '"""has \\"\\"\\" in it"""'),
        ("two\n  lines", '"""two\n    lines\n    """'),
        ("", '""" """'),
    ],
)
def test_docstrings_read_well(text: str, source: str) -> None:
    assert format_docstring(text, 4) == source
