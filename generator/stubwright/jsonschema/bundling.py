"""Bundles shared schemas into wire schemas and removes stubwright's own keywords.

Values that bundling does not change are the source's own objects, not copies.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from stubwright.jsonschema.cycles import find_cycles, find_reachable
from stubwright.jsonschema.pointers import format_pointer
from stubwright.jsonschema.references import HANDLE, Key, LocalTarget, Outline, SharedSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stubwright.diagnostics import Place, Pointer
    from stubwright.ir import Json

_REMOVED: Final = object()


@dataclass(frozen=True, slots=True)
class BundledSchema:
    """A schema bundled with the shared schemas that it references.

    Attributes:
        wire: The complete schema.
        shared: The names under `schemas` of the bundled schemas, keyed by pointer in `wire`.
        own: `wire` without bundled schemas.
        uses: The shared schemas that `own` references, in order, if all bundled schemas keep their names.
        handles: The kinds of the handle IDs that `wire` marks, keyed by pointer.
    """

    wire: Json
    shared: Mapping[str, str]
    own: Json
    uses: tuple[Key, ...] = ()
    handles: Mapping[Pointer, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SharedSchemas:
    """A manifest's shared schemas, cached so that tools share the bundled objects.

    Attributes:
        outlines: The shared schemas, in order.
        schemas: Cached shared schemas with references rewritten to `$defs` or `definitions`.
        names: Cached name tables.
        members: Cached definitions for the members of each cycle.
        bundled: Cached bundled schemas, keyed by source location.
    """

    outlines: Mapping[Key, Outline]
    schemas: dict[tuple[str, Key], Json] = field(default_factory=dict, init=False, repr=False, compare=False)
    names: dict[tuple[str, Key | None, frozenset[Key]], Mapping[str, str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    members: dict[tuple[str, Key], tuple[Mapping[str, Json], Mapping[str, str]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    bundled: dict[Place, BundledSchema] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def cycles(self) -> Mapping[Key, tuple[Key, ...]]:
        """The members of each shared schema's reference cycle, including the schema itself, sorted."""
        components = find_cycles({key: outline.list_shared() for key, outline in self.outlines.items()})
        return {key: tuple(sorted(members)) for members in components for key in members}

    @cached_property
    def holding(self) -> frozenset[Key]:
        """The shared schemas that mark handle IDs."""
        return frozenset(key for key, outline in self.outlines.items() if HANDLE in outline.keys)

    def find_reached(self, root: Outline) -> tuple[Key, ...]:
        """Return the shared schemas that `root` references, in order of first use."""
        return self.find_reached_from(root.list_shared())

    def find_reached_from(self, keys: Iterable[Key]) -> tuple[Key, ...]:
        """Return `keys` and all shared schemas that they reference, in order of first use."""
        return tuple(find_reachable(keys, lambda key: self.outlines[key].list_shared()))

    def find_closure(self, root: Outline) -> tuple[Outline, ...]:
        """Return `root` and all shared schemas that it references, in order of first use."""
        others = (self.outlines[key] for key in self.find_reached(root))
        return (root, *(outline for outline in others if outline is not root))


def bundle(root: Outline, shared: SharedSchemas) -> BundledSchema:
    """Bundle the `shared` schemas that `root` references into its `$defs` (`definitions` before 2019-09).

    A name that `root` already uses gets the prefix `shared_` or, if that name is also used, a digest of file and name.
    A shared schema references itself as `#`. In a longer cycle, it can also be bundled into itself.
    """
    if root.plain or not isinstance(root.schema, dict) or not (root.references or HANDLE in root.keys):
        return BundledSchema(root.schema, {}, root.schema)
    keyword = root.dialect.defs
    own = root.schema.get(keyword) or {}
    itself = Key(root.place.file, str(root.place.pointer[-1])) if root.place.pointer[0] == "schemas" else None
    alone = itself is None or len(shared.cycles[itself]) == 1
    if itself is not None and not alone and not own and not root.anchors:
        defs, names = _bundle_cycle(itself, keyword, shared)
        wire = edit(root.schema, _edits(root, (), {key: (keyword, key.name) for key in root.list_shared()}))
        reached = shared.find_reached(root) if shared.holding else ()
        marked = _find_handles(root, {key: (keyword, key.name) for key in reached}, shared)
        return BundledSchema({**wire, keyword: defs}, names, wire, handles=marked)
    keys = [key for key in shared.find_reached(root) if key != itself]
    if keys and alone and {key.name for key in keys}.isdisjoint(own) and len({key.name for key in keys}) == len(keys):
        homes: dict[Key, Pointer] = {key: () if key == itself else (keyword, key.name) for key in root.list_shared()}
        wire = edit(root.schema, _edits(root, (), homes))
        defs = {**(wire.get(keyword) or {}), **{key.name: keep_names(key, keyword, shared) for key in keys}}
        leading = keyword, itself, frozenset(shared.cycles[key][0] for key in root.list_shared())
        if leading not in shared.names:
            shared.names[leading] = {format_pointer((keyword, key.name)): key.name for key in keys}
        marked = _find_handles(root, {key: (keyword, key.name) for key in keys}, shared)
        return BundledSchema({**wire, keyword: defs}, shared.names[leading], wire, (*root.list_shared(),), marked)
    taken = _name_definitions(keys, own, root.folder.path)
    homes = {key: (keyword, name) for key, name in taken.items()}
    if itself is not None:
        homes[itself] = ()
    wire = edit(root.schema, _edits(root, (), homes))
    marked = _find_handles(root, {key: (keyword, name) for key, name in taken.items()}, shared)
    if not keys:
        return BundledSchema(wire, {}, wire, handles=marked)
    defs = dict(wire.get(keyword) or {})
    for key in keys:
        outline = shared.outlines[key]
        defs[taken[key]] = edit(outline.schema, _edits(outline, homes[key], homes))
    names = {format_pointer(homes[key]): key.name for key in keys}
    return BundledSchema({**wire, keyword: defs}, names, wire, handles=marked)


