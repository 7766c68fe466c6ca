# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""How much work it is to validate a value, reckoned from the schema and the value before it is done.

Takes a schema and a JSON value; gives how often the validator would look at a part of the value. The validator tries
alternatives to the bottom: where nothing keeps it from looking at one value along several ways, the ways multiply with
each level. It never validates, and its own work grows with the schema and the value alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from .texts import steps

MOST_VISITS: Final = 1_000_000
"""How often the validator may look at parts of one value, beside `VISITS_PER_CHARACTER`; it takes less than 1 s."""

VISITS_PER_CHARACTER: Final = 20

_SAFE: Final = 20_000  # a schema that unfolds to no more looks at each part of a value no oftener
_SMALL: Final = 2_000
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_LISTED: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("not", "if", "then", "else")
_NAMED: Final = ("dependentSchemas", "dependencies")
_OLD: Final = re.compile(r"draft-0[3467]/")

Node = dict[str, Any]


def is_old(schema: Any) -> bool:
    """Whether a schema is of draft-07 or older, where nothing counts beside `$ref`."""
    return isinstance(schema, dict) and _OLD.search(str(schema.get("$schema", ""))) is not None


def identifier(schema: Any) -> str:
    """The keyword that names a schema in the dialect of this one."""
    return "id" if isinstance(schema, dict) and "draft-04/" in str(schema.get("$schema", "")) else "$id"


@dataclass(slots=True)
class _Applied:
    """What is applied to a value where one schema is: schemas, by how often, and those that are remembered."""

    times: Counter[int] = field(default_factory=Counter)
    remembered: set[int] = field(default_factory=set)


