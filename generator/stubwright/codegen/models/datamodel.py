"""Generates modules of models; the only module that calls datamodel-code-generator.

The generator's `DataType` prints each type, and its `BaseModel` renders each class with our template, which adds names,
defaults and docstrings as literals. `inspection` checks the generated source, which is then used unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stubwright import ir, naming, package_data
from stubwright.codegen import surface
from stubwright.codegen.models import descriptions, reserved_names
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
from stubwright.codegen.models.reserved_names import NOTHING, ReservedNames
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
    from datamodel_code_generator.types import DataType, DataTypeManager

    from stubwright.codegen.models.classes import ClassPlan, FieldPlan
    from stubwright.codegen.models.redaction import Way
    from stubwright.ir import Json


@dataclass(frozen=True, slots=True)
class ModelModule:
    """A module of models.

    Attributes:
        source: The code, unformatted and without a header.
        parameters: The client method's parameters, from the first class: required ones first, each group in schema
            order.
        extra: The type of additional properties; None if the schema allows none.
    """

    source: Code
    classes: tuple[Class, ...]
    parameters: tuple[Argument, ...]
    extra: Type | None = None
    named_types: tuple[NamedType, ...] = ()

    @property
    def names(self) -> tuple[Name, ...]:
        """The names that the module defines."""
        return (*(each.name for each in self.classes), *(name for each in self.named_types for name in each.names))


def load() -> None:
    """Import the generator and render a class, so that the first tool does not take longer than the others."""
    properties = {"type": "object", "properties": {"any": {"type": "string"}}}
    schema = ir.Schema(properties, dialects.DRAFT_2020_12.uri, Place(""))
    make_shared_modules([ir.SharedSchema("any", naming.name_shared("any"), schema)])


def find_homes(
    shared: Sequence[ir.SharedSchema], tools: Iterable[ir.Tool] = (), taken: ReservedNames = NOTHING
) -> dict[str, ImportedType]:
    """Return each shared schema's class with its module below `models.shared`, keyed by name under `schemas`.

    Objects with properties have a class, as do mappings (for whole results). Enumerations and scalars have a named
    type. Other schemas have no entry.

    Args:
        tools: The tools whose models use the schemas.
        taken: Names that the package reserves.
    """
    homes = {schema.name: _find_home(schema) for schema in shared}
    imported = {name: home for name, home in homes.items() if home is not None}
    referenced_whole = _list_reusable(tools, {schema.name: schema for schema in shared}, imported)
    return imported | _with_parameters(shared, referenced_whole, imported, taken)


def _find_home(schema: ir.SharedSchema) -> ImportedType | None:
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


def _list_reusable(
    tools: Iterable[ir.Tool], shared: Mapping[str, ir.SharedSchema], homes: Mapping[str, ImportedType]
) -> frozenset[str]:
    """Return the names of shared schemas whose class a tool's arguments class can alias or extend."""
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
    """Return the classes of the shared schemas in `names`, keyed by name, with their fields as `parameters`."""
    imported = _make_relative("", homes)
    schemas = [schema for schema in shared if schema.name in names]
    drafts = []
    for schema in schemas:
        others = [each for each in shared if schema.circle is not None and each.circle == schema.circle]
        members = [schema, *(each for each in others if each is not schema and each.name in homes)]
        drafts.append(_draft_shared(members, imported, taken))
    return {
        schema.name: replace(homes[schema.name], parameters=module.parameters)
        for schema, module in zip(schemas, map(_module, drafts), strict=True)
    }


def make_modules(
    tools: Sequence[ir.Tool], shared: Mapping[str, ImportedType] | None = None, taken: ReservedNames = NOTHING
) -> list[ModelModule]:
    """Generate each tool's models: `{Stem}Input`, `{Stem}Output` if it has an output schema, and nested classes.

    A tool's module depends only on that tool and the shared schemas.

    Args:
        shared: The shared schemas' classes, for imports.
        taken: Names that the package reserves.
    """
    imported = _make_relative("shared.", shared or {})
    return [_module(_draft(tool, imported, taken)) for tool in tools]


def _make_relative(folder: str, shared: Mapping[str, ImportedType]) -> dict[str, ImportedType]:
    """Make module paths relative to the parent of `folder` or, if `folder` is empty, to the importing folder."""
    return {name: replace(each, module=Name(f".{folder}{each.module}")) for name, each in shared.items()}


