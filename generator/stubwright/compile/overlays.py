"""Applies overlays to tools of included files: their titles, descriptions, schemas and hints.

Patches are JSON merge patches (RFC 7396): objects merge key by key, `null` removes a key, any other value replaces the
old one.
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
"""The fields of a tool that an overlay can change; its other keys are settings of stubwright."""

Patch = tuple[Place, "Mapping[str, Json]"]
"""A tool in an overlay: its place, and the fields that the overlay changes."""


def split(entry: Mapping[str, Json]) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
    """Split an overlay on a tool into the fields that it changes and the settings."""
    fields = {key: value for key, value in entry.items() if key in FIELDS}
    return fields, {key: value for key, value in entry.items() if key not in FIELDS} if fields else entry


def patch(wire: Mapping[str, Json], patches: Sequence[Patch], file: str, folder: str) -> Mapping[str, Json]:
    """Apply overlays to a tool.

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


def _moved(value: Json, old: str, new: str, folder: str) -> Json:
    """Return a patch with its references to shared schemas relative to another file."""
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
    """Return the place in the strongest overlay that sets a value or replaces one of its parents."""
    pointer = at.pointer[2:]
    for place, fields in reversed(patches):
        reached, is_whole = _reached(fields, pointer)
        if is_whole:
            return Place(place.file, (*place.pointer, *reached), at.on)
    return at


def _reached(fields: Json, pointer: Pointer) -> tuple[Pointer, bool]:
    """Return the longest prefix of a pointer that exists in a patch, and whether the patch sets the value there."""
    here: Any = fields
    for number, step in enumerate(pointer):
        try:
            here = here[step]
        except (LookupError, TypeError):
            return pointer[:number], not isinstance(here, dict)
    return pointer, True
