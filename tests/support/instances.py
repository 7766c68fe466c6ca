"""Random instances of a JSON Schema, from a seed.

Draws values that are likely to be valid, including values that real callers send and models get wrong: unknown keys,
nulls, integers beyond 2**53, `1.0` for `1`, strings that look like numbers. A validator decides whether a value is
valid.
"""

from __future__ import annotations

import importlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

from stubwright_runtime.schema.validation import compile_schema

Json = Any

sre: Any = importlib.import_module("re._constants")
sre_parser: Any = importlib.import_module("re._parser")

TEXTS: Mapping[str, Sequence[str]] = {
    "date": (
        "2026-11-22",
        "0001-01-01",
        "9999-12-31",
        "0000-01-01",
        "2026-02-30",
        "2026-1-2",
        "20261122",
        "2026-W47-7",
    ),
    "date-time": (
        "2026-11-22T10:00:00Z",
        "2026-11-22t10:00:00z",
        "2026-11-22T10:00:00+00:00",
        "2026-11-22T10:00:00-00:00",
        "2026-11-22T10:00:00.1+05:30",
        "2026-11-22T10:00:00.120Z",
        "2026-11-22T10:00:00.123456Z",
        "2026-11-22T10:00:00.000000Z",
        "2026-11-22T10:00:00.123456789Z",
        "2026-12-31T23:59:60Z",
        "2026-11-22T24:00:00Z",
        "2026-11-22T10:00:00+05:60",
        "2026-11-22T10:00:00+24:00",
        "0000-01-01T00:00:00Z",
        "2026-11-22 10:00:00Z",
        "2026-11-22T10:00:00",
        "2026-11-22T10:00Z",
        "2026-11-22",
    ),
    "time": (
        "10:00:00Z",
        "10:00:00z",
        "10:00:00.1-08:00",
        "10:00:00.100000+00:00",
        "10:00:00.1234567Z",
        "23:59:60Z",
        "24:00:00Z",
        "10:00:00",
        "10:00Z",
    ),
    "uuid": (
        "9b2c0a52-6f0e-4a77-8a39-5d3d3f1f5c11",
        "9B2C0A52-6F0E-4A77-8A39-5D3D3F1F5C11",
        "{9b2c0a52-6f0e-4a77-8a39-5d3d3f1f5c11}",
        "urn:uuid:9b2c0a52-6f0e-4a77-8a39-5d3d3f1f5c11",
        "9b2c0a526f0e4a778a395d3d3f1f5c11",
    ),
    "uri": (
        "https://example.com",
        "https://example.com/",
        "https://example.com?q=1",
        "https://example.com/a b",
        "https://EXAMPLE.com/%7Ea?q#f",
        "https://example.com:443/",
        "https://bücher.example/",
        "https://xn--bcher-kva.example/ü",
        "urn:isbn:0451450523",
        "mailto:a@example.com",
        "data:text/plain,a b",
        "file:///a/./b",
        "//example.com/a",
        "a/b",
    ),
    "base64": ("", "aGk=", "aGk", "aGk=\n", "aG\nk=", "aGl=", "-_-_", "+/+/", " aGk=", "a", "====", "aGk=aGk="),
}
"""Texts of each format, some of them slightly or completely invalid."""

STRINGS = ("", "a", "10", "1.5", "true", "null", "Zürich 東京", "2020-01-01", 'q"\\\n', "x" * 40)
INTEGERS = (0, 1, -1, 7, 100, 2**53 + 1, -(2**63) - 1, 10**20, 1.0, 250.0, 1e300)
NUMBERS = (0, 1, 1.0, -2.5, 0.1, 3, 2**53 + 1, 10**25, 1e300, 1e-7)
EXTRA_KEYS = ("extra", "self", "copy", "model_fields", "root", "x y", "", "class", "__class__", "json")
OBJECT_WORDS = ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties")
LIST_WORDS = ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")


def draw(schema: Json, seed: str, count: int) -> Iterator[Json]:
    """Return `count` attempts at instances of `schema`."""
    sampler = Sampler(schema, random.Random(seed))
    for _ in range(count):
        yield sampler.value(schema, 0)


def valid(schema: Json, seed: str, count: int, *, exact: bool = False) -> list[Json]:
    """Return the valid instances among `count` attempts, by jsonschema-rs. `exact` is `python: {formats: strict}`."""
    try:
        validator = compile_schema(schema, formats=False, exact=exact)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return []
    return [instance for instance in draw(schema, seed, count) if _accepts(validator, instance)]


