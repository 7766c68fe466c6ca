"""Converts a JSON Schema to shapes: the types of its instances.

A shape accepts every valid instance, and also other instances if a keyword has no equivalent type. Names and Python
source are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal, TypeAlias

from stubwright import ir
from stubwright.diagnostics import Pointer
from stubwright.ir import Json
from stubwright.jsonschema import dialects, references
from stubwright.jsonschema.pointers import format_pointer

Scalar: TypeAlias = Literal["string", "number", "integer", "boolean", "null"]

_LONGEST_TUPLE = 16
_DEEPEST = 60
_WIDEST = 400
_MOST_FOLDED = 3
_MOST_PARTS = 200
_MOST_SHAPES = 5000
_MOST_CONSTANTS = 1000
_GREATEST = 2**63 - 1  # the largest integer that type checkers accept in a `Literal`
_SCALARS: tuple[Scalar, ...] = ("string", "number", "boolean", "null")
_ANNOTATIONS = frozenset(
    {"$anchor", "$comment", "$defs", "$id", "$ref", "$schema", "default", "definitions", "deprecated", "description"}
    | {"examples", "id", "readOnly", "title", "writeOnly"}
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A subschema, located by its document's name and a pointer."""

    document: str
    pointer: Pointer


@dataclass(frozen=True, slots=True)
class AllOf:
    """An instance that is valid for all parts; without parts, any instance."""

    parts: tuple[Expression, ...]
    depth: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """An instance that is valid for at least one part."""

    parts: tuple[Expression, ...]
    depth: int = field(default=0, compare=False)


Expression: TypeAlias = Leaf | AllOf | AnyOf

ANYTHING = AllOf(())


@dataclass(frozen=True, slots=True)
class AnyScalar:
    """Any value of a scalar type. The type `any` means any JSON value.

    Attributes:
        format: The string's format, if it has a Python type.
        handle: The kind of handle, if the string is a handle's ID.
    """

    type: Scalar | Literal["any"]
    format: str | None = None
    handle: str | None = None


@dataclass(frozen=True, slots=True)
class Const:
    """A constant string, integer or boolean. `type` distinguishes `1` from `true`, which are equal in Python."""

    type: Literal["string", "integer", "boolean"]
    value: str | int | bool


@dataclass(frozen=True, slots=True)
class Items:
    """A list in which each item matches one expression."""

    item: Expression


@dataclass(frozen=True, slots=True)
class FixedTuple:
    """A list of fixed length, with an expression for the item at each position."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Property:
    """A property that a schema declares."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Object:
    """An object.

    Attributes:
        required: The required keys, which may include undeclared ones.
        closed: True if undeclared keys are forbidden.
        values: The expression for the values of undeclared keys, if the schema has one.
        pointer: The location of the object's subschema if there is exactly one; ignored in comparisons.
    """

    properties: tuple[Property, ...] = ()
    required: frozenset[str] = frozenset()
    closed: bool = False
    values: Expression | None = None
    pointer: Pointer | None = field(default=None, compare=False)


Alternative: TypeAlias = AnyScalar | Const | Items | FixedTuple | Object
Shape: TypeAlias = tuple[Alternative, ...]

BASE64 = "base64"
FORMATS = frozenset({BASE64, "date", "date-time", "time", "uri", "uuid"})
"""String formats with a Python type, including values of `contentEncoding`."""

ANY = AnyScalar("any")
LIST = Items(ANYTHING)
_STRING = AnyScalar("string")
OBJECT = Object()


def join_all(*parts: Expression) -> Expression:
    """Return the conjunction, flattened and deduplicated; beyond the size limits, only the first part."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, AllOf) else (part,))]
    unique = tuple(dict.fromkeys(flat))
    if len(unique) == 1:
        return unique[0]
    depth = _depth(unique)
    return AllOf(unique, depth) if depth <= _MOST_FOLDED and len(unique) <= _MOST_PARTS else unique[0]


def join_any(*parts: Expression) -> Expression:
    """Return the disjunction, flattened and deduplicated; beyond the size limits, `ANYTHING`."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, AnyOf) else (part,))]
    unique = tuple(dict.fromkeys(flat))
    if len(unique) == 1:
        return unique[0]
    depth = _depth(unique)
    return AnyOf(unique, depth) if depth <= _MOST_FOLDED and len(unique) <= _MOST_PARTS else ANYTHING