def _find_handles(root: Outline, homes: Mapping[Key, Pointer], shared: SharedSchemas) -> dict[Pointer, str]:
    """Return the kinds of handle IDs in `root` and in the schemas bundled at `homes`, keyed by pointer."""
    if HANDLE not in root.keys and not shared.holding:
        return {}
    parts: list[tuple[Pointer, Outline]] = [((), root)]
    parts += [(home, shared.outlines[key]) for key, home in homes.items() if key in shared.holding]
    return {
        (*home, *pointer): schema[HANDLE]
        for home, outline in parts
        for pointer, schema in outline.find_having(HANDLE)
        if isinstance(schema[HANDLE], str)
    }


def keep_names(key: Key, keyword: str, shared: SharedSchemas) -> Json:
    """Return a shared schema in which references use the schemas' own names under `keyword`."""
    schemas = shared.schemas
    if (keyword, key) not in schemas:
        outline = shared.outlines[key]
        homes = {other: (keyword, other.name) for other in (key, *outline.list_shared())}
        schemas[keyword, key] = edit(outline.schema, _edits(outline, homes[key], homes))
    return schemas[keyword, key]


def _bundle_cycle(member: Key, keyword: str, shared: SharedSchemas) -> tuple[Mapping[str, Json], Mapping[str, str]]:
    """Return the definitions that each cycle member bundles, and the names of these definitions, keyed by pointer."""
    first = shared.cycles[member][0]
    bundled_cycle = shared.members.get((keyword, first))
    if bundled_cycle is None:
        keys = shared.find_reached(shared.outlines[first])
        defs = {key.name: keep_names(key, keyword, shared) for key in keys}
        names = {format_pointer((keyword, key.name)): key.name for key in keys}
        bundled_cycle = shared.members[keyword, first] = defs, names
    return bundled_cycle


def _name_definitions(keys: Iterable[Key], own: Mapping[str, Json], folder: str) -> dict[Key, str]:
    names: dict[Key, str] = {}
    taken = {*own}
    for key in keys:
        names[key] = next(name for name in _list_names(key, folder) if name not in taken)
        taken.add(names[key])
    return names


def _list_names(key: Key, folder: str) -> Iterator[str]:
    yield key.name
    yield f"shared_{key.name}"
    # Even the digest may be taken: retry with another salt.
    for salt in count():
        text = f"{key.file.removeprefix(folder).lstrip('/')}#{key.name}#{salt}".encode("utf-8", "surrogatepass")
        yield f"{key.name}_{hashlib.sha256(text).hexdigest()[:8]}"


def _edits(outline: Outline, home: Pointer, homes: Mapping[Key, Pointer]) -> dict[Pointer, Any]:
    edits: dict[Pointer, Any] = {}
    moved = bool(home) and not outline.identified
    for reference in outline.references:
        match reference.target:
            case SharedSchema(key):
                edits[(*reference.pointer, reference.keyword)] = format_pointer(homes[key])
            case LocalTarget(pointer, rooted=True) if moved:
                edits[(*reference.pointer, reference.keyword)] = format_pointer((*home, *pointer))
    edits |= {(*pointer, HANDLE): _REMOVED for pointer, _ in outline.find_having(HANDLE)}
    if moved and isinstance(outline.schema, dict) and "$schema" in outline.schema:
        edits[("$schema",)] = _REMOVED  # only a resource root may have `$schema` (2020-12 Core, 8.1.1)
    return edits


def without(value: Json, pointers: Iterable[Pointer]) -> Json:
    """Return a copy of `value` without the parts at `pointers`."""
    return edit(value, dict.fromkeys(pointers, _REMOVED))


def edit(value: Json, edits: Mapping[Pointer, Any]) -> Json:
    """Replace the parts of a value at the given pointers, copying each changed container."""
    if not edits:
        return value
    below: dict[str | int, dict[Pointer, Any]] = {}
    for pointer, new in edits.items():
        below.setdefault(pointer[0], {})[pointer[1:]] = new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    for step, inner in below.items():
        if () not in inner:
            copy[step] = edit(copy[step], inner)
        elif inner[()] is _REMOVED:
            del copy[step]
        else:
            copy[step] = inner[()]
    return copy
