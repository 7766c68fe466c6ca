"""Random JSON Schemas, edits to them, and instances near the edits, all from a seed.

`schema` makes an object schema. `widen` makes an edit that preserves all valid instances by construction; `edited`
makes any edit. `aim` makes instances near the boundaries of both schemas.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import instances

Json = Any

NAMES = ("a", "b", "c", "x-d", "kind")
WORDS = ("red", "green", "blue", "", "10")
PATTERNS = ("^[a-z]+$", "^x", "[0-9]{2}", "^(ab|cd)$", "a")
FORMATS = ("date", "email", "uri", "uuid")


class Maker:
    """Makes schemas."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.defs: dict[str, Json] = {}

    def root(self) -> dict[str, Json]:
        names = ["Node", "Leaf"] if self.chance.random() < 0.35 else []
        self.defs = dict.fromkeys(names, True)
        made = self.object(0)
        for name in names:
            self.defs[name] = self.object(1) if name == "Node" else self.schema(2)
        if names:
            made["$defs"] = self.defs
        return made

    def schema(self, depth: int) -> Json:
        roll = self.chance.random()
        if depth > 3 or roll < 0.5:
            return self.simple()
        if roll < 0.7:
            return self.object(depth)
        if roll < 0.8:
            return self.list(depth)
        if roll < 0.9:
            return self.combined(depth)
        if self.defs and roll < 0.97:
            return {"$ref": f"#/$defs/{self.chance.choice([*self.defs])}"}
        return self.chance.choice((True, {}, {"description": "anything"}))

    def simple(self) -> dict[str, Json]:
        made: dict[str, Json] = {}
        match self.chance.choice(("string", "string", "integer", "number", "boolean", "null", "enum", "const", "many")):
            case "string":
                made["type"] = "string"
                if self.chance.random() < 0.3:
                    made["minLength"] = self.chance.randint(0, 3)
                if self.chance.random() < 0.3:
                    made["maxLength"] = self.chance.randint(1, 9)
                if self.chance.random() < 0.2:
                    made["pattern"] = self.chance.choice(PATTERNS)
                if self.chance.random() < 0.1:
                    made["format"] = self.chance.choice(FORMATS)
            case "integer" | "number" as name:
                made["type"] = name
                for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
                    if self.chance.random() < 0.25:
                        made[keyword] = self.number(name)
                if self.chance.random() < 0.15:
                    made["multipleOf"] = self.chance.choice((2, 3, 4, 6, 0.5, 0.1, 1.5))
            case "enum":
                some = [*WORDS, 1, 2, 1.5, None, True, {"a": 1}, [1]]
                made["enum"] = self.chance.sample(some, self.chance.randint(1, 4))
            case "const":
                made["const"] = self.chance.choice((*WORDS, 1, 1.0, None, False))
            case "many":
                made["type"] = self.chance.sample(["string", "integer", "number", "null", "boolean", "array"], 2)
            case name:
                made["type"] = name
        if self.chance.random() < 0.2:
            made["description"] = "words"
        if self.chance.random() < 0.05:
            made["default"] = "red"
        return made

    def number(self, name: str) -> float:
        return self.chance.randint(-3, 8) if name == "integer" else self.chance.choice((-1.5, 0, 0.5, 1, 2.5, 7, 10))

    def object(self, depth: int) -> dict[str, Json]:
        names = self.chance.sample(NAMES, self.chance.randint(0, 4))
        made: dict[str, Json] = {"type": "object", "properties": {name: self.schema(depth + 1) for name in names}}
        needed = [name for name in names if self.chance.random() < 0.4]
        if needed:
            made["required"] = needed
        roll = self.chance.random()
        if roll < 0.4:
            made["additionalProperties"] = False
        elif roll < 0.5:
            made["additionalProperties"] = self.schema(depth + 2)
        elif roll < 0.55:
            made["unevaluatedProperties"] = False
        for keyword, make in (
            ("patternProperties", lambda: {"^x-": self.schema(depth + 2)}),
            ("propertyNames", lambda: {"maxLength": self.chance.randint(1, 6)}),
            ("minProperties", lambda: self.chance.randint(0, 2)),
            ("maxProperties", lambda: self.chance.randint(1, 6)),
            ("dependentRequired", lambda: {"a": ["b"]}),
            ("dependentSchemas", lambda: {"b": self.object(depth + 2)}),
            ("allOf", lambda: [self.object(depth + 2)]),
            ("anyOf", lambda: [{"required": ["a"]}, {"required": ["b"]}]),
            ("if", lambda: {"properties": {"kind": {"const": "red"}}, "required": ["kind"]}),
        ):
            if self.chance.random() < 0.05:
                made[keyword] = make()
                if keyword == "if":
                    made["then"] = {"required": ["a"]}
        return made

    def list(self, depth: int) -> dict[str, Json]:
        made: dict[str, Json] = {"type": "array"}
        if self.chance.random() < 0.8:
            made["items"] = self.schema(depth + 1)
        for keyword, make in (
            ("prefixItems", lambda: [self.schema(depth + 2), self.simple()]),
            ("minItems", lambda: self.chance.randint(0, 2)),
            ("maxItems", lambda: self.chance.randint(1, 4)),
            ("uniqueItems", lambda: True),
            ("contains", self.simple),
        ):
            if self.chance.random() < 0.15:
                made[keyword] = make()
        return made

    def combined(self, depth: int) -> dict[str, Json]:
        keyword = self.chance.choice(("anyOf", "anyOf", "oneOf", "allOf", "not", "tagged"))
        if keyword == "tagged":
            tags = self.chance.sample(WORDS, 2)
            made = [self.object(depth + 1) for _ in tags]
            for tag, one in zip(tags, made, strict=True):
                one["properties"] = {**one["properties"], "kind": {"const": tag}}
                one["required"] = [*dict.fromkeys([*one.get("required", []), "kind"])]
            return {"oneOf": made}
        if keyword == "not":
            return {"not": self.simple()}
        if keyword == "allOf":
            return {"allOf": [self.simple(), self.chance.choice(({}, {"description": "x"}, {"minLength": 1}))]}
        return {keyword: [self.schema(depth + 1) for _ in range(self.chance.randint(1, 3))]}