def _depth(parts: Sequence[Expression]) -> int:
    return 1 + max((0 if isinstance(part, Leaf) else part.depth for part in parts), default=-1)


class Document:
    """A schema and the cached shapes of its subschemas.

    Bundled shared schemas are read only when a reference to them is followed.
    """

    def __init__(self, name: str, schema: ir.Schema, *, merged: bool = False) -> None:
        """Index a schema.

        Args:
            name: Distinguishes this document's leaves from other documents' leaves.
            schema: The schema. A reference that does not resolve in it accepts anything.
            merged: True to merge the root's object alternatives into one object with all their properties.

        Attributes:
            bundled: The name under `schemas` of each bundled schema, keyed by pointer.
            is_exact: True if a string always has the Python type of its format.
        """
        self.name = name
        self.dialect = dialects.find_dialect(schema.wire) or dialects.DRAFT_2020_12
        self.root = Leaf(name, ())
        self.bundled = schema.shared
        self._merged = merged
        self.is_exact = schema.exact
        self._rich = schema.rich
        self._handles = schema.handles
        self._outline = references.Outline(
            schema.place,
            schema.wire,
            self.dialect,
            references.Folder("", {}),
            own=schema.own,
            apart=lambda pointer: format_pointer(pointer[:2]) in schema.shared,
        )
        self._values = self._outline.schemas
        self._targets: dict[tuple[Pointer, str], Leaf] = {}
        self._followed = 0
        self._resolve_references()
        self._shapes: dict[Expression, Shape] = {}
        self._open: set[Expression] = set()

    def get_value(self, leaf: Leaf) -> Json:
        """Return the JSON value of a subschema."""
        self._index_bundled(leaf.pointer)
        return self._values[leaf.pointer]

    def find_target(self, leaf: Leaf) -> Leaf | None:
        """Return the target of the subschema's `$ref`."""
        self._index_bundled(leaf.pointer)
        return self._targets.get((leaf.pointer, "$ref"))

    def get_keywords(self, leaf: Leaf) -> Mapping[str, Json]:
        """Return the subschema's effective keywords. Before 2019-09, `$ref` disables its siblings."""
        value = self.get_value(leaf)
        if not isinstance(value, dict):
            return {}
        if "$ref" in value and self.dialect.reference_hides_siblings:
            return {"$ref": value["$ref"]}
        return value

    def find_leaves(self, expression: Expression) -> Iterator[Leaf]:
        """Yield the subschemas that apply to the instance itself: each leaf, and each target of its references."""
        seen: set[Leaf] = set()
        pending: list[Expression] = [expression]
        while pending:
            here = pending.pop(0)
            if isinstance(here, AllOf):
                pending[:0] = here.parts
            elif isinstance(here, Leaf) and here not in seen:
                seen.add(here)
                yield here
                target = self.find_target(here)
                pending[:0] = [*([target] if target else []), *self.find_children(here, "allOf")]

    def resolve(self, expression: Expression) -> Expression:
        """Follow an expression that is only a reference, and return the last target."""
        seen = set()
        while isinstance(expression, Leaf) and expression not in seen:
            seen.add(expression)
            target = self.find_target(expression)
            if target is None or not self.get_keywords(expression).keys() <= _ANNOTATIONS:
                break
            expression = target
        return expression

    def find_only_object(self, expression: Expression) -> Object | None:
        """Return the expression's only alternative if it is an object with properties."""
        shape = self.shape(expression)
        return shape[0] if len(shape) == 1 and isinstance(shape[0], Object) and shape[0].properties else None

    def find_objects(self, expression: Expression) -> list[Object]:
        """Return the alternatives of an expression that are objects with properties."""
        return [each for each in self.shape(expression) if isinstance(each, Object) and each.properties]

    def find_shared(self, thing: Object) -> str | None:
        """Return the name under `schemas` of the bundled schema that an object represents, if any."""
        place = (thing.pointer or ())[:2]
        name = self.bundled.get(format_pointer(place))
        return name if name is not None and self.find_only_object(Leaf(self.name, place)) == thing else None

    def find_shared_whole(self, expression: Expression) -> str | None:
        """Return the name under `schemas` of the bundled schema that an expression only references, if any."""
        settled = self.resolve(expression) if self.bundled else expression
        if not isinstance(settled, Leaf) or len(settled.pointer) != 2:
            return None
        return self.bundled.get(format_pointer(settled.pointer))

    def find_extended(self, thing: Object) -> Iterator[Object]:
        """Yield the objects in bundled schemas that an object's schema references, directly or in `allOf`."""
        if thing.pointer is None:
            return
        leaf = Leaf(self.name, thing.pointer)
        for part in (leaf, *self.find_children(leaf, "allOf")):
            if (target := self.find_target(part)) is not None and (
                other := self.find_only_object(self.resolve(target))
            ):
                yield other

    def shape(self, expression: Expression) -> Shape:
        """Return the expression's alternatives in source order; empty if no instance is valid."""
        known = self._shapes.get(expression)
        if known is not None:
            return known
        if (
            # A cycle, or a schema beyond the limits, accepts anything, which is too wide but never wrong.
            expression in self._open
            or len(self._open) > _DEEPEST
            or len(self._shapes) > _MOST_SHAPES + len(self._values)
        ):
            return (ANY,)
        self._open.add(expression)
        shape: Shape = (ANY,)
        match expression:
            case Leaf():
                shape = self._leaf(expression)
            case AllOf(parts):
                for part in parts:
                    shape = _intersect_shapes(shape, self.shape(part))
            case AnyOf(parts):
                shape = _union(alternative for part in parts for alternative in self.shape(part))
        self._open.discard(expression)
        self._shapes[expression] = shape
        return shape

    def find_children(self, leaf: Leaf, keyword: str) -> Iterator[Leaf]:
        """Yield the subschemas that a subschema has under one of its dialect's keywords."""
        keywords = self.get_keywords(leaf)
        value = keywords.get(keyword)
        steps: Iterable[Pointer] = ()
        if isinstance(value, dict) and keyword in self.dialect.named:
            steps = ((name,) for name in value)
        elif isinstance(value, list) and keyword in self.dialect.listed:
            steps = ((index,) for index in range(len(value)))
        elif keyword in self.dialect.single and keyword in keywords:
            steps = ((),)
        for step in steps:
            if (pointer := (*leaf.pointer, keyword, *step)) in self._values:
                yield Leaf(self.name, pointer)

    def _index_bundled(self, pointer: Pointer) -> None:
        if self.bundled and pointer not in self._values and self._outline.enter(pointer[:2]):
            self._resolve_references()

    def _resolve_references(self) -> None:
        while new := self._outline.references[self._followed :]:
            self._followed += len(new)
            if any(reference.keyword != "$ref" for reference in new):  # dynamic references can have several targets
                for name in self._outline.schema.get(self.dialect.defs) or ():
                    self._outline.enter((self.dialect.defs, name))
            for reference in new:
                if isinstance(reference.target, references.LocalTarget) and _is_static(reference, self._outline):
                    target = Leaf(self.name, reference.target.pointer)
                    self._targets[reference.pointer, reference.keyword] = target

    def _child(self, leaf: Leaf, keyword: str) -> Leaf | None:
        return next(self.find_children(leaf, keyword), None)

    def _leaf(self, leaf: Leaf) -> Shape:
        if self.get_value(leaf) is False:
            return ()
        keywords = self.get_keywords(leaf)
        shape = self._read_own_shape(leaf, keywords)
        for keyword in references.KEYWORDS:
            if target := self._targets.get((leaf.pointer, keyword)):
                shape = _intersect_shapes(shape, self.shape(target))
        for part in self.find_children(leaf, "allOf"):
            shape = _intersect_shapes(shape, self.shape(part))
        for branches in self._branches(leaf):
            shape = _choose(shape, [self._locate_shape(branch) for branch in branches])
        if self._merged and leaf == self.root:
            shape = (_join(_objects(shape) or [OBJECT]),)
        if (kind := self._handles.get(leaf.pointer)) is not None:
            shape = tuple(
                AnyScalar("string", handle=kind) if isinstance(each, AnyScalar) and each.type == "string" else each
                for each in shape
            )
        return tuple(
            (
                replace(alternative, pointer=leaf.pointer)
                if isinstance(alternative, Object) and alternative.pointer is None
                else alternative
            )
            for alternative in shape
        )

    def _locate_shape(self, branch: Expression) -> tuple[Shape, Pointer | None]:
        return self.shape(branch), branch.pointer if isinstance(branch, Leaf) else None

    def _read_own_shape(self, leaf: Leaf, keywords: Mapping[str, Json]) -> Shape:
        """Return the shape of a subschema's own keywords: `type`, `enum`, `const`, and object and list keywords."""
        named = keywords.get("type")
        shape: Shape
        if named is not None:
            names = named if isinstance(named, list) else [named]
            shape = _union(self._make_alternative(leaf, name, keywords) for name in names)
        else:
            thing, things = self._object(leaf, keywords), self._list(leaf, keywords)
            detailed = thing != OBJECT or things != LIST
            shape = (thing, things, *(AnyScalar(name) for name in _SCALARS)) if detailed else (ANY,)
        if isinstance(keywords.get("enum"), list):
            shape = _intersect_shapes(_union(_widen_enum(keywords["enum"])), shape)
        if "const" in keywords and "const" in self.dialect.keywords:
            shape = _intersect_shapes((make_constant(keywords["const"]),), shape)
        return shape

    def _make_alternative(self, leaf: Leaf, name: Json, keywords: Mapping[str, Json]) -> Alternative:
        match name:
            case "object":
                return self._object(leaf, keywords)
            case "array":
                return self._list(leaf, keywords)
            case "string" if self._rich:
                return AnyScalar(name, self._format(keywords))
            case "string" | "number" | "integer" | "boolean" | "null":
                return AnyScalar(name)
            case _:
                return ANY

    def _format(self, keywords: Mapping[str, Json]) -> str | None:
        if keywords.get("contentEncoding") == BASE64 and "contentEncoding" in self.dialect.keywords:
            return BASE64
        name = keywords.get("format")
        return name if isinstance(name, str) and name in FORMATS else None

    def _object(self, leaf: Leaf, keywords: Mapping[str, Json]) -> Object:
        required = keywords.get("required")
        patterns = [*self.find_children(leaf, "patternProperties")]
        rest = self._child(leaf, "additionalProperties")
        refused = rest is not None and self.get_value(rest) is False
        values: Expression | None = None
        if rest is not None and not refused and self.get_value(rest) not in (True, {}):
            values = join_any(*patterns, rest)
        elif patterns:
            values = join_any(*patterns) if refused else join_any(*patterns, ANYTHING)
        named = [(str(child.pointer[-1]), child) for child in self.find_children(leaf, "properties")]
        return Object(
            properties=tuple(Property(name, child) for name, child in named if _is_text(name)),
            required=frozenset(required) if isinstance(required, list) else frozenset(),
            closed=refused and not patterns and all(_is_text(name) for name, _ in named),
            values=values,
        )

    def _list(self, leaf: Leaf, keywords: Mapping[str, Json]) -> Items | FixedTuple:
        places, rest = self._places(leaf, keywords)
        if not places:
            return LIST if rest is None or self.get_value(rest) in (True, {}) else Items(rest)
        ended = rest is not None and self.get_value(rest) is False
        least, most = _count(keywords.get("minItems")) or 0, _count(keywords.get("maxItems"))
        if ended:
            most = len(places) if most is None else min(most, len(places))
        after = rest or ANYTHING
        if least == most and 0 < least <= _LONGEST_TUPLE:
            return FixedTuple((*places, *[after] * (least - len(places)))[:least])
        return Items(join_any(*places) if ended else join_any(*places, after))

    def _places(self, leaf: Leaf, keywords: Mapping[str, Json]) -> tuple[list[Leaf], Leaf | None]:
        """Return the subschemas for a list's first items, one per position, and the subschema for all later items."""
        if "prefixItems" in self.dialect.keywords:
            return [*self.find_children(leaf, "prefixItems")], self._child(leaf, "items")
        if isinstance(keywords.get("items"), list):
            return [*self.find_children(leaf, "items")], self._child(leaf, "additionalItems")
        return [], self._child(leaf, "items")

    def _branches(self, leaf: Leaf) -> Iterator[Sequence[Expression]]:
        for keyword in ("anyOf", "oneOf"):
            if leaves := [*self.find_children(leaf, keyword)]:
                yield leaves
        condition = self._child(leaf, "if")
        if condition is not None:
            then, otherwise = self._child(leaf, "then"), self._child(leaf, "else")
            yield [join_all(condition, then or ANYTHING), otherwise or ANYTHING]
        for keyword in ("dependentSchemas", "dependencies"):
            for child in self.find_children(leaf, keyword):
                yield [child, ANYTHING]


