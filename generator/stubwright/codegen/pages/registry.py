"""A package's registry: one row per tool, resource and prompt.

A row contains only values that the runtime cannot derive from the wire name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stubwright import naming
from stubwright.codegen.source.imports import RUNTIME, make_groups
from stubwright.codegen.source.literals import format_literal
from stubwright.pycode import Code, Name, fill
from stubwright_runtime.package import Tool, make_stem
from stubwright_runtime.primitives import Prompt, Resource, Template

if TYPE_CHECKING:
    from stubwright import ir


@dataclass(frozen=True, slots=True)
class Row:
    """A registry row: a runtime class, and the arguments for its constructor."""

    kind: Name
    arguments: tuple[Code, ...]


def make_registry_page(title: str, manifest: ir.Manifest) -> Mapping[str, Any]:
    """Return the template variables for `registry.py`."""
    served = "server" in manifest.emit
    sections = {
        Name("tools"): [_tool(tool) for tool in manifest.tools],
        Name("resources"): [
            *(_resource(primitive) for primitive in manifest.resources if served),
            *(_row(Resource, uri, {}) for uri in manifest.skill_files),
        ],
        Name("templates"): [_template(primitive) for primitive in manifest.templates if served],
        Name("prompts"): [_prompt(primitive) for primitive in manifest.prompts if served],
    }
    filled = {name: rows for name, rows in sections.items() if rows}
    kinds: set[str] = {row.kind for rows in filled.values() for row in rows}
    return {
        "doc": f"Registry for {title}: its tools, resources and prompts.",
        "homes": make_groups(
            {
                RUNTIME: {"Package"} | kinds,
            }
        ),
        "package": manifest.package,
        "handlers": manifest.handlers if served else None,
        "sections": [*filled.items()],
    }


def _tool(tool: ir.Tool) -> Row:
    names = tool.names
    derived = Tool(tool.name, method=names.method)
    fields = {
        "method": None if names.method == tool.name else names.method,
        "stem": None if names.stem == derived.stem else names.stem,
        "module": None if names.module == derived.module else names.module,
    }
    return _row(Tool, tool.name, fields)


def _resource(primitive: ir.Primitive) -> Row:
    return _row(Resource, primitive.key, {"method": primitive.names.method if primitive.handled else None})


def _template(primitive: ir.Primitive) -> Row:
    return _row(Template, primitive.key, {"method": primitive.names.method, **_describe_model(primitive)})


def _prompt(primitive: ir.Primitive) -> Row:
    method = primitive.names.method if primitive.handled else None
    return _row(Prompt, primitive.key, {"method": method, **_describe_model(primitive)})


def _describe_model(primitive: ir.Primitive) -> dict[str, str | None]:
    names = primitive.names
    is_plain = not primitive.handled or make_stem(names.method) == names.stem
    return {
        "stem": None if is_plain else names.stem,
        "completes": naming.name_completion(names) if primitive.completes else None,
    }


def _row(kind: type, key: str, fields: Mapping[str, str | None]) -> Row:
    arguments = [
        fill("{}={}", Name(name), format_literal(value)) for name, value in fields.items() if value is not None
    ]
    return Row(Name(kind.__name__), (format_literal(key), *arguments))
