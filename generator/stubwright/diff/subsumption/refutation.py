"""Proves by cases (a tableau) that no instance matches some schemas and violates others.

The facts that follow from the claims are split into cases until each one is contradictory in types, values, bounds,
lengths, keys or items. A recursive claim is refuted by induction over the instance depth: the smallest instance would
contain a smaller one. The proof fails after a fixed number of steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Final

from stubwright.diff.subsumption import patterns
from stubwright.diff.subsumption.facts import (
    KINDS,
    Claim,
    Disjunction,
    EachItem,
    EachMember,
    EachName,
    Fact,
    Facts,
    IsOfKind,
    KeywordFact,
    NoMember,
    OneOfValues,
    SomeItem,
    SomeMember,
    SomeName,
    find_kind,
    list_facts,
    make_claim,
)
from stubwright.jsonschema.formats import get_settings
from stubwright.jsonschema.pointers import resolve_local
from stubwright_runtime.schema.validation import compile_schema

if TYPE_CHECKING:
    from stubwright.ir import Formats, Json
    from stubwright.jsonschema.dialects import Dialect
    from stubwright_runtime.schema.numbers import CompiledSchema

STEPS: Final = 20_000
"""The maximum number of facts in a proof."""

_DEEPEST: Final = 40
"""The maximum depth of cases and parts in a proof."""

_UNASSUMED: Final = 1 << 30
"""The level of a proof that makes no assumptions about the levels above it."""

_WIDEST: Final = 20
"""The maximum number of integers to try individually between two bounds."""

_MOST_PATTERNS: Final = 4
"""The maximum number of patterns for which to split cases by whether an unknown key matches."""

_EXACT: Final = 2**53
"""Smaller integers are the same in all validators."""


def is_refuted(fitted: Json, violated: Json, dialect: Dialect, formats: Formats) -> bool:
    """Return whether provably no instance matches `fitted` and violates `violated`.

    Both are complete `dialect` documents without annotations.
    """
    documents = (fitted, violated)
    if any(map(_has_other_bases, documents)):
        return False
    refutation = _Refutation(documents, dialect, formats)
    is_shared = all(map(_has_plain_references, documents)) and _get_reusable(fitted) == _get_reusable(violated)
    claims = (make_claim(fitted, 0, holds=True), make_claim(violated, 0 if is_shared else 1, holds=False))
    return refutation.refute(claims) is not None


def _has_other_bases(schema: Json, *, is_root: bool = True) -> bool:
    """Return whether references can resolve to targets other than pointers from the root."""
    if isinstance(schema, list):
        return any(_has_other_bases(inner, is_root=False) for inner in schema)
    if not isinstance(schema, dict):
        return False
    if "$dynamicRef" in schema or "$recursiveRef" in schema:
        return True
    if not is_root and any(isinstance(schema.get(keyword), str) for keyword in ("$id", "id")):
        return True
    return any(_has_other_bases(inner, is_root=False) for inner in schema.values())


@dataclass(slots=True)
class _Case:
    kinds: frozenset[str] = KINDS
    claims: frozenset[Claim] = frozenset()
    plain: frozenset[tuple[str, str, bool]] = frozenset()
    values: Sequence[Json] | None = None
    items: tuple[EachItem, ...] = ()
    some_items: tuple[SomeItem, ...] = ()
    members: tuple[EachMember, ...] = ()
    some_members: tuple[SomeMember, ...] = ()
    absent: frozenset[str] = frozenset()
    names: tuple[Claim, ...] = ()
    some_names: tuple[Claim, ...] = ()
    open: tuple[Disjunction, ...] = ()

    def copy(self) -> _Case:
        return _Case(*(getattr(self, name) for name in self.__slots__))

    def read(self, keyword: str, *, holds: bool) -> list[Any]:
        """Return the values of `keyword` that the case fulfills or, with `holds=False`, violates."""
        return [json.loads(text) for word, text, is_met in self.plain if word == keyword and is_met == holds]


@dataclass
class _Refutation:
    """A refutation of two documents, with cached results and the remaining steps."""

    documents: tuple[Json, Json]
    dialect: Dialect
    formats: Formats
    steps: int = field(default_factory=lambda: STEPS)
    depth: int = 0
    _facts: dict[Claim, Facts] = field(default_factory=dict)
    _open: dict[frozenset[Claim], int] = field(default_factory=dict)
    _refuted: set[frozenset[Claim]] = field(default_factory=set)
    _failed: set[frozenset[Claim]] = field(default_factory=set)
    _validators: dict[tuple[str, int], CompiledSchema | None] = field(default_factory=dict)

    def refute(self, claims: Sequence[Claim]) -> int | None:
        """Refute claims about an instance or part of it.

        Returns:
            The highest level of a refutation that the proof assumes, or None without a proof.
        """
        key = frozenset(claims)
        if key in self._refuted:
            return _UNASSUMED
        if key in self._failed:
            return None
        if key in self._open:
            return self._open[key]
        level = self._open[key] = len(self._open)
        case = _Case()
        lowest = self._close(case) if self._add(case, tuple(claims)) else _UNASSUMED
        del self._open[key]
        if lowest is None:
            self._failed.add(key)
        elif lowest >= level:
            self._refuted.add(key)
            return _UNASSUMED
        return lowest

    def _add(self, case: _Case, facts: Facts) -> bool:
        """Add facts to a case. Return whether the case is still possible."""
        pending: list[Fact] = [*facts]
        while pending:
            self.steps -= 1
            fact = pending.pop()
            match fact:
                case Claim():
                    if fact.negation in case.claims:
                        return False
                    if fact in case.claims:
                        continue
                    case.claims |= {fact}
                    pending += self._list_facts(fact)
                case IsOfKind(kinds):
                    case.kinds &= kinds
                case KeywordFact(keyword, value, holds):
                    text = json.dumps(value)
                    if (keyword, text, not holds) in case.plain:
                        return False
                    case.plain |= {(keyword, text, holds)}
                case OneOfValues(values):
                    if case.values is None or len(values) < len(case.values):
                        case.values = values
                case EachItem():
                    case.items += (fact,)
                case SomeItem():
                    case.kinds &= {"array"}
                    case.some_items += (fact,)
                case EachMember():
                    case.members += (fact,)
                case SomeMember():
                    case.kinds &= {"object"}
                    case.some_members += (fact,)
                case NoMember(name):
                    case.absent |= {name}
                case EachName(claim):
                    case.names += (claim,)
                case SomeName(claim):
                    case.kinds &= {"object"}
                    case.some_names += (claim,)
                case Disjunction():
                    case.open += (fact,)
            if not case.kinds:
                return False
        return self._is_possible(case)

    def _list_facts(self, claim: Claim) -> Facts:
        if claim not in self._facts:
            self._facts[claim] = self._expand(claim)
        return self._facts[claim]

    def _expand(self, claim: Claim) -> Facts:
        if isinstance(claim.schema, dict) and claim.schema.keys() == {"$ref"}:
            try:
                return (claim.derive(resolve_local(self.documents[claim.side], claim.schema["$ref"])),)
            except (LookupError, TypeError):
                return ()
        settings = get_settings(self.formats)
        return list_facts(claim, self.dialect, asserts_formats=settings["formats"])

    def _is_possible(self, case: _Case) -> bool:
        if case.values is not None:
            case.kinds &= self._list_kinds(case.values)
        missing = {member.name for member in case.some_members if member.name is not None} & case.absent
        return bool(case.kinds) and not missing

    def _list_kinds(self, values: Sequence[Json]) -> frozenset[str]:
        kinds = frozenset(map(find_kind, values))
        # In draft-04, `1` is an integer and `1.0` is not, but both are equal.
        if self.dialect.name == "draft-04" and not kinds.isdisjoint({"integer", "fraction"}):
            kinds |= {"integer", "fraction"}
        return kinds

    def _close(self, case: _Case) -> int | None:
        """Refute a case by its facts, or refute each alternative of the case.

        Return a level or None, as `refute` does.
        """
        if self.depth >= _DEEPEST:
            return None
        self.depth += 1
        lowest = self._split(case)
        self.depth -= 1
        return lowest

    def _split(self, case: _Case) -> int | None:
        while True:
            choices: list[tuple[int, Disjunction, list[_Case]]] = []
            case.open = tuple(either for either in case.open if not _is_settled(case, either))
            for either in case.open:
                possible = [made for facts in either.alternatives if (made := self._fork(case, either, facts))]
                if not possible:
                    return _UNASSUMED
                choices.append((len(possible), either, possible))
                if len(possible) == 1 or self.steps <= 0:
                    break
            if choices and choices[-1][0] == 1:
                case = choices[-1][2][0]
                continue
            break
        if self.steps <= 0:
            return None
        if case.values is not None and _are_exact(case.values, self.dialect):
            return _UNASSUMED if all(self._refutes(case.claims, value) for value in case.values) else None
        lowest = self._contradict(case)
        if lowest is not None or not choices:
            return lowest
        _, _, possible = min(choices, key=lambda choice: choice[0])
        return _join(self._close(each) for each in possible)

    def _fork(self, case: _Case, either: Disjunction, facts: Facts) -> _Case | None:
        made = case.copy()
        made.open = tuple(other for other in case.open if other is not either)
        return made if self._add(made, facts) else None

    def _refutes(self, claims: frozenset[Claim], value: Json) -> bool:
        self.steps -= 1
        for claim in claims:
            validator = self._compile(claim)
            if validator is not None and bool(validator.is_valid(value)) != claim.holds:
                return True
        return False

    def _compile(self, claim: Claim) -> CompiledSchema | None:
        key = claim.text, claim.side
        if key not in self._validators:
            self._validators[key] = self._make_validator(claim)
        return self._validators[key]

    def _make_validator(self, claim: Claim) -> CompiledSchema | None:
        schema = claim.schema
        if isinstance(schema, dict):
            schema = {**schema, "$schema": self.dialect.uri}
            if claim.side >= 0:
                document = self.documents[claim.side]
                if not isinstance(document, dict) or not _has_plain_references(document):
                    return None
                schema |= {key: document[key] for key in ("$defs", "definitions") if key in document}
        try:
            return compile_schema(schema, **get_settings(self.formats))
        except ValueError:
            return None

    def _contradict(self, case: _Case) -> int | None:
        """Refute a case by its facts, for each possible instance type. Return a level or None, as `refute` does."""
        return _join(self._contradict_kind(case, kind) for kind in sorted(case.kinds))

    def _contradict_kind(self, case: _Case, kind: str) -> int | None:
        match kind:
            case "null":
                values: Sequence[Json] | None = [None]
            case "boolean":
                values = [False, True]
            case "integer" | "fraction":
                is_integer, is_by_spelling = kind == "integer", self.dialect.name == "draft-04"
                if _are_bounds_contradictory(case, is_integer=is_integer, is_by_spelling=is_by_spelling):
                    return _UNASSUMED
                values = _list_integers(case) if is_integer and not is_by_spelling else None
            case "string":
                if _are_texts_contradictory(case):
                    return _UNASSUMED
                values = [""] if _get_largest(case, "maxLength") == 0 else None
            case "array":
                values = [[]] if _get_largest(case, "maxItems") == 0 else None
                if values is None:
                    return self._contradict_array(case)
            case _:
                values = [{}] if _get_largest(case, "maxProperties") == 0 else None
                if values is None:
                    return self._contradict_object(case)
        if values is None or not all(self._refutes(case.claims, value) for value in values):
            return None
        return _UNASSUMED

    def _contradict_array(self, case: _Case) -> int | None:
        least, most = _get_least(case, "minItems"), _get_largest(case, "maxItems")
        if "uniqueItems" in {word for word, _, is_met in case.plain if not is_met}:
            least = max(least, 2)
        if least > most:
            return _UNASSUMED
        longest = max([0, *(len(each.prefix) for each in case.items)])
        exact = [item.start for item in case.some_items if item.is_exact]
        places = [*range(int(min(least, longest + 1)))]
        wanted = [*case.some_items, *(SomeItem(place, True) for place in places if place not in exact)]
        for item in wanted:
            found = [item.start] if item.is_exact else [*range(item.start, max(longest, item.start) + 1)]
            lowest = _join(
                self.refute([*_list_item_claims(case, place), *([item.claim] if item.claim else [])])
                for place in found
                if place < most
            )
            if lowest is not None:
                return lowest
        return None

    def _contradict_object(self, case: _Case) -> int | None:
        least, most = _get_least(case, "minProperties"), _get_largest(case, "maxProperties")
        needed = {member.name for member in case.some_members if member.name is not None}
        if max(least, len(needed)) > most:
            return _UNASSUMED
        for each in case.members:
            is_closed = each.rest is not None and _is_never(each.rest) and not each.patterns
            if is_closed and least > len(each.named.keys() - case.absent):
                return _UNASSUMED
        for name in case.some_names:
            lowest = self.refute([_make_text_claim(name), name, *case.names])
            if lowest is not None:
                return lowest
        # A key without a possible value is also a contradiction.
        some = [*case.some_members, *([SomeMember()] if least >= 1 and not needed else [])]
        for member in some:
            lowest = self._refute_member(case, member)
            if lowest is not None:
                return lowest
        return None

    def _refute_member(self, case: _Case, member: SomeMember) -> int | None:
        """Refute a claim about a value in the instance, for each possible key.

        Return a level or None, as `refute` does.
        """
        claims = [member.claim] if member.claim is not None else []
        if member.name is not None:
            if self._refutes(frozenset(case.names), member.name):
                return _UNASSUMED
            also = [each.claim for each in case.some_members if each.name == member.name and each.claim is not None]
            return self.refute([*claims, *also, *self._list_member_claims(case, member.name)])
        if case.names:
            lowest = self.refute([_make_text_claim(case.names[0]), *case.names])
            if lowest is not None:
                return lowest
        names = {name: None for each in case.members for name in each.named if name not in case.absent}
        possible = [name for name in names if self._may_be(member, name)]
        known = _join(self._refute_member(case, SomeMember(name, claim=member.claim)) for name in possible)
        if known is None:
            return None
        texts = [*dict.fromkeys(text for each in case.members for text in each.patterns)]
        open_texts = [text for text in texts if text != member.pattern and text not in member.other_patterns]
        if len(open_texts) > _MOST_PATTERNS:
            return None
        decided: dict[str | None, bool] = {member.pattern: True, **dict.fromkeys(member.other_patterns, False)}
        return _join(
            (
                known,
                *(
                    self.refute(
                        [*claims, *_list_other_claims(case, {**decided, **dict(zip(open_texts, met, strict=True))})]
                    )
                    for met in product((True, False), repeat=len(open_texts))
                ),
            )
        )

    def _may_be(self, member: SomeMember, name: str) -> bool:
        if name in member.other_names or any(self._matches(text, name) for text in member.other_patterns):
            return False
        return member.pattern is None or self._matches(member.pattern, name) is not False

    def _matches(self, pattern: str, name: str) -> bool | None:
        validator = self._compile(make_claim({"pattern": pattern}, -1, holds=True))
        return None if validator is None else bool(validator.is_valid(name))

    def _list_member_claims(self, case: _Case, name: str) -> Iterator[Claim]:
        for each in case.members:
            if name in each.named:
                yield each.named[name]
            matches = {text: self._matches(text, name) for text in each.patterns}
            yield from (each.patterns[text] for text, is_met in matches.items() if is_met)
            if each.rest is not None and name not in each.named and set(matches.values()) <= {False}:
                yield each.rest


def _list_other_claims(case: _Case, met: Mapping[str | None, bool]) -> Iterator[Claim]:
    """Yield the claims about an undeclared key's value. `met` specifies the patterns that the key matches."""
    for each in case.members:
        yield from (claim for text, claim in each.patterns.items() if met[text])
        if each.rest is not None and not any(met[text] for text in each.patterns):
            yield each.rest