def _draft(tool: ir.Tool, imported: Mapping[str, ImportedType], taken: ReservedNames) -> _Draft:
    stem = tool.names.stem
    title = f"Arguments of the tool ``{tool.name}``."
    arguments = Document("input", tool.input, merged=True)
    parts = [ModelDocument(arguments, naming.name_input_class(tool.names), "input", title, _list_redacted(tool))]
    if tool.output is not None:
        output = Document("output", tool.output, merged=_is_of_objects(tool.output))
        parts.append(
            ModelDocument(
                output, naming.name_output_class(tool.names), "output", f"Result of the tool ``{tool.name}``."
            )
        )
    parts += _answers(tool.questions)
    plans, used = plan_classes(stem, parts, imported, taken.list_under(stem, reserved_names.reserve_of_tool(tool)))
    doc = f"Models of the tool ``{tool.name}``."
    return _Draft(doc, tuple(parts), plans, used, Name(".handles"), tool.place)


def _list_redacted(tool: ir.Tool) -> tuple[Way, ...]:
    return tuple(tuple(split_pointer(pointer)) for pointer in tool.policy.get("redact") or ())


def _is_of_objects(schema: ir.Schema) -> bool:
    dialect = dialects.find_dialect(schema.wire) or dialects.DRAFT_2020_12
    hidden = "$ref" in schema.wire and dialect.reference_hides_siblings
    return schema.wire.get("type") == "object" and not hidden


def make_primitive_modules(primitives: Sequence[ir.Primitive], taken: ReservedNames = NOTHING) -> list[ModelModule]:
    """Generate the models of prompts and resource templates: their arguments, and the answers to their questions.

    Args:
        primitives: The primitives whose handlers receive models.
        taken: Names that the package reserves.
    """
    return [_module(_primitive_draft(primitive, taken)) for primitive in primitives]


def _primitive_draft(primitive: ir.Primitive, taken: ReservedNames) -> _Draft:
    of = f"the {primitive.kind} ``{primitive.key}``"
    schema = ir.Schema(_arguments(primitive.arguments or ()), dialects.DRAFT_2020_12.uri, primitive.place)
    role: ClassRole = "arguments" if primitive.kind == "prompt" else "variables"
    name = naming.name_arguments(primitive.names, primitive.kind)
    parts = [ModelDocument(Document("input", schema, merged=True), name, role, f"{capitalize(role)} of {of}.")]
    parts += _answers(primitive.questions)
    stem = primitive.names.stem
    plans, used = plan_classes(stem, parts, {}, taken.list_under(stem, reserved_names.reserve_of_primitive(primitive)))
    return _Draft(f"Models of {of}.", tuple(parts), plans, used, Name("..handles"), primitive.place)


def _arguments(arguments: Sequence[ir.Argument]) -> Json:
    properties: dict[str, Json] = {}
    for argument in arguments:
        kind: Json = {"type": "array", "items": {"type": "string"}} if argument.many else {"type": "string"}
        properties[argument.name] = {**kind, "description": argument.description} if argument.description else kind
    required = [argument.name for argument in arguments if argument.required]
    return {"type": "object", "properties": properties, "required": required}


def _answers(questions: Sequence[ir.Question]) -> Iterator[ModelDocument]:
    for question in questions:
        if question.schema is not None:
            document = Document(f"question {question.name}", question.schema, merged=True)
            title = f"An answer to ``{question.name}``: {question.message}"
            yield ModelDocument(document, question.answer, "answer", title)


@dataclass(frozen=True, slots=True)
class SharedModules:
    """Modules of shared schemas.

    Schemas that reference each other have their classes in one common module, since modules cannot import each other.
    Each schema's own module imports its classes from the common module.

    Attributes:
        of: The schemas' own modules, keyed by name under `schemas`.
        circles: The common modules, keyed by name below `models.shared`.
    """

    of: Mapping[str, ModelModule] = field(default_factory=dict)
    circles: Mapping[Name, ModelModule] = field(default_factory=dict)


