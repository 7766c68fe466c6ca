"""Content constructors: blocks of MCP, and clear errors for invalid values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest

from stubwright_runtime.mcp.vocabulary import is_reserved
from stubwright_runtime.server.core.content_blocks import encode_block
from stubwright_runtime.server.handlers.content import audio, embedded, image, link, text

if TYPE_CHECKING:
    from pathlib import Path


UNKNOWN: Any = ["model"]


def test_text_carries_annotations() -> None:
    block = text("hi", audience="user", priority=0.5, last_modified=datetime(2025, 5, 3, 14, 30, tzinfo=UTC))
    assert block.model_dump(by_alias=True, exclude_none=True) == {
        "type": "text",
        "text": "hi",
        "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2025-05-03T14:30:00+00:00"},
    }


def test_image_takes_bytes_base64_and_files(tmp_path: Path) -> None:
    file = tmp_path / "dot.png"
    file.write_bytes(b"png")
    wire = {"type": "image", "data": "cG5n", "mimeType": "image/png"}
    for made in (image(b"png", "image/png"), image("cG5n", "image/png"), image(file)):
        assert made.model_dump(by_alias=True, exclude_none=True) == wire


def test_sounds_are_called_as_the_specification_calls_them_in_every_python(tmp_path: Path) -> None:
    (tmp_path / "a.WAV").write_bytes(b"RIFF")
    assert audio(tmp_path / "a.WAV").mime_type == "audio/wav"


ANNOTATED: Any = {
    "audience": ["assistant", "user"],
    "priority": 0.25,
    "last_modified": "2025-05-03T14:30:00Z",
    "meta": {"example.com/a": 1},
}
ON_THE_WIRE = {
    "annotations": {"audience": ["assistant", "user"], "priority": 0.25, "lastModified": "2025-05-03T14:30:00Z"},
    "_meta": {"example.com/a": 1},
}
ICON = types.Icon(src="https://example.com/i.png")
LINKED: Any = {"title": "T", "description": "D", "mime_type": "text/plain", "size": 3, "icons": [ICON]}
BLOCKS: Mapping[Callable[..., Any], tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]] = {
    text: (("hi",), {}, {"type": "text", "text": "hi"}),
    image: ((b"x", "image/png"), {}, {"type": "image", "data": "eA==", "mimeType": "image/png"}),
    audio: ((b"x", "audio/wav"), {}, {"type": "audio", "data": "eA==", "mimeType": "audio/wav"}),
    link: (
        ("a:b", "n"),
        LINKED,
        {
            "type": "resource_link",
            "uri": "a:b",
            "name": "n",
            "title": "T",
            "description": "D",
            "mimeType": "text/plain",
            "size": 3,
            "icons": [{"src": "https://example.com/i.png"}],
        },
    ),
    embedded: (
        ("a:b",),
        {"text": "x", "mime_type": "text/plain"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "x", "mimeType": "text/plain"}},
    ),
}


@pytest.mark.parametrize("make", BLOCKS)
def test_whatever_is_said_of_a_block_goes_out(make: Callable[..., Any]) -> None:
    """Each parameter that a helper has, so that none is forgotten."""
    positional, own, wire = BLOCKS[make]
    made = make(*positional, **own, **ANNOTATED)
    assert encode_block(made) == {**wire, **ON_THE_WIRE}
    parameters = inspect.signature(make).parameters
    said = {*list(parameters)[: len(positional)], *own, *ANNOTATED}
    assert parameters.keys() - said <= {"blob"}


def test_embedded_text_and_blob() -> None:
    assert embedded("a:b", text="x").resource.model_dump(exclude_none=True) == {"uri": "a:b", "text": "x"}
    assert embedded("a:b", blob=b"").resource.model_dump(exclude_none=True) == {"uri": "a:b", "blob": ""}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: text("x", priority=1.1), "priority must be a number from 0 to 1, not 1.1"),
        (lambda: text("x", priority=float("nan")), "priority must be a number from 0 to 1, not nan"),
        (lambda: text("x", audience=UNKNOWN), "audience must be 'user', 'assistant', or a list of these, not 'model'"),
        (
            lambda: text("x", last_modified="yesterday"),
            "last_modified must be ISO 8601, such as '2025-05-03T14:30:00Z', not 'yesterday'",
        ),
        (
            lambda: text("x", last_modified=datetime(2025, 5, 3)),
            "last_modified must include a time zone: 2025-05-03T00:00:00",
        ),
        (lambda: image("not base64!", "image/png"), "the data is not base64: Only base64 data is allowed"),
        (lambda: image(b"x", "png"), "'png' is not a MIME type"),
        (lambda: image(b"x"), "an image block requires a MIME type, such as mime_type='image/png'"),
        (
            lambda: audio(b"x", "image/png"),
            "'image/png' is not a MIME type for an audio block, which must start with audio/",
        ),
        (lambda: link("readme.md", "r"), "'readme.md' is not an absolute URI, such as 'file:///readme.md'"),
        (lambda: link("a:b", "r", size=-1), "size must be a number of bytes, 0 or more, not -1"),
        (lambda: embedded("a:b"), "an embedded resource requires exactly one of text and blob"),
        (lambda: embedded("a:b", text="", blob=b""), "an embedded resource requires exactly one of text and blob"),
    ],
)
def test_what_cannot_be_a_block_is_said(make: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("key", "is_mcps"),
    [
        ("io.modelcontextprotocol/serverInfo", True),
        ("modelcontextprotocol.io/a", True),
        ("mcp.dev/a", True),
        ("dev.mcp/a", True),
        ("api.modelcontextprotocol.org/a", True),
        ("tools.mcp.com/a", True),
        ("com.example.mcp/a", False),
        ("example.com/mcp", False),
        ("mcp", False),
        ("progressToken", False),
    ],
)
def test_which_keys_of_meta_are_mcps(key: str, is_mcps: bool) -> None:
    assert is_reserved(key) is is_mcps
