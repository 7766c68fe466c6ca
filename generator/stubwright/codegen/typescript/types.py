"""Generates a server's types: for shared schemas, and for tools' arguments and results.

The Python package's classes are planned by the same code, so both languages use the same names. A type accepts every
valid instance of its schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from stubwright import ir, naming
from stubwright.codegen.models import datamodel, descriptions, reserved_names
from stubwright.codegen.models.classes import (
    ClassPlan,
    FieldPlan,
    ImportedType,
    ModelDocument,
    join_choices,
    plan_classes,
)
from stubwright.codegen.models.types import Document
from stubwright.codegen.typescript.source import format_doc, format_key, format_member, format_value
from stubwright.ir import Json
from stubwright.pycode import Code, Name, fill, join

if TYPE_CHECKING:
    from stubwright.codegen.models.reserved_names import ReservedNames

_Unions: TypeAlias = Mapping[Name, Sequence[Json]]
"""Each shared union's alternatives, as schemas of types."""

_UNKNOWN = fill("unknown")
_SCALARS = {
    "string": fill("string"),
    "number": fill("number"),
    "integer": fill("number"),
    "boolean": fill("boolean"),
    "null": fill("null"),
}


@dataclass(frozen=True, slots=True)
class ToolTypes:
    """The types of a tool's arguments and result. `is_optional` is true if an empty object is a valid argument."""

    source: Code
    names: tuple[Name, ...]
    is_optional: bool


@dataclass(frozen=True, slots=True)
class ServerTypes:
    """A server's types: for the shared schemas, and for the tools, keyed by tool name."""

    shared: Sequence[tuple[Name, Code]]
    tools: Mapping[str, ToolTypes]

    def list_names(self) -> Iterator[Name]:
        """Yield every type name, once for each schema that defines it."""
        yield from (name for name, _ in self.shared)
        yield from (name for tool in self.tools.values() for name in tool.names)


def make_types(manifest: ir.Manifest) -> ServerTypes:
    """Generate the types for a manifest's server."""
    shared = [replace(each, schema=make_plain(each.schema)) for each in manifest.shared]
    classes = datamodel.find_homes(shared)

    def make(taken: ReservedNames) -> ServerTypes:
        unions, homes = find_unions(shared, classes, taken)
        return ServerTypes(
            [each for schema in shared if schema.name in homes for each in _make_shared(schema, homes, unions, taken)],
            {tool.name: _make_tool(tool, homes, unions, taken) for tool in manifest.tools},
        )

    return reserved_names.resolve_collisions(reserved_names.reserve(manifest), make, ServerTypes.list_names)[0]


def make_plain(schema: ir.Schema) -> ir.Schema:
    """Remove string formats from a schema, because JSON represents every format as a plain string."""
    return replace(schema, rich=False, exact=False)


def find_unions(
    shared: Sequence[ir.SharedSchema], classes: Mapping[str, ImportedType], taken: ReservedNames
) -> tuple[dict[Name, list[Json]], dict[str, ImportedType]]:
    """Return the alternatives of shared unions that contain objects, keyed by type name, and all shared types."""
    homes = dict(classes)
    others = [each for each in shared if each.name not in classes]
    for schema in others:
        document, name = Document("shared", schema.schema), naming.name_shared_class(schema.names)
        if objects := document.find_objects(document.root):
            # The variants are named later: planning only needs their number.
            homes[schema.name] = ImportedType(name, Name(schema.names.module), variants=(name,) * len(objects))
    unions: dict[Name, list[Json]] = {}
    for schema in others:
        if (home := homes.get(schema.name)) is not None:
            root = _plan_shared(schema, home, homes, taken)[0].root
            unions[home.name] = choices = root.get("anyOf", [root])
            variants = tuple(Name(each["$ref"].rpartition("/")[2]) for each in choices if "$ref" in each)
            homes[schema.name] = replace(home, variants=variants)
    return unions, homes


def _plan_shared(
    shared: ir.SharedSchema, home: ImportedType, homes: Mapping[str, ImportedType], taken: ReservedNames
) -> Sequence[ClassPlan]:
    title = f"The shared schema ``{shared.name}``."
    part = ModelDocument(Document("shared", shared.schema), home.name, "shared", title)
    return plan_classes(shared.names.stem, [part], homes, taken.list_under(shared.names.stem, [home.name]))[0]


def _make_shared(
    shared: ir.SharedSchema, homes: Mapping[str, ImportedType], unions: _Unions, taken: ReservedNames
) -> Iterator[tuple[Name, Code]]:
    home, title = homes[shared.name], f"The shared schema ``{shared.name}``."
    document = Document("shared", shared.schema)
    if home.is_type:
        members = [format_member(each) for each in home.members] or [_SCALARS[each.type] for each in home.scalars]
        doc = descriptions.describe(document, document.root) or title
        yield home.name, _write_alias(home.name, doc, _unite(members))
        return
    for plan in _plan_shared(shared, home, homes, taken):
        yield plan.name, _write_type(plan if plan.name in unions else _name_unions(plan, unions))


