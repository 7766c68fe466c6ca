"""Searches for instances that match several schemas, by expanding them into groups without alternatives.

The search is finite and deterministic. Simple values and edge cases come first or, with heuristics, realistic values.
The results are only candidates, which callers must validate.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from stubwright.jsonschema.instances.heuristics import LONGEST, ExampleValues
from stubwright.jsonschema.instances.parts import AT, EACH, NUMBER_KEYWORDS, TEXT_KEYWORDS, Subschema, is_valid
from stubwright.jsonschema.instances.scalars import list_numbers, list_texts
from stubwright.jsonschema.instances.violations import Group, is_named, make_invalid, make_names, matches
from stubwright.jsonschema.references import KEYWORDS
from stubwright_runtime.values.equality import are_equal

if TYPE_CHECKING:
    from stubwright.ir import Json

_Item = TypeVar("_Item")

_FOLLOWED: Final = 12
"""The maximum number of followed references for a value."""

_SOME: Final = 10
"""The number of values to try for a property or item."""

_MANY: Final = 300
"""The maximum number of items and properties. Realistic instances are limited only by steps."""

_COMPARED: Final = 20
"""Item comparisons per step."""

_CHARACTERS: Final = 100
"""String characters per step."""

_INVALID: Final = 10
"""Invalid strings or numbers per step."""

_EXCLUSIVE: Final = 6
"""The maximum number of `oneOf` alternatives to make exclusive. Longer lists rely on validation."""

_IN_PLACE: Final = frozenset({*"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
_OBJECT: Final = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"}
)
_ARRAY: Final = frozenset({"items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems", AT, EACH})
_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "string": TEXT_KEYWORDS,
    "integer": frozenset(),
    "number": NUMBER_KEYWORDS,
    "boolean": frozenset(),
    "null": frozenset(),
    "array": _ARRAY,
    "object": _OBJECT,
}
"""The types, each with its keywords."""

_ALTERNATIVES: Final = 8
"""Alternatives per step."""

_EXTRA: Final = ("extra", "a", "b", "x-a", "1", "key", "A", "")


class ExhaustedError(Exception):
    """The search has used all its steps."""


@dataclass
class Budget:
    """The remaining steps of several searches. A slow machine runs about 15,000 steps per second.

    Unlike time limits, step limits give the same results on every machine.
    """

    steps: int
    reserved: int = 0

    def reserve_for(self, later: int) -> None:
        """Reserve an equal share of the remaining steps for each of the `later` searches."""
        self.reserved = self.steps * later // (later + 1)

    def spend(self, count: int = 1) -> None:
        """Use up steps.

        Raises:
            ExhaustedError: No unreserved steps are left.
        """
        if self.steps <= self.reserved:
            raise ExhaustedError
        self.steps = max(self.steps - count, self.reserved)


@dataclass
class Search:
    """A search with a step limit and an instance depth limit."""

    steps: int
    levels: int
    budget: Budget
    is_cut: bool = False
    """True if a deeper search could find more instances."""

    heuristics: ExampleValues | None = None
    excludes: bool = True
    """True if a value for one `oneOf` alternative must violate the other alternatives."""

    counts_parts: bool = False
    """True if each part of a value costs a step, to limit its size."""

    is_large: bool = False
    """True if a realistic value was too large."""

    _alike: dict[tuple[int, int], bool] = field(default_factory=dict)

    def _spend(self) -> None:
        if self.steps <= 0:
            self.is_large = True
            raise ExhaustedError
        self.budget.spend()
        self.steps -= 1

    def _count_parts(self, value: Json) -> None:
        """Spend a step on each part of a value, and more on long strings."""
        waiting = [value] if self.counts_parts else []
        while waiting:
            self._spend()
            part = waiting.pop()
            if isinstance(part, dict | list):
                waiting += part.values() if isinstance(part, dict) else part
            elif isinstance(part, str):
                for _ in range(len(part) // _CHARACTERS):
                    self._spend()

    def _is_too_many(self, count: int) -> bool:
        most = _MANY if self.heuristics is None else self.steps
        self.is_large = self.is_large or count > most
        return count > most

    def find_values(self, group: Group, depth: int = 0) -> Iterator[Json]:
        """Yield values that probably match all schemas of a group.

        Raises:
            ExhaustedError: No steps are left.
        """
        if depth > self.levels:
            self.is_cut = True
            return
        names = (*dict.fromkeys(name for part in group for name in _find_names(part, 0)), *_EXTRA)
        paths = self._expand(group, _Path(names, self.excludes), depth)
        yield from _interleave(self._make(path, depth, names) for path in paths)

    def _choose(self, group: Group, depth: int, most: int = _SOME) -> Choices:
        values = islice(self.find_values(group, depth), most)
        return Choices(values) if self.heuristics is not None else Choices(iter(()), list(values))

    # Schemas for the same value

    def _expand(self, waiting: Iterable[Subschema], path: _Path, depth: int) -> Iterator[Group]:
        """Yield groups of schemas without alternatives. A value must match one group."""
        self._spend()
        pending = [*waiting]
        while pending:
            part = pending.pop()
            if part.schema is False:
                return
            if part.is_settled:
                path = replace(path, plain=(*path.plain, part))
                continue
            if not isinstance(part.schema, dict) or not part.schema:
                continue
            if any(part.schema is seen.schema and part.validator is seen.validator for seen in path.seen):
                continue  # a reference cycle, or two paths to the same schema
            alternatives = [
                part.follow(part.schema[keyword])
                for keyword in KEYWORDS
                if keyword in part.schema.keys() & part.validator.dialect.keywords
            ]
            pending += [target for target in alternatives if target is not None]
            path = replace(path, followed=path.followed + len(alternatives))
            if path.followed > _FOLLOWED * (1 if self.heuristics is None else _FOLLOWED):
                return
            if part.validator.dialect.reference_hides_siblings and "$ref" in part.schema:
                path = replace(path, seen=(*path.seen, part))
                continue
            pending += [part.with_schema(inner) for inner in part.get("allOf", ())]
            count = len(path.choices)
            path = path.add(part)
            # Negating a large schema creates a slow choice between many alternatives.
            self.budget.spend(sum(map(len, path.choices[count:])) // _ALTERNATIVES)
            if self._contradicts(path):
                return
        if not _find_types(path.plain):
            return
        if not path.choices:
            yield path.plain
            return
        # Start with the shortest choice, since its contradictions prune the longer ones.
        first, *rest = sorted(path.choices, key=len)
        remaining = replace(path, choices=tuple(rest))
        options = first if self.heuristics is None else self.heuristics.order_options(first, depth)
        yield from _interleave(self._expand(option, remaining, depth) for option in options)

    def _contradicts(self, path: _Path) -> bool:
        """Return whether the path's last schema negates an earlier schema, or the reverse."""
        *others, last = path.seen
        negated = _get_negated(last)
        if negated is not None:
            return any(self._is_same(negated, other) for other in others)
        return any(self._is_same(inner, last) for inner in map(_get_negated, others) if inner is not None)

    def _is_same(self, left: Subschema, right: Subschema) -> bool:
        # Compare as JSON text, since `1`, `1.0` and `True` are equal in Python.
        if left.schema != right.schema or _write(left.schema) != _write(right.schema):  # the first test is faster
            return False
        if left.validator is right.validator or not [*_list_references(left.schema)]:
            return True
        return self._have_same_definitions(left, right)

    def _have_same_definitions(self, left: Subschema, right: Subschema) -> bool:
        """Return whether both schemas' roots have the same definitions, so that equal references have equal targets."""
        key = (id(left.validator), id(right.validator))
        if key not in self._alike:
            roots = [
                _write([root.get(word) for word in ("$defs", "definitions")])
                for part in (left, right)
                for root in [part.validator.schema if isinstance(part.validator.schema, dict) else {}]
            ]
            inner = [
                reference
                for part in (left, right)
                for reference in _list_references(part.validator.schema)
                if not reference.startswith(("#/$defs/", "#/definitions/"))
            ]
            self._alike[key] = roots[0] == roots[1] and not inner
        return self._alike[key]

    # Values

    def _make(self, plain: Group, depth: int, names: Sequence[str]) -> Iterator[Json]:
        self._spend()
        heuristics = self.heuristics
        asserted = [part.schema for part in plain]
        if heuristics is not None:
            yield from (value for value in heuristics.list_suggested(asserted) if _match(plain, value))
        fixed = next(
            (part for part in plain if not part.is_settled and ("const" in part.schema or "enum" in part.schema)), None
        )
        if fixed is not None:
            listed = [fixed.schema["const"]] if "const" in fixed.schema else fixed.schema["enum"]
            yield from (value for value in self._order(listed) if _match(plain, value))
            return
        makers: Mapping[str, Callable[[], Iterator[Json]]] = {
            "object": lambda: self._make_objects(plain, depth, names),
            "array": lambda: self._make_arrays(plain, depth),
            "string": lambda: self._make_scalars(plain, self._list_texts(plain)),
            "number": lambda: self._make_scalars(plain, self._list_numbers(plain, is_integer=False)),
            "integer": lambda: self._make_scalars(
                plain, (int(value) for value in self._list_numbers(plain, is_integer=True) if value == int(value))
            ),
            "boolean": lambda: self._make_scalars(
                plain, heuristics.shuffle((True, False)) if heuristics else (True, False)
            ),
            "null": lambda: self._make_scalars(plain, (None,)),
        }
        types = _find_types(plain)
        if heuristics is not None and any("type" in schema for schema in asserted):
            types = heuristics.order_types(types, depth)
        yield from _interleave(makers[name]() for name in types)

    def _order(self, values: Sequence[Json]) -> Sequence[Json]:
        return values if self.heuristics is None else self.heuristics.shuffle(values)

    def _list_texts(self, plain: Group) -> Iterator[str]:
        if self.heuristics is not None:
            if self._is_too_long(plain):
                return
            yield from self.heuristics.list_texts([part.schema for part in plain])
        yield from list_texts(_list_keywords(plain))

    def _list_numbers(self, plain: Group, *, is_integer: bool) -> Iterator[float]:
        if self.heuristics is not None:
            yield from self.heuristics.list_numbers([part.schema for part in plain], is_integer=is_integer)
        yield from list_numbers(_list_keywords(plain))

    def _is_too_long(self, plain: Group) -> bool:
        least, _ = _find_limits(plain, "minLength", "maxLength")
        self.is_large = self.is_large or least > LONGEST
        return least > LONGEST

    def _make_scalars(self, plain: Group, candidates: Iterable[Json]) -> Iterator[Json]:
        tried: set[tuple[type, Json]] = set()  # with types, since `1`, `1.0` and `True` are equal
        for number, value in enumerate(candidates, 1):
            key = (type(value), value)
            fits = key not in tried and _match(plain, value)
            if fits or number % _INVALID == 0:
                self._spend()
            if fits:
                tried.add(key)
                if isinstance(value, str):
                    self._count_parts(value)
                yield value

    def _make_objects(self, plain: Group, depth: int, names: Sequence[str]) -> Iterator[dict[str, Json]]:
        least, most = _find_limits(plain, "minProperties", "maxProperties")
        needed = _close(plain, [name for part in plain for name in _to_names(part.get("required"))])
        if len(needed) > most or self._is_too_many(max(least, len(needed))):
            return
        known: dict[str, Choices] = {}

        def choose(name: str) -> Choices:
            if name not in known:
                group = _find_property(plain, name)
                known[name] = self._choose(group, depth + 1) if group is not None else Choices(iter(()))
            return known[name]

        optional = [name for name in names if name not in needed]

        def fill(value: dict[str, Json]) -> dict[str, Json] | None:
            """Add all required properties. Return None if a required property has no valid value."""
            filled = dict(value)
            for name in _close(plain, [*filled]):
                if name not in filled:
                    if not choose(name):
                        return None
                    filled[name] = choose(name)[0]
            numbered = (f"key{number}" for number in range(least))
            for name in (*optional, *numbered, *_make_more_names(plain, least)):
                if len(filled) >= least:
                    break
                others = _close(plain, [name])[1:]
                if name not in filled and all(other in filled for other in others) and choose(name):
                    filled[name] = choose(name)[0]
            return filled if least <= len(filled) <= most else None

        base: dict[str, Json] = {}
        for name in needed:
            if not choose(name):
                return
            base[name] = choose(name)[0]
        varied = _list_variants(base, needed, optional, choose)
        if self.heuristics is not None:
            varied = chain(self._list_realistic(plain, needed, most, depth, choose), varied)
        for value in map(fill, varied):
            self._spend()
            self._count_parts(value)
            if value is not None and _match(plain, value):
                yield value

    def _list_realistic(
        self, plain: Group, needed: Sequence[str], most: int, depth: int, choose: Callable[[str], Choices]
    ) -> Iterator[dict[str, Json]]:
        """Yield objects with the required and some optional properties, in schema order."""
        if self.heuristics is None:
            return
        declared = dict.fromkeys(name for part in plain for name in part.get("properties") or ())
        room = most - len(needed)
        chosen: list[str] = []
        for name in dict.fromkeys((*declared, *needed)):
            is_needed = name in needed
            if is_needed or (room > 0 and self.heuristics.includes_optional(depth) and choose(name)):
                chosen.append(name)
                room -= not is_needed
        for turn in range(_SOME):
            yield {name: choose(name)[turn] for name in chosen}

    def _make_arrays(self, plain: Group, depth: int) -> Iterator[list[Json]]:
        least, most = _find_limits(plain, "minItems", "maxItems")
        contained = [
            part.with_schema(part.schema["contains"])
            for part in plain
            if "contains" in part.schema
            for _ in range(0 if self._is_too_many(part.get("minContains", 1)) else int(part.get("minContains", 1)))
        ]
        wanted = [index for part in plain for index in part.get(AT, {})]
        least = max(least, len(contained), *(index + 1 for index in wanted), 0)
        unique = any(part.get("uniqueItems") is True for part in plain)
        if self._is_too_many(least):
            return
        tried: dict[tuple[int, int], Choices] = {}
        last = max([len(_split_items(part)[0]) for part in plain] + [index + 1 for index in wanted], default=0)
        sizes = [least, least + 1, least + 2, most, len(contained) + len(wanted), last]
        if self.heuristics is not None:
            sizes.insert(0, self.heuristics.choose_size(least, most, last, depth))
        largest = min(most, _MANY if self.heuristics is None else _MANY + least)
        for size in dict.fromkeys(size for size in sizes if least <= size <= largest):
            if unique and self.heuristics is not None and self._is_too_many(size * size // _COMPARED):
                return
            for offset in dict.fromkeys((0, size - len(contained))):
                choices: list[Choices] = []
                for index in range(size):
                    inside = index - offset if 0 <= index - offset < len(contained) else -1
                    # Items after the last separate schema share their values.
                    key = (min(index, last), inside)
                    if key not in tried:
                        group = _find_item(plain, index)
                        group = (*group, contained[inside]) if inside >= 0 else group
                        tried[key] = self._choose(
                            group, depth + 1, max(_SOME, size if unique or self.heuristics else 0)
                        )
                    choices.append(tried[key])
                    if not tried[key]:
                        break
                else:
                    for value in _list_item_variants(choices, unique=unique, is_realistic=self.heuristics is not None):
                        self._count_parts(value)
                        yield value


class Choices:
    """Lazily generated values for a property or item."""

    def __init__(self, waiting: Iterator[Json], values: Sequence[Json] = ()) -> None:
        self._waiting = waiting
        self._made = [*values]

    def _has(self, count: int) -> bool:
        self._made += islice(self._waiting, max(0, count - len(self._made)))
        return len(self._made) >= count

    def __bool__(self) -> bool:
        return self._has(1)

    def __getitem__(self, index: int) -> Json:
        """Return the value at an index. The index wraps around."""
        return self._made[index if self._has(index + 1) else index % len(self._made)]

    def take_slice(self, start: int = 0, end: int = 10**9) -> Iterator[Json]:
        """Yield the values between two indexes."""
        while start < end and self._has(start + 1):
            yield self._made[start]
            start += 1


@dataclass(frozen=True, slots=True)
class _Path:
    """A path through alternatives: the visited schemas, the parts without alternatives, and the remaining choices."""

    names: Sequence[str]
    excludes: bool
    plain: Group = ()
    choices: tuple[Sequence[Group], ...] = ()
    seen: Group = ()
    followed: int = 0

    def add(self, part: Subschema) -> _Path:
        schema, keywords = part.schema, part.validator.dialect.keywords | {AT, EACH}
        own = {key: value for key, value in schema.items() if key in keywords and key not in _IN_PLACE}
        return replace(
            self,
            plain=(*self.plain, replace(part, schema=own)) if own else self.plain,
            choices=(*self.choices, *_list_choices(part, self.names, excludes=self.excludes)),
            seen=(*self.seen, part),
        )


def _list_choices(part: Subschema, names: Sequence[str], *, excludes: bool) -> Iterator[Sequence[Group]]:
    keywords = part.validator.dialect.keywords
    if "anyOf" in part.schema:
        yield [(part.with_schema(option),) for option in part.schema["anyOf"]]
    if "oneOf" in part.schema:
        options = part.schema["oneOf"]
        exclusive = excludes and len(options) <= _EXCLUSIVE
        yield [
            (part.with_schema(option), *(part.negate(other) for other in options if exclusive and other is not option))
            for option in options
        ]
    if "if" in part.schema and "if" in keywords:
        condition = part.schema["if"]
        yield [
            (part.with_schema(condition), part.with_schema(part.get("then", True))),
            (part.negate(condition), part.with_schema(part.get("else", True))),
        ]
    for keyword in ("dependentSchemas", "dependencies"):
        for name, dependent in (part.get(keyword) or {}).items() if keyword in keywords else ():
            if not isinstance(dependent, list):
                absent = part.with_schema({"properties": {name: False}})
                yield [(absent,), (part.with_schema({"required": [name]}), part.with_schema(dependent))]
    if "not" in part.schema:
        yield list(make_invalid(part.with_schema(part.schema["not"]), names))


def _get_negated(part: Subschema) -> Subschema | None:
    return part.with_schema(part.schema["not"]) if part.schema.keys() == {"not"} else None


def _interleave(sources: Iterable[Iterator[_Item]]) -> Iterator[_Item]:
    """Yield an item from each source in turn, adding a source in each round."""
    remaining, active = iter(sources), deque[Iterator[_Item]]()
    while True:
        more = next(remaining, None)
        if more is not None:
            active.append(more)
        elif not active:
            return
        for _ in range(len(active)):
            source = active.popleft()
            for item in islice(source, 1):
                yield item
                active.append(source)


def _match(plain: Group, value: Json) -> bool:
    return all(part.fits(value) for part in plain)


def _list_keywords(plain: Group) -> list[Mapping[str, Any]]:
    return [
        keywords
        for part in plain
        for keywords in (part.schema, part.get("not") if part.is_settled else None)
        if isinstance(keywords, dict)
    ]


def _find_types(plain: Group) -> list[str]:
    allowed = {*_TYPES}
    for part in plain:
        types = part.get("type")
        if types is not None:
            named = {types} if isinstance(types, str) else {*types}
            allowed &= named | ({"integer"} if "number" in named else set())
    if "number" in allowed:
        allowed.discard("integer")
    stated = {keyword for part in plain for keyword in part.schema}
    return sorted(allowed, key=lambda name: (_TYPES[name].isdisjoint(stated), [*_TYPES].index(name)))


def _find_limits(plain: Group, low: str, high: str) -> tuple[int, int]:
    least = max((int(part.get(low, 0)) for part in plain), default=0)
    return least, min((int(part.get(high, 10**9)) for part in plain), default=10**9)


def _find_names(part: Subschema, depth: int) -> Iterator[str]:
    """Yield the property names in a schema, in its references, and in negated subschemas."""
    if not isinstance(part.schema, dict) or depth > 4:
        return
    schema = {key: value for key, value in part.schema.items() if key in part.validator.dialect.keywords}
    yield from schema.get("properties") or ()
    yield from _to_names(schema.get("required"))
    for pattern in schema.get("patternProperties") or ():
        yield from make_names(pattern, part, ())[:2]
    rule = schema.get("propertyNames")
    if isinstance(rule, dict):
        yield from (name for name in rule.get("enum") or () if isinstance(name, str))
        yield from (name for name in islice(list_texts([rule]), 4 * _SOME) if is_valid(part, rule, name))
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        yield from schema.get(keyword) or ()
    inner = [part.with_schema(schema[keyword]) for keyword in ("not", "if", "then", "else") if keyword in schema]
    inner += [part.with_schema(each) for keyword in ("allOf", "anyOf", "oneOf") for each in schema.get(keyword) or ()]
    inner += [target for word in KEYWORDS if word in schema for target in [part.follow(schema[word])] if target]
    for each in inner:
        yield from _find_names(each, depth + 1)


def _make_more_names(plain: Group, count: int) -> Iterator[str]:
    for part in plain:
        rule = part.get("propertyNames")
        if isinstance(rule, dict):
            yield from list_texts([rule])
        for pattern in part.get("patternProperties") or ():
            yield from (f"{name}{number}" for name in make_names(pattern, part, ())[:1] for number in range(count))


def _close(plain: Group, names: Sequence[str]) -> list[str]:
    """Add the names of properties that the properties in `names` require (`dependentRequired`, `dependencies`)."""
    closed = [*dict.fromkeys(names)]
    for name in closed:  # grows during the loop
        for part in plain:
            for keyword in ("dependentRequired", "dependencies"):
                required = (part.get(keyword) or {}).get(name)
                closed += [other for other in _to_names(required) if other not in closed]
    return closed


def _find_property(plain: Group, name: str) -> Group | None:
    group: list[Subschema] = []
    for part in plain:
        schema = part.schema
        rule = schema.get("propertyNames", True)
        if not is_valid(part, rule, name) and not (isinstance(rule, dict) and "$ref" in rule):
            return None
        if name in (schema.get("properties") or ()):
            group.append(part.with_schema(schema["properties"][name]))
        patterns = schema.get("patternProperties") or {}
        group += [part.with_schema(inner) for pattern, inner in patterns.items() if matches(part, pattern, name)]
        if "additionalProperties" in schema and not is_named(part, name):
            group.append(part.with_schema(schema["additionalProperties"]))
        if "unevaluatedProperties" in schema and not any(is_named(other, name) for other in plain):
            group.append(part.with_schema(schema["unevaluatedProperties"]))
    return None if any(part.schema is False for part in group) else tuple(group)


def _list_variants(
    base: dict[str, Json], needed: Sequence[str], optional: Sequence[str], choose: Callable[[str], Choices]
) -> Iterator[dict[str, Json]]:
    yield base
    for name in needed:
        yield from ({**base, name: value} for value in choose(name).take_slice(1))
    for name in optional:
        yield from ({**base, name: value} for value in choose(name).take_slice(0, 4))
    full = {**base, **{name: choose(name)[0] for name in optional if choose(name)}}
    yield full
    for name in full:
        yield {key: value for key, value in full.items() if key != name}
    for turn in range(1, _SOME):
        yield {name: choose(name)[turn] for name in full}


def _split_items(part: Subschema) -> tuple[Sequence[Json], Json]:
    items = part.get("items", True)
    if isinstance(items, list):
        return items, part.get("additionalItems", True)
    return part.get("prefixItems", ()), items


def _find_item(plain: Group, index: int) -> Group:
    group: list[Subschema] = []
    for part in plain:
        first, rest = _split_items(part)
        group.append(part.with_schema(first[index] if index < len(first) else rest))
        if index in part.get(AT, {}):
            group.append(part.with_schema(part.schema[AT][index]))
        if EACH in part.schema:
            group.append(part.with_schema(part.schema[EACH]))
        if "unevaluatedItems" in part.schema and not first and "items" not in part.schema:
            group.append(part.with_schema(part.schema["unevaluatedItems"]))
    return tuple(group)


def _list_item_variants(choices: Sequence[Choices], *, unique: bool, is_realistic: bool) -> Iterator[list[Json]]:
    """Yield the list of each item's first choice, then lists with one changed item. Realistic lists have distinct
    items.
    """
    diagonal = (choice[index] for index, choice in enumerate(choices))
    if is_realistic and not unique:
        yield [*diagonal]
    base: list[Json] = []
    for index, choice in enumerate(choices):
        value = choice[0]
        if unique:
            ordered = chain(
                choice.take_slice(index if is_realistic else 0), choice.take_slice(0, index if is_realistic else 0)
            )
            value = next((each for each in ordered if not any(are_equal(each, other) for other in base)), value)
        base.append(value)
    yield base
    if not is_realistic and not unique:
        yield [*diagonal]
    for index, choice in enumerate(choices[:3]):
        for value in choice.take_slice(1):
            yield [*base[:index], value, *base[index + 1 :]]


def _write(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _list_references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (schema[word] for word in KEYWORDS if isinstance(schema.get(word), str))
        for inner in schema.values():
            yield from _list_references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _list_references(inner)


def _to_names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
