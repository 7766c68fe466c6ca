"""Subsumption part by part: two schemas that are the same except for some parts, each covered by its counterpart.

Takes two schemas of one dialect and a way to compare two parts; says whether that proves the whole. The rule: where a
part stands so that accepting more there accepts more above, a wider part makes a wider whole. Definitions are parts,
too: that holds by induction over the depth of instances, since no reference leads to itself without going down.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.jsonschema import dialects

if TYPE_CHECKING:
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

_REUSABLE: Final = ("$defs", "definitions")
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTED: Final = frozenset({"allOf", "anyOf", "prefixItems"})
_SINGLE: Final = frozenset({"items", "additionalProperties", "additionalItems", "then", "else", "propertyNames"})
_NARROWING: Final = frozenset(
    {"type", "enum", "const", "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "contains", "maxContains"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format", "uniqueItems"}
    | {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "required", "propertyNames"}
    | {"items", "additionalItems", "additionalProperties", "dependentRequired", "dependentSchemas", "dependencies"}
)
"""Keywords that refuse instances, and change nothing about what their siblings refuse: one more accepts only less. Not
`properties`, of which `additionalProperties` depends, nor `prefixItems` and `minContains`, which are like it."""

_TYPES: Final = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
_NUMBERS: Final = frozenset({"number"})
"""Types of values that are not told apart here: a number may be an integer or not."""

_WITHOUT_MEANING: Final = frozenset(
    {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"}
)
_UNSUITABLE: Final = frozenset(
    {
        "unevaluatedProperties",
        "unevaluatedItems",
        "$dynamicRef",
        "$recursiveRef",
        "$anchor",
        "$dynamicAnchor",
        "$id",
        "id",
    }
)
"""Keywords with which a part can matter elsewhere than where it stands."""


def strip_annotations(schema: Json, dialect: Dialect) -> Json:
    """Return the schema without annotations."""
    if not isinstance(schema, dict):
        return schema
    stripped: dict[str, Json] = {}
    for keyword, value in schema.items():
        if keyword in _WITHOUT_MEANING or not (keyword in dialect.keywords or isinstance(value, dict | list)):
            continue  # a reference may lead into an unknown keyword, but not into a scalar
        if keyword in (*dialect.named, *_REUSABLE) and isinstance(value, dict):
            stripped[keyword] = {name: strip_annotations(inner, dialect) for name, inner in value.items()}
        elif keyword in dialect.listed and isinstance(value, list):
            stripped[keyword] = [strip_annotations(inner, dialect) for inner in value]
        else:
            stripped[keyword] = strip_annotations(value, dialect) if keyword in dialect.single else value
    return stripped


def _drop_idle_not(schema: Json, dialect: Dialect) -> Json:
    """Return the schema without a `not` that only lists values of other types than those of `type`."""
    refused, types = (schema.get("not"), schema.get("type")) if isinstance(schema, dict) else (None, None)
    if not isinstance(schema, dict) or not isinstance(refused, dict) or types is None:
        return schema
    if len(refused) != 1 or not refused.keys() <= dialect.keywords:  # `const` says nothing in draft-04
        return schema
    listed = refused.get("enum", [refused["const"]] if "const" in refused else None)
    allowed = {types} if isinstance(types, str) else set(types)
    if listed is None or any(_TYPES.get(type(value), "number") in allowed | _NUMBERS for value in listed):
        return schema
    return {keyword: value for keyword, value in schema.items() if keyword != "not"}


def are_same(first: Json, second: Json) -> bool:
    """Tell whether two JSON values are the same except for the order of keys; `1` and `1.0` are different."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


