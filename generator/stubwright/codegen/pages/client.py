"""The page `client.py`: the classes from `client_classes`, and their imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stubwright.codegen.pages.parts import list_all
from stubwright.codegen.source.imports import DATES, RUNTIME, make_groups
from stubwright.pycode import Name

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.codegen.pages.primitive_code import PrimitiveCode

_STANDARD: Mapping[str, frozenset[str]] = {
    "collections.abc": frozenset({"Mapping", "Sequence"}),
    "datetime": frozenset(DATES),
    "uuid": frozenset({"UUID"}),
}
"""Standard library modules that it imports at run time, so that type hints resolve."""

_HOMES: tuple[Mapping[str, frozenset[str]], ...] = (
    {
        "mcp_types": frozenset({"BlobResourceContents", "Completion", "PromptMessage", "TextResourceContents"}),
        "pydantic": frozenset({"AnyUrl"}),
    },
)
"""The other modules that it imports names from, except models, by import section."""


def make_client_page(
    title: str, manifest: ir.Manifest, units: Mapping[str, PrimitiveCode], primitive_modules: Sequence[PrimitiveCode]
) -> Mapping[str, Any]:
    """Return the template variables for `client.py`."""
    all_units = (*units.values(), *primitive_modules)
    names = {name for unit in all_units for name in unit.names}
    uses_models = any("_models." in unit.method for unit in all_units)
    typing = names & {"Any", "Literal"}
    sections: list[dict[str, frozenset[str]]] = [
        {module: those & names for module, those in section.items()} for section in _HOMES
    ]
    standard = {module: those & names for module, those in _STANDARD.items()}
    elsewhere = frozenset().union(*(those for section in (_STANDARD, *_HOMES) for those in section.values()))
    sections.append({".models": frozenset(names - typing - elsewhere - {"Omit"})})
    imports = [block for section in sections if (block := make_groups(section))]
    base = Name("PrimitivesBinding" if primitive_modules else "Binding")
    runtime: dict[str, Sequence[str]] = {
        RUNTIME: [base, *(["OMIT", "Omit"] if "Omit" in names else [])],
    }
    return {
        "doc": f"A typed client for {title}.",
        "typing": make_groups({**standard, "typing": [*typing, *(["TYPE_CHECKING"] if imports else [])]}),
        "deprecates": any(
            deprecated is not None
            for deprecated in [tool.deprecated for tool in manifest.tools]
            + [tool.deprecated for tool in list_all(manifest)]
        ),
        "uses_models": uses_models,
        "has_tools": bool(manifest.tools),
        "has_own_pages": any(tool.paginate for tool in manifest.tools),
        "runtime": make_groups(runtime),
        "imports": imports,
    }
