"""Values that a schema accepts, for a seed.

Takes a schema as it goes on the wire; gives a JSON value that looks like one of its own: an example of the schema where
there is one, else one made from its types and bounds. Each value is checked with the validator that servers use before
it is given. The same seed gives the same value, under any hash seed.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any, Final
from uuid import UUID

from toolwright.diagnostics import Place
from toolwright.jsonschema import dialects
from toolwright.jsonschema.metaschema import TYPES
from toolwright.jsonschema.references import KEYWORDS, Folder, Local, Outline, at
from toolwright.mock import patterns
from toolwright_runtime.schema.validation import Validator
from toolwright_runtime.values.equality import are_equal

TRIES: Final = 200
"""Values that are tried; the later ones are bolder."""

_WISE: Final = 20
"""Of them, the first that take what the schema itself suggests."""

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
"""From here on, what need not be there is left out, so that recursion ends."""

_DEEPEST: Final = 40

_WORDS: Final = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "juniper", "lark")

_KINDS: Final[Mapping[str, Sequence[str]]] = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
}
"""What a schema is for that names no type, from the keywords that it has."""


class UnmakeableError(Exception):
    """No value was found that the schema accepts; the text says why."""


class _DeadEndError(Exception):
    """This try leads nowhere."""


class _TooMuchError(_DeadEndError):
    """This try would take too many steps."""


def make(schema: Any, seed: str, *, formats: bool = False) -> Any:
    """A value that the schema accepts.

    Args:
        schema: The schema, with all that it refers to.
        seed: What the value depends on beside the schema.
        formats: Whether `format` is asserted.

    Raises:
        UnmakeableError: None was found.
    """
    validator = Validator(schema, formats=formats)
    left = _IN_ALL
    is_large = False
    for number in range(TRIES):
        maker = _Maker(schema, Random(f"{seed}/{number}"), min(MOST, left), wise=number < _WISE)  # noqa: S311
        try:
            value = maker.value(schema, 0)
        except (_DeadEndError, RecursionError) as error:
            is_large = is_large or isinstance(error, _TooMuchError)
        else:
            if not validator.find_errors(value):
                return value
        left -= maker.taken
        if left <= 0:
            break
    if is_large:
        raise UnmakeableError(
            f"it asks for more than {MOST:,} values, or for a text of more than {_LONGEST:,} characters"
        )
    raise UnmakeableError("none of the values that were tried fits")


class _Maker:
    """One try. A wise one takes examples, defaults and whole objects; others leave out and choose at random."""

    def __init__(self, schema: Any, chance: Random, steps: int, *, wise: bool) -> None:
        self._root = schema
        self._chance = chance
        self._steps = steps
        self.taken = 0
        self._wise = wise
        dialect = dialects.of(schema) or dialects.DRAFT_2020_12
        self._keywords = dialect.keywords
        self._hides_siblings = dialect.reference_hides_siblings
        self._targets: Mapping[str, Any] = _targets(schema, dialect)

    def _take(self, steps: int) -> None:
        """Go on with what takes so many steps."""
        if self.taken + steps > self._steps:
            self.taken += self._steps // TRIES  # looking took something
            raise _TooMuchError
        self.taken += steps

    def value(self, schema: Any, depth: int) -> Any:
        """A value for a schema, which may be a boolean."""
        self._take(1)
        if schema is False or depth > _DEEPEST:
            raise _DeadEndError
        if not isinstance(schema, dict):
            return self._word()
        merged = self._merged(schema, depth)
        if "const" in merged:
            return merged["const"]
        if self._wise and merged.get("examples") and isinstance(merged["examples"], list):
            return self._chance.choice(merged["examples"])
        if isinstance(merged.get("enum"), list):
            if not merged["enum"]:
                raise _DeadEndError
            return self._chance.choice(merged["enum"])
        if self._wise and "default" in merged:
            return merged["default"]
        return self._of_kind(self._kind(merged, depth), merged, depth)

    def _of_kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> Any:
        makers: Mapping[str, Callable[[Mapping[str, Any], int], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": lambda inner, _: self._string(inner),
            "integer": lambda inner, _: self._number(inner, whole=True),
            "number": lambda inner, _: self._number(inner, whole=False),
            "boolean": lambda *_: self._chance.random() < 0.5,
            "null": lambda *_: None,
        }
        if kind not in makers:
            raise _DeadEndError
        return makers[kind](schema, depth)

    def _kind(self, schema: Mapping[str, Any], depth: int) -> str:
        types = schema.get("type")
        if isinstance(types, str):
            return types
        if isinstance(types, list) and types:
            if depth > _DEEP and "null" in types:
                return "null"
            telling = [one for one in types if one != "null"] if self._wise else types
            return str(self._chance.choice(telling or types))
        meant = (kind for kind, words in _KINDS.items() if any(word in schema for word in words))
        return next(meant, "string" if self._wise else self._chance.choice(TYPES))

    # Schemas that are made of others

    def _merged(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """A schema with what it refers to, all its parts, and one of each of its alternatives folded in."""
        self._take(1)
        if depth > _DEEPEST:
            raise _DeadEndError
        if self._hides_siblings and "$ref" in schema:
            schema = {"$ref": schema["$ref"]}
        schema = {key: value for key, value in schema.items() if key in self._keywords}  # others may hold anything
        made = {key: value for key, value in schema.items() if key not in _FOLDED}
        for part in self._parts(schema, depth):
            if part is False:
                raise _DeadEndError
            if isinstance(part, dict):
                other = self._merged(part, depth + 1)
                self._take(_work(made, other))
                made = _both(made, other)
        return made

    def _parts(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        for keyword in KEYWORDS:
            if isinstance(schema.get(keyword), str) and schema[keyword] in self._targets:
                yield self._targets[schema[keyword]]
        yield from schema.get("allOf") or ()
        for keyword in ("anyOf", "oneOf"):
            if options := schema.get(keyword):
                ending = [one for one in options if isinstance(one, dict) and not _is_open(one)]
                yield self._chance.choice(ending if depth > _DEEP and ending else options)
        if "if" in schema:
            fits = self._chance.random() < 0.5
            yield from (schema["if"], schema.get("then")) if fits else (schema.get("else"),)

    # Kinds of values

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        wanted = schema.get("required")
        required = list(wanted) if isinstance(wanted, list) else []
        least, most = _whole(schema.get("minProperties"), 0), _whole(schema.get("maxProperties"), 10**6)
        self._check(least)
        made: dict[str, Any] = {}
        for name, inner in properties.items():
            is_required = name in required
            room = len(made) + sum(other not in made for other in required) < most
            likely = depth <= _DEEP and (self._wise or self._chance.random() < 0.5)
            if is_required or (likely and room and inner is not False):
                try:
                    made[name] = self.value(inner, depth + 1)
                except _DeadEndError:
                    if is_required:
                        raise
        also: Mapping[str, Sequence[str]] = schema.get("dependentRequired") or {}
        for name in [*required, *(other for key, names in also.items() if key in made for other in names)]:
            if name not in made:
                made[name] = self.value(properties.get(name, self._for_key(name, schema)), depth + 1)
        for number in range(10 * least):
            if len(made) >= least:
                break
            self._take(1)
            name = self._key(schema, number)
            if name not in made:
                made[name] = self.value(properties.get(name, self._for_key(name, schema)), depth + 1)
        return made

    def _key(self, schema: Mapping[str, Any], number: int) -> str:
        """A name for a property that has none."""
        if isinstance(schema.get("propertyNames"), dict):
            name = self.value({"type": "string", **schema["propertyNames"]}, 0)
            return name if isinstance(name, str) else "key"
        if schema.get("patternProperties"):
            return self._matching(self._chance.choice(list(schema["patternProperties"])), 0, 40)
        names = list(schema.get("properties") or ())
        return str(names[number]) if number < len(names) else f"{self._word()}{number or ''}"

    def _for_key(self, name: str, schema: Mapping[str, Any]) -> Any:
        """The schema of a property that `properties` does not name."""
        for pattern, inner in (schema.get("patternProperties") or {}).items():
            self._take(_CHARACTERS // 10)  # for making the validator
            if not Validator({"pattern": pattern}).find_errors(name):
                return inner
        return schema.get("additionalProperties", True)

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        items = schema.get("items", True)
        places = schema.get("prefixItems") or (items if isinstance(items, list) else [])
        rest = schema.get("additionalItems", True) if isinstance(items, list) else items
        least, most = _whole(schema.get("minItems"), 0), _whole(schema.get("maxItems"), 10**6)
        few = least if depth > _DEEP or not (self._wise or self._chance.random() < 0.7) else max(least, 1)
        size = min(max(few, len(places)) if self._wise else few, most)
        if few and rest is not False and not places:
            size = self._chance.randint(size, min(most, max(size, least + 2)))
        if size > len(places) and rest is False:
            size = len(places)
        self._check(size)
        made: list[Any] = []
        if isinstance(schema.get("contains"), dict):
            self._check(_whole(schema.get("minContains"), 1))
            rest = rest if isinstance(rest, dict) else {}
            fitting = _both(rest, self._merged(schema["contains"], depth + 1))
            made += [self.value(fitting, depth + 1) for _ in range(_whole(schema.get("minContains"), 1))]
        while len(made) < size:
            made.append(self._further(made, places, rest, schema.get("uniqueItems") is True, depth))
        return made

    def _further(self, made: list[Any], places: Sequence[Any], rest: Any, unique: bool, depth: int) -> Any:
        schema = places[len(made)] if len(made) < len(places) else rest
        for _ in range(20):
            value = self.value(schema, depth + 1)
            self._take(len(made) // _COMPARED if unique else 0)
            if not unique or not any(are_equal(value, other) for other in made):
                return value
        raise _DeadEndError

    def _string(self, schema: Mapping[str, Any]) -> str:
        least, most = _whole(schema.get("minLength"), 0), _whole(schema.get("maxLength"), 10**6)
        if least > _LONGEST:
            raise _TooMuchError
        self._take(max(least, 0) // _CHARACTERS)
        if isinstance(schema.get("pattern"), str):
            return self._matching(schema["pattern"], least, most)
        form = schema.get("format")
        if isinstance(form, str) and form in _FORMATS:
            return _FORMATS[form](self._chance)
        if schema.get("contentEncoding") == "base64":
            return self._base64(least, most)
        words = [self._word()]
        length = len(words[0])
        while length < least:
            words.append(self._word())
            length += 1 + len(words[-1])
        made = " ".join(words)
        return made[: min(most, max(len(made), least))] if len(made) <= most else made[:most]

    def _base64(self, least: int, most: int) -> str:
        """Bytes of a word or more in base64 (RFC 4648, section 4), whose length is a multiple of four."""
        length = min(max(least + 2, 8), max(most, 0)) // 4 * 4
        return b64encode(self._chance.randbytes(length // 4 * 3)).decode()

    def _matching(self, pattern: str, least: int, most: int) -> str:
        """A text for a pattern: the shortest of several that has the length."""
        self._take(10 * len(pattern) // _CHARACTERS)
        try:
            tried = []
            for _ in range(10):
                tried.append(patterns.text(pattern, self._chance))
                self._take(len(tried[-1]) // _CHARACTERS)
        except patterns.UnreadableError:
            tried = [self._word(), str(self._chance.randint(0, 99))]
        return min(tried, key=lambda one: (not least <= len(one) <= most, len(one)))

    def _word(self) -> str:
        return self._chance.choice(_WORDS)

    def _number(self, schema: Mapping[str, Any], *, whole: bool) -> int | float:
        step = _step(schema, whole=whole)
        low, high = _limits(schema, step)
        first, last = math.ceil(low / step), math.floor(high / step)
        if first > last:
            raise _DeadEndError
        value = self._chance.randint(first, last) * step
        if whole or (value.denominator == 1 and value > 2**53):
            return int(value)
        try:
            return float(value)
        except OverflowError:
            raise _DeadEndError from None

    def _check(self, count: int) -> None:
        """Do not begin with more values than there are steps left."""
        if count > self._steps - self.taken:
            self._take(count)


_FOLDED: Final = frozenset({*KEYWORDS, "allOf", "anyOf", "oneOf", "if", "then", "else", "$defs", "definitions"})
_SMALLER: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"})
_LARGER: Final = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"})


def _both(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that accepts what both accept, as far as one without `allOf` can say so."""
    made = dict(one)
    for key, theirs in two.items():
        ours = made.get(key)
        if key not in made:
            made[key] = theirs
        elif key == "properties" and isinstance(ours, dict) and isinstance(theirs, dict):
            clashing = {name: {"allOf": [ours[name], theirs[name]]} for name in ours if name in theirs}
            made[key] = {**ours, **theirs, **clashing}
        elif key == "required" and isinstance(ours, list) and isinstance(theirs, list):
            made[key] = [*dict.fromkeys([*ours, *theirs])]
        elif key == "enum" and isinstance(ours, list) and isinstance(theirs, list):
            made[key] = [value for value in ours if any(are_equal(value, other) for other in theirs)]
        elif key == "type":
            made[key] = _common(ours, theirs)
        elif key in _SMALLER and _is_number(ours) and _is_number(theirs):
            made[key] = min(ours, theirs)
        elif key in _LARGER and _is_number(ours) and _is_number(theirs):
            made[key] = max(ours, theirs)
        elif key == "items" and isinstance(ours, dict) and isinstance(theirs, dict):
            made[key] = {"allOf": [ours, theirs]}
        elif theirs is False:
            made[key] = False
    return made


