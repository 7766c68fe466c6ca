"""Changes a valid value at one location, for each boundary in the schema and for common edge cases.

The caller validates the changed value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from stubwright.jsonschema.pointers import resolve_local

_DEEPEST: Final = 6
_CHAIN: Final = 20  # consecutive references
_LONG: Final = 10_000
"""The length to try for a string without `maxLength`."""

_MOST_CHARACTERS: Final = 100_000
_MOST_ITEMS: Final = 1_000

TEXTS: Final[Mapping[str, str]] = {
    "an empty string": "",
    "a space": " ",
    "non-ASCII letters": "Zoë Ångström ß",
    "a letter with two code points": "e\u0301",
    "an emoji outside the BMP": "\U0001f600\U0001f469\u200d\U0001f680",
    "Chinese and Arabic text": "東京 مرحبا",
    "a text direction override": "a\u202eb",
    "an invisible character": "a\u200bb\ufeff",
    "all kinds of line breaks": "a\nb\r\nc\u2028d",
    "a NUL character": "a\x00b",
    "a control character": "a\x1b[31mb",
    "shell and SQL metacharacters": "'\"`$(x);--%s{0}\\",
    "a path traversal": "../../etc/passwd",
    "a number as a string": "0",
}
_NUMBERS: Final = (0, -1, 1, 2**31, 2**53, -(2**53))
_FRACTIONS: Final = (0.5, -0.1, 1e300)
_OTHER_TYPES: Final[Mapping[str, Any]] = {
    "a string": "text",
    "a number": 7,
    "a fraction": 1.5,
    "a boolean": True,
    "a list": [],
    "an object": {},
}

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A value with one location changed.

    Attributes:
        value: The whole value, including the change.
        words: A description of the new value at that location.
        path: The changed location.
    """

    value: Any
    words: str
    path: Path


def change_everywhere(schema: Any, value: Any) -> Iterator[Change]:
    """Yield a changed copy of a value for each location in the schema and each applicable change."""
    yield from _Changer(schema, value).walk((), [schema], value)


def restore(value: Any, path: Path, base: Any) -> Any:
    """Return a value with the entry from `base` at a path, or without the entry if `base` lacks it.

    Raises:
        LookupError: The path does not exist in one of the values.
    """
    if not path:
        return base
    first, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(base, dict):
        others = {key: inner for key, inner in value.items() if key != first}
        if first not in base:
            return others
        return {**others, first: restore(value[first], rest, base[first]) if rest else base[first]}
    if isinstance(value, list) and isinstance(base, list) and isinstance(first, int):
        return [*value[:first], restore(value[first], rest, base[first]), *value[first + 1 :]]
    raise LookupError(f"nothing at {path}")


class _Changer:
    def __init__(self, root: Any, value: Any) -> None:
        self._root = root
        self._value = value

    def walk(self, path: Path, schemas: Sequence[Any], value: Any) -> Iterator[Change]:
        known = [schema for outer in schemas for schema in self._flatten(outer, _CHAIN)]
        for words, new in _propose(known, value):
            yield Change(_put(self._value, path, new), words, path)
        if isinstance(value, dict):
            yield from self._change_keys(path, known, value)
        if len(path) >= _DEEPEST:
            return
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from self.walk((*path, name), [*_find_property(known, name)], inner)
        elif isinstance(value, list) and value:
            items = [schema["items"] for schema in known if isinstance(schema.get("items"), dict)]
            yield from self.walk((*path, 0), items, value[0])

    def _change_keys(
        self, path: Path, schemas: Sequence[Mapping[str, Any]], value: Mapping[str, Any]
    ) -> Iterator[Change]:
        for name in value:
            rest = {key: inner for key, inner in value.items() if key != name}
            yield Change(_put(self._value, path, rest), "omitted", (*path, name))
        required = {str(name) for schema in schemas for name in _list(schema.get("required"))}
        least = {name: inner for name, inner in value.items() if name in required}
        yield Change(_put(self._value, path, least), "only the required properties", path)
        for name in ("unexpected", "ключ \U0001f511"):
            yield Change(_put(self._value, path, {**value, name: "extra"}), "an additional property", (*path, name))

    def _flatten(self, schema: Any, depth: int) -> Iterator[Mapping[str, Any]]:
        """Yield all schemas that describe the same value: the schema, its `$ref` target, its parts and its
        alternatives.
        """
        if not isinstance(schema, dict) or depth == 0:
            return
        yield schema
        reference = schema.get("$ref")
        if isinstance(reference, str):
            with suppress(LookupError):  # the reference is external or broken
                yield from self._flatten(resolve_local(self._root, reference), depth - 1)
        for keyword in ("allOf", "anyOf", "oneOf"):
            for part in _list(schema.get(keyword)):
                yield from self._flatten(part, depth - 1)


