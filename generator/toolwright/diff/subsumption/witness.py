"""An instance that one schema accepts and another rejects, where one is found.

Takes two judges, and schemas that hint where to look; gives an instance that both have judged, so that what it shows is
certain. The search is short and always the same; if it finds nothing, that proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from toolwright.jsonschema.pointers import local

if TYPE_CHECKING:
    from toolwright.diff.subsumption.proof import Judge
    from toolwright.ir import Json

_TRIES: Final = 400
_BRANCHES: Final = 12
"""How many values are tried for one property or item."""

_DEPTH: Final = 8
_TEXTS: Final = (
    *("a", "", "A", "1", "ab", "abc", "x-1", "a b", "é", "2020-01-01", "2020-01-01T00:00:00Z", "a@example.com"),
    *("https://example.com", "127.0.0.1", "123e4567-e89b-12d3-a456-426614174000", "/a/b", "1.2.3", "zz", "Aa0_-."),
)
_NUMBERS: Final = (0, 1, -1, 0.5, 2, 3, 10, 100, 1.0, -0.5, 1e10)


def find(accepting: Sequence[Judge], rejecting: Sequence[Judge], hints: Sequence[Json]) -> tuple[Json] | None:
    """The first value found that each of `accepting` accepts and each of `rejecting` rejects, alone in a tuple."""
    needed = [
        hint if not isinstance(hint, dict) else _merge(hint, judge.schema) for hint in hints for judge in accepting
    ]
    for hint in (*hints, *needed):
        for value in islice(_generate(hint, hint, 0), _TRIES):
            accepted = all(judge.accepts(value) for judge in accepting)
            if accepted and not any(judge.accepts(value) for judge in rejecting):
                return (value,)
    return None


def _generate(schema: Any, root: Any, depth: int) -> Iterator[Json]:
    """Values that are likely to be valid, including those near the bounds."""
    if depth > _DEPTH or schema is False:
        return
    if not isinstance(schema, dict):
        yield from ("a", 1, None, True, 0.5, [], {})
        return
    schema = _resolve(schema, root)
    if "const" in schema:
        yield schema["const"]
        return
    if isinstance(schema.get("enum"), list):
        yield from schema["enum"]
        return
    for keyword in ("anyOf", "oneOf"):
        for branch in schema.get(keyword) or ():
            rest = {key: value for key, value in schema.items() if key != keyword}
            yield from islice(_generate(_merge(rest, branch), root, depth + 1), _BRANCHES * 2)
    if isinstance(schema.get("allOf"), list):
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            merged = _merge(merged, _resolve(part, root))
        yield from _generate(merged, root, depth + 1)
        return
    types = schema.get("type")
    for name in [types] if isinstance(types, str) else types or _guess_types(schema):
        yield from _generate_of_type(name, schema, root, depth)


def _guess_types(schema: dict[str, Any]) -> tuple[str, ...]:
    every = ("object", "string", "integer", "number", "boolean", "array", "null")
    if any(word in schema for word in ("properties", "required", "additionalProperties")):
        return every
    return every[1:] + every[:1]


def _generate_of_type(name: str, schema: dict[str, Any], root: Any, depth: int) -> Iterator[Json]:
    match name:
        case "null":
            yield None
        case "boolean":
            yield from (False, True)
        case "string":
            yield from _generate_strings(schema)
        case "integer" | "number":
            yield from _generate_numbers(schema)
        case "array":
            yield from _generate_arrays(schema, root, depth)
        case "object":
            yield from _generate_objects(schema, root, depth)
        case _:
            return


def _generate_strings(schema: dict[str, Any]) -> Iterator[str]:
    least, most = _to_count(schema.get("minLength"), 0), _to_count(schema.get("maxLength"), 64)
    for text in _TEXTS:
        if least <= len(text) <= most:
            yield text
    for size in dict.fromkeys((least, most)):
        yield from ("a" * size, "1" * size)


def _generate_numbers(schema: dict[str, Any]) -> Iterator[float]:
    step = schema.get("multipleOf")
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        bound = schema.get(keyword)
        if isinstance(bound, int | float) and not isinstance(bound, bool) and abs(bound) < 2**53:
            yield from (bound, bound + 1, bound - 1, bound + 0.5, bound - 0.5)
            if isinstance(step, int | float) and step > 0:
                yield from (bound // step * step, (bound // step + 1) * step)
    if isinstance(step, int | float) and step > 0:
        yield from (step, 2 * step, 3 * step)
    yield from _NUMBERS


def _generate_arrays(schema: dict[str, Any], root: Any, depth: int) -> Iterator[list[Json]]:
    items = schema.get("items", True)
    first: list[Any] = schema.get("prefixItems") or (items if isinstance(items, list) else [])
    rest = schema.get("additionalItems", True) if isinstance(items, list) else items
    least, most = _to_count(schema.get("minItems"), 0), _to_count(schema.get("maxItems"), 20)

    def at(index: int) -> Any:
        return first[index] if index < len(first) else rest

    for size in dict.fromkeys((least, max(least, 1), len(first), min(most, least + 2), min(most, 20))):
        choices = [list(islice(_generate(at(index), root, depth + 1), _BRANCHES)) for index in range(min(size, 20))]
        if not all(choices):
            continue
        yield [choice[0] for choice in choices]
        yield [choice[index % len(choice)] for index, choice in enumerate(choices)]
        for index, choice in enumerate(choices[:3]):
            for value in choice[1:]:
                yield [value if other == index else one[0] for other, one in enumerate(choices)]
    if "contains" in schema:
        for value in islice(_generate(schema["contains"], root, depth + 1), _BRANCHES):
            yield [value] * max(1, least)


def _generate_objects(schema: dict[str, Any], root: Any, depth: int) -> Iterator[dict[str, Json]]:
    listed = schema.get("properties")
    properties: dict[str, Any] = listed if isinstance(listed, dict) else {}
    rest = schema.get("additionalProperties", True)
    needed = [name for name in schema.get("required") or () if isinstance(name, str)]
    choices = {
        name: list(islice(_generate(properties.get(name, rest), root, depth + 1), _BRANCHES))
        for name in dict.fromkeys((*needed, *properties))
    }
    if not all(choices[name] for name in needed):
        return
    base = {name: choices[name][0] for name in needed}
    yield base
    for name, values in choices.items():
        for value in values:
            yield {**base, name: value}
    yield {**base, **{name: values[0] for name, values in choices.items() if values}}
    for name in ("a", "extra", "x-a", "1"):
        if name not in base:
            for value in islice(_generate(rest, root, depth + 1), 3):
                yield {**base, name: value}
    size = _to_count(schema.get("minProperties"), 0)
    if size > len(base):
        yield {**base, **{f"key{index}": "a" for index in range(size - len(base))}}


def _to_count(value: Any, default: int) -> int:
    return min(int(value), 5_000) if isinstance(value, int | float) and not isinstance(value, bool) else default


def _resolve(schema: Any, root: Any) -> dict[str, Any]:
    """The schema merged with the target of its local reference."""
    for _ in range(_DEPTH):
        if not isinstance(schema, dict):
            return {"not": {}} if schema is False else {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = _merge(rest, _find_target(root, reference))
    return {}


def _find_target(root: Any, reference: str) -> Any:
    try:
        return local(root, reference)
    except LookupError:
        return {}


def _merge(schema: dict[str, Any], other: Any) -> dict[str, Any]:
    """Roughly what both schemas say; the judges decide whether a value made from it is valid."""
    if not isinstance(other, dict):
        return schema
    merged = dict(schema)
    for key, value in other.items():
        own = merged.get(key)
        if key == "properties" and isinstance(own, dict) and isinstance(value, dict):
            merged[key] = {
                **own,
                **{
                    name: _merge(own[name], inner) if isinstance(own.get(name), dict) else inner
                    for name, inner in value.items()
                },
            }
        elif key == "required" and isinstance(own, list) and isinstance(value, list):
            merged[key] = [*own, *value]
        elif key == "not" and isinstance(own, dict):
            merged[key] = {"anyOf": [own, value]}
        else:
            merged.setdefault(key, value)
    return merged


def show(value: Json, limit: int = 160) -> str:
    """An instance in a message: JSON on one line, truncated if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
