"""Plans the classes for a schema: their names and fields.

The only Python source in a plan is for values and their types.

A class is named after its schema's location: the property `place` of `GetWeatherInput` becomes `GetWeatherInputPlace`,
whether the property contains the object, a list of objects, or one of several. A schema in `$defs` is named after the
tool and its own name. If two classes collide, they get longer names that spell out lists, tuple positions, values and
alternatives. If the longest names collide too, they end in a digest of the location. A class's name thus never depends
on the order of its neighbors.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, LiteralString, TypeAlias

from stubwright import naming
from stubwright.codegen.models import descriptions
from stubwright.codegen.models.redaction import Way, find_marks
from stubwright.codegen.models.types import (
    ANY,
    OBJECT,
    Alternative,
    AnyOf,
    AnyScalar,
    Const,
    Document,
    Expression,
    FixedTuple,
    Items,
    Leaf,
    Object,
    Property,
    Shape,
    read_integer,
)
from stubwright.codegen.source.literals import format_literal
from stubwright.codegen.surface import Argument, ClassRole
from stubwright.diagnostics import Pointer
from stubwright.ir import Json
from stubwright.jsonschema.pointers import format_pointer
from stubwright.pycode import Code, Name, fill, join

_DEEPEST = 40
_NULL = AnyScalar("null")
_TYPES = frozenset({"string", "integer", "number", "boolean", "null"})
_WHOLE = {"input": "arguments", "output": "result"}

Form: TypeAlias = Literal["plain", "absent", "nullable"]
"""A field's annotation: its type alone, its type with `| None` to represent absence, or its type in `Nullable`."""


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """A field of a class.

    Attributes:
        wire: The property's name.
        name: The attribute's name.
        schema: The type, as a schema.
        default: The default value as Python source.
        source: The default in the manifest's schema as Python source.
        is_made: True if a factory creates the default for each instance.
        is_copied: True if pydantic copies the default, a list or mapping, for each instance.
        is_cast: True if type checkers need a cast from the default to the field's type.
        given: The default in the manifest's schema as JSON; empty if there is none.
    """

    wire: str
    name: Name
    form: Form
    schema: Json
    default: Code | None
    source: Code | None
    required: bool
    nullable: bool
    doc: str
    is_made: bool = False
    is_copied: bool = False
    is_cast: bool = False
    given: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """A class for an object, with its fields, or for another value, with its type in `root`.

    Attributes:
        roles: The roles of the documents that use the class.
        is_root: True if the class represents a whole document.
        root: The type of a value that is not an object, as a schema.
        redacted: The wire names of properties that are never shown.
        shared: A shared schema's class, which this class extends with `fields`.
        is_alias: True if this class is another name for `shared`, instead of extending it.
        needed: Inherited properties that are optional in `shared` but required here.
        values: The type of a mapping's values under undeclared keys, as a schema.
        is_open: True if the schema explicitly allows undeclared keys with any value.
    """

    name: Name
    doc: str
    roles: frozenset[ClassRole]
    is_root: bool = False
    closed: bool = False
    fields: tuple[FieldPlan, ...] = ()
    root: Json = None
    redacted: tuple[str, ...] = ()
    shared: ImportedType | None = None
    is_alias: bool = False
    needed: frozenset[str] = frozenset()
    values: Json = None
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class ModelDocument:
    """A document, its root class, and its role.

    Attributes:
        title: Describes the document in its root class's docstring.
        redacted: The paths to values that only the handler may see.
        stem: The class prefix for the document's `$defs`, if different from the module's.
    """

    document: Document
    name: Name
    role: ClassRole
    title: str
    redacted: tuple[Way, ...] = ()
    stem: Name | None = None


@dataclass(frozen=True, slots=True)
class ImportedType:
    """A shared schema's class in another module, or the type of a shared enumeration or scalar.

    Attributes:
        members: An enumeration's values, including `null`.
        scalars: A scalar's alternatives.
        is_exact: True if a string with a format always has the format's Python type.
        parameters: The fields of a tool's arguments class, as parameters of the client method.
        variants: The classes of a named union's objects.
    """

    name: Name
    module: Name
    members: tuple[Json, ...] = ()
    scalars: tuple[AnyScalar, ...] = ()
    is_exact: bool = False
    parameters: tuple[Argument, ...] = ()
    variants: tuple[Name, ...] = ()

    @property
    def is_type(self) -> bool:
        """Return whether this is an enumeration's or a scalar's type, which has no class."""
        return bool(self.members or self.scalars)


Key: TypeAlias = Object | Expression


@dataclass(frozen=True, slots=True)
class _Value:
    """A default's expression. `builds` is true if the expression creates models and is therefore not a literal."""

    source: Code
    builds: bool = False


@dataclass(slots=True)
class _ClassGroup:
    """Equal schemas that share a class, and their locations."""

    document: Document
    pointers: set[Pointer] = field(default_factory=set)


def plan_classes(
    stem: Name,
    parts: Sequence[ModelDocument],
    imported: Mapping[str, ImportedType],
    reserved: frozenset[str] = frozenset(),
) -> tuple[tuple[ClassPlan, ...], tuple[ImportedType, ...]]:
    """Plan a module's classes.

    Args:
        stem: The class prefix for `$defs`.
        parts: The module's documents, in the order of their classes.
        imported: The classes of shared schemas, keyed by name under `schemas`.
        reserved: Names that are already used in the package.

    Returns:
        The classes, root classes first, and the classes to import, sorted by name.
    """
    return _Planner(stem, parts, imported, reserved).plan()


