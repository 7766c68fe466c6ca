"""Functions that create content blocks, for handlers. Invalid values raise ValueError in the handler, not later."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from mcp_types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    Icon,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from ...values.sanitizing import check_base64, check_mime_type, check_uri

Role: TypeAlias = Literal["user", "assistant"]

Content: TypeAlias = str | ContentBlock | Sequence[str | ContentBlock]
"""The result of a tool without an `outputSchema`: a string, a block, or a sequence of strings and blocks."""

ResourceContents: TypeAlias = (
    str
    | bytes
    | EmbeddedResource
    | TextResourceContents
    | BlobResourceContents
    | Sequence[str | bytes | EmbeddedResource | TextResourceContents | BlobResourceContents]
    | None
)
"""A resource's contents: a string, bytes, contents with a URI and MIME type, or a sequence of these; `None` if the
resource does not exist.
"""


def text(
    text: str,
    *,
    audience: Role | Sequence[Role] | None = None,
    priority: float | None = None,
    last_modified: datetime | str | None = None,
    meta: dict[str, Any] | None = None,
) -> TextContent:
    """Return a text block.

    Args:
        text: The block's text.
        audience: Who the content is for: `"user"`, `"assistant"`, or both.
        priority: The importance of the content, from 0 (optional) to 1 (required).
        last_modified: When the content last changed: a `datetime` with a time zone, or an ISO 8601 string.
        meta: The block's `_meta`.

    Raises:
        ValueError: An annotation is invalid.
    """
    return TextContent(type="text", text=text, annotations=_annotations(audience, priority, last_modified), _meta=meta)


def image(
    data: bytes | str | Path,
    mime_type: str | None = None,
    *,
    audience: Role | Sequence[Role] | None = None,
    priority: float | None = None,
    last_modified: datetime | str | None = None,
    meta: dict[str, Any] | None = None,
) -> ImageContent:
    """Return an image block.

    Args:
        data: The image as bytes, as base64 (`str`), or in a file (`Path`).
        mime_type: The MIME type, such as `image/png`; by default derived from the file's name.
        audience: See `text`.
        priority: See `text`.
        last_modified: See `text`.
        meta: See `text`.

    Raises:
        ValueError: The base64, the MIME type or an annotation is invalid, or the MIME type is unknown.
        OSError: The file cannot be read.
    """
    return ImageContent(
        type="image",
        data=_base64(data),
        mime_type=_mime_type(data, mime_type, "image"),
        annotations=_annotations(audience, priority, last_modified),
        _meta=meta,
    )


def audio(
    data: bytes | str | Path,
    mime_type: str | None = None,
    *,
    audience: Role | Sequence[Role] | None = None,
    priority: float | None = None,
    last_modified: datetime | str | None = None,
    meta: dict[str, Any] | None = None,
) -> AudioContent:
    """Return an audio block. MCP 2024-11-05 lacks audio, so its clients receive an embedded resource.

    Args:
        data: The audio as bytes, as base64 (`str`), or in a file (`Path`).
        mime_type: The MIME type, such as `audio/wav`; by default derived from the file's name.
        audience: See `text`.
        priority: See `text`.
        last_modified: See `text`.
        meta: See `text`.

    Raises:
        ValueError: The base64, the MIME type or an annotation is invalid, or the MIME type is unknown.
        OSError: The file cannot be read.
    """
    return AudioContent(
        type="audio",
        data=_base64(data),
        mime_type=_mime_type(data, mime_type, "audio"),
        annotations=_annotations(audience, priority, last_modified),
        _meta=meta,
    )


def link(
    uri: str,
    name: str,
    *,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    icons: list[Icon] | None = None,
    audience: Role | Sequence[Role] | None = None,
    priority: float | None = None,
    last_modified: datetime | str | None = None,
    meta: dict[str, Any] | None = None,
) -> ResourceLink:
    """Return a link to a resource. MCP 2025-03-26 and earlier lack links, so their clients receive the URI as text.

    Args:
        uri: The resource's URI, which must be absolute.
        name: The resource's name.
        title: The name to show to users.
        description: What the resource contains.
        mime_type: The resource's MIME type, if known.
        size: The resource's size in bytes, if known.
        icons: Icons that a client can show.
        audience: See `text`.
        priority: See `text`.
        last_modified: See `text`.
        meta: See `text`.

    Raises:
        ValueError: The URI, the MIME type, the size or an annotation is invalid.
    """
    if size is not None and size < 0:
        raise ValueError(f"size must be a number of bytes, 0 or more, not {size}")
    return ResourceLink(
        type="resource_link",
        uri=check_uri(uri),
        name=name,
        title=title,
        description=description,
        mime_type=None if mime_type is None else check_mime_type(mime_type),
        size=size,
        icons=icons,
        annotations=_annotations(audience, priority, last_modified),
        _meta=meta,
    )


def embedded(
    uri: str,
    *,
    text: str | None = None,
    blob: bytes | None = None,
    mime_type: str | None = None,
    audience: Role | Sequence[Role] | None = None,
    priority: float | None = None,
    last_modified: datetime | str | None = None,
    meta: dict[str, Any] | None = None,
) -> EmbeddedResource:
    """Return a block that embeds a resource's contents, as either `text` or `blob`.

    Args:
        uri: The resource's URI, which must be absolute.
        text: The contents of a text resource.
        blob: The contents of a binary resource.
        mime_type: The MIME type of the contents, if known.
        audience: See `text`.
        priority: See `text`.
        last_modified: See `text`.
        meta: See `text`.

    Raises:
        ValueError: Neither or both of `text` and `blob` are set, or the URI, the MIME type or an annotation is invalid.
    """
    if (text is None) == (blob is None):
        raise ValueError("an embedded resource requires exactly one of text and blob")
    mime_type = None if mime_type is None else check_mime_type(mime_type)
    return EmbeddedResource(
        type="resource",
        resource=(
            TextResourceContents(uri=check_uri(uri), mime_type=mime_type, text=text)
            if text is not None
            else BlobResourceContents(uri=check_uri(uri), mime_type=mime_type, blob=_base64(blob or b""))
        ),
        annotations=_annotations(audience, priority, last_modified),
        _meta=meta,
    )


def _base64(data: bytes | str | Path) -> str:
    if isinstance(data, str):
        return check_base64(data)
    return base64.b64encode(data.read_bytes() if isinstance(data, Path) else data).decode("ascii")


def _mime_type(data: object, mime_type: str | None, kind: str) -> str:
    if mime_type is None and isinstance(data, Path):
        mime_type = _TYPES.get(data.suffix.lower()) or mimetypes.guess_type(data.name)[0]
    if mime_type is None:
        raise ValueError(f"an {kind} block requires a MIME type, such as mime_type={_EXAMPLES[kind]!r}")
    return check_mime_type(mime_type, kind)


_TYPES: Final = {".wav": "audio/wav"}
"""MIME types that `mimetypes` maps differently in different Python versions."""

_EXAMPLES: Final = {"image": "image/png", "audio": "audio/wav"}


def _annotations(
    audience: Role | Sequence[Role] | None, priority: float | None, last_modified: datetime | str | None
) -> Annotations | None:
    if audience is None and priority is None and last_modified is None:
        return None
    roles = None
    if audience is not None:
        roles = cast("list[Role]", [audience] if isinstance(audience, str) else [*audience])
        if unknown := [role for role in roles if role not in ("user", "assistant")]:
            raise ValueError(f"audience must be 'user', 'assistant', or a list of these, not {unknown[0]!r}")
    if priority is not None and not 0 <= priority <= 1:
        raise ValueError(f"priority must be a number from 0 to 1, not {priority}")
    return Annotations(audience=roles, priority=priority, last_modified=_format_time(last_modified))


def _format_time(moment: datetime | str | None) -> str | None:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"last_modified must include a time zone: {moment.isoformat()}")
        return moment.isoformat()
    if moment is not None:
        try:
            datetime.fromisoformat(moment)
        except ValueError:
            raise ValueError(
                f"last_modified must be ISO 8601, such as '2025-05-03T14:30:00Z', not {moment!r}"
            ) from None
    return moment
