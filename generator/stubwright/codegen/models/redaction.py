"""Finds the properties that a policy redacts, to exclude them from each class's `repr`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from stubwright.codegen.models.types import AnyScalar, Const, Document, Expression, FixedTuple, Items, Object

Way: TypeAlias = tuple[str, ...]
"""The steps of a JSON Pointer, empty for the whole value."""


@dataclass(slots=True)
class Marks:
    """The properties to redact.

    Attributes:
        properties: Wire names, keyed by object.
        elsewhere: Names of shared schemas, and the paths to redact in them.
    """

    properties: dict[Object, set[str]] = field(default_factory=lambda: defaultdict(set))
    elsewhere: set[tuple[str, Way]] = field(default_factory=set)


def find_marks(document: Document, ways: Iterable[Way], imported: Collection[str] = ()) -> Marks:
    """Return the properties to redact for paths from a document's root.

    A value without its own class is redacted as a whole, in the object that contains it. Only part of it may be secret,
    as in a JSON string.

    Args:
        ways: The paths from the document's root.
        imported: Names under `schemas` of shared schemas whose classes are in other modules.
    """
    walk = _Walk(document, imported)
    for way in ways:
        walk.follow(document.root, way)
    return walk.made


@dataclass(slots=True)
class _Walk:
    document: Document
    imported: Collection[str]
    made: Marks = field(default_factory=Marks)
    seen: dict[tuple[Expression, Way], bool] = field(default_factory=dict)

    def follow(self, expression: Expression, way: Way) -> bool:
        """Redact the targets of a path in an expression. Return whether every target is in a class."""
        settled = self.document.resolve(expression)
        if (settled, way) in self.seen:
            return self.seen[settled, way]
        self.seen[settled, way] = True  # assume true while in progress, so that a cycle does not count against itself
        is_root = settled == self.document.resolve(self.document.root)
        held = [self._alternative(each, way, is_root=is_root) for each in self.document.shape(settled)]
        self.seen[settled, way] = all(held)
        return all(held)

    def _alternative(self, alternative: object, way: Way, *, is_root: bool) -> bool:
        match alternative:
            case Object(properties=properties) if properties or is_root:
                name = self.document.find_shared(alternative)
                if name is not None and name in self.imported:
                    self.made.elsewhere.add((name, way))
                else:
                    self._object(alternative, way)
                return True
            case Object(values=values) if values is not None:
                return self.follow(values, way[1:]) and bool(way[1:])
            case Items(item):
                return self.follow(item, way[1:]) and bool(way[1:])
            case FixedTuple(items):
                held = [self.follow(item, way[1:]) for item in items]
                return all(held) and bool(way[1:])
            case AnyScalar(type="string" | "any") | Const() | Object():
                return False
            case _:
                return bool(way)

    def _object(self, thing: Object, way: Way) -> None:
        named = {each.name: each.expression for each in thing.properties}
        for other in map(self.document.find_shared, self.document.find_extended(thing)):
            if other is not None and other in self.imported:  # the schema's class can be a base class
                self.made.elsewhere.add((other, way))
        for name in way[:1] or named or ("",):
            below = name in named and self.follow(named[name], way[1:])
            if not way[1:] or not below:
                self.made.properties[thing].add(name)