@dataclass(slots=True)
class _Planner:
    stem: Name
    parts: Sequence[ModelDocument]
    imported: Mapping[str, ImportedType]
    reserved: frozenset[str]
    groups: dict[Key, _ClassGroup] = field(default_factory=dict)
    names: dict[Key, Name] = field(default_factory=dict)
    twins: dict[Key, Key] = field(default_factory=dict)
    used: set[ImportedType] = field(default_factory=set)
    seen: set[Expression] = field(default_factory=set)
    types: dict[Expression, Json] = field(default_factory=dict)
    redacted: dict[Object, set[str]] = field(default_factory=lambda: defaultdict(set))
    attributes: set[Name] = field(default_factory=set)
    defaults: dict[tuple[Expression, int], _Value | None] = field(default_factory=dict)

    def plan(self) -> tuple[tuple[ClassPlan, ...], tuple[ImportedType, ...]]:
        aliases: list[ClassPlan] = []
        roots: dict[Key, ModelDocument] = {}
        for part in self.parts:
            root = _root(part.document)
            home = self._find_home(part.document, root) if isinstance(root, Object) else self._mapping(part)
            if home is not None:
                self.used.add(home)
                doc = self._root_doc(part)
                aliases.append(ClassPlan(part.name, doc, frozenset({part.role}), True, shared=home, is_alias=True))
                continue
            roots[root] = part
            self._collect(part.document, root)
            for thing, names in find_marks(part.document, part.redacted, self.imported).properties.items():
                self.redacted[thing] |= names
        self._name({key: part.name for key, part in roots.items()})
        for twin, first in self.twins.items():
            if isinstance(twin, Object) and isinstance(first, Object) and twin in self.redacted:
                self.redacted[first] |= self.redacted[twin]
        plans = []
        for key, group in self.groups.items():
            if key in self.twins:
                continue
            doc = self._root_doc(roots[key]) if key in roots else self._doc(group)
            plans.append(self._class(key, group.document, doc, is_root=key in roots))
        return (*plans, *aliases), tuple(sorted(self.used, key=lambda each: each.name))

    def _collect(self, document: Document, root: Key) -> None:
        waiting: list[tuple[Key, Pointer]] = [(root, ())]
        while waiting:
            key, pointer = waiting.pop(0)
            if key in self.groups:
                self.groups[key].pointers.add(pointer)
                continue
            self.groups[key] = _ClassGroup(document, {pointer})
            if isinstance(key, Object):
                for each in self._list_own_properties(document, key):
                    waiting += self._find_classes(document, each.expression, (*pointer, "properties", each.name), ())
                if key.values is not None:
                    waiting += self._find_classes(document, key.values, (*pointer, "additionalProperties"), ())
            else:
                waiting += self._alternatives(document, key, pointer, (key,))

    def _list_own_properties(self, document: Document, thing: Object) -> Sequence[Property]:
        _, other = self._base(document, thing)
        return [each for each in thing.properties if each not in other.properties]

    def _base(self, document: Document, thing: Object) -> tuple[ImportedType | None, Object]:
        """Return the shared class that an object's class extends, with the shared object, or None with an empty object.

        The object's schema must reference the shared schema without changing any of its properties.
        """
        shared_bases: list[tuple[ImportedType, Object]] = []
        for other in document.find_extended(thing):
            home = self._find_home(document, other)
            same = {*other.properties} <= {*thing.properties} and other.values == thing.values
            if home is not None and same and home.name not in {part.name for part in self.parts}:
                shared_bases.append((home, other))
        return shared_bases[0] if len(shared_bases) == 1 else (None, OBJECT)

    def _find_classes(
        self, document: Document, expression: Expression, pointer: Pointer, above: tuple[Expression, ...]
    ) -> Iterator[tuple[Key, Pointer]]:
        """Yield the schemas in an expression that need a class, without descending into classes."""
        settled = document.resolve(expression)
        pointer = settled.pointer if isinstance(settled, Leaf) else pointer
        if settled in above or settled in self.groups:
            yield settled, pointer
        elif settled not in self.seen and len(above) < _DEEPEST:
            yield from self._alternatives(document, settled, pointer, (*above, settled))
            self.seen.add(settled)

    def _alternatives(
        self, document: Document, expression: Expression, pointer: Pointer, above: tuple[Expression, ...]
    ) -> Iterator[tuple[Key, Pointer]]:
        for alternative in document.shape(expression):
            match alternative:
                case Object(properties=properties) if properties:
                    if (home := self._find_home(document, alternative)) is not None:
                        self.used.add(home)
                    else:
                        yield alternative, alternative.pointer if alternative.pointer is not None else pointer
                case Object(values=values) if values is not None:
                    yield from self._find_classes(document, values, (*pointer, "additionalProperties"), above)
                case Items(item):
                    yield from self._find_classes(document, item, (*pointer, "items"), above)
                case FixedTuple(items):
                    keyword = "prefixItems" if "prefixItems" in document.dialect.keywords else "items"
                    for index, item in enumerate(items):
                        yield from self._find_classes(document, item, (*pointer, keyword, index), above)

    def _name(self, fixed: Mapping[Key, Name]) -> None:
        """Give each class the shortest name that no other class has."""
        stems = {part.document.name: (part.stem or self.stem, part.name) for part in self.parts}
        every = {
            key: _ladder(*stems[group.document.name], group) for key, group in self.groups.items() if key not in fixed
        }
        self.twins = self._merge_equal({key: ladder[0] for key, ladder in every.items()})
        ladders = {key: ladder for key, ladder in every.items() if key not in self.twins}
        self.attributes = {
            name
            for key in self.groups
            if isinstance(key, Object)
            for name in naming.name_fields(each.name for each in key.properties).values()
        }
        bundled = {id(part.document.bundled): part.document.bundled.values() for part in self.parts}.values()
        imported = {self.imported[name].name for names in bundled for name in names if name in self.imported}
        taken = naming.MODEL_NAMES | self.attributes | {part.name for part in self.parts} | imported | self.reserved
        height = dict.fromkeys(ladders, 0)
        while True:
            names = {key: _choose_name(self.stem, key, ladder, height[key]) for key, ladder in ladders.items()}
            meetings = Counter(names.values())
            crowded = [key for key, name in names.items() if meetings[name] > 1 or name in taken]
            # Use longer names where possible. If none has one, append a digest to all.
            moving = {names[key] for key in crowded if height[key] + 1 < len(ladders[key])}
            climbing = [
                key
                for key in crowded
                if height[key]
                < len(ladders[key]) + (names[key] in self.reserved) - (names[key] in moving and names[key] not in taken)
            ]
            if not climbing:
                break
            for key in climbing:
                height[key] += 1
        self.names = {**fixed, **names}
        self.names |= {key: names[twin] for key, twin in self.twins.items()}

    def _merge_equal(self, names: Mapping[Key, str]) -> dict[Key, Key]:
        """Map classes that have the same name and schema to the first such class, which replaces the others."""
        places = Counter(key.pointer for key in names if isinstance(key, Object))
        alike: dict[tuple[str, str], list[Key]] = defaultdict(list)
        for key, name in names.items():
            group = self.groups[key]
            # The schema's text only identifies an object if it is the only one at its location.
            if isinstance(key, Object) and key.pointer is not None and places[key.pointer] == 1:
                text = json.dumps(group.document.get_value(Leaf(group.document.name, key.pointer)), sort_keys=True)
                # The same reference can have different targets in the two documents.
                if '"$' not in text:
                    alike[name, text].append(key)
        return {
            twin: first
            for first, *others in (sorted(group, key=self._rank) for group in alike.values())
            for twin in others
        }

    def _rank(self, key: Key) -> tuple[str, bool, int, str]:
        group = self.groups[key]
        return group.document.name, *_rank(_choose_pointer(group))

    def _root_doc(self, part: ModelDocument) -> str:
        document = part.document
        text = descriptions.describe(document, document.root)
        return f"{part.title}\n\n{text}" if text else part.title

    def _doc(self, group: _ClassGroup) -> str:
        pointer = _choose_pointer(group)
        trail = _trail(pointer, group.document)
        last = trail.steps[-1] if trail.steps else None
        if trail.definition is not None and last is None:
            text = descriptions.summarize(group.document, Leaf(group.document.name, pointer))
            return text or f"``{trail.definition}`` among the schema's definitions."
        named = [step.name for step in trail.steps if step.kind == "property"]
        owner = named[-1] if named else trail.definition
        inside = trail.steps[-1].kind if trail.steps else "property"
        what = {"item": "An item", "value": "A value", "property": "The value", "branch": "One form"}[inside]
        if last is not None and last.kind == "item" and last.name:
            what = f"Item {last.name}"
        part = next(each for each in self.parts if each.document is group.document)
        if owner is None and part.role == "shared":
            owner = part.name
        return (
            f"{what} of ``{owner}``."
            if owner is not None
            else f"{what} of the {_WHOLE.get(group.document.name.partition(' ')[0], 'answer')}."
        )

    def _class(self, key: Key, document: Document, doc: str, *, is_root: bool) -> ClassPlan:
        name = self.names[key]
        alike = [key, *(twin for twin, first in self.twins.items() if first == key)]
        documents = {self.groups[each].document.name for each in alike}
        roles = frozenset(part.role for part in self.parts if part.document.name in documents)
        if not isinstance(key, Object):
            shape = document.shape(key)
            if key == document.root and _is_plain_object(shape):
                (thing,) = (each for each in shape if isinstance(each, Object))
                redacted = tuple(sorted(self.redacted.get(thing, ())))
                values = self._type(document, thing.values) if thing.values is not None else None
                if values is not None and "input" not in roles:
                    return ClassPlan(name, doc, roles, is_root, root=values, values=values)
                return ClassPlan(name, doc, roles, is_root, closed=thing.closed, redacted=redacted, values=values)
            return ClassPlan(name, doc, roles, is_root, root=self._schema(document, shape))
        attributes = naming.name_fields(each.name for each in key.properties)
        base, other = self._base(document, key)
        if base is not None:
            self.used.add(base)
        fields = [
            self._field(document, each.name, attributes[each.name], each.expression, required=each.name in key.required)
            for each in key.properties
            if each not in other.properties
        ]
        redacted = tuple(sorted(self.redacted.get(key, ())))
        values = self._type(document, key.values) if key.values is not None and base is None else {}
        return ClassPlan(
            name,
            doc,
            roles,
            is_root,
            closed=key.closed,
            fields=_rename_shadowed(fields, naming.MAPPING_NAMES if values or base is not None else ()),
            values=values or None,
            redacted=redacted,
            shared=base,
            needed=key.required.intersection(each.name for each in other.properties) - other.required,
            is_open=_is_open(document, key) or (key.values is not None and not values),
        )

    def _field(self, document: Document, wire: str, name: Name, expression: Expression, *, required: bool) -> FieldPlan:
        shape = document.shape(expression)
        nullable = ANY in shape or _NULL in shape
        doc = descriptions.describe(document, expression, lambda each: self._is_scalar(document, each))
        given: list[Json] = []
        default_value: _Value | None = None
        default: Code | None = None
        form: Form = "plain"
        if not required:
            given = _list_defaults(document, expression)
            default_value = self._default(document, given[0], expression) if given else None
            if default_value is not None and default_value.builds and _is_infinite(document, expression):
                default_value = None
                doc = descriptions.append_sentences(
                    doc, [f"The schema's default, {descriptions.format_value(given[0])}, would contain itself."]
                )
            elif given and default_value is None:
                doc = descriptions.append_sentences(
                    doc, [f"The schema's default, {descriptions.format_value(given[0])}, is not of this type."]
                )
            if default_value is None or default_value.source == "None":
                default, form = fill("None"), "nullable" if nullable or not shape else "absent"
        if document.resolve(expression) in self.names or self._find_shared_type(document, expression) is not None:
            schema = self._type(document, expression)
        else:
            schema = self._schema(document, shape, self._list_shared_types(document, expression), null=form == "plain")
        source = default_value.source if default_value is not None else None
        is_made = default_value is not None and default_value.builds and default is None
        is_copied = default_value is not None and default is None and not is_made and default_value.source[0] in "[{"
        is_cast = False
        if source is not None and default is None:
            decide = _needs_cast if is_made else _is_ambiguous
            whole = self._spell_out(schema)
            is_cast = decide(source, whole, given[0]) or (document.is_exact and _has_converted_strings(whole, given[0]))
        return FieldPlan(
            wire,
            name,
            form,
            schema,
            default or source,
            source,
            required,
            nullable,
            doc,
            is_made,
            is_copied,
            is_cast,
            tuple(given[:1]),
        )

    def _type(self, document: Document, expression: Expression) -> Json:
        settled = document.resolve(expression)
        if settled in self.names:
            return {"$ref": f"#/$defs/{self.names[settled]}"}
        if (home := self._find_shared_type(document, settled)) is not None:
            self.used.add(home)
            return {"$ref": f"#/$defs/{home.name}"}
        if settled not in self.seen:
            return {}
        if settled not in self.types:
            named = self._list_shared_types(document, settled)
            self.types[settled] = self._schema(document, document.shape(settled), named)
        return self.types[settled]

    def _find_shared_type(self, document: Document, expression: Expression) -> ImportedType | None:
        """Return the type of a shared enumeration or scalar if an expression only references that schema, or None."""
        name = document.find_shared_whole(expression)
        home = self.imported.get(name) if name is not None else None
        return home if home is not None and home.is_type and home.name not in self.attributes else None

    def _is_scalar(self, document: Document, expression: Expression) -> bool:
        home = self._find_shared_type(document, expression)
        return home is not None and bool(home.scalars)

    def _list_shared_types(self, document: Document, expression: Expression) -> list[ImportedType]:
        """Return the types of the shared enumerations and scalars among an expression's alternatives.

        A named scalar that another alternative also allows is omitted: the name would not cover every value.
        """
        types: dict[ImportedType, None] = {}
        others: set[Alternative] = set()
        seen: set[Expression] = set()
        pending = [expression] if document.bundled else []
        while pending:
            here = document.resolve(pending.pop(0))
            if (home := self._find_shared_type(document, here)) is not None:
                types[home] = None
            elif here not in seen and (parts := self._choices(document, here)):
                pending += parts
            elif here not in seen:
                others.update(document.shape(here))
            seen.add(here)
        return [home for home in types if others.isdisjoint(home.scalars)]

    def _choices(self, document: Document, expression: Expression) -> Sequence[Expression]:
        if isinstance(expression, Leaf):
            return [leaf for keyword in ("anyOf", "oneOf") for leaf in document.find_children(expression, keyword)]
        return expression.parts if isinstance(expression, AnyOf) else ()

    def _spell_out(self, schema: Json) -> Json:
        """Replace references to shared scalars with the scalars' definitions."""
        match schema:
            case {"$ref": str(reference)}:
                name = reference.rpartition("/")[2]
                home = next((each for each in self.used if each.name == name and each.scalars), None)
                if home is None:
                    return schema
                return join_choices(list_scalar_types(home.scalars, is_exact=home.is_exact))
            case {"anyOf": choices}:
                return {"anyOf": [self._spell_out(each) for each in choices]}
            case {"prefixItems": items}:
                return {**schema, "prefixItems": [self._spell_out(each) for each in items]}
            case {"items": inner}:
                return {**schema, "items": self._spell_out(inner)}
            case {"additionalProperties": inner} if inner is not True:
                return {**schema, "additionalProperties": self._spell_out(inner)}
            case _:
                return schema

    def _schema(
        self, document: Document, shape: Shape, named: Sequence[ImportedType] = (), *, null: bool = True
    ) -> Json:
        """Convert a shape to a schema of types. Unless `null` is true, unions omit `null`.

        Constants of `named` enumerations and values of named scalars are represented by name.
        """
        members = [each.value for each in shape if isinstance(each, Const)]
        anything = ANY in shape or _is_everything(shape)
        choices: list[Json] = []
        by_name: set[Alternative] = set()
        for home in named:
            if home.scalars:
                if not anything and {*home.scalars} <= {*shape}:
                    self.used.add(home)
                    choices.append({"$ref": f"#/$defs/{home.name}"})
                    by_name.update(home.scalars)
            elif all(_NULL in shape if each is None else _is_among(each, members) for each in home.members):
                self.used.add(home)
                choices.append({"$ref": f"#/$defs/{home.name}"})
                members = [each for each in members if not _is_among(each, home.members)]
        for alternative in shape:
            match alternative:
                case Const() if members:
                    choices.append({"enum": members})
                    members = []
                case Const() | AnyScalar("null" | "any"):
                    pass
                case AnyScalar() if alternative in by_name:
                    pass
                case AnyScalar(handle=str(kind)) if not anything:
                    choices.append({"type": "string", "handle": kind})
                case AnyScalar() if not (anything and ANY not in shape):
                    types = list_scalar_types([alternative], is_exact=document.is_exact)
                    choices += [each for each in types if each not in choices]
                case Object() | Items() | FixedTuple() if not (anything and _is_plain(alternative)):
                    choices.append(self._container(document, alternative))
        if anything:
            choices.append({})
        elif _NULL in shape and (null or not choices):
            choices.append({"type": "null"})
        return join_choices(choices)

    def _container(self, document: Document, alternative: Object | Items | FixedTuple) -> Json:
        match alternative:
            case Items(item):
                return {"type": "array", "items": self._type(document, item)}
            case FixedTuple(items):
                return {"type": "array", "prefixItems": [self._type(document, item) for item in items]}
            case Object(properties=properties, values=values):
                if properties:
                    return {"$ref": f"#/$defs/{self._class_of(document, alternative)}"}
                values_type = self._type(document, values) if values is not None else {}
                return {"type": "object", "additionalProperties": values_type or True}

    def _class_of(self, document: Document, thing: Object) -> Name:
        home = self._find_home(document, thing)
        return home.name if home is not None else self.names[thing]

    def _find_home(self, document: Document, thing: Object) -> ImportedType | None:
        """Return the class for an object that is a shared schema or a variant of a shared union, otherwise None."""
        name = document.find_shared(thing)
        return self.imported.get(name) if name is not None else self._variant(document, thing)

    def _variant(self, document: Document, thing: Object) -> ImportedType | None:
        place = (thing.pointer or ())[:2]
        home = self.imported.get(document.bundled.get(format_pointer(place), ""))
        if home is None or not home.variants:
            return None
        objects = document.find_objects(Leaf(document.name, place))
        if thing not in objects or len(objects) != len(home.variants):
            return None
        return ImportedType(home.variants[objects.index(thing)], home.module)

    def _mapping(self, part: ModelDocument) -> ImportedType | None:
        """Return the class of a shared mapping if a result consists of only that mapping, otherwise None."""
        document = part.document
        shape = document.shape(document.root)
        if part.role == "input" or not is_mapping(shape):
            return None
        for leaf in (document.root, *document.find_children(document.root, "allOf")):
            name = document.find_shared_whole(target) if (target := document.find_target(leaf)) is not None else None
            if target and name and name in self.imported and document.shape(target) == shape:
                return self.imported[name]
        return None

    def _default(self, document: Document, value: Json, expression: Expression) -> _Value | None:
        """Return a default as a Python expression, or None if the default does not have the type of `expression`."""
        settled = document.resolve(expression)
        key = settled, id(value)  # the id stays valid, since the document outlives this plan
        if key not in self.defaults:
            alternatives = sorted(document.shape(settled), key=lambda each: -_count_known_keys(value, each))
            value_built = None
            for alternative in alternatives:  # no generators, here and below: values can be deeply nested
                value_built = self._value(document, value, alternative)
                if value_built is not None:
                    break
            named = self.names.get(settled) if value_built is not None else None
            self.defaults[key] = _format_validation(named, value) if named else value_built
        return self.defaults[key]

    def _value(self, document: Document, value: Json, alternative: Alternative) -> _Value | None:
        match alternative:
            case AnyScalar("any"):
                return _Value(format_literal(value))
            case AnyScalar(handle=str()):
                return None
            case AnyScalar("string", str(form)) if document.is_exact and not _is_represented(value, form):
                return None
            case AnyScalar(name):
                return _Value(format_literal(_convert_number(value, name))) if _is_of(value, name) else None
            case Const(name, member):
                return _Value(format_literal(member)) if _is_of(value, name) and value == member else None
            case Items(item) if isinstance(value, list):
                return _format_collection("[{}]", [self._default(document, each, item) for each in value])
            case FixedTuple(items) if isinstance(value, list) and len(value) == len(items):
                members = [self._default(document, each, item) for each, item in zip(value, items, strict=True)]
                return _format_collection("({},)" if len(items) == 1 else "({})", members)
            case Object() if isinstance(value, dict):
                return self._object_value(document, value, alternative)
            case _:
                return None

    def _object_value(self, document: Document, value: Mapping[str, Json], thing: Object) -> _Value | None:
        known = {each.name: each.expression for each in thing.properties}
        if not thing.required <= value.keys() or (thing.closed and not value.keys() <= known.keys()):
            return None
        if thing.properties:
            for name in known.keys() & value.keys():
                if self._default(document, value[name], known[name]) is None:
                    return None
            return _format_validation(self._class_of(document, thing), dict(value))
        if thing.values is None:
            return _Value(format_literal(dict(value)))
        members = [self._entry(document, name, each, thing.values) for name, each in value.items()]
        return _format_collection("{{{}}}", members)

    def _entry(self, document: Document, key: str, value: Json, expression: Expression) -> _Value | None:
        entry = self._default(document, value, expression)
        return _Value(fill("{}: {}", format_literal(key), entry.source), entry.builds) if entry is not None else None


