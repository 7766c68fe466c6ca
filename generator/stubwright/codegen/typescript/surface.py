"""Describes a server's TypeScript as if it were a Python client's surface."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from stubwright import naming
from stubwright.codegen.models import datamodel
from stubwright.codegen.surface import Class, ClientMethod, Field, Surface
from stubwright.codegen.typescript.source import format_member
from stubwright.codegen.typescript.types import find_unions, make_plain
from stubwright.pycode import Code, Name, fill, join

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright import ir

_UNDEFINED = Name("undefined")
_NAMES = {
    "Any": fill("unknown"),
    "bool": fill("boolean"),
    "float": fill("number"),
    "int": fill("number"),
    "str": fill("string"),
    "ToolContent": fill("mcp.Content"),
}
_LISTS = frozenset({"Sequence", "list"})


def describe_surface(manifest: ir.Manifest) -> Surface:
    """Describe the surface of a server's module. The types are Python, which `show_type` converts."""
    tools = tuple(
        replace(tool, input=make_plain(tool.input), output=tool.output and make_plain(tool.output))
        for tool in manifest.tools
    )
    shared = tuple(replace(each, schema=make_plain(each.schema)) for each in manifest.shared)
    client = replace(manifest, tools=tools, shared=shared, emit=frozenset({"client"}))
    described = datamodel.describe_surface(client, lambda classes, taken: find_unions(shared, classes, taken)[1])
    members = map_members(manifest)
    return replace(
        described,
        client=tuple(_rename(each, members[each.name]) for each in described.client if each.name in members),
        classes=tuple(map(_describe_interface, described.classes)),
    )


def map_members(manifest: ir.Manifest) -> Mapping[str, Name]:
    """Map Python method names to TypeScript method names."""
    primitives = itertools.chain(*manifest.primitives.values())
    names = [*(tool.names for tool in manifest.tools), *(each.names for each in primitives)]
    return {each.method: naming.name_member(each) for each in names}


def _rename(method: ClientMethod, name: Name) -> ClientMethod:
    return replace(method, name=name, parameters=tuple(each for each in method.parameters if each.wire))


def _describe_interface(described: Class) -> Class:
    fields, inherited = (tuple(map(_describe_property, each)) for each in (described.fields, described.inherited))
    return replace(described, name=naming.name_type(described.name), fields=fields, inherited=inherited)


def _describe_property(field: Field) -> Field:
    """Convert a field. If the property can be missing, the type includes `undefined`."""
    if field.default is None:
        return field
    choices = tuple(dict.fromkeys(_UNDEFINED if each == "None" else each for each in (*field.type.choices, _UNDEFINED)))
    kind = replace(field.type, text=join(" | ", choices), choices=choices)
    return replace(field, type=kind, default=_UNDEFINED)


def show_type(source: Code) -> Code:
    """Convert a Python type to TypeScript."""
    return _show(ast.parse(source, mode="eval").body)


def _list_choices(node: ast.expr) -> Iterator[Code]:
    match node:
        case ast.BinOp(left=left, right=right):
            yield from _list_choices(left)
            yield from _list_choices(right)
        case ast.Constant(value=None):
            yield fill("null")
        case ast.Constant(value=str(forward)):
            yield from _list_choices(ast.parse(forward, mode="eval").body)
        case ast.Name(id=name):
            yield _NAMES.get(name) or naming.name_type(Name(name))
        case ast.Subscript(value=ast.Name(id="Literal"), slice=values):
            for value in values.elts if isinstance(values, ast.Tuple) else [values]:
                yield format_member(ast.literal_eval(value))
        case ast.Subscript(value=ast.Name(id="Nullable"), slice=item):
            yield from _list_choices(item)
            yield fill("null")
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=places)):
            yield fill("[{}]", join(", ", [_show(each) for each in places]))
        case ast.Subscript(value=ast.Name(id=name), slice=item) if name in _LISTS:
            shown = _show(item)
            yield fill("({})[]" if " | " in shown else "{}[]", shown)
        case ast.Subscript(slice=ast.Tuple(elts=[_, values])):
            yield fill("Record<string, {}>", _show(values))
        case _:
            raise TypeError(f"{ast.unparse(node)} is not a model type")


def _show(node: ast.expr) -> Code:
    return join(" | ", dict.fromkeys(_list_choices(node)))