def make_shared_modules(
    shared: Sequence[ir.SharedSchema],
    imported_classes: Mapping[str, ImportedType] | None = None,
    taken: ReservedNames = NOTHING,
) -> SharedModules:
    """Generate the models of a manifest's shared schemas.

    Args:
        shared: All of the manifest's shared schemas.
        imported_classes: The shared schemas' classes and modules; found if None.
        taken: Names that the package reserves.
    """
    imported = _make_relative("", find_homes(shared) if imported_classes is None else imported_classes)
    groups = _groups(shared, imported)
    drafts = [_draft_shared(members, imported, taken) for members in groups]
    of = {
        schema.name: _type_module(schema, imported[schema.name])
        for schema in shared
        if schema.name in imported and imported[schema.name].is_type
    }
    circles: dict[Name, ModelModule] = {}
    for members, draft, module in zip(groups, drafts, map(_module, drafts), strict=True):
        if len(members) == 1:
            of[members[0].name] = module
            continue
        home = naming.name_circle(members[0].circle or members[0].name)
        circles[home] = module
        classes = {each.name: each for each in module.classes}
        for schema in members:
            names = draft.groups[naming.name_shared_class(schema.names)]
            of[schema.name] = _reexport(home, schema, [classes[name] for name in names])
    return SharedModules({schema.name: of[schema.name] for schema in shared if schema.name in of}, circles)


def _groups(shared: Sequence[ir.SharedSchema], homes: Mapping[str, ImportedType]) -> list[list[ir.SharedSchema]]:
    """Group the shared schemas that have classes. The members of a reference cycle form one group."""
    groups: dict[tuple[str, bool], list[ir.SharedSchema]] = defaultdict(list)
    for schema in shared:
        if schema.name in homes and not homes[schema.name].is_type:
            groups[schema.circle or schema.name, schema.circle is None].append(schema)
    return list(groups.values())


def _draft_shared(
    members: Sequence[ir.SharedSchema], imported: Mapping[str, ImportedType], taken: ReservedNames
) -> _Draft:
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
    doc = "Models of shared schemas that reference each other."
    if alone:
        doc = f"Models of the shared schema ``{first.name}``."
    others = tuple(each for each in used if each.name not in own)
    return _Draft(doc, parts, plans, others, Name("..handles"), first.schema.place, circle=not alone)


def _type_module(schema: ir.SharedSchema, home: ImportedType) -> ModelModule:
    return _enumeration(schema, home) if home.members else _scalar(schema, home)


def _scalar(schema: ir.SharedSchema, home: ImportedType) -> ModelModule:
    document = Document("shared", schema.schema)
    title = f"The shared schema ``{schema.name}``."
    doc = descriptions.describe(document, document.root)
    choices = _list_scalar_choices(home)
    kind = join(" | ", choices)
    formats = {_FORMATS[each.format] for each in home.scalars if each.format} - naming.ANNOTATION_NAMES
    imports = _imports(_group_imports({*formats, Name("TypeAlias")}), {})
    alias = fill("\n{}: TypeAlias = {}\n{}", home.name, kind, format_docstring(doc or title))
    source = join("\n", [fill(_HEAD, format_docstring(title)), *imports, alias])
    return ModelModule(
        source, (), (), named_types=(NamedType(home.name, None, Type(kind, choices), schema.schema.place),)
    )


def _list_scalar_choices(home: ImportedType) -> tuple[Code, ...]:
    types = list_scalar_types(home.scalars, is_exact=home.is_exact)
    return tuple(_FORMATS[each["format"]] if "format" in each else _SCALARS[each["type"]] for each in types)


def _enumeration(schema: ir.SharedSchema, home: ImportedType) -> ModelModule:
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
    return tuple(fill("None") if each is None else fill("Literal[{}]", format_literal(each)) for each in members)


_ENUMERATION = """{}
from typing import Final, Literal, TypeAlias

{}: TypeAlias = {}
{}

{}: Final[tuple[{}, ...]] = {}
{}"""


def _reexport(home: Name, schema: ir.SharedSchema, classes: Iterable[Class]) -> ModelModule:
    own = tuple(replace(each, place=schema.schema.place) for each in classes)
    head = fill(_HEAD, format_docstring(f"Models of the shared schema ``{schema.name}``."))
    (taken,) = make_groups({f".{home}": [each.name for each in own]})
    listed = fill("__all__ = [{}]", join(", ", taken.literals))
    return ModelModule(join("\n", [head, taken.format_imported(), fill(""), listed]), own, ())