def _is_open(document: Document, thing: Object) -> bool:
    """Return whether an object's schema explicitly allows arbitrary additional properties."""
    leaves = document.find_leaves(Leaf(document.name, thing.pointer)) if thing.pointer is not None else ()
    values = [document.get_value(leaf) for leaf in leaves]
    return any(isinstance(each, dict) and each.get("additionalProperties") in (True, {}) for each in values)


def _is_among(value: Json, members: Iterable[Json]) -> bool:
    # Unlike `in`, this distinguishes `1` from `true`.
    return any(type(value) is type(each) and value == each for each in members)


def _rename_shadowed(fields: Sequence[FieldPlan], reserved: Iterable[str]) -> tuple[FieldPlan, ...]:
    """Rename fields whose names are `reserved` or equal the name of a class in one of the fields' types.

    Inside the class body, the attribute would shadow the class.
    """
    named = {*reserved, *(name for each in fields for name in find_referred(each.schema))}
    named |= {naming.handle_id(kind) for each in fields for kind in find_handled(each.schema)}
    if any(form for each in fields for form in find_formats(each.schema)):
        named |= naming.FORMAT_NAMES
    names = {each.name for each in fields}
    return tuple(
        replace(each, name=naming.find_free(each.name + "_", named | names)) if each.name in named else each
        for each in fields
    )


