"""Replaces `oneOf` with `anyOf` if the alternatives exclude each other, so that alternatives can be compared.

The two are equivalent if no instance matches two alternatives (JSON Schema 2020-12, Core 10.2.1.3). Unless this is
proved, `oneOf` stays unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from stubwright.diff.subsumption.upgrade import change_below
from stubwright.jsonschema import dialects
from stubwright.jsonschema.pointers import resolve_local

if TYPE_CHECKING:
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

_LEVELS: Final = 3
"""The maximum depth at which a property can distinguish alternatives."""

_IDENTIFYING: Final = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})
_NUMBERS: Final = frozenset({"integer", "number"})


def merge_exclusive(schema: Json, dialect: Dialect) -> Json:
    """Replace each `oneOf` with `anyOf` if the alternatives provably exclude each other."""
    subschemas = [inner for _, inner in dialects.iterate_subschemas(schema, dialect) if isinstance(inner, dict)]
    # A reference through `/oneOf/` would no longer resolve.
    if not any("oneOf" in inner for inner in subschemas) or any(
        isinstance(inner.get("$ref"), str) and "/oneOf/" in inner["$ref"] for inner in subschemas
    ):
        return schema
    parts = [inner for inner in subschemas if inner is not schema]
    has_bases = any(isinstance(part.get(keyword), str) for part in parts for keyword in _IDENTIFYING)
    # Do not follow references if subschemas have their own base URI, since they are not relative to the root.
    return _Merger({} if has_bases else schema, dialect).merge(schema)


class _Merger:
    """Rewrites the parts of a schema and resolves references in `root`."""

    def __init__(self, root: Json, dialect: Dialect) -> None:
        self._root = root
        self._dialect = dialect

    def merge(self, schema: Json) -> Json:
        if not isinstance(schema, dict):
            return schema
        merged = {key: change_below(key, value, self._dialect, self.merge) for key, value in schema.items()}
        options = merged.get("oneOf")
        if not isinstance(options, list) or not all(
            self._exclude(left, right, 0) for left, right in combinations(options, 2)
        ):
            return merged
        del merged["oneOf"]
        if "anyOf" in merged:
            return {**merged, "allOf": [*merged.get("allOf", ()), {"anyOf": options}]}
        return {**merged, "anyOf": options}

    def _exclude(self, left: Json, right: Json, level: int) -> bool:
        first, second = ([*self._list_applied(schema, set())] for schema in (left, right))
        if any(_differ(self._list_values(each), self._list_values(other)) for each in first for other in second):
            return True
        both = [*first, *second]
        if level == _LEVELS or not any(each.get("type") == "object" for each in both):
            return False  # `required` does not restrict other types
        needed = {name for each in both for name in each.get("required", ()) if isinstance(name, str)}
        return any(
            self._exclude(mine[name], other[name], level + 1)
            for mine in _list_properties(first)
            for other in _list_properties(second)
            for name in needed & mine.keys() & other.keys()
        )

    def _list_applied(self, schema: Json, followed: set[str]) -> Iterator[dict[str, Any]]:
        if not isinstance(schema, dict):
            return
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in followed:
            followed.add(reference)
            try:
                yield from self._list_applied(resolve_local(self._root, reference), followed)
            except LookupError:
                return
        if "$ref" in schema and self._dialect.reference_hides_siblings:
            return
        yield {keyword: value for keyword, value in schema.items() if keyword in self._dialect.keywords}
        for inner in schema.get("allOf", ()):
            yield from self._list_applied(inner, followed)

    def _list_values(self, schema: dict[str, Any]) -> list[_Kind] | None:
        """Return the values or types that a schema allows, or None if the schema restricts neither values nor types."""
        if "const" in schema:
            return [_describe(schema["const"])]
        if "enum" in schema:
            return [_describe(value) for value in schema["enum"]]
        types = schema.get("type")
        if types is None:
            return None
        return [(_merge_numbers(name), None) for name in ([types] if isinstance(types, str) else types)]


def _list_properties(applied: Iterable[dict[str, Any]]) -> Iterator[dict[str, Json]]:
    yield from (each["properties"] for each in applied if isinstance(each.get("properties"), dict))


def _describe(value: Json) -> _Kind:
    """Return a value's type and a key that identifies the value within the type.

    The key is None if validators disagree. Numbers are compared as floats, so that equal numbers are equal in every
    validator.
    """
    match value:
        case bool():
            return "boolean", value
        case int() | float():
            return "number", float(value) if abs(value) < 2**53 else None
        case str():
            return "string", value
        case None:
            return "null", None
        case list():
            return "array", None
        case _:
            return "object", None


def _merge_numbers(name: str) -> str:
    return "number" if name in _NUMBERS else name


def _differ(left: list[_Kind] | None, right: list[_Kind] | None) -> bool:
    if left is None or right is None:
        return False
    return not any(
        kind == other and (value is None or another is None or value == another)
        for kind, value in left
        for other, another in right
    )


if TYPE_CHECKING:
    _Kind = tuple[str, bool | float | str | None]
