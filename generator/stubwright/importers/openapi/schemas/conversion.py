"""Converts OpenAPI Schema Objects to JSON Schema 2020-12, with shared ones under `schemas`.

OpenAPI 3.0 keywords are replaced with equivalent ones (3.0.4, section 4.7.24; "Migrating from OpenAPI 3.0 to 3.1").
Unknown keywords are omitted. Requests omit `readOnly` properties, and responses do not require `writeOnly` properties
(3.0.4, section 4.7.24.2), so a shared schema can have a second version for requests, called `XRequest`.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from stubwright import naming
from stubwright.diagnostics.suggestions import shorten
from stubwright.importers.openapi.documents import LocatedValue, UnsupportedError, walk
from stubwright.importers.openapi.schemas.discriminators import Discriminators, Names
from stubwright.jsonschema.cycles import find_reachable
from stubwright.jsonschema.dialects import DRAFT_2020_12 as DIALECT
from stubwright_runtime.values.equality import are_equal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stubwright.importers.openapi.documents import Documents
    from stubwright.ir import Json

Side: TypeAlias = Literal["request", "response"]
"""The direction of a schema: in a request to the API or in a response."""

_ANNOTATIONS = ("title", "description", "default", "deprecated", "readOnly", "writeOnly", "examples")
_WORDS: Final = frozenset({"title", "description", "example", "examples", "deprecated"})
_UNSERVED = ("$dynamicRef", "$recursiveRef")
_LEFT_OUT = frozenset({"$id", "$schema", "$anchor", "$dynamicAnchor", "$vocabulary", "$comment", "$defs", "$ref"})
_COPIED = (DIALECT.keywords | {"discriminator"}) - _LEFT_OUT
_BOUNDS: Final = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
REFERENCE: Final = "#/schemas/"
"""The prefix of references to shared schemas."""

_FLAGS: Final[Mapping[Side, str]] = {"request": "readOnly", "response": "writeOnly"}


@dataclass(frozen=True, slots=True)
class Key:
    """Identifies a shared schema by location, by side if requests and responses differ, and by the discriminator values
    of the other alternatives.
    """

    file: str
    pointer: tuple[str, ...]
    side: Side | None
    excluded: Names = ()


@dataclass(frozen=True, slots=True)
class FlatObject:
    """An object schema as its properties, the names of the required ones, and the schema for any others."""

    properties: Mapping[str, LocatedValue]
    required: frozenset[str]
    additional: LocatedValue | None


@dataclass(slots=True)
class Schemas:
    """Converts schemas and stores the converted shared schemas.

    Attributes:
        documents: The documents in which references are resolved.
        taken: Class name stems that are already used.
        notes: Notes on omitted parts.
    """

    documents: Documents
    taken: set[str]
    notes: list[str] = field(default_factory=list)
    _names: dict[Key, str] = field(default_factory=dict)
    _converted: dict[str, Json] = field(default_factory=dict)
    _uses: dict[str, frozenset[str]] = field(default_factory=dict)
    _failed: dict[str, str] = field(default_factory=dict)
    _waiting: list[tuple[str, LocatedValue, Side, Names]] = field(default_factory=list)
    _scans: dict[tuple[str, tuple[str, ...]], tuple[bool, tuple[LocatedValue, ...]]] = field(default_factory=dict)
    _same_on_both_sides: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    discriminators: Discriminators = field(init=False)

    def __post_init__(self) -> None:
        self.discriminators = Discriminators(self.documents)

    def convert(self, at: LocatedValue, side: Side) -> tuple[Json, frozenset[str]]:
        """Return a schema as JSON Schema 2020-12, and the names of the shared schemas that it references.

        Raises:
            UnsupportedError: The schema, or a referenced schema, has an unsupported feature.
        """
        conversion = _Conversion(self, side)
        schema = conversion.convert(at)
        # Shared schemas can be cyclic, so a queue converts them.
        while self._waiting:
            name, target, its_side, excluded = self._waiting.pop()
            inner = _Conversion(self, its_side)
            try:
                self._converted[name] = inner.convert(target, excluded=excluded)
            except UnsupportedError as error:
                self._failed[name] = str(error)
            self._uses[name] = frozenset(inner.uses)
        for name in self.find_closure(conversion.uses):
            if name in self._failed:
                raise UnsupportedError(self._failed[name])
        return schema, frozenset(conversion.uses)

    def find_closure(self, names: Iterable[str]) -> list[str]:
        """Return these shared schemas and all that they reference."""
        return find_reachable(names, lambda name: sorted(self._uses.get(name, ())))

    def list_shared(self, names: Iterable[str]) -> dict[str, Json]:
        """Return these shared schemas and all that they reference, sorted by name."""
        return {name: self._converted[name] for name in sorted(self.find_closure(names))}

    def flatten(self, at: LocatedValue) -> FlatObject | None:
        """Flatten an object's references and `allOf` to its properties; return None if that is impossible."""
        try:
            return self._flatten(at, ())
        except UnsupportedError:
            return None

    def describes_object(self, at: LocatedValue, depth: int = 8) -> bool:
        """Return whether a schema's `type`, references and `allOf` show that it accepts only objects."""
        value = at.value
        if not isinstance(value, dict) or not depth or value.get("nullable") is True:
            return False
        if "$ref" in value and isinstance(value["$ref"], str):
            return self.describes_object(self.documents.find_target(value["$ref"], at.file, at.pointer), depth - 1)
        if value.get("type") == "object":
            return True
        return any(self.describes_object(part, depth - 1) for part in at.list_items("allOf"))

    def list_applied(self, at: LocatedValue) -> Iterator[LocatedValue]:
        """Yield a schema and the subschemas for the same value, each once: referenced, in `allOf`, and alternatives."""
        visited: set[tuple[str, tuple[str, ...]]] = set()
        waiting = [at]
        for part in waiting:  # grows during the loop
            if not isinstance(part.value, dict) or (part.file, part.pointer) in visited:
                continue
            visited.add((part.file, part.pointer))
            yield part
            if isinstance(part.value.get("$ref"), str):
                waiting += self._find_targets([part.value["$ref"]], part)
            for key in ("allOf", "anyOf", "oneOf"):
                waiting += part.list_items(key)

    def is_string(self, at: LocatedValue) -> bool:
        """Return whether a schema, its reference's target, or one of its alternatives accepts strings."""
        return any(
            kind == "string" or (isinstance(kind, list) and "string" in kind)
            for kind in (part.get_field("type") for part in self.list_applied(at))
        )

    def without_null(self, at: LocatedValue, depth: int = 8) -> LocatedValue:
        """Remove null from a schema if that leaves a single alternative or type."""
        target = self.documents.resolve(at)
        value = target.value
        if not isinstance(value, dict):
            return at
        for key in ("anyOf", "oneOf"):
            others = [item for item in target.list_items(key) if item.get_field("type") != "null"]
            if len(others) == 1 and not _find_restrictions(value) - {key} and depth:
                return self.without_null(others[0], depth - 1)
        kinds = value.get("type")
        rest = [kind for kind in kinds if kind != "null"] if isinstance(kinds, list) else []
        if value.get("nullable") is not True and len(rest) != 1:
            return at
        changed = {key: entry for key, entry in value.items() if key != "nullable"} | (
            {"type": rest[0]} if rest else {}
        )
        return LocatedValue(changed, target.file, target.pointer)

    def name_reference(self, reference: str, at: LocatedValue, side: Side, excluded: Names = ()) -> str:
        """Return the name of the shared schema for a reference; the schema is converted later.

        Values in `excluded` belong to other alternatives in its union.

        Raises:
            UnsupportedError: The reference does not resolve or refers to a file that is not read.
        """
        target = self.documents.find_target(reference, at.file, at.pointer)
        if not isinstance(target.value, dict | bool):
            raise UnsupportedError(f"the reference `{reference}` does not refer to a schema")
        return self.name_target(target, side, excluded)

    def name_target(self, target: LocatedValue, side: Side, excluded: Names = ()) -> str:
        """Return the name of the shared schema for a target; the schema is converted later.

        Values in `excluded` belong to other alternatives in its union.
        """
        key = Key(target.file, target.pointer, side if self._differs(target) else None, excluded)
        name = self._names.get(key)
        if name is None:
            suffix = "Family" if not excluded and self.discriminators.is_split(target) else ""
            if excluded and self.discriminators.is_open(target):
                suffix = "Alternative"
            name = self._names[key] = self._make_name(key, suffix)
            self._waiting.append((name, target, side, excluded))
        return name

    def has_flag(self, at: LocatedValue, flag: str) -> bool:
        """Return whether a property's schema, or its target, has `readOnly` or `writeOnly`."""
        # Invalid references can be cyclic.
        for _ in range(8):
            if not isinstance(at.value, dict):
                return False
            if at.value.get(flag) is True:
                return True
            if not isinstance(at.value.get("$ref"), str):
                return any(part.get_field(flag) is True for part in at.list_items("allOf"))
            at = self.documents.find_target(at.value["$ref"], at.file, at.pointer)
        return False

    def as_parent(self, part: LocatedValue) -> LocatedValue:
        """Return a part of an `allOf`.

        If the part is a parent whose alternatives extend the parent, omit the alternatives.

        The surrounding schema is one of the alternatives. If a union lists a parent and its subtypes, the parent is
        copied, because its shared schema is specific to that union.
        """
        if not isinstance(part.value, dict) or "$ref" not in part.value or part.value.keys() - _BESIDE:
            return part
        parent = self.documents.resolve(part)
        back = self.find_children(parent)
        if not back and self.discriminators.is_split(parent):
            return parent
        if not back or not isinstance(parent.value, dict):
            return part
        self.notes.append(
            f"`{parent.pointer[-1] if parent.pointer else parent.file}` has alternatives that extend it with `allOf`; "
            "in these, its own alternatives are ignored"
        )
        own = {key: entry for key, entry in parent.value.items() if key not in back | {"discriminator"}}
        return LocatedValue(own, parent.file, parent.pointer)

    def find_children(self, parent: LocatedValue) -> frozenset[str]:
        """Return the keywords of a schema whose alternatives extend it."""
        return frozenset(
            key for key in ("oneOf", "anyOf") if any(self._inherits(item, parent) for item in parent.list_items(key))
        )

    def _inherits(self, at: LocatedValue, parent: LocatedValue, depth: int = 8) -> bool:
        if not depth:
            return False
        parts = [self.documents.resolve(part) for part in self.documents.resolve(at).list_items("allOf")]
        return any(
            (part.file, part.pointer) == (parent.file, parent.pointer) or self._inherits(part, parent, depth - 1)
            for part in parts
        )

    def _flatten(self, at: LocatedValue, above: tuple[tuple[str, tuple[str, ...]], ...]) -> FlatObject | None:
        pinned = self.discriminators.find_pins(at)
        at = self.discriminators.pin(at)
        value = at.value
        # If the properties of a nullable object were separate arguments, callers could not send null.
        if not isinstance(value, dict) or (at.file, at.pointer) in above or value.get("nullable") is True:
            return None
        above = (*above, (at.file, at.pointer))
        if isinstance(value.get("$ref"), str):
            target = self.documents.find_target(value["$ref"], at.file, at.pointer)
            is_alone = not self.documents.minor or not _find_restrictions(value) - {"$ref"}
            return self._flatten(target, above) if is_alone else None  # 3.0 ignores the siblings of a reference
        if value.get("type", "object") != "object" or _find_restrictions(value) - _FLAT:
            return None
        additional = at.get("additionalProperties")
        flats = [self._flatten(self.as_parent(part), above) for part in at.list_items("allOf")]
        is_closed = additional is not None and additional.value is False
        if "allOf" in value and ((additional is not None and not is_closed) or not all(flats)):
            return None
        properties: dict[str, LocatedValue] = {}
        parts = [*(flat.properties.items() for flat in flats if flat), self.documents.list_entries(at, "properties")]
        for name, schema in chain.from_iterable(parts):
            if name in properties and name not in pinned and not _is_same(properties[name].value, schema.value):
                return None
            properties[name] = schema
        required = {name for flat in flats if flat for name in flat.required} | _to_strings(value.get("required"))
        for flat in flats:
            if flat is None or (flat.additional is not None and flat.additional.value is not False and len(flats) > 1):
                return None  # one part could restrict a property that another declares
            additional = additional or flat.additional  # `false` applies to the whole object
        # A required property without a schema would have no argument.
        if not required <= properties.keys():
            return None
        return FlatObject(properties, frozenset(required), additional)

    def _differs(self, at: LocatedValue) -> bool:
        """Return whether a schema, or a schema that it references, differs between requests and responses."""
        start = (at.file, at.pointer)
        if start in self._same_on_both_sides:
            return False
        waiting = [at]
        visited = {start}
        for schema in waiting:  # grows during the loop
            flagged, targets = self._scan(schema)
            if flagged:
                return True
            for target in targets:
                key = (target.file, target.pointer)
                if key not in visited and key not in self._same_on_both_sides:
                    visited.add(key)
                    waiting.append(target)
        # The visited schemas reference only each other, so none has a flag.
        self._same_on_both_sides |= visited
        return False

    def _scan(self, at: LocatedValue) -> tuple[bool, tuple[LocatedValue, ...]]:
        """Return whether a schema contains `readOnly` or `writeOnly`, and the targets of its references."""
        key = (at.file, at.pointer)
        if key not in self._scans:
            parts = list(walk(at.value))
            flagged = any(part.get(flag) is True for part in parts for flag in _FLAGS.values())
            references = {part["$ref"] for part in parts if isinstance(part.get("$ref"), str)}
            self._scans[key] = flagged, tuple(self._find_targets(references, at))
        return self._scans[key]

    def _find_targets(self, references: Iterable[str], at: LocatedValue) -> Iterator[LocatedValue]:
        for reference in references:
            try:
                yield self.documents.find_target(reference, at.file, at.pointer)
            except UnsupportedError:
                continue  # reported by the conversion

    def _make_name(self, key: Key, suffix: str) -> str:
        """Return an unused name for a shared schema, if possible the schema's own name."""
        steps = [step for step in key.pointer if step not in _PLACES]
        own = "_".join(steps) or posixpath.splitext(posixpath.basename(key.file))[0]
        plain = "".join(char if char.isalnum() or char in "._-" else "_" for char in own)
        plain += suffix
        if key.side == "request":
            plain += "Request"
        digest = hashlib.sha256(repr((key.file, key.pointer, key.side, *key.excluded)).encode()).hexdigest()[:6]
        for name in (plain, f"{plain}Schema", f"{plain}_{digest}"):
            stem = naming.name_shared(name).stem
            if naming.is_importable(stem) and stem not in self.taken:
                break
        else:
            name = f"Schema_{digest}"
        self.taken.add(naming.name_shared(name).stem)
        return name


