"""Converts a package's tools to an API's functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .codecs import Codec, Member, NotExpressibleError, Object
from .forms import Form, wrap
from .merging import SchemaMerger
from .shapes import SchemaShaper, make_names

_COMBINING: Final = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "if", "then", "else"})


@dataclass(frozen=True, slots=True)
class ProjectedTool:
    """A tool converted to an API function.

    Attributes:
        tool: The tool's name.
        name: The function's name.
        description: The function's description.
        function: The function in the API's format, for the `tools` of a request.
        codec: The codec between the tool's arguments and the function's arguments.
    """

    tool: str
    name: str
    description: str
    function: Mapping[str, Any]
    codec: Codec

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The schema for the function's arguments."""
        return self.codec.schema

    def encode(self, arguments: Any) -> Any:
        """Convert tool arguments to function arguments. Raises NotExpressibleError if there is no equivalent."""
        return self.codec.encode(arguments)

    def decode(self, arguments: Any) -> Any:
        """Convert function arguments to tool arguments. Raises ProjectionError if they are invalid."""
        return self.codec.decode(arguments, "")


def project_tools(definitions: Iterable[Mapping[str, Any]], form: Form) -> list[ProjectedTool]:
    """Convert tools to functions, in order."""
    listed = [*definitions]
    names = make_names([str(definition["name"]) for definition in listed], form.tool_name)
    return [project_tool(definition, form, names[str(definition["name"])]) for definition in listed]


def as_tools(form: Form, projected: Iterable[ProjectedTool]) -> list[dict[str, Any]]:
    """Wrap functions as the `tools` of a request."""
    functions = [dict(tool.function) for tool in projected]
    return [{"functionDeclarations": functions}] if form.wrapping == "gemini" else functions


def project_tool(definition: Mapping[str, Any], form: Form, name: str) -> ProjectedTool:
    """Convert a tool to a function with this name."""
    schema = definition.get("inputSchema") or {}
    codec = SchemaShaper(schema, form).make_root() if form.rewrites else _loosen(schema, form)
    description = str(definition.get("description") or definition.get("title") or definition["name"])
    function = wrap(form, name, description, codec.schema)
    return ProjectedTool(str(definition["name"]), name, description, function, codec)


def _loosen(schema: Mapping[str, Any], form: Form) -> Codec:
    """Return a codec that converts only an unsupported root and unsupported argument names."""
    properties = schema.get("properties") or {}
    names = make_names(properties, form.property_name)
    is_plain = _COMBINING.isdisjoint(schema) and "$ref" not in schema and schema.get("type") == "object"
    if is_plain and all(wire == name for wire, name in names.items()):
        return Codec({**schema, "properties": properties})  # OpenAI rejects a root without `properties`
    merging = SchemaMerger(schema)
    view = SchemaShaper(schema, form).flatten(merging.view([schema]))
    names = make_names(view.properties, form.property_name)
    written = {
        names[wire]: below[0] if len(below) == 1 else {"allOf": below} for wire, below in view.properties.items()
    }
    kept = {key: value for key, value in schema.items() if key in ("$schema", "$defs", "definitions", "description")}
    closed = {"additionalProperties": False} if view.more is False else {}
    flat = {
        "type": "object",
        "properties": written,
        **({"required": [names[wire] for wire in view.required if wire in names]} if view.required else {}),
        **closed,
        **kept,
    }
    if any(wire != name for wire, name in names.items()):
        flat = _follow_names(flat, names)
    return _RenamedObject(flat, frozenset({"object"}), {name: Member(wire, Codec({})) for wire, name in names.items()})


def _follow_names(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    moved = {f"#/properties/{wire}": f"#/properties/{name}" for wire, name in names.items() if wire != name}

    def follow(value: Any) -> Any:
        if isinstance(value, list):
            return [follow(each) for each in value]
        if not isinstance(value, dict):
            return value
        followed = {key: follow(below) for key, below in value.items()}
        reference = followed.get("$ref")
        if isinstance(reference, str):
            for before, now in moved.items():
                followed["$ref"] = re.sub(rf"^{re.escape(before)}(?=/|$)", now, followed["$ref"])
        return followed

    changed: dict[str, Any] = follow(schema)
    return changed


class _RenamedObject(Object):
    def encode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        names = {member.name: name for name, member in self.members.items()}
        for key in value:
            if key not in names and key in self.members:
                raise NotExpressibleError(f"the property `{key}` has the new name of another property")
        return {names.get(key, key): below for key, below in value.items()}
