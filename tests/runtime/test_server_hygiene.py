"""Hygiene: what is removed, what is kept, and that the mirror parses to the same value."""

from __future__ import annotations

import json

import pytest
from mcp_types import AudioContent, ImageContent, TextContent

from toolwright.runtime.server.content import embedded, link, text
from toolwright.runtime.server.sanitizing import block, clean, mirrored, whole


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        ("tab\tline\r\nünïcode 😀 ‏rtl", "tab\tline\r\nünïcode 😀 ‏rtl"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b1mbold", "bold"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain", "plain"),
        ("open \x1b]0;never closed", "open 0;never closed"),
        ("\x1b\x1b[m[31mx", "[31mx"),
        ("a\x00b\x08c\x7fd\x85e", "abcde"),
        ("user\u202etxt.exe\u2066x\u2069", "usertxt.exex"),
        ("half \ud83d, pair \ud83d\ude00", "half \ufffd, pair 😀"),
    ],
)
def test_clean(dirty: str, cleaned: str) -> None:
    assert clean(dirty) == cleaned


def test_whole_mends_strings_and_keys_and_leaves_the_rest() -> None:
    value = {"a": ["\x1b"]}
    assert whole(value)[0] is value
    assert whole({"\udc00": ["\ud800", 1, None]}) == ({"\ufffd": ["\ufffd", 1, None]}, 25)
    infinite = {"n": float("inf")}
    assert whole(infinite) == (infinite, None)


def test_the_mirror_parses_to_the_same_value_and_hides_nothing() -> None:
    value = {"s": "a\x1b[31m\u202e\x9b\x7f", "n": 2**53 + 1, "f": 1.0, "z": None}
    data, mirror = mirrored(value)
    assert data is value
    assert mirror == '{"s": "a\\u001b[31m\\u202e\\u009b\\u007f", "n": 9007199254740993, "f": 1.0, "z": null}'
    assert json.loads(mirror) == value
    assert mirrored(["\ud800"]) == (["\ufffd"], '["\ufffd"]')


def test_blocks_are_cleaned() -> None:
    assert block(text("\x1b[1mx")) == {"type": "text", "text": "x"}
    assert block(link("a:b", "n\x1b[m", title="t\u202e")) == {
        "type": "resource_link", "name": "n", "title": "t", "uri": "a:b"
    }  # fmt: skip
    assert block(embedded("a:b", text="\x07x")) == {"type": "resource", "resource": {"uri": "a:b", "text": "x"}}


def test_broken_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="the data is not base64"):
        block(ImageContent(type="image", data="@", mime_type="image/png"))
    with pytest.raises(ValueError, match="'wav' is not a MIME type"):
        block(AudioContent(type="audio", data="", mime_type="wav"))
    with pytest.raises(ValueError, match="Unable to serialize unknown type"):
        block(TextContent(type="text", text="", _meta={"n": object()}))
