"""Templates of HTTP requests: strings with arguments in braces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ..values.json import is_list, is_mapping

HOLE: Final = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")
"""An argument in braces, or an escaped brace."""

BODIED: Final = frozenset({"POST", "PUT", "PATCH", "QUERY"})
"""Methods that send the remaining arguments in the body."""

SAFE: Final = ("GET", "HEAD", "OPTIONS", "QUERY")
"""Safe methods (RFC 9110, 9.2.1)."""


def list_used(http: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments used in an `http` entry's templates."""
    templates = [http.get("url", "")]
    for section in ("query", "headers", "cookies"):
        entries: Mapping[str, Any] = http.get(section) or {}
        templates += [spec["value"] if is_mapping(spec) else spec for spec in entries.values()]
    parts: Mapping[str, Any] = http.get("parts") or {}
    templates += [text for spec in parts.values() for text in list_texts(spec)]
    templates += list_texts(http.get("body"))
    return [name for text in templates for name in find_holes(text)]


def find_holes(text: str) -> list[str]:
    """Return the names of the arguments in a template."""
    return [match[1] for match in HOLE.finditer(text) if match[1] is not None]


def list_texts(value: Any) -> list[str]:
    """Return all strings in a JSON value, except keys."""
    if isinstance(value, str):
        return [value]
    below = value.values() if is_mapping(value) else value if is_list(value) else ()
    return [text for item in below for text in list_texts(item)]