def mark_redacted(tools: Sequence[ir.Tool], shared: Sequence[ir.SharedSchema]) -> tuple[ir.SharedSchema, ...]:
    """Return the shared schemas with the paths that any tool's policy redacts in them."""
    imported = find_homes(shared)
    schemas = {schema.name: schema.schema for schema in shared}
    ways_by_schema: dict[str, set[Way]] = defaultdict(set)
    waiting = [
        (Document("input", tool.input, merged=True), _list_redacted(tool)) for tool in tools if _list_redacted(tool)
    ]
    while waiting:
        document, ways = waiting.pop()
        for name, way in find_marks(document, ways, imported).elsewhere:
            if way not in ways_by_schema[name]:
                ways_by_schema[name].add(way)
                waiting.append((Document("shared", schemas[name]), (way,)))
    return tuple(replace(schema, redacted=tuple(sorted(ways_by_schema[schema.name]))) for schema in shared)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A module before its classes are rendered.

    Attributes:
        used: The shared classes and types to import.
        ids: The module of the handle ID types.
        place: The location of the module's origin in the manifest.
        circle: True if the parts are shared schemas that reference each other; each schema's classes stay together.
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
        return tuple(plan.name for plan in self.plans)

    @property
    def groups(self) -> Mapping[Name, tuple[Name, ...]]:
        """The classes to keep next to each other in the module, keyed by the first class in each group."""
        roots = {part.name for part in self.parts if self.circle}
        groups: list[list[Name]] = []
        for plan in self.plans:
            if not groups or plan.name in roots:
                groups.append([])
            groups[-1].append(plan.name)
        return {names[0]: tuple(names) for names in groups}


def describe_surface(
    manifest: ir.Manifest,
    add_unions: Callable[[dict[str, ImportedType], ReservedNames], dict[str, ImportedType]] | None = None,
) -> Surface:
    """Describe the surface of a manifest's package. `add_unions` adds types for shared unions."""
    primitives = (*manifest.resources, *manifest.templates, *manifest.prompts)
    served = [each for each in primitives if each.has_model and "server" in manifest.emit]

    def make(taken: ReservedNames) -> tuple[list[ModelModule], list[ModelModule]]:
        known = find_homes(manifest.shared, manifest.tools, taken)
        known = known if add_unions is None else add_unions(known, taken)
        shared = make_shared_modules(manifest.shared, known, taken).of.values()
        return make_modules(manifest.tools, known, taken), [*make_primitive_modules(served, taken), *shared]

    def find_names(modules_by_kind: tuple[list[ModelModule], list[ModelModule]]) -> list[Name]:
        return [name for modules in modules_by_kind for module in modules for name in module.names]

    (tools, others), _ = reserved_names.resolve_collisions(reserved_names.reserve(manifest), make, find_names)
    every = (*tools, *others)
    return surface.describe(
        manifest,
        {tool.name: (module.parameters, module.extra) for tool, module in zip(manifest.tools, tools, strict=True)},
        surface.with_inherited([module_class for module in every for module_class in module.classes]),
        (module_class for module in every for module_class in module.named_types),
    )


def _module(draft: _Draft) -> ModelModule:
    written = _write_classes(draft.plans, draft.used)
    own = [written[plan.name] for plan in draft.plans if not plan.is_alias]
    needed = {name for each in own for name in each.typing}
    needed |= {Name("TypeAlias")} if len(own) < len(draft.plans) else set()
    needed |= {_FORMATS[form] for plan in draft.plans for form in _formats(plan)} - naming.ANNOTATION_NAMES
    needed |= {name for plan in draft.plans for name in (*_pydantic(plan), *_runtime(plan))}
    imports = _imports(
        {
            **_group_imports(needed),
            draft.ids: {
                naming.handle_id(kind)
                for plan in draft.plans
                for schema in _types(plan)
                for kind in find_handled(schema)
            },
        },
        {each.module: each.name for each in draft.used},
    )
    ordered = _order_classes(draft, written)
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


def _group_imports(names: Collection[str]) -> dict[Name, Collection[str]]:
    """Return the names that models import from other packages, keyed by module.

    Raises:
        LookupError: A name is missing from `naming.MODEL_IMPORTS`, so a class could have the same name.
    """
    if unlisted := sorted({*names} - naming.MODEL_NAMES):
        raise LookupError(f"models import {', '.join(unlisted)}, which `naming.MODEL_IMPORTS` does not list")
    return {Name(module): listed.intersection(names) for module, listed in naming.MODEL_IMPORTS.items()}


