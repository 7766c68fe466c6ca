"""Rules about state handles: their declarations, and the IDs that `x-handle` marks in schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright import ir
from stubwright.codegen.models.types import AnyScalar, Const, Document, Leaf
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
    """Check that each `x-handle` refers to an entry in `handles`."""
    declared = [name for _, manifest in list_manifests(resolved.bundle) for name in manifest.get("handles") or ()]
    for outline in resolved.list_outlines():
        for pointer, schema in outline.find_having(HANDLE):
            if not isinstance(schema[HANDLE], str):
                message = f"`x-handle` must be the name of a handle, not {found_value(schema[HANDLE])}"
                fix = "write a name from `handles`; if this is your own keyword, rename it"
                yield Diagnostic("SW252", message, outline.locate(pointer) / HANDLE, fix)
            elif schema[HANDLE] not in declared:
                yield Diagnostic(
                    "SW252",
                    f"the handle `{schema[HANDLE]}` is not declared",
                    outline.locate(pointer) / HANDLE,
                    (did_you_mean(schema[HANDLE], declared, "handles") if declared else "declare it under `handles`"),
                )


def check_places(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that `x-handle` only marks strings, without defaults, outside of forms."""
    for outline in resolved.list_outlines():
        marked = [
            (pointer, schema) for pointer, schema in outline.find_having(HANDLE) if isinstance(schema[HANDLE], str)
        ]
        if not marked:
            continue
        bundled = resolved.bundle_schema(outline)
        document = Document("", ir.Schema(bundled.wire, outline.dialect.uri, outline.place, bundled.shared))
        for pointer, schema in marked:
            if not _is_string(document, pointer):
                fix = "write it next to `type: string`; for a list, in its `items`"
                yield Diagnostic("SW271", "only a string can be a handle ID", outline.locate(pointer) / HANDLE, fix)
            elif "default" in schema:
                fix = "remove the default: the server creates IDs at run time"
                yield Diagnostic("SW271", "a handle ID cannot have a default", outline.locate(pointer) / HANDLE, fix)
    for tool in resolved.tools:
        yield from _check_tool(tool, resolved)
    for place, outline in resolved.extension_schemas.items():
        if place.pointer[-3:-2] == ("ask",):
            for each, pointer in _list_marks(outline, resolved):
                fix = "ask for a value that the user knows"
                yield Diagnostic("SW271", "users cannot know handle IDs", each.locate(pointer) / HANDLE, fix)


def _check_tool(tool: Declaration, resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    bound = tool.extension.get("bind") or {}
    for field, outline in resolved.list_schemas(tool):
        for each, pointer in _list_marks(outline, resolved):
            if "http" in tool.extension:
                message = f"`{tool.name}` is an HTTP call, which cannot create or use handles"
                yield Diagnostic(
                    "SW271", message, each.locate(pointer) / HANDLE, "remove it, or write a handler for the tool"
                )
            elif field == "inputSchema" and pointer[:1] == ("properties",) and pointer[1] in bound and each is outline:
                message = f"`{pointer[1]}` is set from a claim, but tokens cannot contain handle IDs"
                yield Diagnostic("SW271", message, each.locate(pointer) / HANDLE, "remove it")


def check_lifetimes(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that handles of anonymous callers expire, and that `idle` is shorter than `ttl`.

    Without an owner, the ID alone grants access to the state (MCP 2026-07-28, server/tools, "State Handles").
    """
    auth = resolved.entry.get("auth")
    for at, name, settings in _list_kinds(resolved):
        if "ttl" not in settings:
            if not auth:
                fix = "add its lifetime, such as `ttl: 7d`"
                yield Diagnostic(
                    "SW270", f"`{name}` has no `ttl`, and without `auth` it has no owner", at.point_at_key(), fix
                )
        elif "idle" in settings and parse_duration(settings["idle"]) > parse_duration(settings["ttl"]):
            message = f"`{name}` expires after {settings['ttl']} anyway, so `idle: {settings['idle']}` has no effect"
            yield Diagnostic("SW337", message, at / "idle", "write a shorter `idle`, or remove it")


def check_uses(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that, for each kind of handle, some tool returns it and some tool accepts it."""
    declared = [*_list_kinds(resolved)]
    if not declared or not resolved.serves:
        return
    used_by_field: dict[str, set[Json]] = {"inputSchema": set(), "outputSchema": set()}
    for tool in resolved.tools:
        for field, outline in resolved.list_schemas(tool):
            used_by_field[field] |= {each.schemas[pointer][HANDLE] for each, pointer in _list_marks(outline, resolved)}
    for at, name, _ in declared:
        fix = f"mark the property that contains its ID: `{{type: string, {HANDLE}: {name}}}`"
        if name not in used_by_field["outputSchema"]:
            yield Diagnostic("SW338", f"no tool returns IDs of `{name}`", at.point_at_key(), fix)
        elif name not in used_by_field["inputSchema"]:
            yield Diagnostic("SW338", f"no tool accepts IDs of `{name}`", at.point_at_key(), fix)


def _list_kinds(resolved: ResolvedBundle) -> Iterator[tuple[Place, str, Mapping[str, Json]]]:
    for path, manifest in list_manifests(resolved.bundle):
        for name, settings in (manifest.get("handles") or {}).items():
            yield Place(path, ("handles", name)), name, settings


def _list_marks(root: Outline, resolved: ResolvedBundle) -> Iterator[tuple[Outline, Pointer]]:
    for each in resolved.find_closure(root):
        yield from ((each, pointer) for pointer, schema in each.find_having(HANDLE) if isinstance(schema[HANDLE], str))


def _is_string(document: Document, pointer: Pointer) -> bool:
    kinds = {each.type if isinstance(each, AnyScalar | Const) else "" for each in document.shape(Leaf("", pointer))}
    return "string" in kinds and kinds <= {"string", "null"}