def _list_defaults(document: Document, expression: Expression) -> list[Json]:
    values = [document.get_value(leaf) for leaf in document.find_leaves(expression)]
    return [value["default"] for value in values if isinstance(value, dict) and "default" in value]


def _is_infinite(document: Document, expression: Expression) -> bool:
    """Return whether a default expands infinitely because a property that it omits has the same default."""
    seen: set[Expression] = set()
    pending = [expression]
    while pending:
        here = pending.pop()
        seen.add(here)
        left_out = {
            each for value in _list_defaults(document, here)[:1] for each in _find_omitted(document, value, here, set())
        }
        if expression in left_out:
            return True
        pending += left_out - seen
    return False


def _find_omitted(
    document: Document, value: Json, expression: Expression, seen: set[tuple[Expression, int]]
) -> Iterator[Expression]:
    """Yield the declared properties that a value or its nested values omit."""
    if (expression, id(value)) in seen:
        return
    seen.add((expression, id(value)))
    for alternative in document.shape(expression):
        match alternative, value:
            case Items(item), list():
                for each in value:
                    yield from _find_omitted(document, each, item, seen)
            case FixedTuple(items), list():
                for each, item in zip(value, items, strict=False):
                    yield from _find_omitted(document, each, item, seen)
            case Object(), dict():
                known = {each.name: each.expression for each in alternative.properties}
                yield from (known[name] for name in known.keys() - value.keys() - alternative.required)
                for name, each in value.items():
                    if inner := known.get(name, alternative.values):
                        yield from _find_omitted(document, each, inner, seen)


