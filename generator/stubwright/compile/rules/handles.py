"""Rules about state handles: their declared kinds, and the places of their ids, marked by `x-handle`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright import ir
from stubwright.codegen.models.types import Const, Document, Free, Leaf
from stubwright.compile.resolve import list_manifests
from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import describe_found as found_value
from stubwright.diagnostics.suggestions import did_you_mean
from stubwright.jsonschema.references import HANDLE
from stubwright_runtime.values.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.diagnostics import Pointer
    from stubwright.ir import Json
    from stubwright.jsonschema.references import Outline


def check_kinds(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that `x-handle` names a kind of state that `handles` declares."""
    declared = [name for _, manifest in list_manifests(resolved.bundle) for name in manifest.get("handles") or ()]
    for outline in resolved.list_outlines():
        for pointer, schema in outline.find_having(HANDLE):
            if not isinstance(schema[HANDLE], str):
                message = f"`x-handle` must be the name of a handle, not {found_value(schema[HANDLE])}"
                fix = "write a name from `handles`; if this is your own keyword, rename it"
                yield Diagnostic("SW252", message, _at(outline, pointer), fix)
            elif schema[HANDLE] not in declared:
                yield Diagnostic(
                    "SW252",
                    f"there is no handle `{schema[HANDLE]}`",
                    _at(outline, pointer),
                    (did_you_mean(schema[HANDLE], declared, "handles") if declared else "declare it under `handles`"),
                )


def check_places(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that `x-handle` marks strings, in places where the server can look them up."""
    for outline in resolved.list_outlines():
        marked = [
            (pointer, schema) for pointer, schema in outline.find_having(HANDLE) if isinstance(schema[HANDLE], str)
        ]
        if not marked:
            continue
        bundled = resolved.bundle_schema(outline)
        document = Document("", ir.Schema(bundled.wire, outline.dialect.uri, outline.place, bundled.shared))
        for pointer, schema in marked:
            if not _is_text(document, pointer):
                fix = "write it next to `type: string`; for a list, in its `items`"
                yield Diagnostic("SW271", "only a string can be the id of a handle", _at(outline, pointer), fix)
            elif "default" in schema:
                fix = "remove the default: ids are created when the server runs"
                yield Diagnostic("SW271", "the id of a handle cannot have a default", _at(outline, pointer), fix)
    for tool in resolved.tools:
        yield from _placed_in(tool, resolved)
    for place, outline in resolved.extension_schemas.items():
        if place.pointer[-3:-2] == ("ask",):
            for each, pointer in _marked(outline, resolved):
                fix = "ask for something that the user knows"
                yield Diagnostic("SW271", "a user cannot know the id of a handle", _at(each, pointer), fix)


def _placed_in(tool: Declaration, resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check the marks in the schemas of one tool."""
    bound = tool.extension.get("bind") or {}
    for field, outline in resolved.list_schemas(tool):
        for each, pointer in _marked(outline, resolved):
            if "http" in tool.extension:
                message = f"`{tool.name}` is an HTTP call, which cannot create or use handles"
                yield Diagnostic("SW271", message, _at(each, pointer), "remove it, or write a handler for the tool")
            elif field == "inputSchema" and pointer[:1] == ("properties",) and pointer[1] in bound and each is outline:
                message = f"`{pointer[1]}` is set from a claim, and a token cannot contain the id of a handle"
                yield Diagnostic("SW271", message, _at(each, pointer), "remove it")


def check_lifetimes(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that a handle expires if callers are anonymous, and that its `idle` time is shorter than its lifetime.

    The id of a handle without an owner gives access to its state, and handles that never end fill the store (MCP
    2026-07-28, server/tools, on state handles).
    """
    auth = resolved.entry.get("auth")
    for at, name, settings in _declared(resolved):
        if "ttl" not in settings:
            if not auth:
                fix = "add how long it lives, such as `ttl: 7d`"
                yield Diagnostic(
                    "SW270", f"`{name}` has no `ttl`, and without `auth` it has no owner", at.point_at_key(), fix
                )
        elif "idle" in settings and parse_duration(settings["idle"]) > parse_duration(settings["ttl"]):
            message = f"`{name}` ends after {settings['ttl']} anyway, so `idle: {settings['idle']}` has no effect"
            yield Diagnostic("SW337", message, at / "idle", "write a shorter `idle`, or remove it")


def check_uses(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each kind of handle is returned by a tool and accepted by a tool."""
    declared = [*_declared(resolved)]
    if not declared or "server" not in (resolved.entry.get("emit") or ("server",)):
        return
    used_by_field: dict[str, set[Json]] = {"inputSchema": set(), "outputSchema": set()}
    for tool in resolved.tools:
        for field, outline in resolved.list_schemas(tool):
            used_by_field[field] |= {_schema(each, pointer)[HANDLE] for each, pointer in _marked(outline, resolved)}
    for at, name, _ in declared:
        fix = f"mark the property that is its id: `{{type: string, {HANDLE}: {name}}}`"
        if name not in used_by_field["outputSchema"]:
            yield Diagnostic("SW338", f"no tool returns ids of `{name}`", at.point_at_key(), fix)
        elif name not in used_by_field["inputSchema"]:
            yield Diagnostic("SW338", f"no tool takes ids of `{name}`", at.point_at_key(), fix)


def _declared(resolved: ResolvedBundle) -> Iterator[tuple[Place, str, Mapping[str, Json]]]:
    for path, manifest in list_manifests(resolved.bundle):
        for name, settings in (manifest.get("handles") or {}).items():
            yield Place(path, ("handles", name)), name, settings


def _marked(root: Outline, resolved: ResolvedBundle) -> Iterator[tuple[Outline, Pointer]]:
    """Yield the marks in a schema and in the schemas that it references."""
    for each in resolved.find_closure(root):
        yield from ((each, pointer) for pointer, schema in each.find_having(HANDLE) if isinstance(schema[HANDLE], str))


def _schema(outline: Outline, pointer: Pointer) -> Mapping[str, Json]:
    schema: Mapping[str, Json] = outline.schemas[pointer]
    return schema


def _is_text(document: Document, pointer: Pointer) -> bool:
    """Return whether the value at a place is a string, or missing."""
    kinds = {each.type if isinstance(each, Free | Const) else "" for each in document.shape(Leaf("", pointer))}
    return "string" in kinds and kinds <= {"string", "null"}


def _at(outline: Outline, pointer: Pointer) -> Place:
    return Place(outline.place.file, (*outline.place.pointer, *pointer, HANDLE))
