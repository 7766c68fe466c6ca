"""Python source as its own type, so that no one's text becomes a part of a program by mistake.

What goes into a generated file is `Code`, and a plain `str` is refused wherever source is put together: here, and
by the templates. There are four ways to get some: `Name` takes what is only names, the filters of `literals`
turn values and texts into literals, docstrings and comments, `fill` and `join` lay out other code, and `trust` is for
text that stubwright wrote before or that was parsed and looked through. The words of `fill` and `join` are in
stubwright's own source, which a test holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import LiteralString


class Code(str):
    """Python source that may be written into a generated file."""

    __slots__ = ()


class Name(Code):
    """A name of Python: an identifier, or several with dots between or before them, as imports have them.

    Raises:
        ValueError: The text is anything else.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Name:
        """Take a text that is a name."""
        if not text.isidentifier() and not all(part.isidentifier() for part in text.lstrip(".").split(".")):
            raise ValueError(f"{text!r} is no name of Python")
        return super().__new__(cls, text)

    def __add__(self, end: str) -> Name:
        """Append to the name, if the result is a name, too."""
        return Name(f"{self}{end}")


def fill(layout: LiteralString, *parts: Code) -> Code:
    """Fill each `{}` of `layout` with the next part.

    Raises:
        TypeError: A part is plain text.
    """
    return Code(layout.format(*map(parse, parts)))


def join(separator: LiteralString, parts: Iterable[Code]) -> Code:
    """Join the parts with a separator between them.

    Raises:
        TypeError: A part is plain text.
    """
    return Code(separator.join(map(parse, parts)))


def parse(part: object) -> Code:
    """Return the text if it is source.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(part, Code):
        raise TypeError(
            f"{part!r} is no Python source: it needs `format_literal`, `format_docstring`, `format_comment` or a name"
        )
    return part


def list_item(kind: Code) -> Code | None:
    """Return the type of the items of a list: `str` of `list[str]`; `None` if it is the type of anything else."""
    text = str(kind)
    return Code(text[len("list[") : -1]) if text.startswith("list[") else None


def trust(text: str) -> Code:
    """Trust text as source: stubwright wrote it before, or has parsed it and looked through it."""
    return Code(text)
