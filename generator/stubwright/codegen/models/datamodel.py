"""Model modules: the only caller of datamodel-code-generator.

Types, references and the order of classes are the generator's; names, defaults and docstrings are ours, and get into
its text through our templates, as literals. What it writes is read, and never changed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stubwright import ir, naming, package_data
from stubwright.codegen import surface
from stubwright.codegen.models import bases, descriptions, reserved
from stubwright.codegen.models.classes import (
    ImportedType,
    ModelDocument,
    find_formats,
    find_handled,
    find_referred,
    is_mapping,
    list_enumerated,
    list_scalar_types,
    list_scalars,
    plan_classes,
)
from stubwright.codegen.models.inspection import parse_declaration
from stubwright.codegen.models.redaction import find_marks
from stubwright.codegen.models.reserved import NOTHING, ReservedNames
from stubwright.codegen.models.types import Document
from stubwright.codegen.source.docstrings import capitalize
from stubwright.codegen.source.imports import RUNTIME, ImportGroup, make_groups
from stubwright.codegen.source.literals import format_docstring, format_literal, requote
from stubwright.codegen.surface import Argument, Class, ClassRole, Field, NamedType, Surface, Type
from stubwright.diagnostics import Place
from stubwright.jsonschema import dialects
from stubwright.pycode import Code, Name, fill, join, parse, trust
from stubwright_runtime.values.text import split_pointer

if TYPE_CHECKING:
    from datamodel_code_generator.config import JSONSchemaParserConfig
    from datamodel_code_generator.model.base import DataModel
    from datamodel_code_generator.types import DataType

    from stubwright.codegen.models.classes import ClassPlan, FieldPlan
    from stubwright.codegen.models.redaction import Way
    from stubwright.ir import Json


@dataclass(frozen=True, slots=True)
class ModelModule:
    """A module of models.

    `source` is its text, without a header and not formatted. `classes` are all that it defines. `parameters` are those
    of the client's method, made of the first part's class: required ones first, otherwise in schema order. `extra`
    is the type of the values of what else the schema allows; None if it allows nothing else.
    """

    source: Code
    classes: tuple[Class, ...]
    parameters: tuple[Argument, ...]
    extra: Type | None = None
    named_types: tuple[NamedType, ...] = ()

    @property
    def names(self) -> tuple[Name, ...]:
        """The names that it defines."""
        return (*(each.name for each in self.classes), *(name for each in self.named_types for name in each.names))


def load() -> None:
    """Load the generator and have it write a class, so that the first tool takes it no longer than the others."""
    properties = {"type": "object", "properties": {"any": {"type": "string"}}}
    schema = ir.Schema(properties, dialects.DRAFT_2020_12.uri, Place(""))
    make_shared_modules([ir.SharedSchema("any", naming.name_shared("any"), schema)])


def find_homes(
    shared: Sequence[ir.SharedSchema], tools: Iterable[ir.Tool] = (), taken: ReservedNames = NOTHING
) -> dict[str, ImportedType]:
    """Return the class of each shared schema, by its name under `schemas`, and its module below `models.shared`.

    An object with properties has a class, and so does a mapping, for whole results; an enumeration or a scalar has the
    name of its type, and any other schema has no entry.

    Args:
        shared: The manifest's shared schemas.
        tools: The tools whose models use them.
        taken: Names that the package has for something else.
    """
    homes = {schema.name: _find_home(schema) for schema in shared}
    imported = {name: home for name, home in homes.items() if home is not None}
    referenced_whole = _taken_whole(tools, {schema.name: schema for schema in shared}, imported)
    return imported | _with_parameters(shared, referenced_whole, imported, taken)


def _find_home(schema: ir.SharedSchema) -> ImportedType | None:
    """Return the class or the type of a shared schema; None if it has neither."""
    document = Document("shared", schema.schema)
    home = ImportedType(
        naming.name_shared_class(schema.names),
        Name(schema.names.module),
        list_enumerated(document),
        list_scalars(document),
        document.is_exact,
    )
    has_class = document.find_only_object(document.root) is not None or is_mapping(document.shape(document.root))
    return home if has_class or home.is_type else None


def _taken_whole(
    tools: Iterable[ir.Tool], shared: Mapping[str, ir.SharedSchema], homes: Mapping[str, ImportedType]
) -> frozenset[str]:
    """Return the shared schemas with classes that the arguments of tools may be, or may extend."""
    waiting = [name for tool in tools for name in tool.input.extended]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += shared[name].schema.extended
    return frozenset(name for name in seen if name in homes and not homes[name].is_type)


def _with_parameters(
    shared: Sequence[ir.SharedSchema], names: Collection[str], homes: Mapping[str, ImportedType], taken: ReservedNames
) -> dict[str, ImportedType]:
    """Return the homes of those shared schemas that have these names, with their fields as arguments."""
    imported = _in("", homes)
    schemas = [schema for schema in shared if schema.name in names]
    drafts = []
    for schema in schemas:
        others = [each for each in shared if schema.circle is not None and each.circle == schema.circle]
        members = [schema, *(each for each in others if each is not schema and each.name in homes)]
        drafts.append(_shared_draft(members, imported, taken))
    return {
        schema.name: replace(homes[schema.name], parameters=module.parameters)
        for schema, module in zip(schemas, _modules(drafts), strict=True)
    }


def make_modules(
    tools: Sequence[ir.Tool], shared: Mapping[str, ImportedType] | None = None, taken: ReservedNames = NOTHING
) -> list[ModelModule]:
    """Return the models of each tool: `{Stem}Input`, `{Stem}Output` if it has an output schema, and classes below them.

    A module depends on its own tool alone, whatever the others are; together they are made faster.

    Args:
        tools: The tools.
        shared: The `homes` of the manifest's shared schemas, from which their classes are imported.
        taken: Names that the package has for something else.
    """
    imported = _in("shared.", shared or {})
    return _modules([_draft(tool, imported, taken) for tool in tools])


def _in(folder: str, shared: Mapping[str, ImportedType]) -> dict[str, ImportedType]:
    """Return classes with their modules as seen from next to a folder, or from inside it."""
    return {name: replace(each, module=Name(f".{folder}{each.module}")) for name, each in shared.items()}


def _draft(tool: ir.Tool, imported: Mapping[str, ImportedType], taken: ReservedNames) -> _Draft:
    stem = tool.names.stem
    title = f"Arguments of the tool ``{tool.name}``."
    arguments = Document("input", tool.input, merged=True)
    parts = [ModelDocument(arguments, naming.name_input_class(tool.names), "input", title, _ways(tool))]
    if tool.output is not None:
        output = Document("output", tool.output, merged=_is_of_objects(tool.output))
        parts.append(
            ModelDocument(
                output, naming.name_output_class(tool.names), "output", f"Result of the tool ``{tool.name}``."
            )
        )
    parts += _answers(tool.questions)
    plans, used = plan_classes(stem, parts, imported, taken.list_under(stem, reserved.reserve_of_tool(tool)))
    doc = f"Models of the tool ``{tool.name}``."
    return _Draft(doc, tuple(parts), plans, used, Name(".handles"), tool.place)


def _ways(tool: ir.Tool) -> tuple[Way, ...]:
    """Return the ways to the arguments that its policy redacts."""
    return tuple(tuple(split_pointer(pointer)) for pointer in tool.policy.get("redact") or ())


def _is_of_objects(schema: ir.Schema) -> bool:
    """Return whether a schema says of its root that it is an object; what a reference hides does not count."""
    dialect = dialects.find_dialect(schema.wire) or dialects.DRAFT_2020_12
    hidden = "$ref" in schema.wire and dialect.reference_hides_siblings
    return schema.wire.get("type") == "object" and not hidden


def make_primitive_modules(primitives: Sequence[ir.Primitive], taken: ReservedNames = NOTHING) -> list[ModelModule]:
    """Return the models of prompts and resource templates: of their arguments, and of the answers to their questions.

    Args:
        primitives: Those that the handlers serve, so that there is someone to use the models.
        taken: Names that the package has for something else.
    """
    return _modules([_primitive_draft(primitive, taken) for primitive in primitives])


def _primitive_draft(primitive: ir.Primitive, taken: ReservedNames) -> _Draft:
    of = f"the {primitive.kind} ``{primitive.key}``"
    schema = ir.Schema(_arguments(primitive.arguments or ()), dialects.DRAFT_2020_12.uri, primitive.place)
    role: ClassRole = "arguments" if primitive.kind == "prompt" else "variables"
    name = naming.name_arguments(primitive.names, primitive.kind)
    parts = [ModelDocument(Document("input", schema, merged=True), name, role, f"{capitalize(role)} of {of}.")]
    parts += _answers(primitive.questions)
    stem = primitive.names.stem
    plans, used = plan_classes(stem, parts, {}, taken.list_under(stem, reserved.reserve_of_primitive(primitive)))
    return _Draft(f"Models of {of}.", tuple(parts), plans, used, Name("..handles"), primitive.place)


def _arguments(arguments: Sequence[ir.Argument]) -> Json:
    properties: dict[str, Json] = {}
    for argument in arguments:
        kind: Json = {"type": "array", "items": {"type": "string"}} if argument.many else {"type": "string"}
        properties[argument.name] = {**kind, "description": argument.description} if argument.description else kind
    required = [argument.name for argument in arguments if argument.required]
    return {"type": "object", "properties": properties, "required": required}


def _answers(questions: Sequence[ir.Question]) -> Iterator[ModelDocument]:
    """Yield the answers to those questions that are asked with a form."""
    for question in questions:
        if question.schema is not None:
            document = Document(f"question {question.name}", question.schema, merged=True)
            title = f"An answer to ``{question.name}``: {question.message}"
            yield ModelDocument(document, question.answer, "answer", title)


@dataclass(frozen=True, slots=True)
class SharedModules:
    """The modules of shared schemas: `of` has that of each that has a class, by its name under `schemas`.

    Those that refer to each other have their classes in one module, since modules cannot import each other; their own
    modules take them from there. `circles` are these modules by their names below `models.shared`.
    """

    of: Mapping[str, ModelModule] = field(default_factory=dict)
    circles: Mapping[Name, ModelModule] = field(default_factory=dict)


def make_shared_modules(
    shared: Sequence[ir.SharedSchema],
    imported_classes: Mapping[str, ImportedType] | None = None,
    taken: ReservedNames = NOTHING,
) -> SharedModules:
    """Return the models of shared schemas.

    Args:
        shared: All of the manifest's shared schemas.
        imported_classes: Their `homes`, where they are known.
        taken: Names that the package has for something else.
    """
    imported = _in("", find_homes(shared) if imported_classes is None else imported_classes)
    groups = _groups(shared, imported)
    drafts = [_shared_draft(members, imported, taken) for members in groups]
    of = {
        schema.name: _type_module(schema, imported[schema.name])
        for schema in shared
        if schema.name in imported and imported[schema.name].is_type
    }
    circles: dict[Name, ModelModule] = {}
    for members, draft, module in zip(groups, drafts, _modules(drafts), strict=True):
        if len(members) == 1:
            of[members[0].name] = module
            continue
        home = naming.name_circle(members[0].circle or members[0].name)
        circles[home] = module
        classes = {each.name: each for each in module.classes}
        for schema in members:
            names = draft.groups[naming.name_shared_class(schema.names)]
            of[schema.name] = _taken_from(home, schema, [classes[name] for name in names])
    return SharedModules({schema.name: of[schema.name] for schema in shared if schema.name in of}, circles)


def _groups(shared: Sequence[ir.SharedSchema], homes: Mapping[str, ImportedType]) -> list[list[ir.SharedSchema]]:
    """Return the shared schemas that have classes, those that refer to each other together."""
    groups: dict[tuple[str, bool], list[ir.SharedSchema]] = defaultdict(list)
    for schema in shared:
        if schema.name in homes and not homes[schema.name].is_type:
            groups[schema.circle or schema.name, schema.circle is None].append(schema)
    return list(groups.values())


def _shared_draft(
    members: Sequence[ir.SharedSchema], imported: Mapping[str, ImportedType], taken: ReservedNames
) -> _Draft:
    """Return the module of a shared schema, or of several that refer to each other."""
    alone = len(members) == 1
    parts = tuple(
        ModelDocument(
            Document("shared" if alone else f"shared {schema.name}", schema.schema),
            naming.name_shared_class(schema.names),
            "shared",
            f"The shared schema ``{schema.name}``.",
            schema.redacted,
            schema.names.stem,
        )
        for schema in members
    )
    names = {part.name for part in parts}
    met = frozenset(name for each in members for name in taken.list_under(each.names.stem, names))
    plans, used = plan_classes(members[0].names.stem, parts, imported, met)
    own = {plan.name for plan in plans}
    first = members[0]
    doc = "Models of shared schemas that lead to each other."
    if alone:
        doc = f"Models of the shared schema ``{first.name}``."
    others = tuple(each for each in used if each.name not in own)
    return _Draft(doc, parts, plans, others, Name("..handles"), first.schema.place, circle=not alone)


def _type_module(schema: ir.SharedSchema, home: ImportedType) -> ModelModule:
    """Return the module of a shared schema that has a type and no class."""
    return _enumeration(schema, home) if home.members else _scalar(schema, home)


def _scalar(schema: ir.SharedSchema, home: ImportedType) -> ModelModule:
    """Return the module of a shared schema that is a scalar."""
    document = Document("shared", schema.schema)
    title = f"The shared schema ``{schema.name}``."
    doc = descriptions.describe(document, document.root)
    choices = _list_scalar_choices(home)
    kind = join(" | ", choices)
    formats = {_FORMATS[each.format] for each in home.scalars if each.format} - naming.ANNOTATION_NAMES
    imports = _imports(_homes_of({*formats, Name("TypeAlias")}), {})
    alias = fill("\n{}: TypeAlias = {}\n{}", home.name, kind, format_docstring(doc or title))
    source = join("\n", [fill(_HEAD, format_docstring(title)), *imports, alias])
    return ModelModule(
        source, (), (), named_types=(NamedType(home.name, None, Type(kind, choices), schema.schema.place),)
    )


def _list_scalar_choices(home: ImportedType) -> tuple[Code, ...]:
    """Return the types that a shared scalar is a union of."""
    types = list_scalar_types(home.scalars, is_exact=home.is_exact)
    return tuple(_FORMATS[each["format"]] if "format" in each else _SCALARS[each["type"]] for each in types)


def _enumeration(schema: ir.SharedSchema, home: ImportedType) -> ModelModule:
    """Return the module of a shared schema that is one of some values."""
    values = naming.name_values(schema.names)
    members = [each for each in home.members if each is not None]
    kind = fill(
        "Literal[{}]{}", join(", ", map(format_literal, members)), fill(" | None" if None in home.members else "")
    )
    document = Document("shared", schema.schema)
    title = f"The shared schema ``{schema.name}``."
    source = fill(
        _ENUMERATION,
        fill(_HEAD, format_docstring(title)),
        home.name,
        kind,
        format_docstring(descriptions.summarize(document, document.root) or title),
        values,
        home.name,
        format_literal(home.members),
        format_docstring(f"The values of `{home.name}`, in the schema's order."),
    )
    value = Type(kind, _choices_of(home.members))
    named = NamedType(home.name, values, value, schema.schema.place)
    return ModelModule(source, (), (), named_types=(named,))


def _choices_of(members: Iterable[Json]) -> tuple[Code, ...]:
    """Return the types that are one of some constants, each for itself."""
    return tuple(fill("None") if each is None else fill("Literal[{}]", format_literal(each)) for each in members)


_ENUMERATION = """{}
from typing import Final, Literal, TypeAlias

