"""Imports as data: which names a generated module takes from which other one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolwright.codegen.literals import literal
from toolwright.pycode import Code, Name, code, join

DATES = {Name("dt_date"): Name("date"), Name("dt_datetime"): Name("datetime"), Name("dt_time"): Name("time")}
"""What generated modules call the classes of Python's `datetime`, whose own names many fields have."""


def import_of_dates(names: Iterable[Name]) -> Code | None:
    """The line that imports those of `DATES` that are among some names."""
    found = [code("{} as {}", DATES[name], name) for name in sorted(names) if name in DATES]
    return code("from datetime import {}", join(", ", found)) if found else None


@dataclass(frozen=True, slots=True)
class Home:
    """A module, relative to the one that imports from it, and the names taken from it."""

    module: Name
    names: tuple[Name, ...]

    @property
    def exports(self) -> list[Code]:
        """The names as a package imports them that means to export them."""
        return [code("{} as {}", name, name) for name in self.names]

    @property
    def literals(self) -> list[Code]:
        """The names as Python source."""
        return [literal(name) for name in self.names]


def as_homes(table: Mapping[str, Sequence[str]]) -> tuple[Home, ...]:
    """The homes of names by their modules; a module without names is left out."""
    return tuple(
        Home(Name(module), tuple(map(Name, sorted(set(names), key=import_order))))
        for module, names in table.items()
        if names
    )


def import_order(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then functions, as import sorters have them."""
    return (not name.isupper(), not name[:1].isupper(), name)