def _is_static(reference: references.Reference, outline: references.Outline) -> bool:
    """Return whether the reference has the same target for every instance."""
    if reference.keyword == "$ref":
        return True
    mark = "$dynamicAnchor" if reference.keyword == "$dynamicRef" else "$recursiveAnchor"
    return sum(isinstance(schema, dict) and mark in schema for schema in outline.schemas.values()) <= 1


def _count(value: Json) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_text(value: str) -> bool:
    # JSON can contain lone surrogates, but pydantic rejects them.
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


def read_integer(value: float) -> int | None:
    """Return the exact integer that a float has in JSON, which is decimal (`1e23` is 10**23); None for a fraction."""
    return int(Decimal(repr(value))) if value.is_integer() else None


def _widen_enum(values: Sequence[Json]) -> Iterator[Alternative]:
    for each in map(make_constant, values):
        yield AnyScalar(each.type) if isinstance(each, Const) and len(values) > _MOST_CONSTANTS else each


def make_constant(value: Json) -> Alternative:
    """Return the narrowest type for an enumeration's member."""
    match value:
        case bool():
            return Const("boolean", value)
        case str():
            return Const("string", value) if _is_text(value) else AnyScalar("string")
        case int():
            return Const("integer", value) if abs(value) <= _GREATEST else AnyScalar("integer")
        case float():
            integer = read_integer(value)
            return AnyScalar("number") if integer is None or abs(integer) > _GREATEST else Const("integer", integer)
        case list():
            return LIST
        case dict():
            return OBJECT
        case _:
            return AnyScalar("null")