{}: TypeAlias = {}
{}

{}: Final[tuple[{}, ...]] = {}
{}"""


def _taken_from(home: Name, schema: ir.SharedSchema, classes: Iterable[Class]) -> ModelModule:
    """Return the module of a shared schema whose classes are in the module `home`."""
    own = tuple(replace(each, place=schema.schema.place) for each in classes)
    head = fill(_HEAD, format_docstring(f"Models of the shared schema ``{schema.name}``."))
    (taken,) = make_groups({f".{home}": [each.name for each in own]})
    listed = fill("__all__ = [{}]", join(", ", taken.literals))
    return ModelModule(join("\n", [head, taken.format_imported(), fill(""), listed]), own, ())


def mark_redacted(tools: Sequence[ir.Tool], shared: Sequence[ir.SharedSchema]) -> tuple[ir.SharedSchema, ...]:
    """Return the shared schemas with the ways to what the policies of all tools redact in them."""
    imported = find_homes(shared)
    schemas = {schema.name: schema.schema for schema in shared}
    ways_by_schema: dict[str, set[Way]] = defaultdict(set)
    waiting = [(Document("input", tool.input, merged=True), _ways(tool)) for tool in tools if _ways(tool)]
    while waiting:
        document, ways = waiting.pop()
        for name, way in find_marks(document, ways, imported).elsewhere:
            if way not in ways_by_schema[name]:
                ways_by_schema[name].add(way)
                waiting.append((Document("shared", schemas[name]), (way,)))
    return tuple(replace(schema, redacted=tuple(sorted(ways_by_schema[schema.name]))) for schema in shared)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A module before its classes are written; `ids` is the module of the types of ids, `place` what it is made of.

    Where it is a `circle`, each part represents itself, and the order of its classes is left to their parts.
    """

    doc: str
    parts: tuple[ModelDocument, ...]
    plans: tuple[ClassPlan, ...]
    used: tuple[ImportedType, ...]
    ids: Name
    place: Place
    circle: bool = False

    @property
    def names(self) -> tuple[Name, ...]:
        """The names of its classes."""
        return tuple(plan.name for plan in self.plans)

    @property
    def own(self) -> frozenset[str]:
        """The same as a set."""
        return frozenset(self.names)

    @property
    def groups(self) -> Mapping[Name, tuple[Name, ...]]:
        """The classes that stand together, by the first of them."""
        roots = {part.name for part in self.parts if self.circle}
        groups: list[list[Name]] = []
        for plan in self.plans:
            if not groups or plan.name in roots:
                groups.append([])
            groups[-1].append(plan.name)
        return {names[0]: tuple(names) for names in groups}

    @property
    def taken(self) -> frozenset[str]:
        """The names of the classes that it imports."""
        return frozenset(each.name for each in self.used)