def _list_item_claims(case: _Case, place: int) -> Iterator[Claim]:
    for each in case.items:
        if place < len(each.prefix):
            yield each.prefix[place]
        elif each.rest is not None:
            yield each.rest
    # Include the claims about the item at exactly this index.
    yield from (item.claim for item in case.some_items if item.is_exact and item.start == place and item.claim)


def _is_settled(case: _Case, either: Disjunction) -> bool:
    return any(
        all(
            (isinstance(fact, IsOfKind) and case.kinds <= fact.kinds)
            or (isinstance(fact, Claim) and fact in case.claims)
            for fact in facts
        )
        for facts in either.alternatives
    )


def _join(levels: Iterator[int | None] | Sequence[int | None]) -> int | None:
    """Return the lowest level that any of the proofs assumes, or None if a proof failed."""
    lowest = _UNASSUMED
    for level in levels:
        if level is None:
            return None
        lowest = min(lowest, level)
    return lowest


def _make_text_claim(like: Claim) -> Claim:
    return like.derive({"type": "string"}, holds=True)


def _is_never(claim: Claim) -> bool:
    return claim.schema is False and claim.holds


def _get_reusable(document: Json) -> str:
    members = document if isinstance(document, dict) else {}
    reusable = {key: members[key] for key in ("$defs", "definitions") if key in members}
    return json.dumps(reusable, sort_keys=True)