def _parameters(root: ClassPlan, written: Mapping[Name, ClassSource]) -> tuple[Argument, ...]:
    """Return a class's fields as client parameters: required before optional, inherited before own."""
    inherited = root.shared.parameters if root.shared is not None else ()
    parameters = [replace(each, required=each.required or each.wire in root.needed) for each in inherited]
    parameters += [_parameter(each, written[root.name].types[each.name]) for each in root.fields]
    return tuple(sorted(parameters, key=lambda each: not each.required))


def _extra(root: ClassPlan, document: Document, written: Mapping[Name, ClassSource]) -> Type | None:
    """Return the type of additional properties, or None if the schema forbids them."""
    schema = document.get_value(document.root)
    values = written[root.name].values if root.name in written else None
    # `unevaluatedProperties: false` allows keys that a pattern or `additionalProperties` in a subschema accepts
    sealed = isinstance(schema, dict) and schema.get("unevaluatedProperties") is False and not root.is_open
    return None if root.closed or (sealed and values is None) else values or surface.ANY


_HEAD = """{}

from __future__ import annotations
"""


def _order_classes(draft: _Draft, written: Mapping[Name, ClassSource]) -> list[Name]:
    """Return the classes in the order of their definitions.

    Within a group, a class follows the classes that it references, unless they reference each other. Classes for values
    other than objects are last, in the order of `written`, since Python evaluates the types in their base's brackets.
    """
    named = {plan.name: _references(plan) for plan in draft.plans}
    order = [name for group in draft.groups.values() for name in _after({name: named[name] for name in group})]
    last = {plan.name for plan in draft.plans if plan.root is not None}
    return [name for name in order if name not in last and name in written] + [name for name in written if name in last]


def _references(plan: ClassPlan) -> list[Name]:
    return [name for schema in (plan.root, *(field.schema for field in plan.fields)) for name in find_referred(schema)]


def _after(named: Mapping[Name, Iterable[Name]]) -> tuple[Name, ...]:
    """Sort names topologically: a name follows the names that it maps to. Names in a cycle keep their order."""
    order: dict[Name, None] = {}
    entered: set[Name] = set()
    for start in named:
        path = [(start, iter([start]))]  # not recursive: reference chains can be thousands of classes long
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
    """Yield the import lines for these names, standard library first, with an empty line between sections."""
    table: dict[str, Collection[str]] = {home: {name} for home, name in shared.items()}
    table |= dict(known.items())
    homes = sorted(make_groups(table), key=_kind)
    for number, (_, section) in enumerate(groupby(homes, _kind)):
        if number:
            yield fill("")
        for home in section:
            yield home.format_imported()


def _kind(home: ImportGroup) -> int:
    """Return a module's sort key: standard library, other packages, this package."""
    return 2 if home.module.startswith(".") else 1 if home.module in ("pydantic", RUNTIME) else 0


def _formats(plan: ClassPlan) -> Iterator[str]:
    for schema in _types(plan):
        yield from find_formats(schema)


def _types(plan: ClassPlan) -> tuple[Json, ...]:
    return (plan.root, plan.values, *(each.schema for each in plan.fields))


def _pydantic(plan: ClassPlan) -> Iterator[Name]:
    """Yield the pydantic names that a class's source uses."""
    if any(field.wire != field.name or field.is_made or field.is_copied for field in plan.fields):
        yield Name("Field")


def _runtime(plan: ClassPlan) -> Iterator[Name]:
    """Yield the names from the runtime's `models` that a class's source uses."""
    if plan.shared is None or plan.values is not None:
        yield _base(plan)
    if any(field.form == "nullable" for field in plan.fields):
        yield Name("Nullable")


def _base(plan: ClassPlan) -> Name:
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
    """Return a field's annotation: its type, extended if the field can be absent."""
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
    """The generator's output for a class.

    Attributes:
        types: The fields' types.
        typing: The names to import from `typing`.
        values: The type of a mapping's values.
    """

    source: Code
    types: Mapping[Name, Type]
    typing: frozenset[str]
    values: Type | None


def _write_classes(plans: Sequence[ClassPlan], used: Collection[ImportedType]) -> dict[Name, ClassSource]:
    """Render classes with datamodel-code-generator, in the order that `_sort` returns."""
    plans = _sort([plan for plan in plans if not plan.is_alias])
    members: dict[Code, Sequence[Code]] = {
        each.name: _choices_of(each.members) if each.members else _list_scalar_choices(each)
        for each in used
        if each.is_type
    }
    names = [plan.name for plan in plans]
    roots = {plan.name for plan in plans if plan.root is not None}
    written: dict[Name, ClassSource] = {}
    for index, plan in enumerate(plans):
        later = frozenset(names[index:] if plan.values is None else names if plan.root is None else roots)
        written[plan.name] = _write_class(plan, later, roots, members)
    return written