def _make_tool(tool: ir.Tool, homes: Mapping[str, ImportedType], unions: _Unions, taken: ReservedNames) -> ToolTypes:
    sent = Document("input", make_plain(tool.sent))
    title = f"Arguments of the tool ``{tool.name}``."
    parts = [ModelDocument(sent, naming.name_input_class(tool.names), "input", title)]
    if tool.output is not None:
        title = f"Result of the tool ``{tool.name}``."
        received = Document("output", make_plain(tool.output))
        parts.append(ModelDocument(received, naming.name_output_class(tool.names), "output", title))
    stem = tool.names.stem
    plans, _ = plan_classes(stem, parts, homes, taken.list_under(stem, reserved_names.reserve_of_tool(tool)))
    first = next(plan for plan in plans if plan.name == parts[0].name)
    needs_nothing = first.root is None and first.shared is None and not any(each.required for each in first.fields)
    return ToolTypes(
        join("\n", [_write_type(_name_unions(plan, unions)) for plan in plans]),
        tuple(plan.name for plan in plans),
        needs_nothing and not sent.get_keywords(sent.root).get("required"),
    )


def _name_unions(plan: ClassPlan, unions: _Unions) -> ClassPlan:
    """Replace the alternatives of shared unions with the unions' names in a plan's types."""

    def simplify(schema: Json) -> Json:
        match schema:
            case {"anyOf": choices}:
                choices = [simplify(each) for each in choices]
                for name, union in unions.items():
                    if all(each in choices for each in union):
                        rest = [each for each in choices if each not in union]
                        choices = [{"$ref": f"#/$defs/{name}"}, *rest]
                return join_choices(choices)
            case {"prefixItems": places}:
                return {**schema, "prefixItems": [simplify(each) for each in places]}
            case {"items": each}:
                return {**schema, "items": simplify(each)}
            case {"additionalProperties": each}:
                return {**schema, "additionalProperties": simplify(each)}
        return schema

    fields = tuple(replace(field, schema=simplify(field.schema)) for field in plan.fields)
    return replace(plan, fields=fields, root=simplify(plan.root), values=simplify(plan.values))


def _write_type(plan: ClassPlan) -> Code:
    if plan.shared is not None and plan.is_alias:
        return _write_alias(plan.name, plan.doc, naming.name_type(plan.shared.name))
    if plan.fields or plan.shared is not None:
        return _write_interface(plan)
    if plan.values is not None:
        return _write_alias(plan.name, plan.doc, _write_map(write_type(plan.values, is_alias=True), is_alias=True))
    if plan.root is not None:
        return _write_alias(plan.name, plan.doc, write_type(plan.root, is_alias=True))
    values = fill("never") if plan.closed else _UNKNOWN
    return _write_alias(plan.name, plan.doc, _write_map(values, is_alias=False))


def _write_alias(name: Name, doc: str, kind: Code) -> Code:
    return fill("{}export type {} = {};\n", format_doc(doc), naming.name_type(name), kind)


def _write_interface(plan: ClassPlan) -> Code:
    lines = [_write_field(each) for each in plan.fields]
    base = fill("")
    if plan.shared is not None:
        shared = naming.name_type(plan.shared.name)
        base = fill(" extends {}", shared)
        needed = [(format_key(name), format_value(name)) for name in sorted(plan.needed)]
        lines += [fill("  {}: Required<{}>[{}];\n", key, shared, name) for key, name in needed]
    if plan.is_open or plan.values is not None:
        lines.append(fill("  [key: string]: unknown;\n"))
    doc, name, body = format_doc(plan.doc), naming.name_type(plan.name), join("", lines)
    if _is_weak(plan):
        return fill("{}export type {} = object & {{\n{}}};\n", doc, name, body)
    return fill("{}export interface {}{} {{\n{}}}\n", doc, name, base, body)


def _is_weak(plan: ClassPlan) -> bool:
    """Return whether the type is weak: TypeScript would reject a valid object without any of the properties."""
    is_exempt = plan.closed or plan.is_open or plan.values is not None
    return plan.shared is None and not is_exempt and not any(field.required for field in plan.fields)


def _write_field(field: FieldPlan) -> Code:
    tags = [f"@defaultValue `{descriptions.format_value(each)}`" for each in field.given]
    kind = write_type(field.schema)
    if field.nullable:
        kind = kind if f" | {kind}".endswith(" | null") else _unite([kind, fill("null")])
    mark = fill("" if field.required else "?")
    return fill("{}  {}{}: {};\n", format_doc(field.doc, 2, tags), format_key(field.wire), mark, kind)


def write_type(schema: Json, *, is_alias: bool = False) -> Code:
    """Convert a schema of types to TypeScript.

    With `is_alias`, write maps without `Record`, which could not contain the alias itself.
    """
    match schema:
        case {"$ref": str(reference)}:
            return naming.name_type(Name(reference.rpartition("/")[2]))
        case {"anyOf": [*choices]}:
            return _unite([write_type(each, is_alias=is_alias) for each in choices])
        case {"enum": [*members]}:
            return _unite(map(format_member, members))
        case {"prefixItems": [*places]}:
            return fill("[{}]", join(", ", [write_type(each, is_alias=is_alias) for each in places]))
        case {"type": "array", "items": items}:
            item = write_type(items, is_alias=is_alias)
            return fill("({})[]" if " | " in item else "{}[]", item)
        case {"type": "object", "additionalProperties": values}:
            return _write_map(_UNKNOWN if values is True else write_type(values, is_alias=is_alias), is_alias=is_alias)
        case {"type": str(name)}:
            return _SCALARS[name]
        case _:
            return _UNKNOWN


def _write_map(values: Code, *, is_alias: bool) -> Code:
    return fill("{{ [key: string]: {} }}" if is_alias else "Record<string, {}>", values)


def _unite(choices: Iterable[Code]) -> Code:
    unique = list(dict.fromkeys(choices))
    if _SCALARS["number"] in unique:
        unique = [each for each in unique if not re.fullmatch(r"-?\d+", each)]
    return _UNKNOWN if _UNKNOWN in unique else join(" | ", unique)