def same(one: Json, two: Json) -> bool:
    """Return whether two JSON values are equal. Numbers are compared by value, and `true` differs from 1."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, int | float) and isinstance(two, int | float):
        return one == two
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(value, two[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(two) and all(same(*pair) for pair in zip(one, two, strict=True))
    return bool(one == two)


def _accepts(validator: Any, instance: Json) -> bool:
    try:
        return bool(validator.is_valid(instance))
    except ValueError:
        return False


class Sampler:
    def __init__(self, root: Json, chance: random.Random) -> None:
        self.root = root
        self.chance = chance

    def value(self, schema: Json, depth: int) -> Json:
        if not isinstance(schema, dict) or depth > 9:
            return self.anything(depth)
        schema = self.merged(schema, depth)
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self.chance.choice(schema["enum"])
        if "default" in schema and self.chance.random() < 0.1:
            return schema["default"]
        types = schema.get("type")
        if isinstance(types, list) and types:
            types = self.chance.choice(types)
        if types is None:
            types = self.guess(schema)
        match types:
            case "object":
                return self.object(schema, depth)
            case "array":
                return self.list(schema, depth)
            case "string":
                return self.string(schema)
            case "integer" | "number":
                return self.number(schema, types)
            case "boolean":
                return self.chance.random() < 0.5
            case "null":
                return None
            case _:
                return self.anything(depth)

    def guess(self, schema: Mapping[str, Json]) -> str | None:
        likely = [
            name
            for name, words in (
                ("object", OBJECT_WORDS),
                ("array", LIST_WORDS),
                ("string", ("pattern", "minLength", "maxLength", "format")),
                ("number", ("minimum", "maximum", "multipleOf", "exclusiveMinimum")),
            )
            if any(word in schema for word in words)
        ]
        return self.chance.choice(likely) if likely and self.chance.random() < 0.8 else None

    def merged(self, schema: Mapping[str, Json], depth: int) -> dict[str, Json]:
        """Return the schema with one choice of each of its alternatives merged."""
        made: dict[str, Json] = {key: value for key, value in schema.items() if key not in CHOICES}
        referring = [schema.get(keyword) for keyword in ("$ref", "$dynamicRef", "$recursiveRef")]
        parts: list[Json] = [self.resolved(reference) for reference in referring if isinstance(reference, str)]
        parts += schema.get("allOf") or []
        for keyword in ("anyOf", "oneOf"):
            if schema.get(keyword):
                parts.append(self.chance.choice(schema[keyword]))
        if "if" in schema:
            parts += [schema["if"], schema.get("then", {})] if self.chance.random() < 0.5 else [schema.get("else", {})]
        for part in parts:
            if isinstance(part, dict) and depth < 9:
                for key, value in self.merged(part, depth + 1).items():
                    if key == "properties" and isinstance(made.get(key), dict):
                        made[key] = {**value, **made[key]}
                    elif key == "required" and isinstance(made.get(key), list):
                        made[key] = [*made[key], *value]
                    else:
                        made.setdefault(key, value)
        return made

    def resolved(self, reference: str) -> Json:
        here = self.root
        if not reference.startswith("#"):
            return {}
        for step in unquote(reference[1:]).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            try:
                here = here[int(name)] if isinstance(here, list) else here[name]
            except (KeyError, IndexError, ValueError, TypeError):
                return {}
        return here

    def object(self, schema: Mapping[str, Json], depth: int) -> dict[str, Json]:
        properties = schema.get("properties") or {}
        required = schema.get("required")
        names = {*required} if isinstance(required, list) else set()
        likely = self.chance.choice((0.15, 0.5, 0.95))
        made = {}
        for name, inner in properties.items():
            if name in names or self.chance.random() < likely:
                null = name not in names and self.chance.random() < 0.08
                made[name] = None if null else self.value(inner, depth + 1)
        for name in names - properties.keys():
            made[name] = self.anything(depth + 1)
        for pattern, inner in (schema.get("patternProperties") or {}).items():
            if self.chance.random() < 0.6:
                made[matching(pattern, self.chance)] = self.value(inner, depth + 1)
        rest = schema.get("additionalProperties", True)
        if rest is not False and self.chance.random() < 0.4:
            for _ in range(self.chance.randint(1, 3)):
                name = self.chance.choice([*EXTRA_KEYS, *(re.sub(r"\W", "_", name) for name in properties)])
                if name not in properties:
                    made[name] = self.value(rest, depth + 1)
        items = [*made.items()]
        self.chance.shuffle(items)
        return dict(items)

    def list(self, schema: Mapping[str, Json], depth: int) -> list[Json]:
        items = schema.get("items", True)
        places = schema.get("prefixItems") or (items if isinstance(items, list) else [])
        rest = schema.get("additionalItems", True) if isinstance(items, list) else items
        least = int(schema.get("minItems") or 0)
        most = min(int(schema.get("maxItems", least + 3)), least + 3)
        size = self.chance.randint(least, max(least, most)) if depth < 7 else least
        size = max(size, len(places)) if self.chance.random() < 0.5 else size
        return [self.value(places[at] if at < len(places) else rest, depth + 1) for at in range(min(size, 50))]

    def string(self, schema: Mapping[str, Json]) -> str:
        if isinstance(schema.get("pattern"), str):
            return matching(schema["pattern"], self.chance, int(schema.get("minLength") or 0))
        form = "base64" if schema.get("contentEncoding") == "base64" else schema.get("format")
        known = TEXTS.get(form, ()) if isinstance(form, str) else ()
        made = self.chance.choice(known if known and self.chance.random() < 0.8 else STRINGS)
        return (made + "y" * int(schema.get("minLength") or 0))[: int(schema.get("maxLength", 10**6))]

    def number(self, schema: Mapping[str, Json], name: str) -> int | float:
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is None and isinstance(schema.get("exclusiveMinimum"), int | float):
            low = schema["exclusiveMinimum"] + 1
        if high is None and isinstance(schema.get("exclusiveMaximum"), int | float):
            high = schema["exclusiveMaximum"] - 1
        step = schema.get("multipleOf")
        if isinstance(step, int | float) and step > 0:
            first = int((low or 0) // step) + 1
            return step * self.chance.randint(first, max(first, int((high or 9 * step) // step) + 1))
        if low is None and high is None:
            return self.chance.choice(INTEGERS if name == "integer" else NUMBERS)
        least = low if low is not None else (high or 0) - 10
        most = high if high is not None else least + 10
        if name == "number" and self.chance.random() < 0.5:
            return self.chance.uniform(least, most)
        made = self.chance.randint(int(least), max(int(least), int(most)))
        return float(made) if self.chance.random() < 0.2 else made

    def anything(self, depth: int) -> Json:
        simple = [None, True, False, *STRINGS[:6], *NUMBERS]
        if depth < 4 and self.chance.random() < 0.3:
            return self.chance.choice(([], {}, [1, "1", None], {"a": None}, {"b": [1.0, {}]}))
        return self.chance.choice(simple)


CHOICES = ("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "then", "else")


def matching(pattern: str, chance: random.Random, length: int = 0) -> str:
    """Return a string of this length that probably matches a regular expression."""
    tree = _parsed(pattern)
    return "".join(_texts(tree, chance, length)) if tree is not None else chance.choice(STRINGS)


@cache
def _parsed(pattern: str) -> Any:
    try:
        return sre_parser.parse(pattern)
    except (re.error, OverflowError):
        return None


def _texts(tree: Any, chance: random.Random, length: int) -> Iterator[str]:
    for kind, argument in tree:
        if kind is sre.LITERAL:
            yield chr(argument)
        elif kind is sre.IN:
            yield _member(argument, chance)
        elif kind is sre.ANY:
            yield "k"
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least, most, inner = argument
            least = min(int(most), max(least, length))
            for _ in range(chance.randint(least, min(int(most), least + 3))):
                yield from _texts(inner, chance, 0)
        elif kind is sre.SUBPATTERN:
            yield from _texts(argument[3], chance, length)
        elif kind is sre.BRANCH:
            yield from _texts(chance.choice(argument[1]), chance, length)
        elif kind is sre.NOT_LITERAL:
            yield "k" if argument != ord("k") else "m"


def _member(argument: Any, chance: random.Random) -> str:
    kind, value = chance.choice(argument)
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.RANGE:
        return chr(chance.randint(value[0], value[1]))
    if kind is sre.CATEGORY:
        return {sre.CATEGORY_DIGIT: "4", sre.CATEGORY_SPACE: " ", sre.CATEGORY_NOT_SPACE: "k"}.get(value, "w")
    return "k"