def _has_plain_references(schema: Json) -> bool:
    """Return whether all references point into `$defs` or `definitions`, whose schemas can be copied."""
    if isinstance(schema, list):
        return all(map(_has_plain_references, schema))
    if not isinstance(schema, dict):
        return True
    reference = schema.get("$ref")
    if isinstance(reference, str) and not reference.startswith(("#/$defs/", "#/definitions/")):
        return False
    return all(map(_has_plain_references, schema.values()))


def _are_exact(values: Json, dialect: Dialect) -> bool:
    """Return whether validators agree that spellings of one number in `values`, such as `1` and `1.0`, are equal."""
    match values:
        case bool() | str() | None:
            return True
        case int() | float():
            return dialect.name != "draft-04" and abs(values) < _EXACT
        case list():
            return all(_are_exact(value, dialect) for value in values)
        case dict():
            return all(_are_exact(value, dialect) for value in values.values())
    return False


def _get_least(case: _Case, keyword: str) -> float:
    """Return the lowest length or count that `keyword` (`minLength`, …) and its opposite, if violated, allow."""
    opposite = keyword.replace("min", "max")
    bounds: list[float] = [*case.read(keyword, holds=True), *(value + 1 for value in case.read(opposite, holds=False))]
    return max([0, *(ceil(bound) for bound in bounds)])


