"""Helpers for text in a manifest: lone surrogates, JSON Pointers, references and placeholders."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
"""An argument placeholder in message text: `{{name}}`."""

BRACES: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
"""The syntax of a confirmation message: `{name}`, `{{`, `}}`, and stray single braces."""


def fill_placeholders(text: str, value: Callable[[str], str]) -> str:
    """Format a confirmation message: replace `{name}` with `value(name)`, and unescape double braces."""
    return BRACES.sub(lambda match: match[0][0] if match[1] is None else value(match[1]), text)


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate with U+FFFD, and each pair with the character that it encodes."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def split_pointer(pointer: str) -> list[str]:
    """Split a JSON Pointer into its reference tokens (RFC 6901)."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def find_target(root: Mapping[str, Any], reference: Any) -> Any:
    """Return the target of a local `$ref`, or `None` if there is none."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    target: Any = root
    for step in split_pointer(reference[1:]):
        target = target.get(step) if isinstance(target, dict) else None
    return target
