"""Python source as a type, so that text cannot end up in a program by mistake.

Generated files consist of `Code`. The functions here and the templates reject plain `str`. There are four sources:
`Name` accepts names, the filters in `literals` turn values and strings into literals, docstrings and comments, `fill`
and `join` lay out other code, and `trust` is for text that stubwright wrote earlier or has parsed and inspected. A test
checks that the layouts for `fill` and `join` are constants in stubwright's own source.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import LiteralString


class Code(str):
    """Python source that can be written to a generated file."""

    __slots__ = ()


class Name(Code):
    """A Python name: an identifier, or a dotted name as in an import statement.

    Raises:
        ValueError: The text is not a name.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Name:
        """Create a name. Raises ValueError if the text is not a name."""
        if not text.isidentifier() and not all(part.isidentifier() for part in text.lstrip(".").split(".")):
            raise ValueError(f"{text!r} is not a Python name")
        return super().__new__(cls, text)

    def __add__(self, end: str) -> Name:
        """Append text to the name. Raises ValueError if the result is not a name."""
        return Name(f"{self}{end}")


def fill(layout: LiteralString, *parts: Code) -> Code:
    """Replace each `{}` in `layout` with the next part.

    Raises:
        TypeError: A part is plain text.
    """
    return Code(layout.format(*map(parse, parts)))


def join(separator: LiteralString, parts: Iterable[Code]) -> Code:
    """Join the parts with a separator.

    Raises:
        TypeError: A part is plain text.
    """
    return Code(separator.join(map(parse, parts)))


def parse(part: object) -> Code:
    """Return `part` if it is `Code`.

    Raises:
        TypeError: The part is not `Code`.
    """
    if not isinstance(part, Code):
        raise TypeError(
            f"{part!r} is not Python source: use `format_literal`, `format_docstring`, `format_comment` or a name"
        )
    return part


def list_item(kind: Code) -> Code | None:
    """Return a list's item type, such as `str` for `list[str]`, or None for other types."""
    text = str(kind)
    return Code(text[len("list[") : -1]) if text.startswith("list[") else None


def trust(text: str) -> Code:
    """Mark text as source. stubwright must have written it, or parsed and inspected it."""
    return Code(text)