def describe_surface(manifest: ir.Manifest) -> Surface:
    """Return the surface of a manifest's package."""
    primitives = (*manifest.resources, *manifest.templates, *manifest.prompts)
    served = [each for each in primitives if each.has_model and "server" in manifest.emit]

    def make(taken: ReservedNames) -> tuple[list[ModelModule], list[ModelModule]]:
        known = find_homes(manifest.shared, manifest.tools, taken)
        shared = make_shared_modules(manifest.shared, known, taken).of.values()
        return make_modules(manifest.tools, known, taken), [*make_primitive_modules(served, taken), *shared]

    def find_names(modules_by_kind: tuple[list[ModelModule], list[ModelModule]]) -> list[Name]:
        return [name for modules in modules_by_kind for module in modules for name in module.names]

    (tools, others), _ = reserved.settle(reserved.reserve(manifest), make, find_names)
    every = (*tools, *others)
    return surface.describe(
        manifest,
        {tool.name: (module.parameters, module.extra) for tool, module in zip(manifest.tools, tools, strict=True)},
        surface.with_inherited([module_class for module in every for module_class in module.classes]),
        (module_class for module in every for module_class in module.named_types),
    )


_MOST_AT_ONCE = 48
"""Modules that the generator writes in one run: more save no time, and take more memory."""