def _objects(shape: Shape) -> list[Object]:
    objects = [alternative for alternative in shape if isinstance(alternative, Object)]
    return [*objects, OBJECT] if ANY in shape else objects


def _choose(shape: Shape, branches: Sequence[tuple[Shape, Pointer | None]]) -> Shape:
    """Return a shape for instances that match both `shape` and at least one branch.

    If the objects in `shape` have properties, or no branch's objects have any, the branches' objects are merged into
    the objects of `shape`. Otherwise, each branch's object becomes a separate class.
    """
    flat = _union(alternative for branch, _ in branches for alternative in branch)
    own, others = _objects(shape), _objects(flat)
    if not others:
        return _intersect_shapes(shape, flat)
    if any(each.properties for each in own) or not any(each.properties for each in others):
        joined = _join([each for branch, _ in branches for each in _objects(branch)])
        if ANY not in flat:
            flat = (joined, *(alternative for alternative in flat if not isinstance(alternative, Object)))
        elif joined != OBJECT:
            flat = (joined, LIST, *(AnyScalar(name) for name in _SCALARS))
        return _intersect_shapes(shape, flat)
    return _union(
        replace(met, pointer=pointer) if isinstance(met, Object) and met.pointer is None else met
        for branch, pointer in branches
        for met in _intersect_shapes(shape, branch)
    )


