"""What leaves the server is clean: no escape sequences, no hidden reordering of text, no half characters.

Takes text, JSON values and content blocks; gives the same without what could harm a terminal, a reader or a transport
(MCP 2025-11-25, server/tools, "Security Considerations": servers MUST sanitize tool outputs). It changes nothing else.
How much is cleaned is the manifest's `policy.sanitize`: `text`, every string of every content block; `all`, structured
content, too; `none`, nothing but halves of surrogate pairs, which no transport can carry.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from ...values.json import is_list, is_mapping
from ...values.nesting import DepthError, is_too_deep
from ...values.sanitizing import (
    DEFAULT_EXTENT,
    Cleaned,
    Extent,
    check_base64,
    check_mime_type,
    check_uri,
    clean,
    escape_controls,
    sanitize_text,
)
from ...values.text import replace_surrogates

_SUSPECT_JSON: Final = re.compile(r"\\(?:u00[01789]|u20[26]|[bf])")


def sanitize(value: Any, count: Cleaned | None = None) -> tuple[Any, str]:
    """A JSON value whose strings and keys are all clean, and its JSON text.

    Of two keys that are alike when they are clean, the value of the last one stays.

    Raises:
        TypeError: It holds what is no JSON.
        ValueError: It holds what is no JSON, such as an infinite number.
        DepthError: No message can carry it.
    """
    value, text = encode_json(value)
    return (value, text) if _SUSPECT_JSON.search(text) is None else encode_json(_sanitize_strings(value, count))


def _sanitize_strings(value: object, count: Cleaned | None) -> Any:
    if isinstance(value, str):
        return clean(value, count)
    if is_mapping(value):
        return {
            clean(key, count) if isinstance(key, str) else key: _sanitize_strings(item, count)
            for key, item in value.items()
        }
    if is_list(value):
        return [_sanitize_strings(item, count) for item in value]
    return value


def repair_unicode(value: Any) -> tuple[Any, int | None]:
    """A JSON value whose strings and keys are Unicode, and its size as JSON, in bytes.

    Halves of surrogate pairs are joined or become U+FFFD. A value that is no JSON comes back as it is, without a size;
    validation says what is wrong with it.
    """
    try:
        return value, len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except UnicodeEncodeError:
        return repair_unicode(_join_halves(value))
    except (RecursionError, TypeError, ValueError):
        return value, None


def encode_json(value: Any) -> tuple[Any, str]:
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
        return encode_json(_join_halves(value))
    return value, escape_controls(text)


def block(content: ContentBlock, extent: Extent = DEFAULT_EXTENT, count: Cleaned | None = None) -> dict[str, Any]:
    """A content block as it goes on the wire, cleaned as the policy has it.

    Args:
        content: The block.
        extent: With `none` no string of it is cleaned.
        count: Learns what was taken out.

    Raises:
        TypeError: Its `_meta` is no JSON.
        ValueError: It holds what is no JSON, data that are no base64, or what is no URI or no MIME type.
    """
    match content:
        case TextContent(text=text, annotations=None, meta=None):
            return {"type": "text", "text": sanitize_text(text, extent, count)}
        case ImageContent(data=data, mime_type=mime_type):
            check_base64(data)
            check_mime_type(mime_type, "image")
        case AudioContent(data=data, mime_type=mime_type):
            check_base64(data)
            check_mime_type(mime_type, "audio")
        case EmbeddedResource(resource=resource):
            _check_resource(resource)
        case ResourceLink(uri=uri, mime_type=mime_type):
            check_uri(uri)
            if mime_type is not None:
                check_mime_type(mime_type)
        case _:
            pass
    dumped = {"type": content.type, **content.model_dump(by_alias=True, mode="json", exclude_none=True)}
    wire: dict[str, Any] = _to_wire(dumped, extent, count)
    return wire


def resource_contents(
    content: TextResourceContents | BlobResourceContents, extent: Extent = DEFAULT_EXTENT, count: Cleaned | None = None
) -> dict[str, Any]:
    """The contents of a resource as they go on the wire; as for `block`."""
    _check_resource(content)
    wire: dict[str, Any] = _to_wire(content.model_dump(by_alias=True, mode="json", exclude_none=True), extent, count)
    return wire


def _check_resource(content: TextResourceContents | BlobResourceContents) -> None:
    check_uri(content.uri)
    if content.mime_type is not None:
        check_mime_type(content.mime_type)
    if isinstance(content, BlobResourceContents):
        check_base64(content.blob)


def _to_wire(value: dict[str, Any], extent: Extent, count: Cleaned | None) -> Any:
    return (encode_json(value) if extent == "none" else sanitize(value, count))[0]


def _join_halves(value: object) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if is_mapping(value):
        return {_join_halves(key): _join_halves(item) for key, item in value.items()}
    if is_list(value):
        return [_join_halves(item) for item in value]
    return value
