"""Blocks of content, as handlers write them.

A value that cannot be a block raises a `ValueError` in the handler, and never makes a broken result on the wire.
"""

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
"""The result of a tool without an `outputSchema`: text, one block, or several of either."""

ResourceContents: TypeAlias = (
    str
    | bytes
    | EmbeddedResource
    | TextResourceContents
    | BlobResourceContents
    | Sequence[str | bytes | EmbeddedResource | TextResourceContents | BlobResourceContents]
    | None
)
"""The contents of a resource: text, bytes, contents with a URI and their own type, or a list of these; `None` if
there is no such resource."""


def text(
    text: str,
    *,
    audience: Role | Sequence[Role] | None = None,
    priority: float | None = None,
    last_modified: datetime | str | None = None,
    meta: dict[str, Any] | None = None,
) -> TextContent:
    """Return a block of text.

    Args:
        text: The text.
        audience: The audience: `"user"`, `"assistant"`, or both.
        priority: The importance, from 0 (optional) to 1 (required).
        last_modified: The time of the last change: a `datetime` with a time zone, or ISO 8601 text.
        meta: The block's `_meta`.

    Raises:
        ValueError: An annotation is out of its range.
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
    """Return an image.

    Args:
        data: The file's bytes, the same in base64 (`str`), or its path (`Path`).
        mime_type: Such as `image/png`; found from the name if `data` is a `Path`.
        audience: As for `text`.
        priority: As for `text`.
        last_modified: As for `text`.
        meta: As for `text`.

    Raises:
        ValueError: The base64 text, the MIME type or an annotation is not well-formed.
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
    """Return a sound. Clients of 2024-11-05, which lacks sounds, receive an embedded resource.

    Args:
        data: The file's bytes, the same in base64 (`str`), or its path (`Path`).
        mime_type: Such as `audio/wav`; found from the name if `data` is a `Path`.
        audience: As for `text`.
        priority: As for `text`.
        last_modified: As for `text`.
        meta: As for `text`.

    Raises:
        ValueError: The base64 text, the MIME type or an annotation is not well-formed.
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
    """Return a link to a resource. Clients before 2025-06-18, which does not know links, get its URI as text.

    Args:
        uri: An absolute URI.
        name: The resource's name.
        title: The title for people.
        description: The description.
        mime_type: The resource's MIME type.
        size: The resource's size, in bytes.
        icons: The resource's icons.
        audience: As for `text`.
        priority: As for `text`.
        last_modified: As for `text`.
        meta: As for `text`.

    Raises:
        ValueError: The URI, the MIME type, the size or an annotation is not well-formed.
    """
    if size is not None and size < 0:
        raise ValueError(f"size is {size}; it must be a number of bytes, 0 or more")
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
    """Return a resource, contents and all: either `text` or `blob`.

    Args:
        uri: An absolute URI.
        text: The contents, if they are text.
        blob: The contents, if they are bytes.
        mime_type: The contents' MIME type.
        audience: As for `text`.
        priority: As for `text`.
        last_modified: As for `text`.
        meta: As for `text`.

    Raises:
        ValueError: Not exactly one of `text` and `blob` is given; the URI, the MIME type or an annotation is not
            well-formed.
    """
    if (text is None) == (blob is None):
        raise ValueError("an embedded resource needs either text or blob")
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
        raise ValueError(f"an {kind} block needs a MIME type, such as mime_type={_EXAMPLES[kind]!r}")
    return check_mime_type(mime_type, kind)


_TYPES: Final = {".wav": "audio/wav"}
"""MIME types as in the specification, since the names in `mimetypes` differ from one Python to the next."""

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
            raise ValueError(f"audience is {unknown[0]!r}; it must be 'user', 'assistant', or a list of them")
    if priority is not None and not 0 <= priority <= 1:
        raise ValueError(f"priority is {priority}; it must be a number from 0 to 1")
    return Annotations(audience=roles, priority=priority, last_modified=_moment(last_modified))


def _moment(moment: datetime | str | None) -> str | None:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"last_modified is {moment.isoformat()}; it needs a time zone")
        return moment.isoformat()
    if moment is not None:
        try:
            datetime.fromisoformat(moment)
        except ValueError:
            raise ValueError(
                f"last_modified is {moment!r}; it must be ISO 8601, such as '2025-05-03T14:30:00Z'"
            ) from None
    return moment