def _union(alternatives: Iterable[Alternative]) -> Shape:
    """Return the union, without duplicates and without alternatives that another alternative includes."""
    unique = [*dict.fromkeys(alternatives)]
    free = {alternative.type for alternative in unique if isinstance(alternative, AnyScalar)}
    if _STRING in unique:
        unique = [
            each for each in unique if each == _STRING or not (isinstance(each, AnyScalar) and each.type == "string")
        ]
    plain = [each for each in unique if isinstance(each, Object) and not each.properties]
    if len(plain) > 1:
        unique[unique.index(plain[0])] = _join(plain)
        unique = [each for each in unique if not any(each is other for other in plain)]
    return tuple(each for each in unique if not _is_included(each, free))


def _is_included(alternative: Alternative, free: Collection[str]) -> bool:
    match alternative:
        case AnyScalar("integer") | Const("integer"):
            return "number" in free or (isinstance(alternative, Const) and "integer" in free)
        case Const("boolean"):
            return "boolean" in free
        case _:
            return False


def _intersect_shapes(first: Shape, second: Shape) -> Shape:
    """Return a shape that accepts every instance that both shapes accept, and possibly more."""
    if first == (ANY,) or (ANY in first and ANY not in second):
        return second
    if ANY in second and ANY not in first:
        return first
    if second == (ANY,) or len(first) * len(second) > _WIDEST:
        return first
    if ANY in first:
        return _union((*first, *second))
    pairs = [_meet(a, b) for a in first for b in second]
    return _union(pair for pair in pairs if pair is not None)