_PLACES = frozenset({"components", "definitions", "schemas", "properties", "paths"})
"""Pointer segments that are not part of a schema's name."""

_FLAT = frozenset({"type", "properties", "required", "additionalProperties", "allOf"})


def _find_restrictions(value: Mapping[str, Json]) -> set[str]:
    notes = {*_ANNOTATIONS, "$comment", "$id", "$schema", "discriminator", "example", "nullable", "minProperties"}
    return {key for key in value if (key in _COPIED or key in _LEFT_OUT) and key not in notes}


def _is_same(left: Json, right: Json) -> bool:
    return are_equal(_drop_words(left), _drop_words(right))


def _drop_words(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key not in _WORDS} if isinstance(schema, dict) else schema


def _to_strings(value: Json) -> set[str]:
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


_CLOSED: Final = (
    "parts of an `allOf` with `additionalProperties: false` forbid each other's properties; "
    "they were imported as one object that forbids properties that no part has"
)


_BESIDE: Final = frozenset({"$ref", "title", "description", "summary"})
"""Keys next to a reference that do not affect validation."""


@dataclass(frozen=True, slots=True)
class _ObjectPart:
    """Part of an object: its declared properties, and whether undeclared properties are forbidden."""

    names: frozenset[str]
    is_closed: bool