def _work(one: Mapping[str, Any], two: Mapping[str, Any]) -> int:
    """The steps that it takes to fold two schemas into one."""
    enums = [len(schema["enum"]) if isinstance(schema.get("enum"), list) else 0 for schema in (one, two)]
    names = [len(schema[key]) for schema in (one, two) for key in ("properties", "required") if schema.get(key)]
    return (enums[0] * enums[1] + sum(names)) // _COMPARED


def _common(one: Any, two: Any) -> Any:
    """The types that both name; a whole number is a number, too."""
    ones, twos = ([types] if isinstance(types, str) else list(types or ()) for types in (one, two))
    found = [name for name in ones if name in twos]
    if not {"integer", "number"} & {*found} and {"integer", "number"} <= {*ones, *twos}:
        found.append("integer")
    if not found:
        raise _DeadEndError
    return found[0] if len(found) == 1 else found


def _step(schema: Mapping[str, Any], *, whole: bool) -> Fraction:
    """How far the values lie apart that a number may have: fine enough for several between its bounds."""
    if _is_number(schema.get("multipleOf")) and schema["multipleOf"] > 0:
        step = _fraction(schema["multipleOf"])
        return step * step.denominator if whole else step
    if whole:
        return Fraction(1)
    step = Fraction(1, 10)
    low, high = _limits(schema, Fraction(0))
    while low < high < low + 4 * step:
        step /= 10
    return step