@dataclass(frozen=True)
class PartwiseProof:
    """Compares part by part; `covers` proves that its first schema, which stands alone, accepts all of the second."""

    dialect: Dialect
    covers: Callable[[Json, Json], bool]

    def is_proved(self, wide: Json, narrow: Json) -> bool:
        """Tell whether `wide` is proved to accept what `narrow` accepts; both without annotations."""
        if (
            not isinstance(wide, dict)
            or not isinstance(narrow, dict)
            or self._is_unsuitable(wide)
            or self._is_unsuitable(narrow)
        ):
            return False
        roots = [{key: value for key, value in side.items() if key in _REUSABLE} for side in (wide, narrow)]
        if not are_same(*roots):
            if self._has_unsuitable_reference(wide) or self._has_unsuitable_reference(narrow):
                return False
            for keyword in _REUSABLE:
                wide_definitions, narrow_definitions = wide.get(keyword, {}), narrow.get(keyword, {})
                if not all(
                    name in wide_definitions and self._covers_part(wide_definitions[name], definition, *roots)
                    for name, definition in narrow_definitions.items()
                ):
                    return False
        return self._covers_part(
            *[{key: side[key] for key in side if key not in _REUSABLE} for side in (wide, narrow)], *roots
        )

    def _covers_part(
        self, wide: Json, narrow: Json, wide_defs: Mapping[str, Json], narrow_defs: Mapping[str, Json]
    ) -> bool:
        wide, narrow = _drop_idle_not(wide, self.dialect), _drop_idle_not(narrow, self.dialect)
        if are_same(wide, narrow):
            return True
        if isinstance(wide, dict) and isinstance(narrow, dict):
            differing = [
                key
                for key in {**wide, **narrow}
                if key not in wide or key not in narrow or not are_same(wide[key], narrow[key])
            ]
            pairs: list[tuple[Any, Any]] = []
            for key in differing:
                if key in _NARROWING and key not in wide:
                    continue
                if key == "anyOf" and self._covers_options(wide.get(key), narrow.get(key), wide_defs, narrow_defs):
                    continue
                counterparts = _pair_values(key, wide.get(key), narrow.get(key))
                # The rule does not know this difference; the library may still decide about the two parts as wholes.
                if counterparts is None:
                    break
                pairs += counterparts
            else:
                if all(self._covers_part(*pair, wide_defs, narrow_defs) for pair in pairs):
                    return True
        return self.covers(_add_definitions(wide, wide_defs), _add_definitions(narrow, narrow_defs))

    def _covers_options(
        self, wide: Any, narrow: Any, wide_defs: Mapping[str, Json], narrow_defs: Mapping[str, Json]
    ) -> bool:
        """Tell whether each alternative is covered by one of the wider union, whatever their order and number."""
        if not isinstance(wide, list) or not isinstance(narrow, list):
            return False
        return all(
            any(self._covers_part(wide_option, option, wide_defs, narrow_defs) for wide_option in wide)
            for option in narrow
        )

    def _is_unsuitable(self, schema: Json) -> bool:
        subschemas = [
            subschema
            for _, subschema in dialects.iterate_subschemas(schema, self.dialect)
            if isinstance(subschema, dict)
        ]
        references = [subschema["$ref"] for subschema in subschemas if "$ref" in subschema]
        return any(not _UNSUITABLE.isdisjoint(subschema) for subschema in subschemas) or not all(
            isinstance(reference, str)
            and reference.split("/")[:2] in (["#", "$defs"], ["#", "definitions"])
            and reference.count("/") == 2
            for reference in references
        )

    def _has_unsuitable_reference(self, schema: Json) -> bool:
        """Tell whether a reference stands where a wider definition might narrow the whole."""
        for pointer, subschema in dialects.iterate_subschemas(schema, self.dialect):
            if isinstance(subschema, dict) and "$ref" in subschema and not _is_upright(pointer):
                return True
        return False


def _is_upright(pointer: tuple[str | int, ...]) -> bool:
    """Tell whether accepting more at a place accepts more at the root, or at the definition that it stands in."""
    steps = iter(pointer)
    for step in steps:
        if step in _NAMED or step in _LISTED or step in _REUSABLE:
            next(steps, None)  # a name or number, which may be spelled like a keyword
        elif step not in _SINGLE:
            return False
    return True


def _pair_values(keyword: str, wide: Any, narrow: Any) -> list[tuple[Any, Any]] | None:
    """Return the counterparts in two values of a keyword; None if there are none."""
    if keyword in _NAMED and isinstance(wide, dict) and isinstance(narrow, dict) and wide.keys() == narrow.keys():
        return [(wide[name], narrow[name]) for name in wide]
    if keyword in _LISTED and isinstance(wide, list) and isinstance(narrow, list) and len(wide) == len(narrow):
        return list(zip(wide, narrow, strict=True))
    if keyword in _SINGLE and isinstance(wide, dict | bool) and isinstance(narrow, dict | bool):
        return [(wide, narrow)]
    return None


def _add_definitions(schema: Json, defs: Mapping[str, Json]) -> Json:
    return {**schema, **defs} if isinstance(schema, dict) else schema