@dataclass(slots=True)
class _Conversion:
    """A single conversion. `uses` collects the names of referenced shared schemas."""

    schemas: Schemas
    side: Side
    uses: set[str] = field(default_factory=set)

    def convert(
        self, at: LocatedValue, absent: frozenset[str] = frozenset(), *, is_part: bool = False, excluded: Names = ()
    ) -> Json:
        """Convert a schema.

        Args:
            absent: The properties that are not required.
            is_part: True for a part of an object that is closed as a whole. The part itself stays open.
            excluded: The values that belong to other alternatives.
        """
        at = self.schemas.discriminators.pin(at, excluded)
        value = at.value
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            raise UnsupportedError(f"the schema at {at.reference} is not a mapping")
        for key in _UNSERVED:
            if key in value:
                raise UnsupportedError(f"the schema at {at.reference} has the unsupported keyword `{key}`")
        absent |= self._find_absent(at)
        is_old_reference = self.schemas.documents.minor == 0 and isinstance(value.get("$ref"), str)
        # Other references need the shared schema to be closed, so the part gets an open copy.
        if is_part and isinstance(value.get("$ref"), str) and (is_old_reference or not value.keys() - _BESIDE):
            return self.convert(self.schemas.documents.resolve(at), absent, is_part=True, excluded=excluded)
        is_whole = not is_part and self._excludes_itself(at)
        is_old = self.schemas.documents.minor == 0
        converted: dict[str, Any] = {}
        if isinstance(value.get("$ref"), str):
            name = self.schemas.name_reference(value["$ref"], at, self.side, excluded)
            self.uses.add(name)
            converted["$ref"] = f"{REFERENCE}{name}"
        for key, entry in value.items():
            if (is_part or is_whole) and key == "additionalProperties" and entry is False:
                continue
            if key == "readOnly" and self.side == "request":
                continue  # the remaining properties can be sent
            if (is_part or is_whole) and key == "allOf" and isinstance(entry, list):
                parts = map(self.schemas.as_parent, at.list_items(key))
                converted[key] = [self.convert(part, absent, is_part=True) for part in parts]
                continue
            if (is_part or is_whole) and key in self._list_alternatives(at):
                alternatives = [
                    self.convert(item, absent, is_part=True, excluded=self._find_excluded(at, item))
                    for item in self.schemas.discriminators.list_alternatives(at, key)
                ]
                # closed alternatives were distinguished by the properties that they forbid
                is_open = not any(self._is_closed(self.schemas.documents.resolve(item)) for item in at.list_items(key))
                converted[key if is_open or "anyOf" in value else "anyOf"] = alternatives
                continue
            if is_old and "$ref" in converted and key not in ("description", "title"):
                continue  # 3.0 ignores the siblings of a reference
            # A keyword without a value is null in YAML. Only these two keywords allow null.
            if key in _COPIED and (entry is not None or key in ("default", "const")):
                converted |= self._convert_keyword(key, entry, at, absent)
        if "oneOf" in converted and "anyOf" not in converted and "oneOf" in self.schemas.find_children(at):
            converted["anyOf"] = converted.pop("oneOf")  # their parent's properties match several alternatives
        if is_whole:
            converted["unevaluatedProperties"] = False
            self.schemas.notes.append(_CLOSED)
        self._add_example(at, converted)
        _convert_bytes(converted, is_old=is_old)
        converted = drop_text(converted)
        for exclusive, bound in _BOUNDS:
            # In 3.0, as in draft-04, `exclusiveMinimum: true` modifies `minimum`.
            if isinstance(converted.get(exclusive), bool) and converted.pop(exclusive) and bound in converted:
                converted[exclusive] = converted.pop(bound)
        return _make_nullable(converted) if value.get("nullable") is True else converted

    def _convert_keyword(self, key: str, entry: Json, at: LocatedValue, absent: frozenset[str]) -> dict[str, Json]:
        below = at / key
        if key == "properties":
            hidden = self._find_hidden(at)
            return {
                key: {
                    name: self.convert(schema)
                    for name, schema in self.schemas.documents.list_entries(at, key)
                    if name not in hidden
                }
            }
        if key == "required":
            listed = [name for name in entry if isinstance(name, str)] if isinstance(entry, list) else []
            names = [*dict.fromkeys(name for name in listed if name not in absent)]
            return {key: names} if names else {}
        if key in DIALECT.named:
            return {key: {name: self.convert(schema) for name, schema in self.schemas.documents.list_entries(at, key)}}
        if key in DIALECT.listed and isinstance(entry, list):
            if key == "allOf":
                return {key: [self.convert(self.schemas.as_parent(part), absent) for part in at.list_items(key)]}
            if key in ("oneOf", "anyOf"):
                items = self.schemas.discriminators.list_alternatives(at, key)
                return {key: [self.convert(item, excluded=self._find_excluded(at, item)) for item in items]}
            return {key: [self.convert(part) for part in at.list_items(key)]}
        if key in DIALECT.single and isinstance(entry, dict | bool):
            return {key: self.convert(below)}
        if key == "pattern" and isinstance(entry, str) and (problem := _find_problem(entry)):
            self.schemas.notes.append(f"the pattern `{shorten(entry)}` was omitted: {problem}")
            return {}
        if key == "examples" and not isinstance(entry, list):
            return {}
        if key == "discriminator":
            return self._convert_discriminator(entry, at)
        return {key: entry}

    def _find_excluded(self, union: LocatedValue, item: LocatedValue) -> Names:
        if not isinstance(item.get_field("$ref"), str):
            return ()
        return self.schemas.discriminators.find_excluded(union, self.schemas.documents.resolve(item))

    def _convert_discriminator(self, entry: Json, at: LocatedValue) -> dict[str, Json]:
        if not isinstance(entry, dict) or not any(at.list_items(key) for key in ("oneOf", "anyOf")):
            return {}
        targets = self.schemas.discriminators.convert_mapping(at)
        find_excluded = self.schemas.discriminators.find_excluded
        names = {
            name: self.schemas.name_target(target, self.side, find_excluded(at, target))
            for name, target in targets.items()
        }
        self.uses |= {*names.values()}
        mapping: dict[str, Json] = {name: f"{REFERENCE}{target}" for name, target in names.items()}
        kept = {"propertyName": entry.get("propertyName"), "mapping": mapping}
        return {"discriminator": {key: kept[key] for key in entry if kept.get(key)}}

    def _excludes_itself(self, at: LocatedValue) -> bool:
        """Return whether a part of an `allOf`, or an alternative in it, forbids properties that another part declares.

        Documents mean that the whole object is closed. Alternatives can forbid each other's properties.
        """
        if not isinstance(at.value, dict) or "allOf" not in at.value:
            return False
        parts, alternatives = self._list_parts(at)
        common = frozenset[str]().union(*(part.names for part in parts))
        known = common.union(*(part.names for part in alternatives))
        return any(part.is_closed and not known <= part.names for part in parts) or any(
            part.is_closed and not common <= part.names for part in alternatives
        )

    def _list_parts(self, at: LocatedValue) -> tuple[list[_ObjectPart], list[_ObjectPart]]:
        """Return the parts combined by an `allOf`, and the parts in their alternatives."""
        parts: list[_ObjectPart] = []
        alternatives: list[_ObjectPart] = []
        visited = set[tuple[str, tuple[str, ...]]]()
        waiting = [(at, False)]
        for part, is_alternative in waiting:  # grows during the loop
            target = self.schemas.documents.resolve(part)
            if (target.file, target.pointer) in visited:
                continue
            visited.add((target.file, target.pointer))
            names = frozenset(name for name, _ in self.schemas.documents.list_entries(target, "properties"))
            (alternatives if is_alternative else parts).append(_ObjectPart(names, self._is_closed(target)))
            waiting += [(inner, is_alternative) for inner in target.list_items("allOf")]
            waiting += [(inner, True) for key in self._list_alternatives(target) for inner in target.list_items(key)]
        return parts, alternatives

    def _is_closed(self, at: LocatedValue) -> bool:
        return at.get_field("additionalProperties") is False and at.get_field("patternProperties") is None

    def _list_alternatives(self, at: LocatedValue) -> list[str]:
        """Return the keywords whose alternatives are parts of the whole object, not children of the schema."""
        children = self.schemas.find_children(at)
        return [key for key in ("oneOf", "anyOf") if at.list_items(key) and key not in children]

    def _find_absent(self, at: LocatedValue, depth: int = 8) -> frozenset[str]:
        """Return the properties that a schema and its `allOf` do not require on this side."""
        flag = _FLAGS[self.side]
        names = {
            name
            for name, schema in self.schemas.documents.list_entries(at, "properties")
            if self.schemas.has_flag(schema, flag)
        }
        for part in at.list_items("allOf") if depth else ():
            names |= self._find_absent(self.schemas.documents.resolve(part), depth - 1)
        return frozenset(names)

    def _find_hidden(self, at: LocatedValue) -> frozenset[str]:
        """Return the properties that requests omit: `readOnly` properties, unless the schema or its examples need them.

        A nested object in a request can identify an existing object by an `id` that only the API assigns.
        """
        if self.side != "request":
            return frozenset()
        examples = [at.get_field("example"), *(item.value for item in at.list_items("examples"))]
        shown = {name for example in examples if isinstance(example, dict) for name in example}
        return self._find_absent(at) - _to_strings(at.get_field("required")) - shown

    def _add_example(self, at: LocatedValue, schema: dict[str, Any]) -> None:
        example = at.get("example")
        if example is None or "examples" in schema or "$ref" in schema:
            return
        if isinstance(example.value, dict) and example.value.keys() == {"$ref"}:
            try:
                example = self.schemas.documents.follow(example, "`example`")
            except UnsupportedError:
                return  # the example is missing
            if isinstance(example.value, dict) and "value" in example.value:  # in `components/examples`
                example = example / "value"
        if example.value is not None:
            schema["examples"] = [example.value]