def _root(document: Document) -> Key:
    """Return the expression for a document's root class: the document's only object, or the whole root."""
    shape = document.shape(document.root)
    if _is_plain_object(shape):
        return document.root
    if len(shape) == 1 and isinstance(shape[0], Object):
        return shape[0]
    return document.resolve(document.root)


def _is_plain_object(shape: Shape) -> bool:
    return len(shape) == 1 and isinstance(shape[0], Object) and not shape[0].properties


def is_mapping(shape: Shape) -> bool:
    """Return whether the shape is one object without declared properties whose schema describes the values."""
    return _is_plain_object(shape) and all(isinstance(each, Object) and each.values is not None for each in shape)


def _count_known_keys(value: Json, alternative: Alternative) -> int:
    if not isinstance(value, dict) or not isinstance(alternative, Object):
        return 0
    return sum(each.name in value for each in alternative.properties)


def list_enumerated(document: Document) -> tuple[Json, ...]:
    """Return the values, including `null`, of a schema that only allows constants, or an empty tuple."""
    shape = document.shape(document.root)
    members = tuple(each.value if isinstance(each, Const) else None for each in shape)
    is_enumeration = all(isinstance(each, Const) or each == _NULL for each in shape)
    return members if is_enumeration and members != (None,) * len(members) else ()


