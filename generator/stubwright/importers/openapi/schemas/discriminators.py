"""Converts OpenAPI discriminators to a `const` or `enum` in each alternative ("Discriminator Object")."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stubwright.importers.openapi.documents import LocatedValue, UnsupportedError, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stubwright.importers.openapi.documents import Documents
    from stubwright.ir import Json

Key = tuple[str, tuple[str, ...]]
"""A schema's file and pointer."""

Names = tuple[str, ...]
"""Values of the discriminator property."""

_ALTERNATIVES = ("oneOf", "anyOf")
_WORDS = frozenset(
    {"$ref", "allOf", "deprecated", "description", "example", "examples", "summary", "title", "type", "xml"}
)
"""The keys of a schema that only annotates its reference."""

_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", str: "string"}
_BOOLEANS = {"true": True, "false": False}
_DEFAULT_SINCE = 2
"""The OpenAPI 3 minor version that introduced `defaultMapping`."""


@dataclass(slots=True)
class _Index:
    """The discriminators in the files read so far.

    Attributes:
        names: The names of an alternative, keyed by schema and property.
        defaults: The properties for which a schema is a union's default alternative.
        required: The properties that an alternative requires because another alternative is the default.
        children: The schemas that extend a schema with `allOf`.
        unions: The unions that list a schema.
    """

    names: dict[Key, dict[str, list[str]]] = field(default_factory=lambda: defaultdict(dict))
    defaults: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    required: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    children: dict[Key, list[LocatedValue]] = field(default_factory=lambda: defaultdict(list))
    unions: dict[Key, list[LocatedValue]] = field(default_factory=lambda: defaultdict(list))


