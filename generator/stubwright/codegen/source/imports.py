"""Represents the imports of a generated module, and formats them.

The format follows the defaults of isort and ruff, so that generated code passes their checks: names in natural order,
and at most 88 columns. Formatters that allow longer lines leave the imports unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from stubwright.codegen.source.literals import format_literal
from stubwright.pycode import Code, Name, fill, join

DATES = {Name("dt_date"): Name("date"), Name("dt_datetime"): Name("datetime"), Name("dt_time"): Name("time")}
"""Aliases for Python's `datetime` classes in generated modules, since many fields are named `date` or `time`."""

RUNTIME: Final = "stubwright_runtime.generated"
"""The runtime module that generated code imports."""

_LINE_LENGTH: Final = 88
"""Maximum length of an import line: ruff's default."""


@dataclass(frozen=True, slots=True)
class ImportGroup:
    """The names to import from a module. The module's path is relative to the importing module."""

    module: Name
    names: tuple[Name, ...]

    def format_imported(self, indent: int = 0) -> Code:
        """Return the import lines. A name with an alias in `DATES` gets its own line."""
        renamed = [fill("{} as {}", DATES[name], name) for name in self.names if name in DATES]
        plain = [name for name in self.names if name not in DATES]
        return self._lines([*([plain] if plain else []), *([each] for each in renamed)], indent)

    def format_exported(self, indent: int = 0) -> Code:
        """Return the import lines with which a package re-exports the names."""
        return self._lines([[fill("{} as {}", name, name)] for name in self.names], indent)

    @property
    def literals(self) -> list[Code]:
        """The imported names as Python literals."""
        return [format_literal(name) for name in self.names]

    def _lines(self, groups: Iterable[Sequence[Code]], indent: int) -> Code:
        margin = join("", [fill(" ")] * indent)
        return join("", [*_interpose(fill("\n{}", margin), [self._line(names, indent) for names in groups])])

    def _line(self, names: Sequence[Code], indent: int) -> Code:
        line = fill("from {} import {}", self.module, join(", ", names))
        if indent + len(line) <= _LINE_LENGTH:
            return line
        return fill("from {} import {}", self.module, explode(names, indent))


def explode(items: Sequence[Code], indent: int) -> Code:
    """Format items in parentheses, each on its own line."""
    margin = join("", [fill(" ")] * indent)
    return fill("(\n{}{})", join("", [fill("{}    {},\n", margin, item) for item in items]), margin)


def _interpose(separator: Code, parts: Iterable[Code]) -> Iterator[Code]:
    for number, part in enumerate(parts):
        if number:
            yield separator
        yield part


def make_groups(table: Mapping[str, Iterable[str]]) -> tuple[ImportGroup, ...]:
    """Group names by module. Modules and names are sorted, and modules without names are omitted."""
    return tuple(
        ImportGroup(Name(module), tuple(map(Name, sorted({*table[module]}, key=make_sort_key))))
        for module in sorted(table, key=_module_order)
        if table[module]
    )


_Natural: TypeAlias = tuple[tuple[int, int, int, str], ...]


@cache
def make_sort_key(name: str) -> tuple[int, _Natural, _Natural]:
    """Return a key that sorts constants, then classes, then other names.

    Numbers in names are compared by value, and case breaks ties.
    """
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[:1].isupper() else 2
    name = DATES.get(Name(name), Name(name))
    return kind, _make_sort_key(name.lower()), _make_sort_key(name)


def _module_order(module: str) -> tuple[int, _Natural, _Natural]:
    """Return a key that sorts absolute modules, then parent packages, then siblings."""
    bare = module.lstrip(".")
    level = len(module) - len(bare)
    return -level if level else -_FAR, _make_sort_key(bare.lower()), _make_sort_key(bare)


_FAR: Final = 100  # deeper than any package nesting


@cache
def _make_sort_key(text: str) -> _Natural:
    """Return a sort key that compares numbers by value, or digit by digit if a number has a leading zero."""
    return tuple(
        (
            (ord("0"), part[0] != "0", len(part) if part[0] != "0" else 0, part)
            if part[0].isdigit()
            else (ord(part), 0, 0, "")
        )
        for part in re.findall(r"[0-9]+|[^0-9]", text)
    )
