"""Instances that fit several schemas at once, each of which may say what it must not be.

Takes parts; gives values that are likely to fit them all, in turns from each way in which they can. Alternatives,
conditions and negations become groups of plain schemas, and a value is made for each group. The search is finite and
always the same; whether a value really fits is for the judges to say.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from stubwright.diff.subsumption.congruence import same
from stubwright.diff.subsumption.parts import AT, EACH, NUMBER_KEYWORDS, REFERENCES, TEXT_KEYWORDS, Part, is_valid
from stubwright.diff.subsumption.scalars import list_numbers, list_texts
from stubwright.diff.subsumption.violations import Group, is_named, make_names, matches, violate
from stubwright_runtime.values.equality import are_equal

if TYPE_CHECKING:
    from stubwright.ir import Json

_Item = TypeVar("_Item")

_FOLLOWED: Final = 12
"""References that are followed for one value."""

_SOME: Final = 10
"""Values that are tried for one property or item."""

_MANY: Final = 300
"""Items and properties that an instance has at most."""

_REFUSED: Final = 10
"""Texts or numbers that do not fit, which together take one step."""

_EXCLUSIVE: Final = 6
"""Alternatives of `oneOf` of which a value must fit just one; of more, it is left to the judges."""

_IN_PLACE: Final = frozenset({*REFERENCES, "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
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
"""The types, each with keywords that are about it."""

_EXTRA: Final = ("extra", "a", "b", "x-a", "1", "key", "A", "")


class ExhaustedError(Exception):
    """The search took all the steps that it may take."""


@dataclass
class Budget:
    """Steps that all searches of one comparison may take together: on a slow machine, some 15,000 are a second.

    Steps are counted, and not the time, so that a comparison says the same on each machine. Some may be `kept` for
    searches that come later.
    """

    steps: int
    kept: int = 0

    def keep_for(self, later: int) -> None:
        """Keep what is left for so many later searches, except for an equal share."""
        self.kept = self.steps * later // (later + 1)

    def take(self) -> None:
        """Take one step.

        Raises:
            ExhaustedError: There are none left, or they are kept.
        """
        if self.steps <= self.kept:
            raise ExhaustedError
        self.steps -= 1


@dataclass
class Search:
    """One search, which may take so many steps of a budget, and makes instances with so many levels."""

    steps: int
    levels: int
    budget: Budget
    is_cut: bool = False
    """Whether a search with more levels may find more."""

    _alike: dict[tuple[int, int], bool] = field(default_factory=dict)

    def _take(self) -> None:
        if self.steps <= 0:
            raise ExhaustedError
        self.budget.take()
        self.steps -= 1

    def values(self, group: Group, depth: int = 0) -> Iterator[Json]:
        """Yield values that are likely to fit all parts.

        Raises:
            ExhaustedError: There are no steps left.
        """
        if depth > self.levels:
            self.is_cut = True
            return
        names = (*dict.fromkeys(name for part in group for name in _find_names(part, 0)), *_EXTRA)
        ways = self._expand(group, _Way(names))
        yield from _take_turns(self._make(way, depth, names) for way in ways)

    def _some(self, group: Group, depth: int, most: int = _SOME) -> list[Json]:
        return list(islice(self.values(group, depth), most))

    # What applies to the same value

    def _expand(self, waiting: Iterable[Part], way: _Way) -> Iterator[Group]:
        """Yield the groups of plain schemas, one of which a value must fit."""
        self._take()
        pending = [*waiting]
        while pending:
            part = pending.pop()
            if part.schema is False:
                return
            if part.is_settled:
                way = replace(way, plain=(*way.plain, part))
                continue
            if not isinstance(part.schema, dict) or not part.schema:
                continue
            found = [part.follow(part.schema[keyword]) for keyword in REFERENCES if keyword in part.schema]
            pending += [target for target in found if target is not None]
            way = replace(way, followed=way.followed + len(found))
            if way.followed > _FOLLOWED:
                return
            if part.judge.dialect.reference_hides_siblings and "$ref" in part.schema:
                continue
            pending += [part.at(inner) for inner in part.get("allOf", ())]
            way = way.add(part)
            if self._contradicts(way):
                return
        if not _find_types(way.plain):
            return
        if not way.choices:
            yield way.plain
            return
        first, *rest = sorted(way.choices, key=len)
        left = replace(way, choices=tuple(rest))
        yield from _take_turns(self._expand(option, left) for option in first)

    def _contradicts(self, way: _Way) -> bool:
        """Tell whether the schema that was added last is the negation of another one, or the other way around."""
        *others, last = way.seen
        negated = _get_negated(last)
        if negated is not None:
            return any(self._is_same(negated, other) for other in others)
        return any(self._is_same(inner, last) for inner in map(_get_negated, others) if inner is not None)

    def _is_same(self, one: Part, two: Part) -> bool:
        if one.schema != two.schema or not same(one.schema, two.schema):  # the first is quicker
            return False
        return one.judge is two.judge or not [*_list_references(one.schema)] or self._share(one, two)

    def _share(self, one: Part, two: Part) -> bool:
        """Tell whether references into definitions lead to the same in both."""
        key = (id(one.judge), id(two.judge))
        if key not in self._alike:
            roots = [
                json.dumps([root.get(word) for word in ("$defs", "definitions")], sort_keys=True)
                for part in (one, two)
                for root in [part.judge.schema if isinstance(part.judge.schema, dict) else {}]
            ]
            inner = [
                reference
                for part in (one, two)
                for reference in _list_references(part.judge.schema)
                if not reference.startswith(("#/$defs/", "#/definitions/"))
            ]
            self._alike[key] = roots[0] == roots[1] and not inner
        return self._alike[key]

    # Values

    def _make(self, plain: Group, depth: int, names: Sequence[str]) -> Iterator[Json]:
        self._take()
        fixed = next(
            (part for part in plain if not part.is_settled and ("const" in part.schema or "enum" in part.schema)), None
        )
        if fixed is not None:
            listed = [fixed.schema["const"]] if "const" in fixed.schema else fixed.schema["enum"]
            yield from (value for value in listed if _fit(plain, value))
            return
        makers: Mapping[str, Callable[[], Iterator[Json]]] = {
            "object": lambda: self._make_objects(plain, depth, names),
            "array": lambda: self._make_arrays(plain, depth),
            "string": lambda: self._make_scalars(plain, list_texts(_list_keywords(plain))),
            "number": lambda: self._make_scalars(plain, list_numbers(_list_keywords(plain))),
            "integer": lambda: self._make_scalars(
                plain, (int(value) for value in list_numbers(_list_keywords(plain)) if value == int(value))
            ),
            "boolean": lambda: self._make_scalars(plain, (True, False)),
            "null": lambda: self._make_scalars(plain, (None,)),
        }
        yield from _take_turns(makers[name]() for name in _find_types(plain))

    def _make_scalars(self, plain: Group, candidates: Iterable[Json]) -> Iterator[Json]:
        given: set[tuple[type, Json]] = set()
        for number, value in enumerate(candidates, 1):
            key = (type(value), value)
            fits = key not in given and _fit(plain, value)
            if fits or number % _REFUSED == 0:
                self._take()
            if fits:
                given.add(key)
                yield value

    def _make_objects(self, plain: Group, depth: int, names: Sequence[str]) -> Iterator[dict[str, Json]]:
        least, most = _find_limits(plain, "minProperties", "maxProperties")
        needed = _close(plain, [name for part in plain for name in _to_names(part.get("required"))])
        if len(needed) > min(most, _MANY) or least > _MANY:
            return
        known: dict[str, list[Json]] = {}

        def give(name: str) -> list[Json]:
            if name not in known:
                group = _find_property(plain, name)
                known[name] = self._some(group, depth + 1) if group is not None else []
            return known[name]

        optional = [name for name in names if name not in needed]

        def fill(value: dict[str, Json]) -> dict[str, Json] | None:
            """Add what else the object must have; None if that is impossible."""
            filled = dict(value)
            for name in _close(plain, [*filled]):
                if name not in filled:
                    if not give(name):
                        return None
                    filled[name] = give(name)[0]
            numbered = (f"key{number}" for number in range(least))
            for name in (*optional, *numbered, *_make_more_names(plain, least)):
                if len(filled) >= least:
                    break
                if name not in filled and give(name) and len(_close(plain, [*filled, name])) <= len(filled) + 1:
                    filled[name] = give(name)[0]
            return filled if least <= len(filled) <= most else None

        base: dict[str, Json] = {}
        for name in needed:
            if not give(name):
                return
            base[name] = give(name)[0]
        for value in map(fill, _vary(base, needed, optional, give)):
            self._take()
            if value is not None and _fit(plain, value):
                yield value

    def _make_arrays(self, plain: Group, depth: int) -> Iterator[list[Json]]:
        least, most = _find_limits(plain, "minItems", "maxItems")
        contained = [
            part.at(part.schema["contains"])
            for part in plain
            if "contains" in part.schema
            for _ in range(min(int(part.get("minContains", 1)), _MANY))
        ]
        wanted = [index for part in plain for index in part.get(AT, {})]
        least = max(least, len(contained), *(index + 1 for index in wanted), 0)
        unique = any(part.get("uniqueItems") is True for part in plain)
        given: dict[tuple[int, int], list[Json]] = {}
        last = max([len(_split_items(part)[0]) for part in plain] + [index + 1 for index in wanted], default=0)
        sizes = [least, least + 1, least + 2, most, len(contained) + len(wanted), last]
        for size in dict.fromkeys(size for size in sizes if least <= size <= min(most, _MANY)):
            for offset in dict.fromkeys((0, size - len(contained))):
                choices: list[list[Json]] = []
                for index in range(size):
                    inside = index - offset if 0 <= index - offset < len(contained) else -1
                    key = (min(index, last), inside)
                    if key not in given:
                        group = _find_item(plain, index)
                        group = (*group, contained[inside]) if inside >= 0 else group
                        given[key] = self._some(group, depth + 1, max(_SOME, size if unique else 0))
                    choices.append(given[key])
                    if not given[key]:
                        break
                else:
                    yield from _vary_items(choices, unique=unique)


@dataclass(frozen=True, slots=True)
class _Way:
    """One way through alternatives: what was seen, plain schemas so far, and choices that are still to be made."""

    names: Sequence[str]
    plain: Group = ()
    choices: tuple[Sequence[Group], ...] = ()
    seen: Group = ()
    followed: int = 0

    def add(self, part: Part) -> _Way:
        """Return the way with one more schema that applies."""
        schema, keywords = part.schema, part.judge.dialect.keywords | {AT, EACH}
        own = {key: value for key, value in schema.items() if key in keywords and key not in _IN_PLACE}
        return replace(
            self,
            plain=(*self.plain, replace(part, schema=own)) if own else self.plain,
            choices=(*self.choices, *_list_choices(part, self.names)),
            seen=(*self.seen, part),
        )


def _list_choices(part: Part, names: Sequence[str]) -> Iterator[Sequence[Group]]:
    keywords = part.judge.dialect.keywords
    if "anyOf" in part.schema:
        yield [(part.at(option),) for option in part.schema["anyOf"]]
    if "oneOf" in part.schema:
        options = part.schema["oneOf"]
        exclusive = len(options) <= _EXCLUSIVE
        yield [
            (part.at(option), *(part.negate(other) for other in options if exclusive and other is not option))
            for option in options
        ]
    if "if" in part.schema and "if" in keywords:
        condition = part.schema["if"]
        yield [
            (part.at(condition), part.at(part.get("then", True))),
            (part.negate(condition), part.at(part.get("else", True))),
        ]
    for keyword in ("dependentSchemas", "dependencies"):
        for name, dependent in (part.get(keyword) or {}).items() if keyword in keywords else ():
            if not isinstance(dependent, list):
                absent = part.at({"properties": {name: False}})
                yield [(absent,), (part.at({"required": [name]}), part.at(dependent))]
    if "not" in part.schema:
        yield list(violate(part.at(part.schema["not"]), names))


def _get_negated(part: Part) -> Part | None:
    return part.at(part.schema["not"]) if part.schema.keys() == {"not"} else None


def _take_turns(sources: Iterable[Iterator[_Item]]) -> Iterator[_Item]:
    """Yield one item of each source in turn; one source more joins in each round."""
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


def _fit(plain: Group, value: Json) -> bool:
    return all(part.fits(value) for part in plain)


def _list_keywords(plain: Group) -> list[Mapping[str, Any]]:
    """Return what is said of a value without parts, also what it must not be."""
    return [
        keywords
        for part in plain
        for keywords in (part.schema, part.get("not") if part.is_settled else None)
        if isinstance(keywords, dict)
    ]


def _find_types(plain: Group) -> list[str]:
    """Return the types that all parts allow, the likeliest first."""
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


def _find_names(part: Part, depth: int) -> Iterator[str]:
    """Yield names of properties that a schema knows, also those that it refers to or rejects."""
    if not isinstance(part.schema, dict) or depth > 4:
        return
    schema = part.schema
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
    inner = [part.at(schema[keyword]) for keyword in ("not", "if", "then", "else") if keyword in schema]
    inner += [part.at(each) for keyword in ("allOf", "anyOf", "oneOf") for each in schema.get(keyword) or ()]
    inner += [target for word in REFERENCES if word in schema for target in [part.follow(schema[word])] if target]
    for each in inner:
        yield from _find_names(each, depth + 1)


def _make_more_names(plain: Group, count: int) -> Iterator[str]:
    """Yield names for an object that must have many properties."""
    for part in plain:
        rule = part.get("propertyNames")
        if isinstance(rule, dict):
            yield from list_texts([rule])
        for pattern in part.get("patternProperties") or ():
            yield from (f"{name}{number}" for name in make_names(pattern, part, ())[:1] for number in range(count))


def _close(plain: Group, names: Sequence[str]) -> list[str]:
    """Add to names those that they require."""
    closed = [*dict.fromkeys(names)]
    for name in closed:  # grows while it is read
        for part in plain:
            for keyword in ("dependentRequired", "dependencies"):
                required = (part.get(keyword) or {}).get(name)
                closed += [other for other in _to_names(required) if other not in closed]
    return closed


def _find_property(plain: Group, name: str) -> Group | None:
    """Return what the value of a property must fit; None if it must not be there."""
    group: list[Part] = []
    for part in plain:
        schema = part.schema
        rule = schema.get("propertyNames", True)
        if not is_valid(part, rule, name) and not (isinstance(rule, dict) and "$ref" in rule):
            return None
        if name in (schema.get("properties") or ()):
            group.append(part.at(schema["properties"][name]))
        patterns = schema.get("patternProperties") or {}
        group += [part.at(inner) for pattern, inner in patterns.items() if matches(part, pattern, name)]
        if "additionalProperties" in schema and not is_named(part, name):
            group.append(part.at(schema["additionalProperties"]))
        if "unevaluatedProperties" in schema and not any(is_named(other, name) for other in plain):
            group.append(part.at(schema["unevaluatedProperties"]))
    return None if any(part.schema is False for part in group) else tuple(group)


def _vary(
    base: dict[str, Json], needed: Sequence[str], optional: Sequence[str], give: Callable[[str], list[Json]]
) -> Iterator[dict[str, Json]]:
    """Yield the object, the same with one property changed or added, and with all."""
    yield base
    for name in needed:
        yield from ({**base, name: value} for value in give(name)[1:])
    for name in optional:
        yield from ({**base, name: value} for value in give(name)[:4])
    full = {**base, **{name: give(name)[0] for name in optional if give(name)}}
    yield full
    for name in full:
        yield {key: value for key, value in full.items() if key != name}
    for turn in range(1, _SOME):
        yield {name: give(name)[turn % len(give(name))] for name in full}


def _split_items(part: Part) -> tuple[Sequence[Json], Json]:
    """Return the schemas of the first items, and that of the others."""
    items = part.get("items", True)
    if isinstance(items, list):
        return items, part.get("additionalItems", True)
    return part.get("prefixItems", ()), items


def _find_item(plain: Group, index: int) -> Group:
    """Return what an item must fit."""
    group: list[Part] = []
    for part in plain:
        first, rest = _split_items(part)
        group.append(part.at(first[index] if index < len(first) else rest))
        if index in part.get(AT, {}):
            group.append(part.at(part.schema[AT][index]))
        if EACH in part.schema:
            group.append(part.at(part.schema[EACH]))
        if "unevaluatedItems" in part.schema and not first and "items" not in part.schema:
            group.append(part.at(part.schema["unevaluatedItems"]))
    return tuple(group)


def _vary_items(choices: Sequence[Sequence[Json]], *, unique: bool) -> Iterator[list[Json]]:
    """Yield the list of first choices, and the same with one item changed."""
    base: list[Json] = []
    for choice in choices:
        value = choice[0]
        if unique:
            value = next((each for each in choice if not any(are_equal(each, other) for other in base)), value)
        base.append(value)
    yield base
    if not unique:
        yield [choice[index % len(choice)] for index, choice in enumerate(choices)]
    for index, choice in enumerate(choices[:3]):
        for value in choice[1:]:
            yield [*base[:index], value, *base[index + 1 :]]


def _list_references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (schema[word] for word in REFERENCES if isinstance(schema.get(word), str))
        for inner in schema.values():
            yield from _list_references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _list_references(inner)


def _to_names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
