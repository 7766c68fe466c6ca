"""Which schemas have one table for the whole page, however many tools use them.

Takes all schemas of a server; gives each that is shared a home. These are those under `schemas` in the manifest, and
those under `$defs` of several schemas that say the same, with all that they lead to: so lists of tools come from
servers that share their models in code.
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

from toolwright.docs.tables import Home, outline
from toolwright.jsonschema.references import Local, at
from toolwright_runtime.values.text import split_pointer

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.diagnostics import Pointer
    from toolwright.jsonschema.references import Outline

_REUSABLE: Final = frozenset({"$defs", "definitions"})
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.]+")
_CHARACTERS: Final = 8
"""Of a digest, where two schemas would have the same anchor."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One shared schema: it stands at `start` in `schema`."""

    home: Home
    schema: ir.Schema
    start: Pointer
    homes: Mapping[Pointer, Home]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The shared schemas, and for each schema of the server, in the order in which they were given, where they are."""

    shared: tuple[Shared, ...]
    homes: tuple[Mapping[Pointer, Home], ...]


def collect(schemas: Sequence[ir.Schema], named: Sequence[ir.SharedSchema]) -> Catalogue:
    """Find what the page has once.

    Args:
        schemas: The schemas of tools, and of what they ask.
        named: The shared schemas of the manifest. They come first; others follow in the order of their first use.
    """
    taken: set[str] = set()
    by_name = {one.name: Home(_anchor(one.name, one.name, taken), one.name) for one in named}
    bundled = [_bundled(schema, by_name) for schema in schemas]
    own = [dict(_same(outline(schema, homes), homes)) for schema, homes in zip(schemas, bundled, strict=True)]
    uses = Counter(identity for found in own for identity in found.values())
    by_identity: dict[str, Home] = {}
    firsts: list[tuple[Home, int, Pointer]] = []
    for index, found in enumerate(own):
        for pointer, identity in found.items():
            if uses[identity] > 1 and identity not in by_identity:
                name = str(pointer[-1])
                by_identity[identity] = Home(_anchor(name, identity, taken), name)
                firsts.append((by_identity[identity], index, pointer))
    homes = tuple(
        {**known, **{pointer: by_identity[each] for pointer, each in found.items() if each in by_identity}}
        for known, found in zip(bundled, own, strict=True)
    )
    shared = [
        Shared(by_name[one.name], one.schema, (), {**_bundled(one.schema, by_name), (): by_name[one.name]})
        for one in named
    ]
    shared += [Shared(home, schemas[index], pointer, homes[index]) for home, index, pointer in firsts]
    return Catalogue(tuple(shared), homes)


def _bundled(schema: ir.Schema, by_name: Mapping[str, Home]) -> dict[Pointer, Home]:
    """The places of the manifest's shared schemas in a schema; those that are `true` or `false` have no table."""
    return {(*split_pointer(unquote(text)),): by_name[name] for text, name in schema.shared.items() if name in by_name}


def _same(found: Outline, homes: Mapping[Pointer, Home]) -> Iterator[tuple[Pointer, str]]:
    """The schema's own reusable schemas that something refers to, each with a digest of all that it says.

    Two of the same digest have the same name and dialect, and lead to schemas that say the same at the same places.
    """
    leads: dict[Pointer, list[Pointer]] = {}
    for reference in found.references:
        if isinstance(reference.target, Local):
            leads.setdefault(_holder(reference.pointer), []).append(reference.target.pointer)
    targets = dict.fromkeys(target for listed in leads.values() for target in listed)
    says: dict[Pointer, str] = {}
    for start in targets:
        if len(start) != 2 or start[0] not in _REUSABLE or start in homes:
            continue
        waiting: list[Pointer] = [start]
        reached = dict.fromkeys(waiting)
        for pointer in waiting:  # grows while it is read
            more = [target for target in leads.get(_holder(pointer), ()) if target not in reached]
            reached |= dict.fromkeys(more)
            waiting += more
        for pointer in reached:
            if pointer not in says:
                says[pointer] = _digest(
                    json.dumps([pointer, homes[pointer].id if pointer in homes else at(found.schema, pointer)])
                )
        yield start, _digest(" ".join([found.dialect.uri, *(says[pointer] for pointer in reached)]))


def _holder(pointer: Pointer) -> Pointer:
    """The reusable schema that a place lies in, or the root."""
    return pointer[:2] if pointer and pointer[0] in _REUSABLE else ()


def _anchor(name: str, identity: str, taken: set[str]) -> str:
    """An address on the page: nothing in it that a URL would escape, and no `-`, behind which parts of it follow."""
    anchor = f"schema-{_UNFIT.sub('_', name)}"
    if anchor in taken:
        anchor += f"-{_digest(identity)[:_CHARACTERS]}"
    taken.add(anchor)
    return anchor


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
