"""Values that a schema accepts, for a seed.

Takes a schema as it goes on the wire; gives a JSON value that looks like one of its own: an example of the schema if
there is one, otherwise one made from its types and bounds. Each value is checked with the validator that servers use
before it is given. The same seed gives the same value, under any hash seed.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any, Final

from stubwright.diagnostics import Place
from stubwright.jsonschema import dialects, patterns
from stubwright.jsonschema.formats import FORMATS, WORDS
from stubwright.jsonschema.metaschema import TYPES
from stubwright.jsonschema.references import KEYWORDS, Folder, Local, Outline, at
from stubwright_runtime.schema.validation import Validator
from stubwright_runtime.values.equality import are_equal

TRIES: Final = 200
"""Values that are tried; the later ones are bolder."""

_WITH_EXAMPLES: Final = 20
"""Of them, how many of the first prefer examples and defaults."""

_BARE: Final = 50
"""Values that are tried last: without anything that is optional."""

MOST: Final = 20_000
"""Steps that a try may take: a value, a property, or some characters each; all tries have `_IN_ALL`."""

_IN_ALL: Final = 3 * MOST

_LONGEST: Final = 1_000_000
"""Characters that a text may have."""

_CHARACTERS: Final = 100
"""Characters of a text that are one step."""

_COMPARED: Final = 10
"""Values that are compared with one in one step."""

_DEEP: Final = 5
"""The depth from which optional parts are left out, so that recursion ends."""

_DEEPEST: Final = 40

_KINDS: Final[Mapping[str, Sequence[str]]] = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
}
"""What a schema is for that names no type, from the keywords that it has."""


class UnmakeableError(Exception):
    """No value was found that the schema accepts; the text says why."""


class TooLargeError(UnmakeableError):
    """Those that were tried are too large to be made."""


class _DeadEndError(Exception):
    """This try leads nowhere."""


class _TooMuchError(_DeadEndError):
    """This try would take too many steps."""


def make(schema: Any, seed: str, *, formats: bool = False) -> Any:
    """Return a value that the schema accepts.

    Args:
        schema: The schema, with all that it refers to.
        seed: What the value depends on beside the schema.
        formats: Whether `format` is asserted.

    Raises:
        UnmakeableError: None was found.
        ValueError: It is no schema.
    """
    validator = Validator(schema, formats=formats)
    dialect = dialects.of(schema) or dialects.DRAFT_2020_12
    targets = _find_targets(schema, dialect)
    remaining = _IN_ALL
    is_large = False
    for number in range(TRIES + _BARE):
        chance = Random(f"{seed}/{number}")  # noqa: S311
        is_bare = number >= TRIES
        if remaining <= 0 and not is_bare:
            continue
        most = MOST // _BARE if is_bare else min(MOST, remaining)
        maker = _Maker(dialect, targets, chance, most, prefers_examples=number < _WITH_EXAMPLES, is_bare=is_bare)
        try:
            value = maker.make(schema, 0)
        except (_DeadEndError, RecursionError) as error:
            is_large = is_large or isinstance(error, _TooMuchError)
        else:
            if validator.accepts(value):
                return value
        remaining -= maker.steps_taken
    if is_large:
        raise TooLargeError(
            f"it asks for more than {MOST:,} values, or for a text of more than {_LONGEST:,} characters"
        )
    raise UnmakeableError("none of the tried values is valid")


class _Maker:
    """One try. Some prefer examples, defaults and whole objects; others leave out parts and choose at random.

    The last leave out all that is optional, which may be what is large, or what contradicts itself.
    """

    def __init__(
        self,
        dialect: dialects.Dialect,
        targets: Mapping[str, Any],
        chance: Random,
        steps: int,
        *,
        prefers_examples: bool,
        is_bare: bool,
    ) -> None:
        self._chance = chance
        self._steps = steps
        self.steps_taken = 0
        self._prefers_examples = prefers_examples
        self._is_bare = is_bare
        self._keywords = dialect.keywords
        self._hides_siblings = dialect.reference_hides_siblings
        self._targets = targets

    def _take(self, steps: int) -> None:
        """Go on with what takes so many steps."""
        if self.steps_taken + steps > self._steps:
            self.steps_taken += self._steps // TRIES  # looking took something
            raise _TooMuchError
        self.steps_taken += steps

    def make(self, schema: Any, depth: int) -> Any:
        """Return a value for a schema, which may be a boolean."""
        self._take(1)
        if schema is False or depth > _DEEPEST:
            raise _DeadEndError
        if not isinstance(schema, dict):
            return self._choose_word()
        merged = self._merge(schema, depth)
        if "const" in merged:
            return merged["const"]
        if self._prefers_examples and merged.get("examples") and isinstance(merged["examples"], list):
            return self._chance.choice(merged["examples"])
        if isinstance(merged.get("enum"), list):
            if not merged["enum"]:
                raise _DeadEndError
            return self._chance.choice(merged["enum"])
        if self._prefers_examples and "default" in merged:
            return merged["default"]
        return self._make_of_kind(self._choose_kind(merged, depth), merged, depth)

    def _make_of_kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> Any:
        makers: Mapping[str, Callable[[Mapping[str, Any], int], Any]] = {
            "object": self._make_object,
            "array": self._make_array,
            "string": lambda inner, _: self._make_string(inner),
            "integer": lambda inner, _: self._make_number(inner, is_integer=True),
            "number": lambda inner, _: self._make_number(inner, is_integer=False),
            "boolean": lambda *_: self._chance.random() < 0.5,
            "null": lambda *_: None,
        }
        if kind not in makers:
            raise _DeadEndError
        return makers[kind](schema, depth)

    def _choose_kind(self, schema: Mapping[str, Any], depth: int) -> str:
        types = schema.get("type")
        if isinstance(types, str):
            return types
        if isinstance(types, list) and types:
            if depth > _DEEP and "null" in types:
                return "null"
            preferred = [type_ for type_ in types if type_ != "null"] if self._prefers_examples else types
            return str(self._chance.choice(preferred or types))
        matching = (kind for kind, words in _KINDS.items() if any(word in schema for word in words))
        return next(matching, "string" if self._prefers_examples else self._chance.choice(TYPES))

    # Schemas that are made of others

    def _merge(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Return a schema with what it refers to, all its parts, and one of each of its alternatives folded in."""
        self._take(1)
        if depth > _DEEPEST:
            raise _DeadEndError
        if self._hides_siblings and "$ref" in schema:
            schema = {"$ref": schema["$ref"]}
        schema = {key: value for key, value in schema.items() if key in self._keywords}  # others may hold anything
        merged = {key: value for key, value in schema.items() if key not in _FOLDED}
        for part in self._find_parts(schema, depth):
            if part is False:
                raise _DeadEndError
            if isinstance(part, dict):
                other = self._merge(part, depth + 1)
                self._take(_count_steps(merged, other))
                merged = _merge(merged, other)
        return merged

    def _find_parts(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        for keyword in KEYWORDS:
            if isinstance(schema.get(keyword), str) and schema[keyword] in self._targets:
                yield self._targets[schema[keyword]]
        yield from schema.get("allOf") or ()
        for keyword in ("anyOf", "oneOf"):
            if options := schema.get(keyword):
                terminating = [option for option in options if isinstance(option, dict) and not _is_open(option)]
                yield self._chance.choice(terminating if depth > _DEEP and terminating else options)
        if "if" in schema:
            fits = self._chance.random() < 0.5
            yield from (schema["if"], schema.get("then")) if fits else (schema.get("else"),)

    # Kinds of values

    def _make_object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        wanted = schema.get("required")
        required = list(wanted) if isinstance(wanted, list) else []
        least, most = _to_int(schema.get("minProperties"), 0), _to_int(schema.get("maxProperties"), 10**6)
        self._check(least)
        result: dict[str, Any] = {}
        for name, inner in properties.items():
            is_required = name in required
            room = len(result) + sum(other not in result for other in required) < most
            likely = depth <= _DEEP and (self._prefers_examples or self._chance.random() < 0.5) and not self._is_bare
            if is_required or (likely and room and inner is not False):
                try:
                    result[name] = self.make(inner, depth + 1)
                except _DeadEndError:
                    if is_required:
                        raise
        dependent: Mapping[str, Sequence[str]] = schema.get("dependentRequired") or {}
        for name in [*required, *(other for key, names in dependent.items() if key in result for other in names)]:
            if name not in result:
                result[name] = self.make(properties.get(name, self._find_property_schema(name, schema)), depth + 1)
        for number in range(10 * least):
            if len(result) >= least:
                break
            self._take(1)
            name = self._make_key(schema, number)
            if name not in result:
                result[name] = self.make(properties.get(name, self._find_property_schema(name, schema)), depth + 1)
        return result

    def _make_key(self, schema: Mapping[str, Any], number: int) -> str:
        """Return a name for a property that has none."""
        if isinstance(schema.get("propertyNames"), dict):
            name = self.make({"type": "string", **schema["propertyNames"]}, 0)
            return name if isinstance(name, str) else "key"
        if schema.get("patternProperties"):
            return self._make_matching(self._chance.choice(list(schema["patternProperties"])), 0, 40)
        names = list(schema.get("properties") or ())
        return str(names[number]) if number < len(names) else f"{self._choose_word()}{number or ''}"

    def _find_property_schema(self, name: str, schema: Mapping[str, Any]) -> Any:
        """Return the schema of a property that `properties` does not name."""
        for pattern, inner in (schema.get("patternProperties") or {}).items():
            self._take(_CHARACTERS // 10)  # for making the validator
            if Validator({"pattern": pattern}).accepts(name):
                return inner
        return schema.get("additionalProperties", True)

    def _make_array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        items = schema.get("items", True)
        places = schema.get("prefixItems") or (items if isinstance(items, list) else [])
        rest = schema.get("additionalItems", True) if isinstance(items, list) else items
        least, most = _to_int(schema.get("minItems"), 0), _to_int(schema.get("maxItems"), 10**6)
        wanted = (
            least
            if depth > _DEEP or self._is_bare or not (self._prefers_examples or self._chance.random() < 0.7)
            else max(least, 1)
        )
        size = min(max(wanted, len(places)) if self._prefers_examples else wanted, most)
        if wanted and rest is not False and not places:
            size = self._chance.randint(size, min(most, max(size, least + 2)))
        if size > len(places) and rest is False:
            size = len(places)
        self._check(size)
        result: list[Any] = []
        if isinstance(schema.get("contains"), dict):
            self._check(_to_int(schema.get("minContains"), 1))
            rest = rest if isinstance(rest, dict) else {}
            fitting = _merge(rest, self._merge(schema["contains"], depth + 1))
            result += [self.make(fitting, depth + 1) for _ in range(_to_int(schema.get("minContains"), 1))]
        while len(result) < size:
            result.append(self._make_item(result, places, rest, schema.get("uniqueItems") is True, depth))
        return result

    def _make_item(self, items: list[Any], places: Sequence[Any], rest: Any, unique: bool, depth: int) -> Any:
        schema = places[len(items)] if len(items) < len(places) else rest
        for _ in range(20):
            value = self.make(schema, depth + 1)
            self._take(len(items) // _COMPARED if unique else 0)
            if not unique or not any(are_equal(value, other) for other in items):
                return value
        raise _DeadEndError

    def _make_string(self, schema: Mapping[str, Any]) -> str:
        least, most = _to_int(schema.get("minLength"), 0), _to_int(schema.get("maxLength"), 10**6)
        if least > _LONGEST:
            raise _TooMuchError
        self._take(max(least, 0) // _CHARACTERS)
        if isinstance(schema.get("pattern"), str):
            return self._make_matching(schema["pattern"], least, most)
        form = schema.get("format")
        if isinstance(form, str) and form in FORMATS:
            return FORMATS[form](self._chance)
        if schema.get("contentEncoding") == "base64":
            return self._make_base64(least, most)
        words = [self._choose_word()]
        length = len(words[0])
        while length < least:
            words.append(self._choose_word())
            length += 1 + len(words[-1])
        text = " ".join(words)
        return text[: min(most, max(len(text), least))] if len(text) <= most else text[:most]

    def _make_base64(self, least: int, most: int) -> str:
        """Encode a word or more in base64 (RFC 4648, section 4), whose length is a multiple of four."""
        length = min(max(least + 2, 8), max(most, 0)) // 4 * 4
        return b64encode(self._chance.randbytes(length // 4 * 3)).decode()

    def _make_matching(self, pattern: str, least: int, most: int) -> str:
        """Return a text for a pattern: the shortest of several that has the length."""
        self._take(10 * len(pattern) // _CHARACTERS)
        try:
            tried = []
            for _ in range(10):
                tried.append(patterns.make_text(pattern, self._chance))
                self._take(len(tried[-1]) // _CHARACTERS)
        except patterns.UnreadableError:
            tried = [self._choose_word(), str(self._chance.randint(0, 99))]
        return min(tried, key=lambda text: (not least <= len(text) <= most, len(text)))

    def _choose_word(self) -> str:
        return self._chance.choice(WORDS)

    def _make_number(self, schema: Mapping[str, Any], *, is_integer: bool) -> int | float:
        step = _find_step(schema, is_integer=is_integer)
        low, high = _find_limits(schema, step)
        first, last = math.ceil(low / step), math.floor(high / step)
        if first > last:
            raise _DeadEndError
        value = self._chance.randint(first, last) * step
        if is_integer or (value.denominator == 1 and value > 2**53):
            return int(value)
        try:
            return float(value)
        except OverflowError:
            raise _DeadEndError from None

    def _check(self, count: int) -> None:
        """Do not begin with more values than there are steps left."""
        if count > self._steps - self.steps_taken:
            self._take(count)


_FOLDED: Final = frozenset({*KEYWORDS, "allOf", "anyOf", "oneOf", "if", "then", "else", "$defs", "definitions"})
_SMALLER: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"})
_LARGER: Final = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"})


def _merge(schema: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that accepts what both accept, as far as one without `allOf` can say so."""
    merged = dict(schema)
    for key, other_value in other.items():
        own_value = merged.get(key)
        if key not in merged:
            merged[key] = other_value
        elif key == "properties" and isinstance(own_value, dict) and isinstance(other_value, dict):
            clashing = {
                name: {"allOf": [own_value[name], other_value[name]]} for name in own_value if name in other_value
            }
            merged[key] = {**own_value, **other_value, **clashing}
        elif key == "required" and isinstance(own_value, list) and isinstance(other_value, list):
            merged[key] = [*dict.fromkeys([*own_value, *other_value])]
        elif key == "enum" and isinstance(own_value, list) and isinstance(other_value, list):
            merged[key] = [value for value in own_value if any(are_equal(value, theirs) for theirs in other_value)]
        elif key == "type":
            merged[key] = _intersect_types(own_value, other_value)
        elif key in _SMALLER and _is_number(own_value) and _is_number(other_value):
            merged[key] = min(own_value, other_value)
        elif key in _LARGER and _is_number(own_value) and _is_number(other_value):
            merged[key] = max(own_value, other_value)
        elif key == "items" and isinstance(own_value, dict) and isinstance(other_value, dict):
            merged[key] = {"allOf": [own_value, other_value]}
        elif other_value is False:
            merged[key] = False
    return merged


def _count_steps(first: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    """Return the steps that it takes to fold two schemas into one."""
    enums = [len(schema["enum"]) if isinstance(schema.get("enum"), list) else 0 for schema in (first, other)]
    names = [len(schema[key]) for schema in (first, other) for key in ("properties", "required") if schema.get(key)]
    return (enums[0] * enums[1] + sum(names)) // _COMPARED


def _intersect_types(first: Any, second: Any) -> Any:
    """Return the types that both name; a whole number is a number, too."""
    first_types, second_types = ([types] if isinstance(types, str) else list(types or ()) for types in (first, second))
    common = [name for name in first_types if name in second_types]
    if not {"integer", "number"} & {*common} and {"integer", "number"} <= {*first_types, *second_types}:
        common.append("integer")
    if not common:
        raise _DeadEndError
    return common[0] if len(common) == 1 else common


def _find_step(schema: Mapping[str, Any], *, is_integer: bool) -> Fraction:
    """Return how far the values lie apart that a number may have: fine enough for several between its bounds."""
    if _is_number(schema.get("multipleOf")) and schema["multipleOf"] > 0:
        step = _to_fraction(schema["multipleOf"])
        return step * step.denominator if is_integer else step
    if is_integer:
        return Fraction(1)
    step = Fraction(1, 10)
    low, high = _find_limits(schema, Fraction(0))
    while low < high < low + 4 * step:
        step /= 10
    return step


def _find_limits(schema: Mapping[str, Any], step: Fraction) -> tuple[Fraction, Fraction]:
    """Return the smallest and the largest value that a number may have; a hundred steps where there is no bound."""
    low, high = (
        _find_bound(schema, "minimum", "exclusiveMinimum", step),
        _find_bound(schema, "maximum", "exclusiveMaximum", -step),
    )
    span = 100 * step
    if low is None:
        return (Fraction(0), span) if high is None else (min(Fraction(0), high - span), high)
    if high is None:
        return low, low + span
    return low, high


def _find_bound(schema: Mapping[str, Any], name: str, exclusive: str, step: Fraction) -> Fraction | None:
    """Return a bound, moved inwards where it is excluded: by a step."""
    bound = _to_fraction(schema[name]) if _is_number(schema.get(name)) else None
    exclusive_bound: Any = schema.get(exclusive)
    if exclusive_bound is True and bound is not None:  # draft-04
        return bound + step
    if _is_number(exclusive_bound):
        edge = _to_fraction(exclusive_bound) + step
        bound = edge if bound is None else (max(bound, edge) if name == "minimum" else min(bound, edge))
    return bound


def _to_fraction(value: float) -> Fraction:
    """Return the number as it is written."""
    return Fraction(value) if isinstance(value, int) else Fraction(str(value))


def _is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and math.isfinite(value)
    )


def _to_int(value: Any, default: int) -> int:
    return int(value) if _is_number(value) else default


def _is_open(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema can hold others, so that it may go on for ever."""
    return bool(schema.keys() & {*KEYWORDS, "properties", "items", "allOf", "anyOf", "oneOf", "prefixItems"})


def _find_targets(schema: Any, dialect: dialects.Dialect) -> Mapping[str, Any]:
    """Return what each reference in a schema leads to, by its text."""
    if not isinstance(schema, dict):
        return {}
    outline = Outline(Place(""), schema, dialect, Folder("", {}))
    return {
        reference.text: at(schema, reference.target.pointer)
        for reference in outline.references
        if isinstance(reference.target, Local)
    }