def _meet(first: Alternative, second: Alternative) -> Alternative | None:
    """Return an alternative that accepts every instance of both, and possibly more.

    Return None if the two exclude each other.
    """
    match first, second:
        case (Object(), Object()):
            return _meet_objects(first, second)
        case (Items(), Items()):
            met = Items(join_all(first.item, second.item))
            return first if met == first else met
        case (FixedTuple(), FixedTuple()) if len(first.items) == len(second.items):
            return FixedTuple(tuple(join_all(*pair) for pair in zip(first.items, second.items, strict=True)))
        case (FixedTuple(), Items()):
            return FixedTuple(tuple(join_all(item, second.item) for item in first.items))
        case (Items(), FixedTuple()):
            return FixedTuple(tuple(join_all(first.item, item) for item in second.items))
        case (AnyScalar("string"), AnyScalar("string")):
            return first if second in (first, _STRING) else second if first == _STRING else _STRING
        case (AnyScalar("number"), AnyScalar("integer") | Const("integer")):
            return second
        case (AnyScalar("integer") | Const("integer"), AnyScalar("number")):
            return first
        case (AnyScalar(), Const()):
            return second if first.type == second.type else None
        case (Const(), AnyScalar()):
            return first if first.type == second.type else None
        case _:
            return first if first == second else None


def _meet_objects(first: Object, second: Object) -> Object:
    left, right = _map_properties(first), _map_properties(second)
    properties = []
    for name in left | right:
        if (name not in left and first.closed) or (name not in right and second.closed):
            continue
        mine = left.get(name, first.values or ANYTHING)
        yours = right.get(name, second.values or ANYTHING)
        properties.append(Property(name, join_all(mine, yours)))
    met = Object(
        properties=tuple(properties),
        required=first.required | second.required,
        closed=first.closed or second.closed,
        values=(
            None
            if first.values is None and second.values is None
            else join_all(first.values or ANYTHING, second.values or ANYTHING)
        ),
    )
    return first if met == first else second if met == second else met


def _join(objects: Sequence[Object]) -> Object:
    """Merge objects. A property that only some of the objects declare accepts any value if another object is open."""
    if len(set(objects)) == 1:
        return objects[0]
    tables = [_map_properties(each) for each in objects]
    properties = []
    for name in dict.fromkeys(name for table in tables for name in table):
        parts = [
            table.get(name, each.values or ANYTHING)
            for table, each in zip(tables, objects, strict=True)
            if name in table or not each.closed
        ]
        properties.append(Property(name, join_any(*parts)))
    open_values = [each.values or ANYTHING for each in objects if not each.closed]
    return Object(
        properties=tuple(properties),
        required=frozenset.intersection(*(each.required for each in objects)),
        closed=not open_values,
        values=None if not open_values or ANYTHING in open_values else join_any(*open_values),
    )


def _map_properties(thing: Object) -> dict[str, Expression]:
    return {each.name: each.expression for each in thing.properties}