def _propose(schemas: Sequence[Mapping[str, Any]], value: Any) -> Iterator[tuple[str, Any]]:
    for schema in schemas:
        for choice in _list(schema.get("enum")):
            yield f"the choice {choice!r}", choice
        for example in _list(schema.get("examples")):
            yield "an example", example
        if "default" in schema:
            yield "the default", schema["default"]
    yield "null", None
    yield from _OTHER_TYPES.items()
    match value:
        case bool():
            yield f"{not value}".lower(), not value
        case str():
            yield from _propose_texts(schemas, value)
        case int() | float():
            yield from _propose_numbers(schemas)
        case list():
            yield from _propose_lists(schemas, value)


def _propose_texts(schemas: Sequence[Mapping[str, Any]], value: str) -> Iterator[tuple[str, Any]]:
    yield from TEXTS.items()
    yield "a string that is not a choice", f"{value}?"
    bounds = {bound for keyword in ("minLength", "maxLength") for bound in _bounds(schemas, keyword)}
    for bound in bounds:
        for length in (bound - 1, bound, bound + 1):
            if 0 <= length <= _MOST_CHARACTERS:
                yield f"a string of {length:,} characters", _fit(value, length)
                yield f"a string of {length:,} emoji", "\U0001f600" * length
    if not any(True for _ in _bounds(schemas, "maxLength")):
        yield f"a string of {_LONG:,} characters", _fit(value, _LONG)


def _propose_numbers(schemas: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        for schema in schemas:
            bound = schema.get(keyword)
            if isinstance(bound, int | float) and not isinstance(bound, bool):
                for number in (bound, bound - 1, bound + 1, bound + 0.5):
                    yield f"the number {number}", number
    for number in (*_NUMBERS, *_FRACTIONS):
        yield f"the number {number}", number


def _propose_lists(schemas: Sequence[Mapping[str, Any]], value: list[Any]) -> Iterator[tuple[str, Any]]:
    yield "an empty list", []
    if not value:
        return
    yield "the same item twice", [value[0], value[0]]
    for bound in {bound for keyword in ("minItems", "maxItems") for bound in _bounds(schemas, keyword)}:
        for length in (bound - 1, bound, bound + 1):
            if 0 <= length <= _MOST_ITEMS:
                yield f"a list of {length:,} items", [value[number % len(value)] for number in range(length)]


def _bounds(schemas: Sequence[Mapping[str, Any]], keyword: str) -> Iterator[int]:
    for schema in schemas:
        bound = schema.get(keyword)
        if isinstance(bound, int) and not isinstance(bound, bool):
            yield bound


def _fit(text: str, length: int) -> str:
    source = text or "a"
    return (source * (length // len(source) + 1))[:length]


def _find_property(schemas: Sequence[Mapping[str, Any]], name: str) -> Iterator[Any]:
    for schema in schemas:
        properties = schema.get("properties")
        if isinstance(properties, dict) and name in properties:
            yield properties[name]
        elif isinstance(schema.get("additionalProperties"), dict):
            yield schema["additionalProperties"]


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _put(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**value, str(first): _put(value[str(first)], rest, new)}
    return [_put(inner, rest, new) if number == first else inner for number, inner in enumerate(value)]