@dataclass(slots=True)
class _Run:
    """Drafts that the generator writes at once, since no name means two things in them."""

    own: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    indexes: list[int] = field(default_factory=list)

    def admits(self, draft: _Draft) -> bool:
        """Return whether a draft's names mean nothing else here, and there are not too many yet."""
        if len(self.indexes) >= _MOST_AT_ONCE:
            return False
        return draft.own.isdisjoint(self.own | self.taken) and draft.taken.isdisjoint(self.own)

    def add(self, index: int, draft: _Draft) -> None:
        """Take a draft in."""
        self.own |= draft.own
        self.taken |= draft.taken
        self.indexes.append(index)


def _modules(drafts: Sequence[_Draft]) -> list[ModelModule]:
    """Write several modules with as few runs of the generator as there are drafts that have names in common."""
    runs: list[_Run] = []
    for index, draft in enumerate(drafts):
        run = next((run for run in runs if run.admits(draft)), None)
        if run is None:
            runs.append(run := _Run())
        run.add(index, draft)
    modules: dict[int, ModelModule] = {}
    for run in runs:
        written = _written(
            [plan for index in run.indexes for plan in drafts[index].plans],
            [each for index in run.indexes for each in drafts[index].used],
        )
        modules |= {index: _module(drafts[index], written) for index in run.indexes}
    return [modules[index] for index in range(len(drafts))]


