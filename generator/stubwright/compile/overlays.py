"""Applies overlays to tools from included files, as JSON merge patches (RFC 7396)."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from stubwright import paths
from stubwright.diagnostics import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stubwright.diagnostics import Diagnostic, Pointer
    from stubwright.ir import Json

FIELDS: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")
"""Tool fields that an overlay can change. Other keys in an overlay are stubwright settings."""

Patch = tuple[Place, "Mapping[str, Json]"]
"""An overlay entry: its location and the changed fields."""


def split(entry: Mapping[str, Json]) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
    """Split a tool's overlay into changed fields and settings."""
    fields = {key: value for key, value in entry.items() if key in FIELDS}
    return fields, {key: value for key, value in entry.items() if key not in FIELDS} if fields else entry


def patch(wire: Mapping[str, Json], patches: Sequence[Patch], file: str, folder: str) -> Mapping[str, Json]:
    """Apply overlays to a tool.

    Args:
        wire: The tool as written.
        patches: The overlays. Later overlays take precedence.
        file: The file that declares the tool.
        folder: The manifest's directory.
    """
    for place, fields in patches:
        wire = merge_patch(wire, fields if place.file == file else _rebase(fields, place.file, file, folder))
    return wire


def merge_patch(target: Json, patch: Json) -> Json:
    """Apply a JSON merge patch to a value (RFC 7396, section 2)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _rebase(value: Json, old: str, new: str, folder: str) -> Json:
    """Make a patch's references to shared schemas relative to the file `new`."""
    if isinstance(value, dict):
        return {
            key: (
                _rebase_reference(below, old, new, folder)
                if key == "$ref" and isinstance(below, str)
                else _rebase(below, old, new, folder)
            )
            for key, below in value.items()
        }
    return [_rebase(each, old, new, folder) for each in value] if isinstance(value, list) else value


def _rebase_reference(text: str, old: str, new: str, folder: str) -> str:
    file, hash_, fragment = text.partition("#")
    if not fragment.startswith("/schemas/") or ":" in file:
        return text
    path = paths.resolve(folder, old, file) if file else old
    if path is None:
        return text
    return f"{'' if path == new else posixpath.relpath(path, posixpath.dirname(new) or '.')}{hash_}{fragment}"


def move_to_overlays(
    overlaid: Mapping[Place, Sequence[Patch]], diagnostics: Iterable[Diagnostic]
) -> Iterator[Diagnostic]:
    """Relocate diagnostics to the overlays that set the faulty values.

    Args:
        overlaid: The overlays of each tool and API, keyed by location.
        diagnostics: Diagnostics at the overlaid values.
    """
    for diagnostic in diagnostics:
        at = diagnostic.at
        patches = overlaid.get(Place(at.file, at.pointer[:2])) if isinstance(at, Place) else None
        if patches and isinstance(at, Place) and at.pointer[2:3]:
            yield replace(diagnostic, at=_find_origin(at, patches))
        else:
            yield diagnostic


def _find_origin(at: Place, patches: Sequence[Patch]) -> Place:
    """Return the location in the last overlay that sets the value at `at` or a part that contains the value."""
    pointer = at.pointer[2:]
    for place, fields in reversed(patches):
        prefix, is_whole = _follow(fields, pointer)
        if is_whole:
            return Place(place.file, (*place.pointer, *prefix), at.on)
    return at


def _follow(fields: Json, pointer: Pointer) -> tuple[Pointer, bool]:
    """Return the longest prefix of `pointer` that exists in a patch, and whether the patch sets the value at that
    prefix.
    """
    here: Any = fields
    for number, step in enumerate(pointer):
        try:
            here = here[step]
        except (LookupError, TypeError):
            return pointer[:number], not isinstance(here, dict)
    return pointer, True
