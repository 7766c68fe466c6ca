"""Formats a tool as a function signature: `get_weather(location: string, units?: "metric" | "imperial")`.

The signature omits details of the schema, but never contradicts it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEPTH: Final = 4
_CHOICES: Final = 6
_NAMES: Final = {"array": "list", "object": "object"}


def format_signature(tool: Mapping[str, Any]) -> str:
    """Return a tool's signature: required arguments first, then optional ones with `?`."""
    schema = tool.get("inputSchema")
    schema = schema if isinstance(schema, dict) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = [name for name in properties if name in (schema.get("required") or ())]
    names = [*required, *(name for name in properties if name not in required)]
    shown = [
        f"{name}{'' if name in required else '?'}: {_describe(properties[name], schema, _DEPTH)}" for name in names
    ]
    output = tool.get("outputSchema")
    result = f" -> {_describe(output, output, _DEPTH)}" if isinstance(output, dict) else ""
    return to_one_line(f"{tool.get('name')}({', '.join(shown)}){result}")


def _describe(schema: Any, root: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, dict) or not depth:
        return "any"
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if isinstance(schema.get("enum"), list):
        choices = [json.dumps(value, ensure_ascii=False) for value in schema["enum"][:_CHOICES]]
        return " | ".join([*choices, *(["…"] if len(schema["enum"]) > _CHOICES else [])])
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _describe(_find(root, reference), root, depth - 1)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return " | ".join(dict.fromkeys(_describe(each, root, depth - 1) for each in schema[key]))
    types = schema.get("type")
    if types is None and isinstance(schema.get("allOf"), list) and schema["allOf"]:
        return _describe(schema["allOf"][0], root, depth - 1)
    names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    return " | ".join(_describe_type(str(name), schema, root, depth) for name in names) or "any"


def _describe_type(name: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if name == "array":
        items = _describe(schema.get("items"), root, depth - 1)
        return f"({items})[]" if " | " in items else f"{items}[]"
    if name == "object" and isinstance(schema.get("properties"), dict):
        names = list(schema["properties"])
        return f"{{{', '.join(names[:_CHOICES])}{', …' if len(names) > _CHOICES else ''}}}"
    return _NAMES.get(name, name)


def _find(root: Mapping[str, Any], reference: str) -> Any:
    value: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        value = value.get(key) if isinstance(value, dict) else None
    return value
