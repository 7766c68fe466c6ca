"""An example emitter for another language: writes Go structs for a server's tools from its `manifest.json`.

python go_structs.py generated/weather_mcp/manifest.json
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SCALARS = {"string": "string", "integer": "int64", "number": "float64", "boolean": "bool"}


def write(manifest: dict[str, Any]) -> str:
    """Return a Go file with a struct for each tool's arguments and result."""
    if manifest["stubwright"] != 1:
        raise ValueError(f"version {manifest['stubwright']} of manifest.json is unknown")
    lines = [f"package {re.sub(r'[^a-z0-9]', '', manifest['server']['name'].lower())}"]
    for tool in list_tools(manifest):
        for field, end in (("inputSchema", "Input"), ("outputSchema", "Output")):
            if field in tool:
                name = name_type(tool["name"]) + end
                lines.append(f"\n// {name} is the {end.lower()} of the tool {tool['name']}.")
                lines += [f"type {name} {write_type(tool[field], tool[field])}"]
    return "\n".join([*lines, ""])


def list_tools(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tools with their shared schemas."""
    bundled = manifest.get("bundled", {"schemas": {}, "tools": {}})
    shared = {name: entry["schema"] for name, entry in bundled["schemas"].items()}
    for tool in manifest["tools"]:
        for field in bundled["tools"].get(tool["name"], ()):
            tool[field]["$defs"] = {**tool[field].get("$defs", {}), **shared}
        yield tool


def write_type(schema: Any, root: dict[str, Any], inside: frozenset[str] = frozenset()) -> str:
    """Return a schema's Go type, which is `any` for recursive schemas and types that Go lacks."""
    match schema:
        case {"$ref": str(reference)} if reference.startswith("#/$defs/") and reference not in inside:
            return write_type(root["$defs"][reference.removeprefix("#/$defs/")], root, inside | {reference})
        case {"type": "object", "properties": dict(properties)}:
            required = schema.get("required", ())
            tags = {key: key if key in required else f"{key},omitempty" for key in properties}
            fields = [
                f'{name_type(key)} {write_type(each, root, inside)} `json:"{tags[key]}"`'
                for key, each in properties.items()
            ]
            return f"struct {{ {'; '.join(fields)} }}"
        case {"type": "array"}:
            return f"[]{write_type(schema.get('items', {}), root, inside)}"
        case {"type": str(kind)} if kind in _SCALARS:
            return _SCALARS[kind]
        case _:
            return "any"


def name_type(name: str) -> str:
    """Return an exported name: `GetWeather` for `get_weather`."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name))


if __name__ == "__main__":
    sys.stdout.write(write(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