def _module(draft: _Draft, written: Mapping[Name, ClassSource]) -> ModelModule:
    own = [written[plan.name] for plan in draft.plans if not plan.is_alias]
    needed = {name for each in own for name in each.typing}
    needed |= {Name("TypeAlias")} if len(own) < len(draft.plans) else set()
    needed |= {_FORMATS[form] for plan in draft.plans for form in _formats(plan)} - naming.ANNOTATION_NAMES
    needed |= {name for plan in draft.plans for name in (*_pydantic(plan), *_runtime(plan))}
    imports = _imports(
        {
            **_homes_of(needed),
            draft.ids: {
                naming.handle_id(kind)
                for plan in draft.plans
                for schema in _types(plan)
                for kind in find_handled(schema)
            },
        },
        {each.module: each.name for each in draft.used},
    )
    ordered = _ordered(draft, written)
    classes = [fill("\n\n{}", written[name].source) for name in ordered]
    aliases = [
        fill("{}: TypeAlias = {}\n{}", plan.name, plan.shared.name, format_docstring(plan.doc))
        for plan in draft.plans
        if plan.shared is not None and plan.is_alias
    ]
    last = [fill("\n" if classes else ""), join("\n\n", aliases)] if aliases else []
    root = next(plan for plan in draft.plans if plan.name == draft.parts[0].name)
    return ModelModule(
        source=join("\n", [fill(_HEAD, format_docstring(draft.doc)), *imports, *classes, *last]),
        classes=tuple(_class(plan, written.get(plan.name), draft.place) for plan in draft.plans),
        parameters=_parameters(root, written),
        extra=_extra(root, draft.parts[0].document, written),
    )


def _homes_of(names: Collection[str]) -> dict[Name, Collection[str]]:
    """Map the modules that models import from to the names that they import.

    Raises:
        LookupError: A name is not listed in `naming.MODEL_IMPORTS`, so that a class could be called like it.
    """
    if unlisted := sorted({*names} - naming.MODEL_NAMES):
        raise LookupError(f"models import {', '.join(unlisted)}, which `naming.MODEL_IMPORTS` does not list")
    return {Name(module): listed.intersection(names) for module, listed in naming.MODEL_IMPORTS.items()}


def _parameters(root: ClassPlan, written: Mapping[Name, ClassSource]) -> tuple[Argument, ...]:
    """Return the fields of a class as arguments, what it inherits before what is new."""
    inherited = root.shared.parameters if root.shared is not None else ()
    parameters = [replace(each, required=each.required or each.wire in root.needed) for each in inherited]
    parameters += [_parameter(each, written[root.name].types[each.name]) for each in root.fields]
    return tuple(sorted(parameters, key=lambda each: not each.required))


