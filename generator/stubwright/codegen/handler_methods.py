"""Lists the handler methods that a package requires, from its `manifest.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stubwright import ir, naming
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from stubwright.codegen.surface import MethodRole
    from stubwright.ir import Json
    from stubwright.pycode import Name


@dataclass(frozen=True, slots=True)
class HandlerMethod:
    """A handler method that a package requires.

    Attributes:
        role: What the method does: call a tool, read a resource, get a prompt, or complete an argument.
        key: The primitive's wire name or URI.
        name: The method's Python name.
        result: The tool's result class; None without an output schema, and for other primitives.
    """

    role: MethodRole
    key: str
    name: Name
    result: Name | None = None


def list_required_methods(document: Mapping[str, Json]) -> Iterator[HandlerMethod]:
    """Yield the handler methods that the package of this `manifest.json` requires."""
    for section in (vocabulary.TOOLS, *vocabulary.PRIMITIVES):
        for entry in document.get(section.name) or ():
            extension, key = entry.get("stubwright") or {}, entry.get(section.key, "")
            names = _names(section, entry)
            if section is vocabulary.TOOLS:
                yield HandlerMethod("tool", key, names.method, naming.name_output_class(names))
                continue
            if ir.is_handled(extension):
                yield HandlerMethod("prompt" if section is vocabulary.PROMPTS else "resource", key, names.method)
            if ir.is_completed_by_handlers(extension):
                yield HandlerMethod("completion", key, naming.name_completion(names))


def name_method(section: vocabulary.Section, entry: Mapping[str, Json]) -> Name:
    """Return the handler method name for an entry in `manifest.json`."""
    return _names(section, entry).method


def _names(section: vocabulary.Section, entry: Mapping[str, Json]) -> naming.Names:
    name, own = entry["name"], (entry.get("stubwright") or {}).get("pythonName")
    if section is vocabulary.TOOLS:
        return naming.name_tool(name, own)
    return naming.name_primitive("prompt" if section is vocabulary.PROMPTS else "read", name, own)
