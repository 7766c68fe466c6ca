"""Texts of a manifest: whole characters, steps of JSON Pointers, and arguments in messages. Takes and gives text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
"""An argument in the text of a message: `{{name}}`."""

BRACES: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
"""What has a meaning in the message of a confirmation: `{name}`, `{{` and `}}`; and braces that stand alone."""


def filled(text: str, value: Callable[[str], str]) -> str:
    """The message of a confirmation: `value(name)` for each `{name}`, and `{` and `}` for each two of them."""
    return BRACES.sub(lambda found: found[0][0] if found[1] is None else value(found[1]), text)


def joined(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate; two that make a pair become the character they stand for."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def steps(pointer: str) -> list[str]:
    """The steps of a JSON Pointer (RFC 6901)."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