@cache
def _find_problem(pattern: str) -> str | None:
    from stubwright_runtime.schema.validation import Validator

    try:
        Validator({"pattern": pattern})
    except ValueError as error:
        return str(error).partition("\n")[0].rstrip(".")
    return None


def _convert_bytes(schema: dict[str, Any], *, is_old: bool) -> None:
    if is_old and schema.get("format") == "byte":
        del schema["format"]
        schema["contentEncoding"] = "base64"


def drop_text(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a base64 schema without examples and defaults that are not base64, such as file names."""
    if schema.get("contentEncoding") != "base64":
        return schema
    keywords = {key: value for key, value in schema.items() if key != "default" or _is_base64(value)}
    if isinstance(keywords.get("examples"), list):
        keywords["examples"] = [example for example in keywords["examples"] if _is_base64(example)]
        if not keywords["examples"]:
            del keywords["examples"]
    return keywords


def _is_base64(value: Json) -> bool:
    """Return whether a value can be sent as bytes (RFC 4648, section 4)."""
    try:
        return isinstance(value, str) and bool(base64.b64decode(value, validate=True))
    except ValueError:
        return False


def _make_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also accepts null (3.0.4, section 4.7.24, `nullable`)."""
    kind = schema.get("type")
    if isinstance(kind, str) and not schema.keys() & {"allOf", "anyOf", "oneOf", "not", "$ref", "const"}:
        schema["type"] = [kind, "null"] if kind != "null" else kind
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return schema
    annotations = {key: schema.pop(key) for key in _ANNOTATIONS if key in schema}
    if not schema:
        return annotations
    return {**annotations, "anyOf": [schema, {"type": "null"}]}