class Reckoning:
    """The work that one schema makes.

    Attributes:
        is_explosive: Whether a value could make the validator look at one part of it very often, to say yes or no.
        multiplies: The same for what it does to tell all that is wrong.
    """

    def __init__(self, schema: Any) -> None:
        """Read a schema. References that lead out of it, or nowhere, count as leading nowhere."""
        self._old = is_old(schema)
        self._identifier = identifier(schema)
        self._nodes: dict[int, Node] = {}
        self._targets: dict[tuple[str, str], Node] = {}
        self._bases: dict[int, tuple[str, Node]] = {}
        self._links: dict[int, tuple[tuple[Node, bool], ...]] = {}
        self._applied: dict[tuple[int, bool], _Applied] = {}
        self._root = schema
        if isinstance(schema, dict):
            self._read(schema)
            self._link(schema)
        unfolded = self._unfolded() if isinstance(schema, dict) else 1
        self.is_explosive = unfolded > _SAFE
        self.multiplies = unfolded > _SMALL or any(is_back for links in self._links.values() for _, is_back in links)

    def visits(self, value: Any, most: int, *, remembering: bool = True) -> int:
        """How often the validator looks at `value` and its parts, at most; above `most` it is not counted on.

        Args:
            value: What `json.loads` gives.
            most: Where to stop counting.
            remembering: Whether a schema that holds itself is looked up where it was applied to the same value before,
                as it is where only yes or no is asked.
        """
        total = 0
        arrived: list[tuple[Any, Mapping[int, int]]] = [(value, {id(self._root): 1})]
        if not isinstance(self._root, dict):
            return 1
        while arrived and total <= most:
            here, entries = arrived.pop()
            times = self._times(entries, remembering)
            total += times.total()
            if isinstance(here, dict | list) and here:
                arrived += self._below(here, times)
        return total

    def _times(self, entries: Mapping[int, int], remembering: bool) -> Counter[int]:
        """How often each schema looks at a value, to which the schemas `entries` are applied so often."""
        times: Counter[int] = Counter()
        waiting = [*entries.items()]
        seen: set[int] = set()
        while waiting:
            entry, number = waiting.pop()
            applied = self._in_place(entry, remembering)
            for node, often in applied.times.items():
                times[node] += often * number
            waiting += [(target, 1) for target in applied.remembered - seen]
            seen |= applied.remembered
        return times

    def _below(self, here: Any, times: Mapping[int, int]) -> list[tuple[Any, Mapping[int, int]]]:
        found: dict[Any, Counter[int]] = {}
        for node_id, often in times.items():
            node = self._nodes[node_id]
            keyed = _of_object(node, here) if isinstance(here, dict) else _of_array(node, len(here))
            for key, sub in keyed:
                if isinstance(sub, dict):
                    found.setdefault(key, Counter())[id(sub)] += often
        return [(here[key], entries) for key, entries in found.items()]

    def _in_place(self, entry: int, remembering: bool) -> _Applied:
        """What is applied to the same value as the schema `entry`."""
        known = self._applied.get((entry, remembering))
        if known is not None:
            return known
        made = self._applied[entry, remembering] = _Applied()  # which a schema that includes itself finds
        whole = _Applied(Counter({entry: 1}))
        for target, is_back in self._links.get(entry, ()):
            if is_back and remembering:
                whole.remembered.add(id(target))
                continue
            self._add(whole, target, remembering)
        for sub in _same_place(self._nodes[entry], hides=self._hides(entry)):
            self._add(whole, sub, remembering)
        made.times, made.remembered = whole.times, whole.remembered
        return made

    def _add(self, whole: _Applied, sub: Any, remembering: bool) -> None:
        if isinstance(sub, dict):
            inner = self._in_place(id(sub), remembering)
            whole.times.update(inner.times)
            whole.remembered |= inner.remembered

    def _hides(self, entry: int) -> bool:
        return self._old and isinstance(self._nodes[entry].get("$ref"), str)

    def _unfolded(self) -> int:
        """How many schemas there are where each reference is replaced by what it leads to, but those that go back."""
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
        """Find the schemas, and what references may call them."""
        waiting: list[tuple[Node, str, Node]] = [(schema, "", schema)]
        while waiting:
            node, base, resource = waiting.pop()
            if id(node) in self._nodes:
                continue
            said = node.get(self._identifier)
            if isinstance(said, str) and not self._old_reference(node):
                if not said.startswith("#"):
                    base, resource = urldefrag(urljoin(base, said)).url, node
                    self._targets[base, ""] = node
                if fragment := urldefrag(said).fragment:
                    self._targets[base, fragment] = node
            if node is schema:
                self._targets[base, ""] = self._targets["", ""] = node
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(node.get(keyword), str):
                    self._targets[base, node[keyword]] = node
            self._nodes[id(node)] = node
            self._bases[id(node)] = (base, resource)
            waiting += [(sub, base, resource) for sub in _subschemas(node) if isinstance(sub, dict)]

    def _old_reference(self, node: Node) -> bool:
        return self._old and "$ref" in node

    def _target(self, node: Node, reference: str) -> Node | None:
        base, resource = self._bases[id(node)]
        url, fragment = urldefrag(urljoin(base, reference)) if not reference.startswith("#") else (base, reference[1:])
        fragment = unquote(fragment)
        if not fragment.startswith("/"):
            return self._targets.get((url, fragment))
        found: Any = self._targets.get((url, ""), resource if url == base else None)
        for step in steps(fragment):
            try:
                found = found[int(step)] if isinstance(found, list) else found[step]
            except (IndexError, KeyError, TypeError, ValueError):
                return None
        return found if isinstance(found, dict) else None

    def _link(self, root: Node) -> None:
        """Follow references as the validator does when it compiles: one that leads to what is being compiled goes back.

        What goes back is remembered by the validator; all else is compiled, and looked at, once more.
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
            below = [] if self._hides(entry) else [sub for sub in _applied_below(node) if isinstance(sub, dict)]
            waiting += [(one, False) for one in reversed([*targets, *below])]


def _same_place(node: Node, *, hides: bool) -> list[Any]:
    """The subschemas that are applied to the same value."""
    if hides:
        return []
    found = [sub for keyword in _LISTED if isinstance(node.get(keyword), list) for sub in node[keyword]]
    found += [node[keyword] for keyword in _SINGLE if keyword in node]
    found += [sub for keyword in _NAMED if isinstance(node.get(keyword), dict) for sub in node[keyword].values()]
    return found


def _of_object(node: Node, value: dict[str, Any]) -> list[tuple[str, Any]]:
    """The subschemas that are applied to the values of an object, each with its key."""
    properties, patterns = node.get("properties"), node.get("patternProperties")
    properties = properties if isinstance(properties, dict) else {}
    patterns = patterns if isinstance(patterns, dict) else {}
    found = [(key, properties[key]) for key in (value.keys() & properties.keys())]
    for rest in ("additionalProperties", "unevaluatedProperties"):
        if isinstance(node.get(rest), dict):
            found += [(key, node[rest]) for key in value if key not in properties]
    for pattern, sub in patterns.items():
        found += [(key, sub) for key in value if _may_match(pattern, key)]
    return found


def _of_array(node: Node, length: int) -> list[tuple[int, Any]]:
    """The subschemas that are applied to the items of an array, each with its index."""
    items, first = node.get("items"), node.get("prefixItems")
    places = first if isinstance(first, list) else items if isinstance(items, list) else []
    found: list[tuple[int, Any]] = [*enumerate(places[:length])]
    for rest in ("items", "additionalItems", "contains", "unevaluatedItems"):
        if isinstance(sub := node.get(rest), dict):
            start = 0 if rest == "contains" or not places else len(places)
            found += [(index, sub) for index in range(start, length)]
    return found


def _may_match(pattern: str, key: str) -> bool:
    try:
        return re.search(pattern, key) is not None
    except re.error:
        return True


def _applied_below(node: Node) -> list[Any]:
    """The subschemas that the validator compiles with this one."""
    return [sub for keyword, sub in _placed(node) if keyword not in ("$defs", "definitions")]


def _subschemas(node: Node) -> list[Any]:
    return [sub for _, sub in _placed(node)]


def _placed(node: Node) -> list[tuple[str, Any]]:
    """The subschemas of a schema, with the keywords that they stand below."""
    found: list[tuple[str, Any]] = []
    for keyword, value in node.items():
        if keyword in ("const", "default", "enum", "examples"):
            continue
        if isinstance(value, dict):
            is_named = keyword in _MAPS
            found += [(keyword, sub) for sub in value.values()] if is_named else [(keyword, value)]
        elif isinstance(value, list):
            found += [(keyword, sub) for sub in value]
    return found


_MAPS: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