def _sort(plans: Sequence[ClassPlan]) -> list[ClassPlan]:
    """Sort classes so that each follows the classes that it references or, in a cycle, that its base evaluates."""
    references = {plan.name: {*_references(plan), *find_referred(plan.values)} - {plan.name} for plan in plans}
    done: dict[Name, ClassPlan] = {}
    waiting, count = [*plans], -1
    while len(done) > count:
        count = len(done)
        for plan in waiting:
            if references[plan.name].isdisjoint(references.keys() - done.keys()):
                done[plan.name] = plan
        waiting = [plan for plan in waiting if plan.name not in done]
    orders: list[list[ClassPlan]] = []
    while waiting not in orders:
        orders.append(waiting)
        places = {plan.name: index for index, plan in enumerate(waiting)}
        waiting = sorted(
            waiting, key=lambda plan: max((places.get(name, -1) for name in _list_base_classes(plan)), default=-1)
        )
    if waiting != orders[-1]:  # the bases form a cycle
        waiting.sort(key=lambda plan: plan.name)
    return [*done.values(), *waiting]


def _list_base_classes(plan: ClassPlan) -> Iterator[Name]:
    """Yield the classes in the brackets of a class's base. Yield nothing for a class that represents an object."""
    return find_referred(plan.root if plan.values is None else None)


def _write_class(
    plan: ClassPlan, later: Container[str], roots: Collection[str], members: Mapping[Code, Sequence[Code]]
) -> ClassSource:
    """Render a class with datamodel-code-generator.

    Args:
        later: Classes that can follow `plan` in the module. The base class's brackets quote them.
        roots: Classes for values other than objects.
        members: The alternatives behind the types of shared enumerations and scalars.
    """
    from datamodel_code_generator.model.pydantic_v2 import BaseModel, DataModelField
    from datamodel_code_generator.reference import Reference

    types = {field.name: _data_type(field.schema) for field in plan.fields}
    own = plan.values if plan.values is not None else plan.root
    evaluated = roots if plan.root is not None else ()
    bracketed = _data_type(own, later, evaluated) if own is not None else None
    model = BaseModel(
        reference=Reference(path=plan.name, name=plan.name),
        fields=[DataModelField(name=name, data_type=kind, required=True) for name, kind in types.items()],
        custom_template_dir=package_data.TEMPLATES / "models",
        extra_template_data=defaultdict(dict, {plan.name: {"plan": _view(plan, bracketed)}}),
    )
    needed = [*types.values(), *([bracketed] if bracketed is not None else [])]
    used = {Name(each.import_) for kind in needed for each in kind.all_imports if each.from_ == "typing"}
    used |= {Name("Annotated")} if any(field.wire != field.name for field in plan.fields) else set()
    used |= {Name("cast")} if any(field.is_cast for field in plan.fields) else set()
    return ClassSource(
        source=parse_declaration(str(model).strip(), plan.name),
        types={field.name: _type(types[field.name], field.schema, members) for field in plan.fields},
        typing=frozenset(used),
        values=_type(_data_type(plan.values, (), evaluated), plan.values, members) if plan.values is not None else None,
    )


@cache
def _types_of_generator() -> DataTypeManager:
    from datamodel_code_generator import PythonVersion
    from datamodel_code_generator.model.pydantic_v2.types import DataTypeManager

    return DataTypeManager(PythonVersion.PY_311, use_standard_collections=True, use_union_operator=True)


