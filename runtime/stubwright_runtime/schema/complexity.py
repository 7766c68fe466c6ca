"""Estimates the cost of validating a value before validating it.

The validator tries each alternative completely, so the paths to a value multiply with each level. The estimate itself
takes linear time in the size of the schema and the value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from ..values.json import Json
from ..values.text import split_pointer

if TYPE_CHECKING:
    from .numbers import CompiledSchema

MOST_VISITS: Final = 1_000_000
"""The maximum number of visits for one value, in addition to `VISITS_PER_CHARACTER`: less than 1 s."""

VISITS_PER_CHARACTER: Final = 20

_SAFE: Final = (
    20_000  # for a schema that expands to this size, the validator visits each part of a value at most this often
)
_SMALL: Final = 2_000
_FEW_VISITS: Final = 2_000
_MOST_STEPS: Final = 500_000  # for the estimate itself: about 0.5 s
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_LISTED: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("not", "if", "then", "else")
_NAMED: Final = ("dependentSchemas", "dependencies")
_OLD: Final = re.compile(r"draft-0[3467]/")

Node = dict[str, Any]
Compile = Callable[[Any], "CompiledSchema"]
_Entries = frozenset[tuple[int, int]]
"""The schemas applied to a value, with their counts."""


def is_old(schema: Json) -> bool:
    """Return whether a schema uses draft-07 or older, which ignore keywords next to `$ref`."""
    return isinstance(schema, dict) and _OLD.search(str(schema.get("$schema", ""))) is not None


def find_id_keyword(schema: Json) -> str:
    """Return the keyword for a schema's identifier in its dialect."""
    return "id" if isinstance(schema, dict) and "draft-04/" in str(schema.get("$schema", "")) else "$id"


@dataclass(slots=True)
class _AppliedSchemas:
    """The schemas that apply to the same value as one schema, directly or indirectly.

    Attributes:
        times: How often each schema applies, keyed by `id`.
        remembered: The `id`s of the recursive schemas whose results the validator memoizes.
    """

    times: Counter[int] = field(default_factory=Counter[int])
    remembered: set[int] = field(default_factory=set[int])


