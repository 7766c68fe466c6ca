"""Overlays on the definition of a tool in an included file: its title, its description, its schemas, its hints.

Patches are JSON merge patches (RFC 7396): objects merge key by key, `null` takes a key away, anything else replaces
what existed.
"""

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
"""The fields of a tool that an overlay can change; all else that it says is a setting of stubwright's own."""

Patch = tuple[Place, "Mapping[str, Json]"]
"""The place of a tool in an overlay, and the fields that the overlay changes."""


def split(entry: Mapping[str, Json]) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
    """Return the entry of an overlay on a tool in two parts: the fields that it changes, and the settings."""
    fields = {key: value for key, value in entry.items() if key in FIELDS}
    return fields, {key: value for key, value in entry.items() if key not in FIELDS} if fields else entry


def patch(wire: Mapping[str, Json], patches: Sequence[Patch], file: str, folder: str) -> Mapping[str, Json]:
    """Return a tool with its overlays.

    Args:
        wire: The tool as written.
        patches: The overlays, the strongest last.
        file: The file that the tool is in.
        folder: The manifest's folder.
    """
    for place, fields in patches:
        meant = fields if place.file == file else _moved(fields, place.file, file, folder)
        wire = merge_patch(wire, meant)
    return wire


def merge_patch(target: Json, patch: Json) -> Json:
    """Return a value with a JSON merge patch (RFC 7396, section 2)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _moved(value: Json, old: str, new: str, folder: str) -> Json:
    """Return a patch whose references to shared schemas count from another file."""
    if isinstance(value, dict):
        return {
            key: (
                _reference(below, old, new, folder)
                if key == "$ref" and isinstance(below, str)
                else _moved(below, old, new, folder)
            )
            for key, below in value.items()
        }
    return [_moved(each, old, new, folder) for each in value] if isinstance(value, list) else value


def _reference(text: str, old: str, new: str, folder: str) -> str:
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
    """Move diagnostics to the places of overlays if these set the faulty value.

    Args:
        overlaid: The overlays of each tool and each API, by its place.
        diagnostics: The findings.
    """
    for diagnostic in diagnostics:
        at = diagnostic.at
        patches = overlaid.get(Place(at.file, at.pointer[:2])) if isinstance(at, Place) else None
        if patches and isinstance(at, Place) and at.pointer[2:3]:
            yield replace(diagnostic, at=_home(at, patches))
        else:
            yield diagnostic


def _home(at: Place, patches: Sequence[Patch]) -> Place:
    """Return the origin of a value: the place in the strongest overlay that sets it, or replaces a parent of it."""
    pointer = at.pointer[2:]
    for place, fields in reversed(patches):
        reached, is_whole = _reached(fields, pointer)
        if is_whole:
            return Place(place.file, (*place.pointer, *reached), at.on)
    return at


def _reached(fields: Json, pointer: Pointer) -> tuple[Pointer, bool]:
    """Return the part of a pointer that exists in a patch, and whether the patch sets the value there."""
    here: Any = fields
    for number, step in enumerate(pointer):
        try:
            here = here[step]
        except (LookupError, TypeError):
            return pointer[:number], not isinstance(here, dict)
    return pointer, True