def _limits(schema: Mapping[str, Any], step: Fraction) -> tuple[Fraction, Fraction]:
    """The smallest and the largest value that a number may have; a hundred steps where there is no bound."""
    low, high = (
        _bound(schema, "minimum", "exclusiveMinimum", step),
        _bound(schema, "maximum", "exclusiveMaximum", -step),
    )
    span = 100 * step
    if low is None:
        return (Fraction(0), span) if high is None else (min(Fraction(0), high - span), high)
    if high is None:
        return low, low + span
    return low, high


def _bound(schema: Mapping[str, Any], name: str, exclusive: str, step: Fraction) -> Fraction | None:
    """A bound, moved inwards where it is excluded: by a step."""
    found = _fraction(schema[name]) if _is_number(schema.get(name)) else None
    open_: Any = schema.get(exclusive)
    if open_ is True and found is not None:  # draft-04
        return found + step
    if _is_number(open_):
        edge = _fraction(open_) + step
        found = edge if found is None else (max(found, edge) if name == "minimum" else min(found, edge))
    return found


def _fraction(value: float) -> Fraction:
    """The number as it is written."""
    return Fraction(value) if isinstance(value, int) else Fraction(str(value))


def _is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and math.isfinite(value)
    )


def _whole(value: Any, default: int) -> int:
    return int(value) if _is_number(value) else default


