"""Lowers skills to entries of `skills/list`, and their files to resources."""

from __future__ import annotations

import hashlib
import posixpath
from typing import TYPE_CHECKING, Final

from stubwright.compile.skills import folders

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stubwright import ir
    from stubwright.compile.source import File, Skill

_TEXT: Final = "text/plain"
_BYTES: Final = "application/octet-stream"
_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css",
    ".csv": "text/csv",
    ".gif": "image/gif",
    ".htm": "text/html",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".sh": "application/x-sh",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".webp": "image/webp",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zip": "application/zip",
}
"""MIME types by extension. `mimetypes` varies by system, and builds must be reproducible."""


def lower_entries(skills: Sequence[Skill]) -> list[ir.Json]:
    """Return one `skills/list` entry per skill (SEP-2640, "Skill Entries")."""
    return [
        {
            "uri": skill.uri,
            "frontmatter": skill.document.value,
            "resources": [
                {
                    "uri": skill.make_uri(path),
                    "digest": f"sha256:{hashlib.sha256(file.data).hexdigest()}",
                    "size": len(file.data),
                }
                for path, file in skill.files.items()
            ],
        }
        for skill in skills
    ]


def lower_resources(skills: Sequence[Skill]) -> Iterator[ir.Json]:
    """Yield each file as a resource, in the format of the package's `manifest.json`."""
    described = {skill.uri: skill for skill in skills}
    seen: set[str] = set()
    for skill in skills:
        for path, file in skill.files.items():
            uri = skill.make_uri(path)
            if uri not in seen:  # files in a nested skill belong to both skills
                seen.add(uri)
                yield _make_resource(uri, file, described.get(uri))


def _make_resource(uri: str, file: File, skill: Skill | None) -> ir.Json:
    """Return a file as a resource. The name and description of `SKILL.md` are in its frontmatter (SEP-2640, "Resource
    Metadata").
    """
    mime_type = _find_mime_type(file)
    texts = {"name": posixpath.basename(file.path)}
    if skill is not None:
        texts = {"name": skill.name, "description": skill.document.value["description"]}
    content = {"file": file.packed, "binary": not file.is_text(mime_type)}
    return {"uri": uri, **texts, "mimeType": mime_type, "size": len(file.data), "stubwright": content}


def _find_mime_type(file: File) -> str:
    if posixpath.basename(file.path) == folders.MANIFEST:
        return _TYPES[".md"]
    known = _TYPES.get(posixpath.splitext(file.path)[1].lower())
    return known or (_TEXT if file.is_text("") else _BYTES)
