"""Collects the schemas that several tools share, each of which has one table on the page.

These are the manifest's shared `schemas`, equal schemas in several `$defs` (as in servers that share models in code),
and all schemas that either of them reference.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from stubwright.docs.tables import Anchor, make_outline
from stubwright.jsonschema.references import LocalTarget, get_at
from stubwright_runtime.values.text import split_pointer

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.diagnostics import Pointer
    from stubwright.jsonschema.references import Outline

_REUSABLE: Final = frozenset({"$defs", "definitions"})
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.]+")
_CHARACTERS: Final = 8
"""The length of the digest that distinguishes schemas with the same anchor."""


@dataclass(frozen=True, slots=True)
class SharedSchemaView:
    """A shared schema, located at the pointer `start` in `schema`."""

    anchor: Anchor
    schema: ir.Schema
    start: Pointer
    anchors: Mapping[Pointer, Anchor]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The shared schemas, and for each of the server's schemas, the anchors of the shared schemas in it."""

    shared: tuple[SharedSchemaView, ...]
    anchors: tuple[Mapping[Pointer, Anchor], ...]


def collect(schemas: Sequence[ir.Schema], named: Sequence[ir.SharedSchema]) -> Catalogue:
    """Collect a page's shared schemas.

    Args:
        schemas: The schemas of tools and of their questions.
        named: The manifest's shared schemas, which come first; others follow in order of first use.
    """
    taken: set[str] = set()
    by_name = {schema.name: Anchor(_make_anchor(schema.name, schema.name, taken), schema.name) for schema in named}
    bundled = [_find_bundled(schema, by_name) for schema in schemas]
    own = [
        dict(_digest_reusable(make_outline(schema, anchors), anchors))
        for schema, anchors in zip(schemas, bundled, strict=True)
    ]
    uses = Counter(identity for identities in own for identity in identities.values())
    by_identity: dict[str, Anchor] = {}
    firsts: list[tuple[Anchor, int, Pointer]] = []
    for index, identities in enumerate(own):
        for pointer, identity in identities.items():
            if uses[identity] > 1 and identity not in by_identity:
                name = str(pointer[-1])
                by_identity[identity] = Anchor(_make_anchor(name, identity, taken), name)
                firsts.append((by_identity[identity], index, pointer))
    anchors = tuple(
        {
            **bundled_anchors,
            **{pointer: by_identity[identity] for pointer, identity in identities.items() if identity in by_identity},
        }
        for bundled_anchors, identities in zip(bundled, own, strict=True)
    )
    shared = [
        SharedSchemaView(
            by_name[schema.name], schema.schema, (), {**_find_bundled(schema.schema, by_name), (): by_name[schema.name]}
        )
        for schema in named
    ]
    shared += [SharedSchemaView(anchor, schemas[index], pointer, anchors[index]) for anchor, index, pointer in firsts]
    return Catalogue(tuple(shared), anchors)


def _find_bundled(schema: ir.Schema, by_name: Mapping[str, Anchor]) -> dict[Pointer, Anchor]:
    """Return the anchors of the manifest's shared schemas in a schema, keyed by location.

    The schemas `true` and `false` do not have anchors.
    """
    return {(*split_pointer(unquote(text)),): by_name[name] for text, name in schema.shared.items() if name in by_name}


def _digest_reusable(schema_outline: Outline, anchors: Mapping[Pointer, Anchor]) -> Iterator[tuple[Pointer, str]]:
    """Yield the reusable schemas that a schema references, each with a digest of its content.

    Schemas with the same digest have the same name and dialect, and equal references at the same locations.
    """
    targets_by_holder: dict[Pointer, list[Pointer]] = {}
    for reference in schema_outline.references:
        if isinstance(reference.target, LocalTarget):
            targets_by_holder.setdefault(_find_container(reference.pointer), []).append(reference.target.pointer)
    targets = dict.fromkeys(target for targets in targets_by_holder.values() for target in targets)
    digests: dict[Pointer, str] = {}
    for start in targets:
        if len(start) != 2 or start[0] not in _REUSABLE or start in anchors:
            continue
        waiting: list[Pointer] = [start]
        reached = dict.fromkeys(waiting)
        for pointer in waiting:  # grows during the loop
            more = [target for target in targets_by_holder.get(_find_container(pointer), ()) if target not in reached]
            reached |= dict.fromkeys(more)
            waiting += more
        for pointer in reached:
            if pointer not in digests:
                digests[pointer] = _digest(
                    json.dumps(
                        [pointer, anchors[pointer].id if pointer in anchors else get_at(schema_outline.schema, pointer)]
                    )
                )
        yield start, _digest(" ".join([schema_outline.dialect.uri, *(digests[pointer] for pointer in reached)]))


def _find_container(pointer: Pointer) -> Pointer:
    """Return the location of the reusable schema that contains `pointer`, or the location of the root."""
    return pointer[:2] if pointer and pointer[0] in _REUSABLE else ()


def _make_anchor(name: str, identity: str, taken: set[str]) -> str:
    """Return a unique anchor.

    The name in the anchor lacks characters that URLs escape, and `-`, because `-` separates the parts of an anchor.
    """
    anchor = f"schema-{_UNSAFE.sub('_', name)}"
    if anchor in taken:
        anchor += f"-{_digest(identity)[:_CHARACTERS]}"
    taken.add(anchor)
    return anchor


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
