"""Validates a bundle's files: manifests structurally, and JSON Schemas against their meta-schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.compile import structure
from stubwright.compile.syntax import yamlwriter
from stubwright.diagnostics import Diagnostic, Place
from stubwright.jsonschema import locations, metaschema
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.compile.source import Bundle
    from stubwright.compile.structure import Role


def validate(bundle: Bundle) -> Iterator[Diagnostic]:
    """Yield the structural errors in a bundle's files."""
    roles: dict[str, Role] = {bundle.entry: "entry"}
    for fragment in bundle.fragments[1:]:
        roles.setdefault(fragment.path, "fragment" if fragment.kind == "manifest" else "tools-list")
    for path, document in bundle.documents.items():
        yield from structure.check(document.value, path, roles.get(path, "fragment"))


def validate_schemas(bundle: Bundle, clean: Container[Place] = frozenset()) -> Iterator[Diagnostic]:
    """Yield the errors in a bundle's JSON Schemas, even in structurally invalid files.

    Args:
        clean: The locations of tools whose schemas are known to be valid.
    """
    for path, document in bundle.documents.items():
        imported = yamlwriter.is_imported(document.text)
        for purpose, pointer, schema in locations.find_schemas(document.value):
            # completions only contain references, which `structure` checks
            if purpose != "complete" and Place(path, pointer[:2]) not in clean:
                yield from metaschema.check(purpose, Place(path, pointer), schema, imported=imported)


def validate_patched(resolved: ResolvedBundle, clean: Container[Place] = frozenset()) -> Iterator[Diagnostic]:
    """Yield the errors in APIs, and in tools' JSON Schemas, after overlays are applied.

    Args:
        clean: The locations of tools whose schemas are known to be valid.
    """
    for api in resolved.apis:
        if api.patches:
            yield from structure.check_api(api.settings, api.place)
    for tool in resolved.tools:
        if tool.place not in clean:
            for field in vocabulary.SCHEMAS:
                if any(field in fields for _, fields in tool.patches):
                    yield from metaschema.check(field, tool.place / field, tool.wire.get(field))


def sort_diagnostics(bundle: Bundle, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Deduplicate diagnostics and sort them by file and position."""
    files = list(bundle.documents)

    def order(diagnostic: Diagnostic) -> tuple[int, int, int, str, str]:
        at = diagnostic.at if isinstance(diagnostic.at, Place) else Place(bundle.entry)
        span = bundle.documents[at.file].find_span(at)
        return (files.index(span.file), span.line, span.column, diagnostic.code, diagnostic.message)

    return sorted(dict.fromkeys(diagnostics), key=order)
