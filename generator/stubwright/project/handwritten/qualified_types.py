"""Qualifies types in stubs for modules that import their package as a whole: `api.GetInput`."""

from __future__ import annotations

from collections.abc import Collection

from stubwright.codegen.source.qualified_names import qualify_names
from stubwright.codegen.surface import Type
from stubwright.project.handwritten import imports
from stubwright.pycode import Name


def qualify(kind: Type, alias: str, known: Collection[str]) -> Type:
    """Return a type with names qualified by `alias`, except known and standard library names."""
    wanted = {name for name in kind.names if name not in known and name not in imports.STANDARD}
    text, *choices = (qualify_names(each, Name(alias), wanted) for each in (kind.text, *kind.choices))
    return Type(text, tuple(choices), frozenset({*(kind.names - wanted), Name(alias)}) if wanted else kind.names)