class Cost:
    """The cost of validating values against a schema.

    Attributes:
        is_explosive: Whether validation could visit part of a value too many times.
        is_exponential: Whether collecting all errors could visit part of a value too many times.
    """

    def __init__(self, schema: Json, compile_: Compile) -> None:
        """Analyze a schema. External and dangling references are ignored.

        Args:
            schema: The schema, in the dialect of its `$schema`.
            compile_: Compiles a schema.
        """
        # Schemas are distinguished by identity, and the same object can occur several times.
        schema = _copy_apart(schema)
        self._compile = compile_
        self._patterns: dict[str, CompiledSchema | None] = {}
        self._old = is_old(schema)
        self._identifier = find_id_keyword(schema)
        self._nodes: dict[int, Node] = {}
        self._targets: dict[tuple[str, str], Node] = {}
        self._bases: dict[int, tuple[str, Node]] = {}
        self._links: dict[int, tuple[tuple[Node, bool], ...]] = {}
        self._applied: dict[tuple[int, bool], _AppliedSchemas] = {}
        self._root = schema
        if isinstance(schema, dict):
            self._read(schema)
            self._link(schema)
        unfolded = self._measure_expanded() if isinstance(schema, dict) else 1
        self.is_explosive = unfolded > _SAFE
        self.is_exponential = unfolded > _SMALL or any(
            is_back for links in self._links.values() for _, is_back in links
        )

    def forbids(self, value: Any, size: int) -> bool:
        """Return whether validating a value of `size` JSON characters would take too long."""
        most = MOST_VISITS + VISITS_PER_CHARACTER * size
        try:
            return self.is_explosive and self.count_visits(value, most) > most
        except RecursionError:  # deeply nested schemas
            return True

    def can_list_errors(self, value: Any, size: int) -> bool:
        """Return whether all errors in a value can be collected quickly."""
        most = _FEW_VISITS + size
        return not self.is_exponential or self.count_visits(value, most, remembering=False) <= most

    def count_visits(self, value: Json, most: int, *, remembering: bool = True) -> int:
        """Return an upper bound for the validator's visits to `value` and its parts. Counting stops above `most`.

        Parts on one level with the same schemas are counted together. If counting takes too many steps, the result is
        above `most`.

        Args:
            value: A JSON value.
            most: The limit for counting.
            remembering: Whether the validator memoizes the results of recursive schemas, as it does without errors.
        """
        if not isinstance(self._root, dict):
            return 1
        total = steps_taken = 0
        level: dict[_Entries, list[Any]] = {frozenset({(id(self._root), 1)}): [value]}
        while level:
            below: dict[_Entries, list[Any]] = {}
            for entries, values in level.items():
                times = self._count_visits(entries, remembering)
                total += times.total() * len(values)
                for alike, applied in self._below(values, times):
                    steps_taken += len(times)
                    if total > most or steps_taken > _MOST_STEPS:
                        return max(total, most + 1)
                    if applied:
                        below.setdefault(applied, []).extend(alike)
            if total > most:
                return total
            level = below
        return total

    def _count_visits(self, entries: _Entries, remembering: bool) -> Counter[int]:
        """Count each schema's visits to a value to which `entries` are applied."""
        times: Counter[int] = Counter()
        waiting = [*entries]
        seen: set[int] = set()
        while waiting:
            entry, number = waiting.pop()
            applied = self._find_applied(entry, remembering)
            for node, often in applied.times.items():
                times[node] += often * number
            waiting += [(target, 1) for target in applied.remembered - seen]
            seen |= applied.remembered
        return times

    def _below(self, values: Iterable[Json], times: Mapping[int, int]) -> Iterator[tuple[list[Any], _Entries]]:
        """Yield the parts of objects and arrays, grouped by the schemas that apply to them."""
        nodes = [(self._nodes[entry], often) for entry, often in times.items()]
        known = {key for node, _ in nodes for key in _get_subschemas(node, "properties")}
        patterns = {pattern for node, _ in nodes for pattern in _get_subschemas(node, "patternProperties")}
        first = max((len(_places(node)) for node, _ in nodes), default=0)
        members: dict[tuple[str | None, frozenset[str]], list[Any]] = {}
        items: dict[int, list[Any]] = {}
        for value in values:
            if isinstance(value, dict):
                for key, below in value.items():
                    matched = frozenset(pattern for pattern in patterns if self._may_match(pattern, key))
                    members.setdefault((key if key in known else None, matched), []).append(below)
            elif isinstance(value, list):
                for index, below in enumerate(value[:first]):
                    items.setdefault(index, []).append(below)
                if len(value) > first:
                    items.setdefault(first, []).extend(value[first:])
        for (name, matched), alike in members.items():
            yield alike, _applied((_list_key_schemas(node, name, matched), often) for node, often in nodes)
        for index, alike in items.items():
            yield alike, _applied((_list_index_schemas(node, index), often) for node, often in nodes)

    def _may_match(self, pattern: str, key: str) -> bool:
        """Return whether a pattern might match a key. The validator limits the time for matching."""
        if pattern not in self._patterns:
            try:
                self._patterns[pattern] = self._compile({"pattern": pattern})
            except ValueError:
                self._patterns[pattern] = None
        validator = self._patterns[pattern]
        return validator is None or validator.is_valid(key)

    def _find_applied(self, entry: int, remembering: bool) -> _AppliedSchemas:
        known = self._applied.get((entry, remembering))
        if known is not None:
            return known
        applied = self._applied[entry, remembering] = _AppliedSchemas()  # for recursive schemas
        whole = _AppliedSchemas(Counter({entry: 1}))
        for target, is_back in self._links.get(entry, ()):
            if is_back and remembering:
                whole.remembered.add(id(target))
                continue
            self._add(whole, target, remembering)
        for sub in _list_same_value(self._nodes[entry], hides=self._hides(entry)):
            self._add(whole, sub, remembering)
        applied.times, applied.remembered = whole.times, whole.remembered
        return applied

    def _add(self, whole: _AppliedSchemas, sub: Json, remembering: bool) -> None:
        if isinstance(sub, dict):
            inner = self._find_applied(id(sub), remembering)
            whole.times.update(inner.times)
            whole.remembered |= inner.remembered

    def _hides(self, entry: int) -> bool:
        return self._old and isinstance(self._nodes[entry].get("$ref"), str)

    def _measure_expanded(self) -> int:
        """Return the schema's size after expanding all non-recursive references."""
        sizes: dict[int, int] = {}
        most = 0
        for entry in self._finished:
            node = self._nodes[entry]
            subs = [target for target, is_back in self._links.get(entry, ()) if not is_back]
            if not self._hides(entry):
                subs += [sub for sub in _subschemas(node) if isinstance(sub, dict)]
            sizes[entry] = 1 + sum(sizes.get(id(sub), 1) for sub in subs)
            most = max(most, sizes[entry])
        return most

    def _read(self, schema: Node) -> None:
        """Index the schemas by their identifiers."""
        waiting: list[tuple[Node, str, Node]] = [(schema, "", schema)]
        while waiting:
            node, base, resource = waiting.pop()
            if id(node) in self._nodes:
                continue
            identifier = node.get(self._identifier)
            if isinstance(identifier, str) and not self._is_old_reference(node):
                if not identifier.startswith("#"):
                    base, resource = urldefrag(urljoin(base, identifier)).url, node
                    self._targets[base, ""] = node
                if fragment := urldefrag(identifier).fragment:
                    self._targets[base, fragment] = node
            if node is schema:
                self._targets[base, ""] = self._targets["", ""] = node
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(node.get(keyword), str):
                    self._targets[base, node[keyword]] = node
            self._nodes[id(node)] = node
            self._bases[id(node)] = (base, resource)
            waiting += [(sub, base, resource) for sub in _subschemas(node) if isinstance(sub, dict)]

    def _is_old_reference(self, node: Node) -> bool:
        return self._old and "$ref" in node

    def _target(self, node: Node, reference: str) -> Node | None:
        base, resource = self._bases[id(node)]
        url, fragment = urldefrag(urljoin(base, reference)) if not reference.startswith("#") else (base, reference[1:])
        fragment = unquote(fragment)
        if not fragment.startswith("/"):
            return self._targets.get((url, fragment))
        target: Json = self._targets.get((url, ""), resource if url == base else None)
        for step in split_pointer(fragment):
            try:
                target = _at(target, step)
            except (IndexError, KeyError, TypeError, ValueError):
                return None
        return target if isinstance(target, dict) else None

    def _link(self, root: Node) -> None:
        """Resolve references as the validator does, which memoizes the results of recursive references.

        A reference is recursive if its target is still being compiled. Other targets are compiled again.
        """
        self._finished: list[int] = []
        open_: set[int] = set()
        done: set[int] = set()
        waiting: list[tuple[Node, bool]] = [(root, False)]
        while waiting:
            node, is_left = waiting.pop()
            entry = id(node)
            if is_left:
                open_.discard(entry)
                if entry not in done:
                    done.add(entry)
                    self._finished.append(entry)
                continue
            if entry in done or entry in open_:
                continue
            open_.add(entry)
            waiting.append((node, True))
            if entry not in self._nodes:
                self._nodes[entry] = node
                self._bases[entry] = self._bases[id(root)]
            targets = [
                target
                for keyword in _REFERENCES
                if isinstance(node.get(keyword), str) and (target := self._target(node, node[keyword])) is not None
            ]
            self._links[entry] = tuple((target, id(target) in open_) for target in targets)
            below = [] if self._hides(entry) else [*_objects(_list_compiled(node))]
            waiting += [(subschema, False) for subschema in reversed([*targets, *below])]