def list_scalars(document: Document) -> tuple[AnyScalar, ...]:
    """Return the alternatives of a schema that only allows scalars other than `null` and IDs, or an empty tuple."""
    shape = document.shape(document.root)
    scalars = tuple(
        each
        for each in shape
        if isinstance(each, AnyScalar) and each.type not in ("null", "any") and each.handle is None
    )
    return scalars if len(scalars) == len(shape) else ()


def list_scalar_types(scalars: Iterable[AnyScalar], *, is_exact: bool) -> list[Json]:
    """Return scalar types as schemas. A string with a format has two possible types unless `is_exact`."""
    types: list[Json] = []
    for each in scalars:
        types += [{"type": each.type, "format": each.format}] if each.format else []
        types += [{"type": each.type}] if each.format is None or not is_exact else []
    return [each for index, each in enumerate(types) if each not in types[:index]]


def join_choices(choices: list[Json]) -> Json:
    """Return a union of these schemas of types, or an empty schema if there are none."""
    return choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {}


def _is_everything(shape: Shape) -> bool:
    free = {each.type for each in shape if isinstance(each, AnyScalar)}
    has = {type(each) for each in shape}
    return free >= {"string", "number", "boolean", "null"} and Object in has and Items in has


def _is_plain(alternative: Object | Items | FixedTuple) -> bool:
    """Return whether a list's or an object's schema does not describe its contents."""
    match alternative:
        case Items(item):
            return not getattr(item, "parts", True)
        case Object(properties=properties, values=values):
            return not properties and values is None
        case _:
            return False


def find_referred(schema: Json) -> Iterator[Name]:
    """Yield the classes that a schema of types references, in order."""
    match schema:
        case {"$ref": reference}:
            yield Name(str(reference).rpartition("/")[2])
        case {"anyOf": parts} | {"prefixItems": parts}:
            for part in parts:
                yield from find_referred(part)
        case {"items": inner} | {"additionalProperties": inner}:
            yield from find_referred(inner)


def find_formats(schema: Json) -> Iterator[str]:
    """Yield the string formats in a schema of types."""
    match schema:
        case {"format": form}:
            yield str(form)
        case {"anyOf": parts} | {"prefixItems": parts}:
            for part in parts:
                yield from find_formats(part)
        case {"items": inner} | {"additionalProperties": inner}:
            yield from find_formats(inner)


def find_handled(schema: Json) -> Iterator[str]:
    """Yield the kinds of handles whose IDs occur in a schema of types."""
    match schema:
        case {"handle": kind}:
            yield str(kind)
        case {"anyOf": parts} | {"prefixItems": parts}:
            for part in parts:
                yield from find_handled(part)
        case {"items": inner} | {"additionalProperties": inner}:
            yield from find_handled(inner)


def _is_of(value: Json, name: str) -> bool:
    match name:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer":
            if isinstance(value, float):
                return value.is_integer() and read_integer(value) == int(value)
            return isinstance(value, int) and not isinstance(value, bool)
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool)


