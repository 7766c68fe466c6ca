"""A schema as it goes on the wire: shared schemas bundled into it, and our own keywords taken out.

Takes outlines whose references all resolve; gives new values and leaves the old ones as they are. What needs no change
is the same object as in the source.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from toolwright.jsonschema.pointers import pointer_text
from toolwright.jsonschema.references import HANDLE, Key, Local, Outline, Shared, closure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolwright.diagnostics import Pointer
    from toolwright.ir import Json

_GONE: Final = object()


@dataclass(frozen=True, slots=True)
class Bundled:
    """`wire` is the schema with all it refers to; `shared` has the name under `schemas` of each bundled pointer."""

    wire: Json
    shared: Mapping[str, str]


def bundle(root: Outline, shared: Mapping[Key, Outline]) -> Bundled:
    """Bundle what `root` refers to, of all `shared` schemas, into its own `$defs` (`definitions` before 2019-09).

    A shared schema keeps its name there; where the name is taken, `shared_` goes in front, and where that is taken
    too, a digest of its file and name goes behind. A shared schema that leads back to itself is itself: `#`.
    """
    if root.plain or not isinstance(root.schema, dict) or not (root.references or HANDLE in root.keys):
        return Bundled(root.schema, {})
    keyword = root.dialect.defs
    reached = [found for found in closure(root, shared) if found.place != root.place]
    keys = [Key(found.place.file, str(found.place.pointer[-1])) for found in reached]
    own = root.schema.get(keyword) or {}
    names = _names(keys, own, root.folder.path)
    homes: dict[Key, Pointer] = {key: (keyword, name) for key, name in names.items()}
    if root.place.pointer[0] == "schemas":
        homes[Key(root.place.file, str(root.place.pointer[-1]))] = ()
    wire = _edited(root.schema, _edits(root, (), homes))
    if not reached:
        return Bundled(wire, {})
    defs = dict(wire.get(keyword) or {})
    for key, found in zip(keys, reached, strict=True):
        defs[names[key]] = _edited(found.schema, _edits(found, homes[key], homes))
    return Bundled({**wire, keyword: defs}, {pointer_text(homes[key]): key.name for key in keys})


def _names(keys: Iterable[Key], own: Mapping[str, Json], folder: str) -> dict[Key, str]:
    names: dict[Key, str] = {}
    for key in keys:
        taken = {*own, *names.values()}
        names[key] = next(name for name in _tries(key, folder) if name not in taken)
    return names


def _tries(key: Key, folder: str) -> Iterator[str]:
    yield key.name
    yield f"shared_{key.name}"
    for salt in count():
        text = f"{key.file.removeprefix(folder).lstrip('/')}#{key.name}#{salt}".encode("utf-8", "surrogatepass")
        yield f"{key.name}_{hashlib.sha256(text).hexdigest()[:8]}"


def _edits(found: Outline, home: Pointer, homes: Mapping[Key, Pointer]) -> dict[Pointer, Any]:
    """What changes in a schema that is put at `home`, by pointer."""
    edits: dict[Pointer, Any] = {}
    moved = bool(home) and not found.identified
    for reference in found.references:
        match reference.target:
            case Shared(key):
                edits[(*reference.pointer, reference.keyword)] = pointer_text(homes[key])
            case Local(pointer, rooted=True) if moved:
                edits[(*reference.pointer, reference.keyword)] = pointer_text((*home, *pointer))
    edits |= {(*pointer, HANDLE): _GONE for pointer, _ in found.having(HANDLE)}
    if moved and isinstance(found.schema, dict) and "$schema" in found.schema:
        edits[("$schema",)] = _GONE  # only the root of a resource may name its dialect (2020-12 Core, 8.1.1)
    return edits


def _edited(value: Json, edits: Mapping[Pointer, Any]) -> Json:
    """`value` with `edits` made in copies of what holds them."""
    if not edits:
        return value
    below: dict[str | int, dict[Pointer, Any]] = {}
    for pointer, new in edits.items():
        below.setdefault(pointer[0], {})[pointer[1:]] = new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    for step, inner in below.items():
        if () not in inner:
            copy[step] = _edited(copy[step], inner)
        elif inner[()] is _GONE:
            del copy[step]
        else:
            copy[step] = inner[()]
    return copy