def _get_largest(case: _Case, keyword: str) -> float:
    """Return the highest length or count that `keyword` (`maxLength`, …) and its opposite, if violated, allow."""
    opposite = keyword.replace("max", "min")
    bounds: list[float] = [*case.read(keyword, holds=True), *(value - 1 for value in case.read(opposite, holds=False))]
    return min([float("inf"), *(floor(bound) for bound in bounds)])


def _find_bounds(case: _Case) -> tuple[tuple[float, bool], tuple[float, bool]]:
    """Return a number's lower and upper bounds, each with a flag that is true if the bound is exclusive."""
    lows = [(value, False) for value in case.read("minimum", holds=True)]
    lows += [(value, True) for value in case.read("exclusiveMinimum", holds=True)]
    lows += [(value, True) for value in case.read("maximum", holds=False)]
    lows += [(value, False) for value in case.read("exclusiveMaximum", holds=False)]
    highs = [(value, False) for value in case.read("maximum", holds=True)]
    highs += [(value, True) for value in case.read("exclusiveMaximum", holds=True)]
    highs += [(value, True) for value in case.read("minimum", holds=False)]
    highs += [(value, False) for value in case.read("exclusiveMinimum", holds=False)]
    low = max([(float("-inf"), False), *lows])
    high = min([(float("inf"), False), *highs], key=lambda bound: (bound[0], not bound[1]))
    return low, high