class Discriminators:
    """One document's discriminators."""

    def __init__(self, documents: Documents) -> None:
        """Create the discriminators of `documents`. Each file is indexed on first use."""
        self._documents = documents
        self._files: set[str] = set()
        self._index = _Index()
        self._pins: dict[Key, dict[str, list[str]]] = {}
        self._open: dict[Key, str] = {}

    def pin(self, at: LocatedValue, excluded: Names = ()) -> LocatedValue:
        """Return a schema whose discriminator properties accept only the values for this schema and its children.

        A closed parent with a discriminator would reject its children's properties, so it is returned open.

        Args:
            at: The schema.
            excluded: The values for other alternatives in its union, from `find_excluded`.
        """
        pins = self.find_pins(at)
        if not isinstance(at.value, dict):
            return at
        is_open_parent = at.get_field("additionalProperties") is False and self._is_parent(at) and not excluded
        if is_open_parent:
            at = LocatedValue(
                {key: at.value[key] for key in at.value if key != "additionalProperties"}, at.file, at.pointer
            )
        if excluded and self._is_parent(at):
            pins = self._add_parent(at, pins)
        defaults = self._index.defaults.get(self._key(at), set()) if excluded else set[str]()
        if not pins and not defaults:
            return at
        properties: dict[str, Any] = {name: entry.value for name, entry in at.list_entries("properties")}
        for name in sorted(defaults):
            properties |= self._exclude(at, name, excluded)
        open_name = "" if excluded else self._find_open_property(at)
        for name, names in pins.items():
            if name in defaults or name == open_name:
                continue
            pinned = self._pin_property(at, name, [each for each in names if each not in excluded] or names)
            if pinned is not None:
                properties[name] = pinned
        required = self._require(at)
        changed = {**at.value, **({"properties": properties} if properties else {}), **required}
        return LocatedValue(changed, at.file, at.pointer) if properties or required else at

    def find_excluded(self, union: LocatedValue, alternative: LocatedValue) -> Names:
        """Return the values that an alternative leaves to other alternatives in its union, sorted.

        The other alternatives are the alternative's children or, for the default, all other alternatives (3.2.0,
        "Discriminator Object", `defaultMapping`).

        Args:
            union: The schema with `oneOf` or `anyOf`.
            alternative: The target of one of the union's references.
        """
        self.find_pins(alternative)
        name, key = _get_property(union), self._key(alternative)
        if name is not None and (default := self._find_default(union)) is not None and self._key(default) == key:
            others = [target for target in self._list_targets(union, *_ALTERNATIVES) if self._key(target) != key]
            return tuple(sorted({each for other in others for each in self.find_pins(other).get(name, ())}))
        children = {self._key(child) for child in self._list_children(alternative)} - {self._key(alternative)}
        if not children:
            is_open = name is not None and name == self._find_open_property(alternative)
            names = self._list_names(alternative, self._read_mapping(union)) if is_open else []
            listed = self._list_own_values(alternative, name or "") if names else []
            return tuple(sorted({*listed} - {*names})) if {*listed} & {*names} else ()
        others = [target for target in self._list_targets(union, *_ALTERNATIVES) if self._key(target) in children]
        return tuple(sorted({name for other in others for names in self.find_pins(other).values() for name in names}))

    def list_alternatives(self, union: LocatedValue, key: str) -> list[LocatedValue]:
        """Return the alternatives in a `oneOf` or `anyOf`; the default comes last, since models are tried in order."""
        items = [item if self._find_wrapped(item) is None else _unwrap(item) for item in union.list_items(key)]
        default = self._find_default(union)
        if default is None:
            return items
        keys = [(item, {self._key(target) for target in (self._resolve(item),) if target}) for item in items]
        return [item for item, _ in sorted(keys, key=lambda pair: self._key(default) in pair[1])]

    def _find_wrapped(self, alternative: LocatedValue) -> LocatedValue | None:
        """Return the discriminated schema that an alternative only wraps in `allOf` to add annotations, or None."""
        plain = _unwrap(alternative)
        target = None if plain is alternative else self._resolve(plain)
        return target if target is not None and self.find_pins(target) else None

    def is_split(self, at: LocatedValue) -> bool:
        """Return whether a union lists a schema and one of its subtypes, so that the schema means only itself."""
        if self.is_open(at):
            return False
        return any(self.find_excluded(union, at) for union in self._index.unions.get(self._key(at), ()))

    def find_pins(self, at: LocatedValue) -> Mapping[str, list[str]]:
        """Return the values for a schema and its children, by discriminator property.

        A parent has values if it has a `mapping` and its property does not list values itself; without a `mapping`,
        documents often use values other than the specified ones.
        """
        self._read_file(self._documents.root)
        self._read_file(at)
        if not isinstance(at.value, dict) or not (self._index.names or self._index.children):
            return {}
        key = (at.file, at.pointer)
        if key not in self._pins:
            self._pins[key] = {}  # in case the schema inherits from itself
            pins = self._find_own(at)
            is_open = self._find_named_default(at) is not None  # other values select the default
            if self._is_parent(at) and self._read_mapping(at) and not self._lists_values(at) and not is_open:
                pins = self._add_parent(at, pins)
            for child in self._list_children(at) if pins else ():
                for name, names in self._find_own(child).items():
                    pins[name] = [*dict.fromkeys([*pins.get(name, ()), *names])]
            self._pins[key] = pins
        return self._pins[key]

    def convert_mapping(self, at: LocatedValue) -> dict[str, LocatedValue]:
        """Return the alternatives that a schema references, keyed by their names in its `mapping`."""
        listed = {self._key(target) for target in self._list_targets(at, *_ALTERNATIVES)}
        targets = self._read_mapping(at).items()
        return {name: target for name, target in targets if self._key(target) in listed}

    def is_open(self, at: LocatedValue) -> bool:
        """Return whether a schema keeps its own `enum`, while unions that map values to it get a narrower copy."""
        self.find_pins(at)
        return bool(self._find_open_property(at))

    def _find_open_property(self, at: LocatedValue) -> str:
        """Return a property whose `enum` only some unions restrict, or an empty string.

        Parents and defaults already get a separate schema in each union.
        """
        key = self._key(at)
        if key not in self._open:
            self._open[key] = self._search_open_property(at, key)
        return self._open[key]

    def _search_open_property(self, at: LocatedValue, key: Key) -> str:
        unions = [
            union for union in self._index.unions.get(key, ()) if len(self._list_targets(union, *_ALTERNATIVES)) > 1
        ]
        if len(unions) < 2 or key in self._index.children or key in self._index.defaults:
            return ""
        for name in self._index.names.get(key, ()):
            values = {*self._list_own_values(at, name)}
            pinned = [
                _get_property(union) == name and bool(values & {*self._list_names(at, self._read_mapping(union))})
                for union in unions
            ]
            if values and any(pinned) and not all(pinned):
                return name
        return ""

    def _list_own_values(self, at: LocatedValue, name: str) -> list[str]:
        """Return the values in a property's `enum` as strings, like the names in a `mapping`."""
        described = dict(at.list_entries("properties")).get(name)
        listed = None if described is None else described.get_field("enum")
        return [str(value) for value in listed] if isinstance(listed, list) else []

    def _read_file(self, at: LocatedValue) -> None:
        """Add the discriminators in a schema's file to the index, once."""
        if at.file in self._files:
            return
        self._files.add(at.file)
        root = self._documents.find_target("", at.file)
        if not any("discriminator" in part for part in walk(root.value)):
            return
        self._pins.clear()
        self._open.clear()
        for schema in _walk(root):
            for parent in self._list_targets(schema, "allOf"):
                self._index.children[self._key(parent)].append(schema)
            for target in self._list_targets(schema, *_ALTERNATIVES):
                self._index.unions[self._key(target)].append(schema)
            name = _get_property(schema)
            if name is None:
                continue
            mapping = self._read_mapping(schema)
            default = self._find_default(schema)
            for target in self._list_targets(schema, *_ALTERNATIVES):
                if default is not None and self._key(target) == self._key(default):
                    self._index.defaults[self._key(target)].add(name)
                    continue
                if default is not None:
                    self._index.required[self._key(target)].add(name)
                names = self._list_names(target, mapping)
                if not names:
                    continue
                self._add_names(target, name, names)
            for target in self._list_extended(schema):  # they have no names of their own
                self._add_names(target, name, self._list_mapped(target, mapping))

    def _add_names(self, at: LocatedValue, name: str, names: Iterable[str]) -> None:
        known = self._index.names[self._key(at)].get(name, [])
        if values := [*dict.fromkeys([*known, *names])]:
            self._index.names[self._key(at)][name] = values

    def _list_extended(self, union: LocatedValue) -> list[LocatedValue]:
        """Return the targets of alternatives that extend a single reference in `allOf`."""
        found: list[LocatedValue] = []
        for item in (item for key in _ALTERNATIVES for item in union.list_items(key)):
            targets = [] if _unwrap(item).get("$ref") is not None else self._list_targets(item, "allOf")
            found += targets if len(targets) == 1 else []
        return found

    def _is_parent(self, at: LocatedValue) -> bool:
        """Return whether a schema has a discriminator for its children, but no alternatives of its own."""
        is_union = any(at.list_items(key) for key in _ALTERNATIVES)
        return _get_property(at) is not None and not is_union and bool(self._index.children.get(self._key(at)))

    def _lists_values(self, at: LocatedValue) -> bool:
        """Return whether a parent's discriminator property has an `enum` or a `const`."""
        described = self._find_property(at, _get_property(at) or "")
        parts = [] if described is None else self._list_applied(described)
        return any(part.get(key) is not None for part in parts for key in ("enum", "const"))

    def _add_parent(self, at: LocatedValue, pins: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """Return a parent's values: the parent's own values, and all values in its `mapping`."""
        name = _get_property(at) or ""
        mapping = self._read_mapping(at)
        own = pins.get(name) or self._list_names(at, mapping)
        return {**pins, name: [*dict.fromkeys([*own, *mapping])]}

    def _find_own(self, at: LocatedValue) -> dict[str, list[str]]:
        """Return a schema's own values, as an alternative and as a child."""
        own = {name: [*names] for name, names in self._index.names.get(self._key(at), {}).items()}
        for parent in self._list_ancestors(at):
            name = _get_property(parent)
            if name is None:
                continue
            if name in own:  # a union without a `mapping` uses the parent's names
                known = own[name]
                known += [each for each in self._list_mapped(at, self._read_mapping(parent)) if each not in known]
            else:
                default = self._find_named_default(parent)
                if default is not None and self._key(default) == self._key(at):
                    continue
                listed = [self._key(target) for target in self._list_targets(parent, *_ALTERNATIVES)]
                is_wrapper = bool(listed) and self._key(at) not in listed  # one reference in `allOf`
                mapping = self._read_mapping(parent)
                names = [] if is_wrapper and not self._list_mapped(at, mapping) else self._list_names(at, mapping)
                own |= {name: names} if names else {}
        return own

    def _pin_property(self, at: LocatedValue, name: str, names: list[str]) -> Json:
        """Return a property's schema with only the values in `names`, or None if the property keeps its own schema."""
        described = self._find_property(at, name)
        parts = [] if described is None else list(self._list_applied(described))
        values = _convert_names(names, parts)
        for part in parts:
            listed = [part.get_field("const")] if part.get("const") is not None else part.get_field("enum")
            if isinstance(listed, list):
                values = [value for value in values if value in listed]
                if len(values) == len(listed):
                    return None  # it is already as narrow
        if not values or (described is None and self._is_closed(at)):
            return None
        schema: dict[str, Any] = {"type": _TYPES[type(values[0])]}
        for part in reversed(parts):
            for key in ("description", "default", "example", "readOnly", "writeOnly"):
                if part.get(key) is not None and (key not in ("default", "example") or part.get_field(key) in values):
                    schema[key] = part.get_field(key)
        return {**schema, "const": values[0]} if len(values) == 1 else {**schema, "enum": values}

    def _exclude(self, at: LocatedValue, name: str, names: Names) -> dict[str, Json]:
        """Return a default alternative's property without the values of other alternatives.

        The result is empty if the alternative forbids the property.
        """
        described = self._find_property(at, name)
        if described is None and self._is_closed(at):
            return {}
        schema = {} if described is None else described.value
        is_plain = isinstance(schema, dict) and "not" not in schema and ("$ref" not in schema)
        kept = schema if isinstance(schema, dict) and is_plain else {"allOf": [schema]}
        parts = [] if described is None else list(self._list_applied(described))
        return {name: {**kept, "not": {"enum": _convert_names(names, parts)}}}

    def _require(self, at: LocatedValue) -> dict[str, Json]:
        """Return `required` for an alternative in a union with a default.

        Return an empty mapping if `required` does not change.
        """
        names = sorted(self._index.required.get(self._key(at), ()))
        known = at.get_field("required")
        listed = known if isinstance(known, list) else []
        is_closed = self._is_closed(at)
        new = [
            name for name in names if name not in listed and not (is_closed and self._find_property(at, name) is None)
        ]
        return {"required": [*listed, *new]} if new else {}

    def _is_closed(self, at: LocatedValue) -> bool:
        return at.get_field("additionalProperties") is False and at.get("allOf") is None

    def _find_property(self, at: LocatedValue, name: str, depth: int = 8) -> LocatedValue | None:
        for entry_name, entry in at.list_entries("properties"):
            if entry_name == name:
                return entry
        parents = self._list_targets(at, "allOf", inline=True) if depth else ()
        return next(
            (found for parent in parents if (found := self._find_property(parent, name, depth - 1)) is not None), None
        )

    def _list_applied(self, at: LocatedValue, depth: int = 8) -> Iterator[LocatedValue]:
        """Yield a schema, the target of its reference, and the parts of its `allOf`."""
        if depth:
            yield at
            if isinstance(at.get_field("$ref"), str) and (target := self._resolve(at)) is not None:
                yield from self._list_applied(target, depth - 1)
            for part in at.list_items("allOf"):
                yield from self._list_applied(part, depth - 1)

    def _list_ancestors(self, at: LocatedValue, depth: int = 8) -> Iterator[LocatedValue]:
        for parent in self._list_targets(at, "allOf", inline=True) if depth else ():
            yield parent
            yield from self._list_ancestors(parent, depth - 1)

    def _list_children(self, at: LocatedValue, depth: int = 8) -> Iterator[LocatedValue]:
        for child in self._index.children.get(self._key(at), ()) if depth else ():
            yield child
            yield from self._list_children(child, depth - 1)

    def _list_names(self, at: LocatedValue, mapping: Mapping[str, LocatedValue]) -> list[str]:
        """Return a schema's names in a mapping, or its component name if the mapping does not list the schema."""
        names = self._list_mapped(at, mapping)
        above = (("components", "schemas"), ("definitions",), *([()] if at.file != self._documents.root.file else []))
        is_component = bool(at.pointer) and at.pointer[:-1] in above
        is_union = any(at.list_items(key) for key in _ALTERNATIVES)
        return names or ([at.pointer[-1]] if is_component and not is_union else [])

    def _list_mapped(self, at: LocatedValue, mapping: Mapping[str, LocatedValue]) -> list[str]:
        return [name for name, target in mapping.items() if self._key(target) == self._key(at)]

    def _read_mapping(self, at: LocatedValue) -> dict[str, LocatedValue]:
        discriminator = at.get("discriminator")
        entries = discriminator.list_entries("mapping") if discriminator is not None else []
        found: dict[str, LocatedValue] = {}
        for name, entry in entries:
            target = self._find_named(str(entry.value), at.file)
            if target is not None:
                found[str(name)] = target
        return found

    def _find_default(self, union: LocatedValue) -> LocatedValue | None:
        default = self._find_named_default(union)
        listed = () if default is None else self._list_targets(union, *_ALTERNATIVES)
        return next((target for target in listed if default and self._key(target) == self._key(default)), None)

    def _find_named_default(self, at: LocatedValue) -> LocatedValue | None:
        discriminator = at.get_field("discriminator")
        name = discriminator.get("defaultMapping") if isinstance(discriminator, dict) else None
        is_known = isinstance(name, str) and self._documents.minor >= _DEFAULT_SINCE
        return self._find_named(name, at.file) if is_known and isinstance(name, str) else None

    def _find_named(self, name: str, file: str) -> LocatedValue | None:
        is_name = "#" not in name and "/" not in name  # `com.acme.Cat` can be a component or a file
        references = [f"#/components/schemas/{name}", f"#/definitions/{name}"] if is_name else []
        for reference in [*references, name]:
            target = self._resolve(LocatedValue({"$ref": reference}, file, ()))
            if target is not None:
                return target
        return None

    def _list_targets(self, at: LocatedValue, *keys: str, inline: bool = False) -> list[LocatedValue]:
        """Return the targets of references in lists of schemas. With `inline`, also return inline schemas."""
        items = [_unwrap(item) for key in keys for item in at.list_items(key)]
        kept = [item for item in items if inline or isinstance(item.get_field("$ref"), str)]
        return [target for item in kept if (target := self._resolve(item)) is not None]

    def _resolve(self, at: LocatedValue) -> LocatedValue | None:
        try:
            target = self._documents.resolve(at)
        except UnsupportedError:
            return None  # reported by the conversion
        return target if isinstance(target.value, dict) else None

    @staticmethod
    def _key(at: LocatedValue) -> Key:
        return at.file, at.pointer


def _unwrap(at: LocatedValue) -> LocatedValue:
    """Replace an `allOf` that only annotates a reference, as 3.0 requires, with the reference."""
    parts = at.list_items("allOf")
    references = [part for part in parts if isinstance(part.get_field("$ref"), str)]
    if len(references) != 1 or any(set(part.value) - _WORDS for part in (*parts, at) if isinstance(part.value, dict)):
        return at
    if at.get_field("type") not in (None, "object"):
        return at
    words = {key: at.value[key] for key in at.value if key in ("title", "description")}
    return LocatedValue({"$ref": references[0].get_field("$ref"), **words}, at.file, at.pointer)


def _get_property(at: LocatedValue) -> str | None:
    discriminator = at.get_field("discriminator")
    name = discriminator.get("propertyName") if isinstance(discriminator, dict) else None
    return name if isinstance(name, str) and name else None


def _convert_names(names: Iterable[str], parts: Iterable[LocatedValue]) -> list[Json]:
    """Convert names to values of a property with these parts. Some documents use integers or booleans."""
    kinds = {part.get_field("type") for part in parts if isinstance(part.get_field("type"), str)}
    if "integer" in kinds:
        return [int(name) for name in names if name.lstrip("-").isdecimal()]
    if "boolean" in kinds:
        return [_BOOLEANS[name] for name in names if name in _BOOLEANS]
    return [*names]


def _walk(root: LocatedValue) -> Iterator[LocatedValue]:
    waiting = [root]
    while waiting:
        at = waiting.pop()
        if isinstance(at.value, dict):
            yield at
            waiting += [at / key for key in at.value if isinstance(key, str)]
        elif isinstance(at.value, list):
            waiting += [at / str(index) for index in range(len(at.value))]
