"""What leaves the server is clean: no escape sequences, no hidden reordering of text, no half characters.

Takes text, JSON values and content blocks; gives the same without what could harm a terminal, a reader or a transport
(MCP 2025-11-25, server/tools, "Security Considerations": servers MUST sanitize tool outputs). It changes nothing else,
and never touches structured content but for halves of surrogate pairs, which no transport can carry.
"""

from __future__ import annotations

import json
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from ..hygiene import checked_base64, checked_mime_type, clean, escaped
from ..nesting import DepthError, is_too_deep
from ..texts import joined
from ..values import is_list, is_mapping

__all__ = ["block", "checked_base64", "checked_mime_type", "clean", "mirrored", "whole"]


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
    return value, escaped(text)


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