def _is_open(schema: Mapping[str, Any]) -> bool:
    """Whether a schema can hold others, so that it may go on for ever."""
    return bool(schema.keys() & {*KEYWORDS, "properties", "items", "allOf", "anyOf", "oneOf", "prefixItems"})


def _targets(schema: Any, dialect: dialects.Dialect) -> Mapping[str, Any]:
    """What each reference in a schema leads to, by its text."""
    if not isinstance(schema, dict):
        return {}
    found = Outline(Place(""), schema, dialect, Folder("", {}))
    return {
        reference.text: at(schema, reference.target.pointer)
        for reference in found.references
        if isinstance(reference.target, Local)
    }


def _date(chance: Random) -> str:
    return f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"


def _time(chance: Random) -> str:
    return f"{chance.randint(0, 23):02}:{chance.randint(0, 59):02}:00Z"


def _name(chance: Random) -> str:
    return chance.choice(_WORDS)


_FORMATS: Final[Mapping[str, Callable[[Random], str]]] = {
    "date": _date,
    "time": _time,
    "date-time": lambda chance: f"{_date(chance)}T{_time(chance)}",
    "duration": lambda chance: f"PT{chance.randint(1, 59)}M",
    "email": lambda chance: f"{_name(chance)}@example.com",
    "idn-email": lambda chance: f"{_name(chance)}@example.com",
    "hostname": lambda chance: f"{_name(chance)}.example.com",
    "idn-hostname": lambda chance: f"{_name(chance)}.example.com",
    "ipv4": lambda chance: f"192.0.2.{chance.randint(1, 254)}",
    "ipv6": lambda chance: f"2001:db8::{chance.randint(1, 0xFFFF):x}",
    "uri": lambda chance: f"https://example.com/{_name(chance)}",
    "uri-reference": lambda chance: f"/{_name(chance)}",
    "uri-template": lambda chance: f"https://example.com/{{{_name(chance)}}}",
    "iri": lambda chance: f"https://example.com/{_name(chance)}",
    "iri-reference": lambda chance: f"/{_name(chance)}",
    "uuid": lambda chance: str(UUID(int=chance.getrandbits(128), version=4)),
    "json-pointer": lambda chance: f"/{_name(chance)}",
    "relative-json-pointer": lambda chance: f"{chance.randint(0, 3)}/{_name(chance)}",
    "regex": lambda chance: f"^{_name(chance)}$",
}
