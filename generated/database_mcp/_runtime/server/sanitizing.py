# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""What leaves the server is clean: no escape sequences, no hidden reordering of text, no half characters.

Takes text, JSON values and content blocks; gives the same without what could harm a terminal, a reader or a transport
(MCP 2025-11-25, server/tools, "Security Considerations": servers MUST sanitize tool outputs). It changes nothing else,
and never touches structured content but for halves of surrogate pairs, which no transport can carry.
"""

from __future__ import annotations

import binascii
import json
import re
from typing import Any, Final

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from ..nesting import DepthError, is_too_deep
from ..texts import joined
from ..values import is_list, is_mapping

# C0 but for tab, line feed and carriage return; DEL; C1; bidirectional embeddings, overrides and isolates.
_UNSAFE: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_SUSPECT: Final = re.compile(f"[{_UNSAFE}\ud800-\udfff]")
_REMOVED: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # control sequences (ECMA-48, 5.4): colours, cursor movements
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # strings (8.3): titles, hyperlinks
    r"|\x1b[ -/]*[0-~]"  # other escape sequences
    f"|[{_UNSAFE}]"
)
_ESCAPED: Final = re.compile(f"[{_UNSAFE}]")


def clean(text: str) -> str:
    """`text` without control characters, escape sequences and bidirectional overrides, and with whole characters."""
    return text if _SUSPECT.search(text) is None else _REMOVED.sub("", joined(text))


def whole(value: Any) -> tuple[Any, int | None]:
    """A JSON value whose strings and keys are Unicode, and its size as JSON, in bytes.

    Halves of surrogate pairs are joined or become U+FFFD. A value that is no JSON comes back as it is, without a size;
    validation says what is wrong with it.
    """
    try:
        return value, len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except UnicodeEncodeError:
        return whole(_fixed(value))
    except (RecursionError, TypeError, ValueError):
        return value, None


def mirrored(value: Any) -> tuple[Any, str]:
    """A JSON value with whole characters, and its JSON text.

    The text parses to the same value and holds nothing that `clean` would remove; that is written `\\uXXXX`.

    Raises:
        TypeError: It holds what is no JSON.
        ValueError: It holds what is no JSON, such as an infinite number.
        DepthError: No message can carry it.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise DepthError from None
    if is_too_deep(value, text):
        raise DepthError
    try:
        text.encode()
    except UnicodeEncodeError:
        return mirrored(_fixed(value))
    return value, _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def block(content: ContentBlock) -> dict[str, Any]:
    """A content block as it goes on the wire.

    Raises:
        TypeError: Its `_meta` is no JSON.
        ValueError: It holds what is no JSON, data that are no base64, or a MIME type that is none.
    """
    match content:
        case TextContent(text=text, annotations=None, meta=None):
            return {"type": "text", "text": clean(text)}
        case ImageContent(data=data, mime_type=mime_type):
            checked_base64(data)
            checked_mime_type(mime_type, "image")
        case AudioContent(data=data, mime_type=mime_type):
            checked_base64(data)
            checked_mime_type(mime_type, "audio")
        case EmbeddedResource(resource=BlobResourceContents(blob=blob)):
            checked_base64(blob)
        case _:
            pass
    dumped = {"type": content.type, **content.model_dump(by_alias=True, mode="json", exclude_none=True)}
    wire: dict[str, Any] = mirrored(dumped)[0]
    for key in ("text", "name", "title", "description"):
        if key in wire:
            wire[key] = clean(wire[key])
    if isinstance(content, EmbeddedResource) and isinstance(content.resource, TextResourceContents):
        wire["resource"]["text"] = clean(wire["resource"]["text"])
    return wire


def _fixed(value: object) -> Any:
    if isinstance(value, str):
        return joined(value)
    if is_mapping(value):
        return {_fixed(key): _fixed(item) for key, item in value.items()}
    if is_list(value):
        return [_fixed(item) for item in value]
    return value


_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # RFC 9110, 5.6.2, "token"
_MIME_TYPE: Final = re.compile(rf'{_WORD}/{_WORD}(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|"[^"\\\x00-\x1f\x7f]*"))*')


def checked_mime_type(mime_type: str, kind: str | None = None) -> str:
    """`mime_type` itself, where it is one (RFC 9110, 8.3.1) and, with `kind`, of that top-level type.

    Raises:
        ValueError: It is not.
    """
    if not _MIME_TYPE.fullmatch(mime_type):
        raise ValueError(f"{mime_type!r} is not a MIME type")
    if kind is not None and not mime_type.lower().startswith(f"{kind}/"):
        raise ValueError(f"{mime_type!r} is not the MIME type of an {kind} block; it starts with {kind}/")
    return mime_type


def checked_base64(data: str) -> str:
    """`data` itself, where it is base64 (RFC 4648, section 4).

    Raises:
        ValueError: It is not.
    """
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError as error:
        raise ValueError(f"the data is not base64: {error}") from None
    return data