def _data_type(schema: Json, later: Container[str] = (), roots: Collection[str] = ()) -> DataType:
    """Convert a schema of types to the generator's `DataType`.

    Classes in `later` are quoted, and unions with them use `Union`, since strings do not support `|`. A tuple that
    contains a class in `roots` becomes a list: Python evaluates the tuple before that class exists.
    """
    from datamodel_code_generator.imports import IMPORT_ANY, IMPORT_UNION

    make = _types_of_generator().data_type

    def make_all(schemas: Sequence[Json]) -> list[DataType]:
        return [_data_type(each, later, roots) for each in schemas]

    match schema:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return make(type=format_literal(name) if name in later else name)
        case {"enum": members}:
            return make(literals=members)
        case {"anyOf": choices}:
            members = dict.fromkeys(trust(each.type_hint) for each in make_all(_flatten(schema)))
            inner = make_all(choices)
            if len(members) < 2 or all(each[0] != '"' for each in members):
                return make(data_types=inner)
            union = join(", ", sorted(members, key=lambda each: each == "None"))
            return make(type=fill("Union[{}]", union), data_types=inner, import_=IMPORT_UNION)
        case {"prefixItems": places} if not {*roots}.isdisjoint(find_referred(schema)):
            return make(data_types=make_all([{"anyOf": places}]), is_list=True)
        case {"prefixItems": places}:
            return make(data_types=make_all(places), is_tuple=True)
        case {"handle": kind}:
            return make(type=naming.handle_id(kind))
        case {"format": form}:
            return make(type=_FORMATS[form])
        case {"type": "array", "items": item}:
            return make(data_types=make_all([item]), is_list=True)
        case {"type": "object", "additionalProperties": values}:
            return make(data_types=make_all([{} if values is True else values]), is_dict=True)
        case {"type": str(name)}:
            return make(type=_SCALARS[name])
        case _:
            return make(type="Any", import_=IMPORT_ANY)


def _type(printed: DataType, schema: Json, members: Mapping[Code, Sequence[Code]]) -> Type:
    """Return the `Type` that the generator printed. The check of the class has already covered the source.

    `members` are the alternatives behind the types of shared enumerations and scalars.
    """
    hint = printed.type_hint
    names = {Name(each.import_) for each in printed.all_imports if each.from_ == "typing"}
    names |= {_FORMATS[form] for form in find_formats(schema)} - naming.ANNOTATION_NAMES
    names |= {naming.handle_id(kind) for kind in find_handled(schema)}
    choices = [choice for each in _choices(printed, hint) for choice in members.get(each, [each])]
    return Type(trust(requote(hint)), tuple(choices), frozenset(names.union(find_referred(schema))))


def _choices(printed: DataType, hint: str) -> Iterator[Code]:
    """Yield a union's alternatives, with each `Literal` value separate. Yield a type that is not a union unchanged."""
    members = [(member, member.type_hint) for member in printed.data_types]
    literals = [format_literal(value) for value in printed.literals]
    if members and hint == " | ".join(text for _, text in members):
        for member, text in members:
            yield from _choices(member, text)
    elif literals and requote(hint) == fill("Literal[{}]", join(", ", literals)):
        yield from (fill("Literal[{}]", each) for each in literals)
    else:
        yield trust(requote(hint))


def _flatten(schema: Json) -> list[Json]:
    return [each for choice in schema["anyOf"] for each in _flatten(choice)] if "anyOf" in schema else [schema]


_FORMATS = {
    "base64": Name("bytes"),
    "date": Name("dt_date"),
    "date-time": Name("dt_datetime"),
    "time": Name("dt_time"),
    "uri": Name("AnyUrl"),
    "uuid": Name("UUID"),
}
"""The types of strings with a given format."""

_SCALARS = {
    "boolean": Name("bool"),
    "integer": Name("int"),
    "null": Name("None"),
    "number": Name("float"),
    "string": Name("str"),
}
"""The types of other scalars."""


def _view(plan: ClassPlan, bracketed: DataType | None) -> dict[str, Any]:
    """Return the template's variables for a class, all as Python source that the generator writes unchanged."""
    base = plan.shared.name if plan.shared is not None else _base(plan)
    keywords = [
        *([fill('extra="forbid"')] if plan.closed else ()),
        *([fill("redacted={{{}}}", join(", ", map(format_literal, plan.redacted)))] if plan.redacted else ()),
    ]
    return {
        "base": fill("{}[{}]", base, trust(requote(bracketed.type_hint))) if bracketed is not None else base,
        "keywords": join("", [fill(", {}", each) for each in keywords]),
        "doc": format_docstring(plan.doc, 4),
        "quoted": lambda kind: format_literal(requote(kind)),
        "fields": {
            field.name: {
                "form": field.form,
                "alias": format_literal(field.wire) if field.wire != field.name else None,
                "default": parse(field.default) if field.default is not None else None,
                "is_made": field.is_made,
                "is_copied": field.is_copied,
                "is_cast": field.is_cast,
                "doc": format_docstring(field.doc, 4) if field.doc else None,
            }
            for field in plan.fields
        },
    }