def _convert_number(value: Json, name: str) -> Json:
    return int(value) if name == "integer" else value


def _format_validation(name: Name, value: Json) -> _Value:
    return _Value(fill("{}.model_validate({})", name, format_literal(value)), builds=True)


def _format_collection(brackets: LiteralString, members: Sequence[_Value | None]) -> _Value | None:
    there = [member for member in members if member is not None]
    if len(there) < len(members):
        return None
    return _Value(fill(brackets, join(", ", [each.source for each in there])), any(each.builds for each in there))


def _is_represented(value: Json, form: str) -> bool:
    from stubwright_runtime.schema.exact_formats import fits  # loads pydantic

    return isinstance(value, str) and fits(form, value)


def _has_converted_strings(schema: Json, value: Json) -> bool:
    """Return whether a default contains strings that the runtime converts.

    Type checkers cannot infer the converted types.
    """
    return any(True for _ in find_formats(schema)) and '"' in json.dumps(value)


def _needs_cast(source: Code, schema: Json, value: Json) -> bool:
    """Return whether a default needs a cast.

    Type checkers would otherwise infer only the classes of the default's models.

    A cast is needed only if the field's type is wider. Checkers report redundant casts.
    """
    is_tuple = source[0] == "("
    if source[0] not in "[{(" or _is_of_one_class(schema) or _is_exact(schema, value):
        return False
    return not (is_tuple and _is_assignable(schema, value))


def _is_ambiguous(source: Code, schema: Json, value: Json) -> bool:
    """Return whether type checkers need a cast for a default that is a list, mapping or tuple.

    In an assignment, checkers infer the declared type. In a call such as `Field(…)`, mypy infers the declared type only
    if it is not a union, and pyright does not infer the item type of an empty list.
    """
    if source[0] in "[{":
        match schema:
            case {"anyOf": choices}:
                return bool(value) and _infer_type(value) not in choices
            case {} if not schema:
                return _has_empty(value)
    return _has_uninferable_part(schema, value)


def _has_uninferable_part(schema: Json, value: Json) -> bool:
    match schema, value:
        case {"anyOf": choices}, list() | dict():
            several = [choice for choice in choices if choice.get("type") in ("array", "object")]
            if len(several) > 1:
                return bool(value) and _infer_type(value) not in several
            return any(_has_uninferable_part(choice, value) for choice in several)
        case {"prefixItems": places}, list():
            return any(map(_has_uninferable_part, places, value))
        case {"type": "array", "items": inner}, list():
            return any(_has_uninferable_part(inner, each) for each in value)
        case {"type": "object", "additionalProperties": inner}, dict():
            return any(_has_uninferable_part(inner, each) for each in value.values())
        case _:
            return False


def _infer_type(value: Json) -> Json:
    """Return, as a schema, the type that checkers infer for a standalone value, or None if the checkers disagree."""
    match value:
        case list() | dict():
            kinds: list[Json] = []
            for each in value.values() if isinstance(value, dict) else value:
                kind = _infer_type(each)
                kinds += [] if kind in kinds else [kind]
            if len(kinds) != 1 or kinds[0] is None:
                return None
            keyword = "items" if isinstance(value, list) else "additionalProperties"
            return {"type": "array" if isinstance(value, list) else "object", keyword: kinds[0]}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case _:
            return {"type": "null"}


def _has_empty(value: Json) -> bool:
    match value:
        case list() | dict():
            return not value or any(map(_has_empty, value.values() if isinstance(value, dict) else value))
        case _:
            return False


def _is_assignable(schema: Json, value: Json) -> bool:
    """Return whether checkers accept this value's expression for the schema's type.

    An immutable value's type may be narrower. Lists and mappings are invariant, so their types must be equal.
    """
    match schema:
        case {"prefixItems": items}:
            return all(map(_is_assignable, items, value))
        case {"anyOf": choices}:
            return all("$ref" in choice or "enum" in choice or choice.get("type") in _TYPES for choice in choices)
        case {"type": "array", "items": inner}:
            return _is_common_type(inner, value)
        case {"type": "object", "additionalProperties": inner}:
            return _is_common_type({} if inner is True else inner, [*value.values()])
        case _:
            return True


def _is_common_type(schema: Json, values: Sequence[Json]) -> bool:
    """Return whether checkers infer the schema's type as the common type of these values."""
    match schema:
        case {"anyOf": [inner, {"type": "null"}]} if None in values:
            return _is_common_type(inner, [value for value in values if value is not None])
    if not values or "anyOf" in schema or "enum" in schema:
        return False
    if schema.get("type") == "number":
        return any(isinstance(value, float) for value in values)
    return all(_is_assignable(schema, value) for value in values)


def _is_exact(schema: Json, value: Json) -> bool:
    """Return whether checkers infer exactly the schema's type for this standalone value."""
    match schema, value:
        case {"prefixItems": places}, list():
            return all(map(_is_exact, places, value))
        case {"type": "array", "items": inner}, list():
            return _is_exact_for_all(inner, value)
        case {"type": "object", "additionalProperties": inner}, dict():
            return inner is not True and _is_exact_for_all(inner, [*value.values()])
        case {"type": "number"}, _:
            return isinstance(value, float)
        case _:
            return "$ref" in schema or schema.get("type") in _TYPES


def _is_exact_for_all(schema: Json, values: Sequence[Json]) -> bool:
    """Return whether checkers infer exactly the schema's type as the common type of these values."""
    match schema:
        case {"anyOf": [inner, {"type": "null"}]} if None in values:
            return _is_exact_for_all(inner, [value for value in values if value is not None])
        case {"type": "number"}:
            return any(isinstance(value, float) for value in values)
        case _:
            telling = [value for value in values if "$ref" in schema or value not in ([], {})]
            return bool(telling) and all(_is_exact(schema, value) for value in telling)  # empty ones fit any type