def _extra(root: ClassPlan, document: Document, written: Mapping[Name, ClassSource]) -> Type | None:
    """Return the type of what an object holds in keys that are no fields of its class; None if it has no such keys."""
    schema = document.get_value(document.root)
    if root.closed or (isinstance(schema, dict) and schema.get("unevaluatedProperties") is False):
        return None
    values = written[root.name].values if root.name in written else None
    return values or surface.ANY


_HEAD = """{}

from __future__ import annotations
"""


def _ordered(draft: _Draft, written: Mapping[Name, ClassSource]) -> list[Name]:
    """Return the classes in the order in which they are written.

    Those that stand together do: there, a class comes after those that it refers to, as far as they do not refer to
    each other. Those of other values than objects come last, in the generator's order, since Python reads what stands
    in brackets after their base at once.
    """
    named = {plan.name: _references(plan) for plan in draft.plans}
    order = [name for group in draft.groups.values() for name in _after({name: named[name] for name in group})]
    last = {plan.name for plan in draft.plans if plan.root is not None}
    return [name for name in order if name not in last and name in written] + [name for name in written if name in last]


def _references(plan: ClassPlan) -> list[Name]:
    """Return the classes that a class refers to, in the order of its fields."""
    return [name for schema in (plan.root, *(field.schema for field in plan.fields)) for name in find_referred(schema)]


def _after(named: Mapping[Name, Iterable[Name]]) -> tuple[Name, ...]:
    """Sort names, each after those that it names, as far as they do not name each other."""
    order: dict[Name, None] = {}
    entered: set[Name] = set()
    for start in named:
        path = [(start, iter([start]))]  # not recursive: classes may name each other in a chain of thousands
        while path:
            name, others = path[-1]
            following = next((other for other in others if other in named and other not in entered), None)
            if following is None:
                order.setdefault(name)
                path.pop()
            else:
                entered.add(following)
                path.append((following, iter(named[following])))
    return tuple(order)


def _imports(known: Mapping[Name, Collection[str]], shared: Mapping[Name, Name]) -> Iterator[Code]:
    """Yield the lines that import these names: from far to near, with an empty line between the kinds of modules."""
    table: dict[str, Collection[str]] = {home: {name} for home, name in shared.items()}
    table |= dict(known.items())
    homes = sorted(make_groups(table), key=_kind)
    for number, (_, section) in enumerate(groupby(homes, _kind)):
        if number:
            yield fill("")
        for home in section:
            yield home.format_imported()


def _kind(home: ImportGroup) -> int:
    """Rank a module: Python's own first, then those of other packages, then those of this package."""
    return 2 if home.module.startswith(".") else 1 if home.module in ("pydantic", RUNTIME) else 0


def _formats(plan: ClassPlan) -> Iterator[str]:
    """Yield the formats of texts in the types of a class."""
    for schema in _types(plan):
        yield from find_formats(schema)


def _types(plan: ClassPlan) -> tuple[Json, ...]:
    """Return the types of a class, as schemas."""
    return (plan.root, plan.values, *(each.schema for each in plan.fields))


def _pydantic(plan: ClassPlan) -> Iterator[Name]:
    """Yield the names of pydantic that the source of a class needs."""
    if any(field.wire != field.name or field.is_made or field.is_copied for field in plan.fields):
        yield Name("Field")


def _runtime(plan: ClassPlan) -> Iterator[Name]:
    """Yield the names of the runtime's models that the source of a class needs."""
    if plan.shared is None or plan.values is not None:
        yield _base(plan)
    if any(field.form == "nullable" for field in plan.fields):
        yield Name("Nullable")


def _base(plan: ClassPlan) -> Name:
    """Return the class of the runtime that a class inherits from."""
    if plan.values is None:
        return Name("Model" if plan.root is None else "Root")
    return Name("OpenModel" if plan.root is None else "Map")


def _class(plan: ClassPlan, written: ClassSource | None, place: Place) -> Class:
    types = written.types if written is not None else {}
    fields = tuple(
        Field(field.wire, field.name, _annotation(field, types[field.name]), field.default, field.doc)
        for field in plan.fields
    )
    base = plan.shared.name if plan.shared is not None else None
    values = written.values if written is not None else None
    return Class(plan.name, plan.roles, plan.is_root, fields, place, base, is_alias=plan.is_alias, values=values)


def _annotation(plan: FieldPlan, kind: Type) -> Type:
    """Return the type of a field, with the annotation of a field that can be absent."""
    if plan.form == "absent":
        return surface.make_optional(kind)
    if plan.form == "nullable":
        text = fill("Nullable[{}]", kind.text)
        return Type(text, (text,), kind.names)
    return kind