def _are_bounds_contradictory(case: _Case, *, is_integer: bool, is_by_spelling: bool) -> bool:
    steps, others = case.read("multipleOf", holds=True), case.read("multipleOf", holds=False)
    if is_integer and 1 in others:
        return True
    if not is_integer and not is_by_spelling and any(map(_is_whole, steps)):
        return True
    if any(_is_whole(step) and _is_whole(other) and step % other == 0 for step in steps for other in others):
        return True
    (low, is_low_excluded), (high, is_high_excluded) = _find_bounds(case)
    if not all(abs(bound) < _EXACT or abs(bound) == float("inf") for bound in (low, high)):
        return False
    return low > high or (low == high and (is_low_excluded or is_high_excluded))


def _is_whole(number: float) -> bool:
    return number == int(number) and 0 < number < _EXACT


def _list_integers(case: _Case) -> list[Json] | None:
    (low, is_low_excluded), (high, is_high_excluded) = _find_bounds(case)
    if not (-_EXACT < low <= high < _EXACT) or high - low > _WIDEST:
        return None
    first = floor(low) + 1 if is_low_excluded else ceil(low)
    last = ceil(high) - 1 if is_high_excluded else floor(high)
    return [*range(first, last + 1)]


def _are_texts_contradictory(case: _Case) -> bool:
    if _get_least(case, "minLength") > _get_largest(case, "maxLength"):
        return True
    wanted, unwanted = case.read("pattern", holds=True), case.read("pattern", holds=False)
    return any(patterns.implies(text, other) for text in wanted for other in unwanted)
