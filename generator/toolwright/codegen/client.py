"""The page of the typed client, in which its methods stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolwright import naming
from toolwright.codegen.features import every, output_class
from toolwright.codegen.imports import as_homes
from toolwright.pycode import Name

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.codegen.units import Unit

_PROTOCOL_TYPES = frozenset(
    {"BlobResourceContents", "Completion", "ContentBlock", "PromptMessage", "TextResourceContents"}
)


def client_page(
    title: str, manifest: ir.Manifest, units: Mapping[str, Unit], primitive_modules: Sequence[Unit]
) -> Mapping[str, Any]:
    """What the template of `client.py` is given."""
    names = {name for unit in (*units.values(), *primitive_modules) for name in unit.names}
    has_outputs = any(output_class(tool) for tool in manifest.tools)
    typing = names & {"Any", "Literal"}
    abc = names & {"Mapping", "Sequence"}
    protocol = names & _PROTOCOL_TYPES
    homes: dict[str, Sequence[str]] = {
        "collections.abc": sorted(abc),
        "mcp_types": sorted(protocol),
        ".models": sorted(names - typing - abc - protocol - {"Omit"}),
    }
    primitives = ", resource and prompt" if primitive_modules else ""
    base = Name("PrimitivesBinding" if primitive_modules else "Binding")
    runtime: dict[str, Sequence[str]] = {
        f"._runtime.client.{'primitives' if primitive_modules else 'binding'}": [base],
        "._runtime.client.options": ["OMIT", "Omit"] if "Omit" in names else [],
    }
    return {
        "doc": f"A typed client of {title}.",
        "stem": manifest.stem,
        "class_doc": f"""Calls {title}: one method for each tool{primitives}.

    async with {naming.client_class(manifest.stem)}.connect(target) as {manifest.package.removesuffix("_mcp")}:
        ...

The target is a URL, a command as a list of strings, or a server object in the same process. What a call leaves out
is left out of the request. Results are checked against the tool's output schema.""",
        "typing": as_homes({"typing": [*typing, *(["TYPE_CHECKING"] if any(homes.values()) else [])]}),
        "deprecates": any(
            deprecated is not None
            for deprecated in [one.deprecated for one in manifest.tools] + [one.deprecated for one in every(manifest)]
        ),
        "outputs": has_outputs,
        "base": base,
        "runtime": as_homes(dict(sorted(runtime.items()))),
        "imports": as_homes(homes),
    }
