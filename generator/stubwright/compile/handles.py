"""Lowers state handles: their kinds, their lifetimes, and where tools' schemas contain their IDs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright import ir, naming
from stubwright.compile.resolve import list_manifests
from stubwright.diagnostics import Place
from stubwright.jsonschema import dialects
from stubwright.jsonschema.bundling import edit, without
from stubwright.jsonschema.inlining import inline
from stubwright.jsonschema.references import HANDLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.diagnostics import Pointer
    from stubwright.ir import Json
    from stubwright.jsonschema.references import Outline

SIDES: Final[Mapping[str, str]] = {"inputSchema": "input", "outputSchema": "output"}
"""`manifest.json` keys for the ID locations in each tool schema."""

_UNITS: Final[Mapping[str, str]] = {
    "ms": "millisecond",
    "s": "second",
    "m": "minute",
    "h": "hour",
    "d": "day",
}


def get_declared(resolved: ResolvedBundle) -> dict[str, Json]:
    """Return all kinds of handles by name."""
    return {
        name: value
        for _, manifest in list_manifests(resolved.bundle)
        for name, value in (manifest.get("handles") or {}).items()
    }


def lower_kinds(resolved: ResolvedBundle) -> Iterator[tuple[ir.Handle, Place]]:
    """Yield all kinds of handles, each with its state schema's location."""
    for path, manifest in list_manifests(resolved.bundle):
        for name, settings in (manifest.get("handles") or {}).items():
            at = Place(path, ("handles", name))
            state = find_shared_whole(resolved.extension_schemas[at / "state"]) or name_state(name)
            yield ir.Handle(name, naming.handle_id(name), state, describe_retention(name, settings), at), at / "state"


def name_state(kind: str) -> str:
    """Return the name under which a kind's state schema is shared.

    Return None if the schema already is a shared schema.
    """
    return f"{kind}_state"


def find_shared_whole(state: Outline) -> str | None:
    """Return the name of the shared schema if the state schema is only a reference to it."""
    if isinstance(state.schema, dict) and state.schema.keys() == {"$ref"}:
        return next((key.name for key in state.list_shared()), None)
    return None


def describe_retention(kind: str, settings: Mapping[str, Json]) -> str:
    """Describe the lifetime of a handle: `A basket lives for 7 days and expires after 24 hours without use.`"""
    noun = kind.replace("_", " ")
    subject = f"{'An' if noun[:1].lower() in 'aeiou' else 'A'} {noun}"
    lives = f"lives for {describe_duration(settings['ttl'])}" if "ttl" in settings else ""
    ends = f"expires after {describe_duration(settings['idle'])} without use" if "idle" in settings else ""
    return f"{subject} {', and '.join(filter(None, (lives, ends))) or 'lives until it is ended'}."


def describe_duration(written: str) -> str:
    """Spell out a duration: `7d` becomes `7 days`."""
    number = written.rstrip("".join(_UNITS))
    unit = _UNITS[written[len(number) :]]
    return f"{int(number):,} {unit}{'' if int(number) == 1 else 's'}"


def find_created(marked: Mapping[str, Mapping[Pointer, str]]) -> tuple[str, ...]:
    """Return the kinds of handles that a tool creates. Their IDs are in the tool's result, not in its arguments.

    Args:
        marked: The ID locations in each schema, with their kinds.
    """
    accepted = marked.get("inputSchema", {}).values()
    return tuple(dict.fromkeys(kind for kind in marked.get("outputSchema", {}).values() if kind not in accepted))


def describe_handles(description: Json, created: Sequence[str], all_kinds: Mapping[str, Json]) -> Json:
    """Append the lifetimes of created handles to a description, as MCP recommends (2026-07-28, server/tools)."""
    sentences = [describe_retention(kind, all_kinds[kind]) for kind in created]
    if not sentences:
        return description
    own = [description.rstrip()] if isinstance(description, str) and description.strip() else []
    return "\n\n".join([*own, " ".join(sentences)])


def inline_schema(schema: ir.Schema) -> tuple[Json, Mapping[Pointer, str]]:
    """Return the inlined schema, and the locations of handle IDs in it."""
    dialect = dialects.find_dialect(schema.wire) or dialects.DRAFT_2020_12
    # inlining moves marks along with their schemas; afterwards they are removed
    marked = edit(schema.wire, {(*pointer, HANDLE): kind for pointer, kind in schema.handles.items()})
    wire = inline(marked, dialect, schema.place).wire
    kinds_by_pointer = {
        pointer: each[HANDLE]
        for pointer, each in dialects.iterate_subschemas(wire, dialect)
        if isinstance(each, dict) and HANDLE in each
    }
    return without(wire, [(*pointer, HANDLE) for pointer in kinds_by_pointer]), kinds_by_pointer


def format_places(kinds_by_pointer: Mapping[Pointer, str]) -> dict[str, str]:
    """Format pointers as JSON Pointer strings (RFC 6901), for `manifest.json`."""
    return {"".join(f"/{_escape(str(step))}" for step in pointer): kind for pointer, kind in kinds_by_pointer.items()}


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