def _list_same_value(node: Node, *, hides: bool) -> list[Any]:
    """Return the subschemas applied to the same value."""
    if hides:
        return []
    subschemas = [sub for keyword in _LISTED if isinstance(node.get(keyword), list) for sub in node[keyword]]
    subschemas += [node[keyword] for keyword in _SINGLE if keyword in node]
    subschemas += [sub for keyword in _NAMED if isinstance(node.get(keyword), dict) for sub in node[keyword].values()]
    return subschemas


def _list_key_schemas(node: Node, key: str | None, matched: Container[str]) -> Iterator[Any]:
    """Yield the subschemas for a key's value. A `key` of `None` means any key that the schema does not name."""
    properties = _get_subschemas(node, "properties")
    if key is not None and key in properties:
        yield properties[key]
    else:
        yield from (node[rest] for rest in ("additionalProperties", "unevaluatedProperties") if rest in node)
    yield from (sub for pattern, sub in _get_subschemas(node, "patternProperties").items() if pattern in matched)


def _list_index_schemas(node: Node, index: int) -> Iterator[Any]:
    places = _places(node)
    if index < len(places):
        yield places[index]
    else:
        yield from (node[rest] for rest in ("items", "additionalItems", "unevaluatedItems") if rest in node)
    if "contains" in node:
        yield node["contains"]


def _applied(subschemas: Iterable[tuple[Iterable[Json], int]]) -> _Entries:
    """Combine subschemas with their parents' counts."""
    entries: Counter[int] = Counter()
    for subs, often in subschemas:
        for sub in subs:
            if isinstance(sub, dict):
                entries[id(sub)] += often
    return frozenset(entries.items())


def _at(value: Json, step: str) -> Json:
    here: Any = value
    member: Json = here[int(step) if isinstance(value, list) else step]
    return member


def _objects(values: Iterable[Json]) -> Iterator[Node]:
    return (value for value in values if isinstance(value, dict))


def _get_subschemas(node: Node, keyword: str) -> Mapping[str, Any]:
    subschemas: Json = node.get(keyword)
    return subschemas if isinstance(subschemas, dict) else {}


def _places(node: Node) -> Sequence[Any]:
    """Return the subschemas for an array's first items."""
    first: Json = node.get("prefixItems")
    items: Json = node.get("items")
    return first if isinstance(first, list) else items if isinstance(items, list) else ()


def _copy_apart(schema: Json) -> Json:
    """Copy a schema so that no object occurs twice, as objects with YAML aliases do."""
    if isinstance(schema, dict):
        return {key: _copy_apart(below) for key, below in schema.items()}
    return [_copy_apart(below) for below in schema] if isinstance(schema, list) else schema


def _list_compiled(node: Node) -> list[Any]:
    """Return the subschemas that the validator compiles along with this one."""
    return [sub for keyword, sub in _list_by_keyword(node) if keyword not in ("$defs", "definitions")]


def _subschemas(node: Node) -> list[Any]:
    return [sub for _, sub in _list_by_keyword(node)]


def _list_by_keyword(node: Node) -> list[tuple[str, Any]]:
    subschemas: list[tuple[str, Any]] = []
    value: Json
    for keyword, value in node.items():
        if keyword in ("const", "default", "enum", "examples"):
            continue
        if isinstance(value, dict):
            is_named = keyword in _MAPS
            subschemas += [(keyword, sub) for sub in value.values()] if is_named else [(keyword, value)]
        elif isinstance(value, list):
            subschemas += [(keyword, sub) for sub in value]
    return subschemas


_MAPS: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