def _parameter(plan: FieldPlan, kind: Type) -> Argument:
    given = surface.make_optional(kind) if plan.form == "nullable" else kind
    return Argument(plan.wire, plan.name, given, plan.required, plan.nullable, plan.doc, plan.source)


@dataclass(frozen=True, slots=True)
class ClassSource:
    """The generator's output for a class: its source, the types of its fields and, for a mapping, of its values, and
    the names of `typing` in it.
    """

    source: Code
    types: Mapping[Name, Type]
    typing: frozenset[str]
    values: Type | None


def _written(plans: Sequence[ClassPlan], used: Collection[ImportedType]) -> dict[Name, ClassSource]:
    """Return the generator's output for these classes, in its own order."""
    from datamodel_code_generator.parser.jsonschema import JsonSchemaParser

    plans = [plan for plan in plans if not plan.is_alias]
    if not plans:
        return {}
    roots = {plan.name for plan in plans if plan.root is not None}
    by_name = {plan.name: plan for plan in plans}
    definitions = {plan.name: _definition(plan, roots) for plan in plans}
    for each in used:
        definitions[each.name] = {"x-python-import": {"module": each.module.lstrip("."), "name": each.name}}
    views = defaultdict(
        dict, {plan.name: {"plan": _view(plan, roots if plan.root is not None else by_name)} for plan in plans}
    )
    config = _config().model_copy(update={"extra_template_data": views})
    parser = JsonSchemaParser(json.dumps({"$defs": definitions}), config=config)
    text = parser.parse()
    if not isinstance(text, str):
        raise TypeError(f"datamodel-code-generator gave {type(text).__name__}")
    models = {model.class_name: model for model in parser.results}
    classes = [parse_declaration(part.strip()) for part in text.split(_CUT)[1:]]
    members: dict[Code, Sequence[Code]] = {
        each.name: _choices_of(each.members) if each.members else _list_scalar_choices(each)
        for each in used
        if each.is_type
    }
    written_classes = {name: _taken(source, by_name[name], models[name], members) for name, source in classes}
    parser.dispose()  # its objects reference each other, and there are many
    return written_classes


@cache
def _config() -> JSONSchemaParserConfig:
    """Return the generator's configuration for writing classes; which ones, it is told each time."""
    from datamodel_code_generator import LiteralType, PythonVersion
    from datamodel_code_generator.config import JSONSchemaParserConfig
    from datamodel_code_generator.enums import DataModelType
    from datamodel_code_generator.model import get_data_model_types

    python = PythonVersion.PY_311
    kinds = get_data_model_types(DataModelType.PydanticV2BaseModel, target_python_version=python)
    return JSONSchemaParserConfig(
        data_model_type=kinds.data_model,
        data_model_root_type=kinds.root_model,
        data_model_field_type=kinds.field_model,
        data_type_manager_type=kinds.data_type_manager,
        target_python_version=python,
        custom_template_dir=package_data.TEMPLATES / "models",
        enum_field_as_literal=LiteralType.All,
        formatters=[],
        skip_root_model=True,
        strict_nullable=True,
        use_standard_collections=True,
        use_tuple_for_fixed_items=True,
        use_union_operator=True,
    )


def _keyed(plan: ClassPlan) -> Iterator[tuple[str, FieldPlan]]:
    """Return the fields of a class, with the names that the generator gets for them.

    The generator renames each import that has the name of a field, even of a field of another class; our templates
    write the real names.
    """
    return ((f"f{index}", field) for index, field in enumerate(plan.fields))


_VALUES = "_values"
"""The generator's name for a field that represents the values of a mapping; no attribute has it."""

_CUT = "\f"
"""The mark that our templates write before each class; no literal contains it."""


def _taken(source: Code, plan: ClassPlan, model: DataModel, members: Mapping[Code, Sequence[Code]]) -> ClassSource:
    """Return a class as the generator made it."""
    used = {each.import_ for field in model.fields for each in field.data_type.all_imports if each.from_ == "typing"}
    if any(field.wire != field.name for field in plan.fields):
        used.add("Annotated")
    if any(field.is_cast for field in plan.fields):
        used.add("cast")
    printed = {field.original_name: field.data_type for field in model.fields}
    used = (used - bases.UNIONS) | (bases.UNIONS & bases.find_names_of_bases(source))
    types = {field.name: _type(printed[key], field.schema, members) for key, field in _keyed(plan)}
    values = printed.get(_VALUES)
    of_values = _type(values, plan.values, members) if values is not None and plan.values is not None else None
    return ClassSource(source, types, frozenset(map(Name, used)), of_values)