def schema(chance: random.Random) -> dict[str, Json]:
    """Return an object schema."""
    return Maker(chance).root()


def places(root: Json, *, positive: bool) -> list[Json]:
    """Return the object schemas in a schema. `positive` selects only covariant locations."""
    found: list[Json] = []

    def walk(here: Json) -> None:
        if not isinstance(here, dict):
            return
        found.append(here)
        for keyword, value in here.items():
            if keyword in ("properties", "patternProperties", "$defs", "dependentSchemas"):
                for inner in value.values():
                    walk(inner)
            elif keyword in ("anyOf", "allOf", "prefixItems") or (keyword == "oneOf" and not positive):
                for inner in value:
                    walk(inner)
            elif keyword in ("items", "additionalProperties", "then") or (
                keyword in ("not", "if", "contains", "propertyNames", "unevaluatedProperties") and not positive
            ):
                walk(value)

    walk(root)
    return found


def refers(root: Json) -> bool:
    """Return whether a reference occurs at a location that is not covariant."""
    good = sum("$ref" in one for one in places(root, positive=True))
    return good != sum("$ref" in one for one in places(root, positive=False))


Edit = tuple[str, Callable[[dict[str, Json], Maker], bool]]


def _lower(here: dict[str, Json], maker: Maker) -> bool:
    found = [key for key in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties") if key in here]
    for key in found:
        here[key] -= 1 if here[key] > 0 or "imum" in key else 0
    return bool(found)


def _raise(here: dict[str, Json], maker: Maker) -> bool:
    found = [key for key in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties") if key in here]
    for key in found:
        here[key] += 1
    return bool(found)


def _drop(*keys: str) -> Callable[[dict[str, Json], Maker], bool]:
    def drop(here: dict[str, Json], maker: Maker) -> bool:
        found = [key for key in keys if key in here]
        if found:
            del here[maker.chance.choice(found)]
        return bool(found)

    return drop


def _enum(here: dict[str, Json], maker: Maker) -> bool:
    if "enum" in here:
        here["enum"].append("purple")
    elif "const" in here:
        here["enum"] = [here.pop("const"), "purple"]
    else:
        return False
    return True


def _type(here: dict[str, Json], maker: Maker) -> bool:
    types = here.get("type")
    if types == "integer" and maker.chance.random() < 0.5:
        here["type"] = "number"
    elif isinstance(types, str) and types != "object":
        here["type"] = [types, "null"] if types != "null" else ["null", "boolean"]
    else:
        return False
    return True


def _property(here: dict[str, Json], maker: Maker) -> bool:
    closed = here.get("additionalProperties") is False and not any(
        key in here for key in ("patternProperties", "unevaluatedProperties")
    )
    if "properties" not in here or "new" in here["properties"] or "unevaluatedProperties" in here:
        return False
    if not closed and here.get("additionalProperties", True) is not True:
        return False
    here["properties"]["new"] = maker.simple() if closed else {"description": "anything"}
    return True


def _alternative(here: dict[str, Json], maker: Maker) -> bool:
    if "anyOf" not in here or "unevaluatedProperties" in here:
        return False
    here["anyOf"].append(maker.simple())
    return True


def _wrap(here: dict[str, Json], maker: Maker) -> bool:
    if here.get("type") not in ("string", "integer", "number", "boolean"):
        return False
    old = dict(here)
    here.clear()
    here["anyOf"] = [old, {"type": "null"}]
    return True


def _words(here: dict[str, Json], maker: Maker) -> bool:
    here[maker.chance.choice(("description", "title", "default", "$comment", "x-note"))] = "other words"
    return True


def _multiple(here: dict[str, Json], maker: Maker) -> bool:
    if here.get("multipleOf") not in (4, 6):
        return False
    here["multipleOf"] = 2
    return True


def _ref(here: dict[str, Json], maker: Maker) -> bool:
    """Move a simple schema into a definition."""
    if "type" not in here or here["type"] == "object" or "Own" in maker.defs:
        return False
    maker.defs["Own"] = dict(here)
    here.clear()
    here["$ref"] = "#/$defs/Own"
    return True


WIDENING: tuple[Edit, ...] = (
    ("a lower bound is lower", _lower),
    ("an upper bound is higher", _raise),
    ("a bound is gone", _drop("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength")),
    (
        "a constraint is gone",
        _drop("pattern", "format", "multipleOf", "uniqueItems", "minItems", "maxItems", "contains"),
    ),
    ("an object is less bound", _drop("required", "propertyNames", "minProperties", "maxProperties")),
    ("a condition is gone", _drop("dependentRequired", "dependentSchemas", "not", "if")),
    ("an object is open", _drop("additionalProperties")),
    ("a value more is allowed", _enum),
    ("a type is wider", _type),
    ("an optional property was added", _property),
    ("an alternative is new", _alternative),
    ("null is allowed, too", _wrap),
    ("words are others", _words),
    ("multiples of less", _multiple),
    ("a separate definition", _ref),
)


def _evaluates(root: Json) -> bool:
    return any("unevaluatedProperties" in one for one in places(root, positive=False))


def widen(chance: random.Random, old: Json) -> tuple[str, Json] | None:
    """Return the name of an edit that widens by construction, and the edited schema; `None` if no edit is possible.

    Excludes schemas whose `unevaluatedProperties` depend on the edit, or with references at places that are not
    covariant, because the same edits do not widen there.
    """
    if refers(old) or _evaluates(old):
        return None
    new = copy.deepcopy(old)
    maker = Maker(chance)
    maker.defs = new.get("$defs", {})
    found = places(new, positive=True)
    edits = list(WIDENING)
    chance.shuffle(edits)
    chance.shuffle(found)
    for name, edit in edits:
        for here in found:
            if edit(here, maker):
                if maker.defs:
                    new["$defs"] = maker.defs
                return name, new
    return None


def edited(chance: random.Random, old: Json) -> Json:
    """Return the schema with one to three edits of any kind."""
    new = copy.deepcopy(old)
    maker = Maker(chance)
    maker.defs = new.get("$defs", {})
    for _ in range(chance.randint(1, 3)):
        here = chance.choice(places(new, positive=False))
        roll = chance.random()
        if roll < 0.5:
            chance.choice(WIDENING)[1](here, maker)
        elif roll < 0.65:
            other = maker.schema(2)
            if isinstance(other, dict) and here is not new:
                here.clear()
                here.update(other)
        elif roll < 0.8 and "properties" in here:
            here["properties"][chance.choice(NAMES)] = maker.schema(2)
        else:
            keyword = chance.choice([*here]) if here else "type"
            if keyword not in ("$defs", "$ref", "type"):
                del here[keyword]
            elif here is not new and keyword == "type":
                here.update(maker.simple())
    if maker.defs:
        new["$defs"] = maker.defs
    return new


def borders(root: Json) -> list[Json]:
    """Return values near a schema's boundaries: enum members, both sides of each bound, matches of patterns."""
    made: list[Json] = []
    chance = random.Random(0)
    for here in places(root, positive=False):
        made += here.get("enum", [])
        made += [here["const"]] if "const" in here else []
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
            if key in here:
                made += [here[key], here[key] + 1, here[key] - 1, here[key] + 0.5, here[key] - 0.5, -here[key]]
        for key in ("minLength", "maxLength"):
            if key in here:
                made += ["y" * size for size in (here[key] - 1, here[key], here[key] + 1) if size >= 0]
        if "pattern" in here:
            made += [instances.matching(here["pattern"], chance) for _ in range(3)]
    made += ["", "a", 0, 1.0, None, True, [], {}, [1, 1], 0.5, "purple"]
    return [*{repr(value): value for value in made}.values()]


def aim(old: Json, new: Json, seed: str, tries: int = 40, most: int = 600) -> Iterator[Json]:
    """Return attempts at instances of `old`, and variants with one part omitted or replaced by a boundary value."""
    whole = [*instances.draw(old, seed, tries), *instances.draw(new, seed, tries // 2)]
    yield from whole
    values = [*borders(old), *borders(new)]
    made = (
        _replaced(instance, path, value)
        for instance in whole[:: max(1, len(whole) // 8)]
        for path in _paths(instance)
        for value in (*values, _GONE)
    )
    yield from itertools.islice(made, most)


_GONE = object()


def _paths(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield (*path, key)
        yield from _paths(below, (*path, key))
    if isinstance(value, dict):
        for name in (*NAMES, "new"):
            if name not in value:
                yield (*path, name)


def _replaced(value: Json, path: tuple[str | int, ...], by: Any) -> Json:
    made: Any = copy.copy(value)
    if len(path) > 1:
        made[path[0]] = _replaced(value[path[0]], path[1:], by)
    elif by is not _GONE:
        made[path[0]] = by
    elif isinstance(made, list):
        del made[int(path[0])]
    elif path[0] in made:
        del made[path[0]]
    return made


_UNORDERED = frozenset({"enum", "type", "required", "anyOf", "oneOf", "allOf", "examples"})
"""Keywords with unordered lists (JSON Schema 2020-12, Core 10.2.1 and Validation 6.1, 6.5)."""


def reorder(chance: random.Random, value: Json) -> Json:
    """Return an equivalent schema with its unordered parts reordered."""
    if isinstance(value, list):
        return [reorder(chance, each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {
        keyword: inner if keyword in ("enum", "const", "default", "examples") else reorder(chance, inner)
        for keyword, inner in chance.sample([*value.items()], len(value))
    }
    for keyword in _UNORDERED & made.keys():
        if isinstance(made[keyword], list):
            made[keyword] = chance.sample(made[keyword], len(made[keyword]))
    return made