def _is_of_one_class(schema: Json) -> bool:
    match schema:
        case {"type": "array", "items": inner} | {"type": "object", "additionalProperties": inner}:
            return inner is not True and _is_of_one_class(inner)
        case _:
            return "$ref" in schema


@dataclass(frozen=True, slots=True)
class _Trail:
    """A path that a class is named after: from the root or a definition, through properties, lists and alternatives."""

    definition: str | None
    steps: tuple[naming.Step, ...]


def _choose_pointer(group: _ClassGroup) -> Pointer:
    """Return the location to name a class after: the shortest in a definition, otherwise the shortest of all."""
    return min(group.pointers, key=_rank)


def _rank(pointer: Pointer) -> tuple[bool, int, str]:
    return pointer[:1] not in _DEFINITIONS, len(pointer), json.dumps(pointer)


_DEFINITIONS = (("$defs",), ("definitions",))


def _trail(pointer: Pointer, document: Document) -> _Trail:
    definition: str | None = None
    steps: list[naming.Step] = []
    rest = list(pointer)
    while rest:
        keyword = str(rest.pop(0))
        following = str(rest.pop(0)) if rest and _is_schema_keyword(keyword, rest[0], document) else ""
        at = pointer[: len(pointer) - len(rest)]
        if keyword in ("$defs", "definitions"):
            definition, steps = following, []
        elif keyword == "properties":
            steps.append(naming.Step("property", following))
        elif keyword in ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"):
            steps.append(naming.Step("item", following))
        elif keyword in ("additionalProperties", "patternProperties", "unevaluatedProperties"):
            steps.append(naming.Step("value"))
        elif keyword in document.dialect.keywords:
            steps.append(naming.Step("branch", _hint(keyword, at, document)))
        else:
            definition, steps = following or keyword, []
    return _Trail(definition, tuple(steps))


def _is_schema_keyword(keyword: str, following: str | int, document: Document) -> bool:
    dialect = document.dialect
    if isinstance(following, int):
        return keyword in dialect.listed
    return keyword in dialect.named or keyword in ("$defs", "definitions") or keyword not in dialect.keywords


def _hint(keyword: str, pointer: Pointer, document: Document) -> str:
    """Return a name that distinguishes an alternative: its title, a value unique to it, or its keys."""
    try:
        value = document.get_value(Leaf(document.name, pointer))
    except KeyError:
        return keyword
    if not isinstance(value, dict):
        return keyword
    if isinstance(title := value.get("title"), str) and naming.split_words(title):
        return title
    if isinstance(reference := value.get("$ref"), str):
        return reference.rpartition("/")[2]
    group = _group(document, pointer)
    known = _constants(value)
    alone = [text for name, text in known.items() if group.constants[name, text] <= 1]
    if known:
        return [*alone, *known.values()][0]
    required = value.get("required")
    own = _properties(value)
    named = [name for name in sorted(own) if group.properties[name] <= 1]
    if not isinstance(required, list) or (named and group.required[json.dumps(required)] > 1):
        required = named[:2] if group.objects > bool(own) else []
    if required:
        return f"with {' and '.join(map(str, required[:3]))}"
    return keyword if keyword in ("if", "then", "else", "not") else ""


@dataclass(slots=True)
class _Group:
    """The numbers of a choice's alternatives that are objects, or have each constant, property and `required` key."""

    constants: Counter[tuple[str, str]] = field(default_factory=Counter)
    properties: Counter[str] = field(default_factory=Counter)
    required: Counter[str] = field(default_factory=Counter)
    objects: int = 0


def _group(document: Document, pointer: Pointer) -> _Group:
    """Count the keywords in the choice that contains `pointer`. Return zero counts if `pointer` is not in a choice."""
    return _grouped(document, pointer[:-1]) if isinstance(pointer[-1], int) else _Group()


@lru_cache(maxsize=8)
def _grouped(document: Document, pointer: Pointer) -> _Group:
    group = _Group()
    for leaf in document.find_children(Leaf(document.name, pointer[:-1]), str(pointer[-1])):
        value = document.get_value(leaf)
        if isinstance(value, dict):
            group.constants.update(_constants(value).items())
            group.properties.update(_properties(value).keys())
            group.required[json.dumps(value.get("required"))] += 1
            group.objects += bool(_properties(value))
    return group


def _properties(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _constants(schema: Mapping[str, Json]) -> Mapping[str, str]:
    """Return the string constants that required properties must equal, keyed by property."""
    constants = {}
    for name, child in sorted(_properties(schema).items()):
        if isinstance(child, dict):
            only = [child["const"]] if "const" in child else child.get("enum") or []
            if len(only) == 1 and isinstance(only[0], str) and naming.split_words(only[0]):
                constants[name] = only[0]
    return constants


def _ladder(stem: Name, root: Name, group: _ClassGroup) -> tuple[Name, ...]:
    """Return the possible names for a class, shortest first."""
    trail = _trail(_choose_pointer(group), group.document)
    return naming.list_nested_names(stem, root, trail.definition, trail.steps)


def _choose_name(stem: Name, key: Key, ladder: Sequence[Name], height: int) -> Name:
    """Return the name at `height` on the ladder or, above the top, the longest name with a digest of the schema.

    If another module has an identical schema at the same location, the digest includes the module's `stem`.
    """
    if height < len(ladder):
        return ladder[height]
    what: object = key
    if isinstance(key, Object):
        properties = sorted((each.name, repr(each.expression)) for each in key.properties)
        what = (key.pointer, properties, sorted(key.required), key.closed, key.values)
    if height > len(ladder):
        what = (stem, what)
    return naming.name_digested_class(ladder[-1], what)