def _type(printed: DataType, schema: Json, members: Mapping[Code, Sequence[Code]]) -> Type:
    """Return a type as the generator prints it, whose source was looked through with its class.

    `members` are what the types of shared enumerations and scalars represent.
    """
    hint = printed.type_hint
    names = {Name(each.import_) for each in printed.all_imports if each.from_ == "typing"}
    names |= {_FORMATS[form] for form in find_formats(schema)} - naming.ANNOTATION_NAMES
    names |= {naming.handle_id(kind) for kind in find_handled(schema)}
    choices = [choice for each in _choices(printed, hint) for choice in members.get(each, [each])]
    return Type(trust(requote(hint)), tuple(choices), frozenset(names.union(find_referred(schema))))


def _choices(printed: DataType, hint: str) -> Iterator[Code]:
    """Yield the types of a union, each value of a `Literal` separately; a type that is no union is yielded alone."""
    members = [(member, member.type_hint) for member in printed.data_types]
    literals = [format_literal(value) for value in printed.literals]
    if members and hint == " | ".join(text for _, text in members):
        for member, text in members:
            yield from _choices(member, text)
    elif literals and requote(hint) == fill("Literal[{}]", join(", ", literals)):
        yield from (fill("Literal[{}]", each) for each in literals)
    else:
        yield trust(requote(hint))


def _definition(plan: ClassPlan, roots: Collection[str]) -> Json:
    """Return a class as a schema. Its properties go by `_keyed`, and all are required: whether one can be
    absent is told to the template, not to the generator. `roots` are the classes that come last."""
    if plan.root is not None and plan.values is None:
        # The generator forgets the items of a list that is recursive at the top.
        return {"anyOf": [_as_input(plan.root, roots)]}
    properties: dict[str, Json] = {key: _as_input(field.schema) for key, field in _keyed(plan)}
    if plan.values is not None:
        properties[_VALUES] = _as_input(plan.values, roots if plan.root is not None else ())
    return {"type": "object", "properties": properties, "required": list(properties)}


def _as_input(schema: Json, later: Collection[str] = ()) -> Json:
    """Return the schema for the generator: with the length of each tuple, and names of types in place of formats.

    Each place of a tuple is a choice of one, since the generator would make a class of a tuple right in another. A type
    in brackets after a base is read at once: there a tuple that holds one of the classes `later` becomes a list.
    """
    match schema:
        case {"prefixItems": items} if not {*later}.isdisjoint(find_referred(schema)):
            return {"type": "array", "items": {"anyOf": [_as_input(item, later) for item in items]}}
        case {"prefixItems": items}:
            places = [{"anyOf": [_as_input(item)]} for item in items]
            return {"type": "array", "prefixItems": places, "minItems": len(places), "maxItems": len(places)}
        case {"anyOf": choices}:
            return {"anyOf": [_as_input(choice, later) for choice in choices]}
        case {"handle": kind}:
            return {"type": "object", "x-python-type": naming.handle_id(kind)}
        case {"format": form}:
            return {"type": "object", "x-python-type": _FORMATS[form]}
        case {"type": "array", "items": item}:
            return {"type": "array", "items": _as_input(item, later)}
        case {"type": "object", "additionalProperties": values}:
            return {"type": "object", "additionalProperties": _as_input(values, later)}
        case _:
            return schema


_FORMATS = {
    "base64": Name("bytes"),
    "date": Name("dt_date"),
    "date-time": Name("dt_datetime"),
    "time": Name("dt_time"),
    "uri": Name("AnyUrl"),
    "uuid": Name("UUID"),
}
"""The types of texts with a format."""

_SCALARS = {"boolean": Name("bool"), "integer": Name("int"), "number": Name("float"), "string": Name("str")}
"""The types of other scalars."""


def _view(plan: ClassPlan, later: Collection[str]) -> dict[str, Any]:
    """Return a class as the templates need it: everything in it is Python source, which the generator writes unchanged.

    `later` are the classes that may come after it.
    """
    keywords = [
        *([fill('extra="forbid"')] if plan.closed else ()),
        *([fill("redacted={{{}}}", join(", ", map(format_literal, plan.redacted)))] if plan.redacted else ()),
    ]
    return {
        "cut": _CUT,
        "base": plan.shared.name if plan.shared is not None else _base(plan),
        "is_mapping": plan.values is not None,
        "keywords": join("", [fill(", {}", each) for each in keywords]),
        "of_values": _VALUES,
        "doc": format_docstring(plan.doc, 4),
        "in_brackets": lambda kind: bases.put_in_brackets(kind, () if plan.values is None else later),
        "quoted": lambda kind: format_literal(requote(kind)),
        "fields": {
            key: {
                "name": parse(field.name),
                "form": field.form,
                "alias": format_literal(field.wire) if field.wire != field.name else None,
                "default": parse(field.default) if field.default is not None else None,
                "is_made": field.is_made,
                "is_copied": field.is_copied,
                "is_cast": field.is_cast,
                "doc": format_docstring(field.doc, 4) if field.doc else None,
            }
            for key, field in _keyed(plan)
        },
    }
