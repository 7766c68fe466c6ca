"""The structure of a bundle: each file against the manifest's own schema, each JSON Schema in it against its dialect.

Takes a bundle whose files could all be read; gives diagnostics, sorted by place. What a manifest means is for `rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwright import structure
from toolwright.diagnostics import Diagnostic, Place
from toolwright.schemas import metaschema, places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolwright.source import Bundle, Document
    from toolwright.structure import Role


def validate(bundle: Bundle) -> list[Diagnostic]:
    """All that is wrong with the structure of a bundle's files and schemas, each thing once, in their order."""
    roles: dict[str, Role] = {bundle.entry: "entry"}
    for fragment in bundle.fragments[1:]:
        roles.setdefault(fragment.path, "fragment" if fragment.kind == "manifest" else "tools-list")
    found: list[Diagnostic] = []
    for path, document in bundle.documents.items():
        diagnostics = dict.fromkeys(_check(document, roles.get(path, "fragment")))
        found += sorted(diagnostics, key=lambda diagnostic: _order(diagnostic, document))
    return found


def _check(document: Document, role: Role) -> Iterator[Diagnostic]:
    yield from structure.check(document.value, document.path, role)
    for purpose, pointer, schema in places.schemas(document.value):
        yield from metaschema.check(purpose, Place(document.path, pointer), schema)


def _order(diagnostic: Diagnostic, document: Document) -> tuple[int, int, str, str]:
    span = document.span(diagnostic.at) if isinstance(diagnostic.at, Place) else None
    return (span.line if span else 0, span.column if span else 0, diagnostic.code, diagnostic.message)
