"""Fields that are newer than the oldest revision that the manifest is meant for (`protocol.min`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwright.compile.resolve import entries
from toolwright.compile.rules.headers import KEYWORD as HEADER
from toolwright.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolwright.compile.resolve import Resolved
    from toolwright.ir import Json

_NAMED = {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"}
FIELDS: Mapping[str, Mapping[str, str]] = {
    "server": {"title": "2025-06-18", "icons": "2025-11-25", "websiteUrl": "2025-11-25", "description": "2025-11-25"},
    "tools": {**_NAMED, "annotations": "2025-03-26", "outputSchema": "2025-06-18", "execution": "2025-11-25"},
    "resources": _NAMED,
    "resourceTemplates": _NAMED,
    "prompts": _NAMED,
}
"""The revision that brought each field, from the schemas that each revision publishes."""

ANY_ROOT = "2026-07-28"
"""The revision that allows an `outputSchema` whose root is not an object."""

HEADERS = "2026-07-28"
"""The revision that has `x-mcp-header`."""


def old_enough(resolved: Resolved) -> Iterator[Diagnostic]:
    """Without `protocol.min` nothing is too new."""
    oldest = (resolved.entry.get("protocol") or {}).get("min")
    if not isinstance(oldest, str):
        return
    for place, what, revision in _newer(resolved):
        if revision > oldest:
            yield Diagnostic(
                "TW340",
                f"{what} came with revision {revision}; this manifest is meant for {oldest} too",
                place,
                "clients of older revisions do not see it: leave it out, or raise `protocol.min`",
            )


def _newer(resolved: Resolved) -> Iterator[tuple[Place, str, str]]:
    bundle = resolved.bundle
    yield from _fields(Place(bundle.entry, ("server",)), resolved.entry["server"], "server")
    for path in dict.fromkeys(fragment.path for fragment in bundle.fragments):
        for section in ("tools", "resources", "resourceTemplates", "prompts"):
            for place, entry in entries(bundle, path, section):
                yield from _fields(place, entry, section)
    for tool in resolved.tools:
        for field, found in resolved.schemas(tool):
            if field == "outputSchema" and found.schema.get("type") != "object":
                at = found.place / "type" if "type" in found.schema else found.place.key()
                yield at, "an `outputSchema` whose root is not an object", ANY_ROOT
            for pointer, schema in found.schemas.items():
                if isinstance(schema, dict) and HEADER in schema:
                    at = Place(found.place.file, (*found.place.pointer, *pointer, HEADER))
                    yield at.key(), f"`{HEADER}`", HEADERS


def _fields(place: Place, entry: Mapping[str, Json], section: str) -> Iterator[tuple[Place, str, str]]:
    for field, revision in FIELDS[section].items():
        if field in entry:
            yield (place / field).key(), f"`{field}`", revision
