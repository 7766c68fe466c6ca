"""Encodes and sanitizes content blocks. Imported on the first use of a block, because the SDK's types load slowly."""

from __future__ import annotations

from typing import Any

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

from ...values.sanitizing import (
    DEFAULT_SANITIZE_MODE,
    SanitizeMode,
    SanitizeStats,
    check_base64,
    check_mime_type,
    check_uri,
    sanitize_text,
)
from ..protocol.messages import encode_json
from .sanitizing import sanitize


def encode_block(
    content: ContentBlock, sanitize_mode: SanitizeMode = DEFAULT_SANITIZE_MODE, count: SanitizeStats | None = None
) -> dict[str, Any]:
    """Return a content block in its wire format, sanitized.

    Args:
        sanitize_mode: The sanitize mode.
        count: Counts sanitized strings.

    Raises:
        TypeError: The block's `_meta` is not JSON.
        ValueError: The block contains a value that is not JSON, or an invalid base64, URI or MIME type.
    """
    match content:
        case TextContent(text=text, annotations=None, meta=None):
            return {"type": "text", "text": sanitize_text(text, sanitize_mode, count)}
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
    wire: dict[str, Any] = _to_wire(dumped, sanitize_mode, count)
    return wire


def encode_contents(
    content: TextResourceContents | BlobResourceContents,
    sanitize_mode: SanitizeMode = DEFAULT_SANITIZE_MODE,
    count: SanitizeStats | None = None,
) -> dict[str, Any]:
    """Return a resource's contents in their wire format, sanitized; see `encode_block`."""
    _check_resource(content)
    wire: dict[str, Any] = _to_wire(
        content.model_dump(by_alias=True, mode="json", exclude_none=True), sanitize_mode, count
    )
    return wire


def _check_resource(content: TextResourceContents | BlobResourceContents) -> None:
    check_uri(content.uri)
    if content.mime_type is not None:
        check_mime_type(content.mime_type)
    if isinstance(content, BlobResourceContents):
        check_base64(content.blob)


def _to_wire(value: dict[str, Any], sanitize_mode: SanitizeMode, count: SanitizeStats | None) -> Any:
    return (encode_json(value) if sanitize_mode == "none" else sanitize(value, count))[0]
