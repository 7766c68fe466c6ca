"""Imports as data: which names a generated module takes from which other one, and their lines.

The lines are those that isort and ruff write by default, so that a check of generated code finds nothing to mend:
names sorted as people count, and no line beyond 88 columns. Formatters that allow longer lines leave them as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from stubwright.codegen.source.literals import format_literal
from stubwright.pycode import Code, Name, fill, join

DATES = {Name("dt_date"): Name("date"), Name("dt_datetime"): Name("datetime"), Name("dt_time"): Name("time")}
"""The names of Python's `datetime` classes in generated modules; many fields are named `date` or `time`."""

RUNTIME: Final = "stubwright_runtime.generated"
"""The module of the runtime that generated code imports."""

_LINE_LENGTH: Final = 88
"""The longest line with an import, which is what ruff allows by default."""


@dataclass(frozen=True, slots=True)
class ImportGroup:
    """A module, relative to the one that imports from it, and the names taken from it."""

    module: Name
    names: tuple[Name, ...]

    def format_imported(self, indent: int = 0) -> Code:
        """Return the lines that import the names; those of `DATES` under another name, each on its own line."""
        renamed = [fill("{} as {}", DATES[name], name) for name in self.names if name in DATES]
        plain = [name for name in self.names if name not in DATES]
        return self._lines([*([plain] if plain else []), *([each] for each in renamed)], indent)

    def format_exported(self, indent: int = 0) -> Code:
        """Return the lines that import the names into a package that means to export them."""
        return self._lines([[fill("{} as {}", name, name)] for name in self.names], indent)

    @property
    def literals(self) -> list[Code]:
        """The names as Python source."""
        return [format_literal(name) for name in self.names]

    def _lines(self, groups: Iterable[Sequence[Code]], indent: int) -> Code:
        margin = join("", [fill(" ")] * indent)
        return join("", [*_parted(fill("\n{}", margin), [self._line(names, indent) for names in groups])])

    def _line(self, names: Sequence[Code], indent: int) -> Code:
        line = fill("from {} import {}", self.module, join(", ", names))
        if indent + len(line) <= _LINE_LENGTH:
            return line
        return fill("from {} import {}", self.module, explode(names, indent))


def explode(items: Sequence[Code], indent: int) -> Code:
    """Format items in parentheses, each on its own line."""
    margin = join("", [fill(" ")] * indent)
    return fill("(\n{}{})", join("", [fill("{}    {},\n", margin, item) for item in items]), margin)


def _parted(separator: Code, parts: Iterable[Code]) -> Iterator[Code]:
    for number, part in enumerate(parts):
        if number:
            yield separator
        yield part


def make_groups(table: Mapping[str, Iterable[str]]) -> tuple[ImportGroup, ...]:
    """Return the homes of names by their modules, both in their order; a module without names is omitted."""
    return tuple(
        ImportGroup(Name(module), tuple(map(Name, sorted({*table[module]}, key=make_sort_key))))
        for module in sorted(table, key=_module_order)
        if table[module]
    )


_Natural: TypeAlias = tuple[tuple[int, int, int, str], ...]


def make_sort_key(name: str) -> tuple[int, _Natural, _Natural]:
    """Return a key that sorts constants, then classes, then the rest, each with numbers by value and case last."""
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[:1].isupper() else 2
    name = DATES.get(Name(name), Name(name))
    return kind, _natural(name.lower()), _natural(name)


def _module_order(module: str) -> tuple[int, _Natural, _Natural]:
    """Return a key that sorts modules from far to near: by full names, then of folders above, then next to."""
    bare = module.lstrip(".")
    level = len(module) - len(bare)
    return -level if level else -_FAR, _natural(bare.lower()), _natural(bare)


_FAR: Final = 100  # more than folders lie in each other


def _natural(text: str) -> _Natural:
    """Return a key that sorts texts with numbers by value, and those with a leading zero digit by digit."""
    return tuple(
        (
            (ord("0"), part[0] != "0", len(part) if part[0] != "0" else 0, part)
            if part[0].isdigit()
            else (ord(part), 0, 0, "")
        )
        for part in re.findall(r"[0-9]+|[^0-9]", text)
    )
