"""Rules about tools: overlays, deprecations, caching, descriptions and hints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from stubwright.compile.apis import list_patches
from stubwright.compile.resolve import LOOSE, find_argument_names, list_entries, list_overlays, resolve_use
from stubwright.compile.rules import lint
from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import did_you_mean, quote, shorten
from stubwright_runtime.mcp import vocabulary
from stubwright_runtime.values.text import BRACES, split_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.ir import Json

_ICON_SCHEMES = ("https:", "data:", "http:")


def check_overlays(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that overlays refer to existing APIs, and to existing tools, with the prefixes of their file."""
    for fragment, place, _ in list_overlays(resolved.bundle):
        name = str(place.pointer[-1])
        names = [tool.name[len(fragment.prefix) :] for tool in resolved.tools if tool.name.startswith(fragment.prefix)]
        if name not in names:
            fix = did_you_mean(name, names, "tools")
            yield Diagnostic("SW250", f"cannot overlay the unknown tool `{name}`", place.point_at_key(), fix)
    known = [api.name for api in resolved.apis]
    for place, name, _ in list_patches(resolved.bundle):
        if name not in known:
            fix = did_you_mean(name, known, "APIs")
            yield Diagnostic("SW250", f"cannot overlay the unknown API `{name}`", place.point_at_key(), fix)


def check_deprecations(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that `deprecated.use` refers to another tool."""
    names = [tool.name for tool in resolved.tools]
    for tool in resolved.tools:
        use = (tool.extension.get("deprecated") or {}).get("use")
        if use is None:
            continue
        other = resolve_use(use, tool, names)
        if other == tool.name:
            message = f"`{tool.name}` cannot replace itself"
        elif other not in names:
            message = f"`{tool.name}` refers to the unknown tool `{use}`"
        else:
            continue
        others = [name for name in names if name != tool.name]
        yield Diagnostic("SW251", message, tool.place_of("deprecated", "use"), did_you_mean(use, others, "other tools"))


_INDIRECT = ("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf")
"""Keywords through which other schemas can restrict an object's properties."""


def check_paginated(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that a paginated tool returns a list of items, and that `cursor` and `nextCursor` are unused."""
    for tool in resolved.tools:
        if "paginate" in tool.extension:
            for place, message, fix in _find_page_problems(tool):
                yield Diagnostic("SW273", message, place, fix)


def _find_page_problems(tool: Declaration) -> Iterator[tuple[Place, str, str]]:
    paginate, at = tool.extension["paginate"], tool.place_of("paginate")
    if "http" in tool.extension:
        fix = "write `page` under `http`, which describes the API's pages"
        yield at.point_at_key(), f"`{tool.name}` is an HTTP call, and its pages come from the API", fix
        return
    if not isinstance(tool.wire.get("outputSchema"), dict):
        fix = f"add an `outputSchema` with the array `{paginate['items']}`"
        yield at.point_at_key(), f"`{tool.name}` returns pages, but has no `outputSchema` for a page", fix
        return
    for field, added in (("inputSchema", vocabulary.CURSOR), ("outputSchema", vocabulary.NEXT_CURSOR)):
        schema: Mapping[str, Json] = tool.wire[field]
        properties: Mapping[str, Json] = schema.get("properties") or {}
        indirect = next((keyword for keyword in _INDIRECT if keyword in schema), None)
        if indirect is not None:
            message = f"`paginate` adds `{added}` to the `{field}`, which `{indirect}` may forbid"
            yield tool.place / field / indirect, message, "write all `properties` in the schema itself"
        elif added in properties:
            fix = "rename it, or remove it: the server adds it"
            message = f"the `{field}` already has `{added}`, which `paginate` adds"
            yield (tool.place / field / "properties" / added).point_at_key(), message, fix
        elif field == "outputSchema" and not _is_array(properties.get(paginate["items"])):
            message = f"the `outputSchema` of `{tool.name}` has no array `{paginate['items']}`"
            arrays = [name for name, each in properties.items() if _is_array(each)]
            fix = did_you_mean(paginate["items"], arrays, "arrays") if arrays else "add one to its `properties`"
            yield tool.place_of("paginate", "items"), message, fix


def _is_array(schema: Json) -> bool:
    if not isinstance(schema, dict) or schema.get("type") != "array":
        return False
    return "prefixItems" not in schema and not isinstance(schema.get("items"), list)


def check_redactions(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that `policy.redact` lists arguments of the tool: with a typo, the argument would be logged."""
    for tool in resolved.tools:
        own = (tool.extension.get("policy") or {}).get("redact") or ()
        outline = resolved.outlines[tool.place / "inputSchema"]
        if not own or outline.list_shared() or any(isinstance(outline.schema.get(key), dict) for key in LOOSE):
            continue
        names = dict.fromkeys(name for _, schema in outline.find_having("properties") for name in schema["properties"])
        for index, pointer in enumerate(own):
            name = split_pointer(f"{pointer}/")[0]
            if pointer and name not in names:
                message = f"`{tool.name}` has no argument `{name}` to redact"
                yield Diagnostic(
                    "SW335", message, tool.place_of("policy", "redact") / index, did_you_mean(name, names, "arguments")
                )


def check_confirmations(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that confirmation messages have matching braces and only refer to arguments of their tool."""
    server_policy = resolved.entry.get("policy") or {}
    if (text := _get_message(server_policy)) is not None:
        yield from _check_braces(text, Place(resolved.bundle.entry, ("policy", "confirm", "message")))
    for tool in resolved.tools:
        own = tool.extension.get("policy") or {}
        at = tool.place_of("policy", "confirm", "message")
        if "confirm" not in own:
            own, at = server_policy, Place(resolved.bundle.entry, ("policy", "confirm", "message"))
        if (text := _get_message(own)) is None:
            continue
        if own is not server_policy:
            yield from _check_braces(text, at)
        outline = resolved.outlines[tool.place / "inputSchema"]
        known = find_argument_names(resolved.bundle_schema(outline).wire, outline.dialect)
        for name in dict.fromkeys(match[1] for match in BRACES.finditer(text) if match[1] is not None):
            if known is not None and name not in known:
                message = f"`{tool.name}` has no argument `{name}` to show"
                fix = (
                    did_you_mean(name, known, "arguments")
                    if known
                    else "it has no arguments: write the message without `{…}`"
                )
                if "." in name and name.split(".")[0] in known:
                    fix = f"only whole arguments can be shown: write `{{{name.split('.')[0]}}}`"
                yield Diagnostic("SW258", message, at, fix)


def check_once(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the key of `policy.once` lists arguments of the tool, and that the tool never runs as a task."""
    for tool in resolved.tools:
        once = (tool.extension.get("policy") or {}).get("once")
        if once is None:
            continue
        at, key = tool.place_of("policy", "once", "key"), once["key"]
        if (tool.wire.get("execution") or {}).get("taskSupport", "forbidden") != "forbidden":
            message = f"`{tool.name}` can run as a task, which `once` does not support"
            fix = "remove it, and call `ctx.once` in the handler"
            yield Diagnostic("SW259", message, tool.place_of("policy", "once").point_at_key(), fix)
        outline = resolved.outlines[tool.place / "inputSchema"]
        known = find_argument_names(resolved.bundle_schema(outline).wire, outline.dialect)
        if isinstance(key, str):
            if key in _ONCE_KEYS:
                continue
            is_argument = known is None or key in known
            fix = f"write `[{key}]`" if is_argument else f"write {quote(_ONCE_KEYS)}, or a list of arguments"
            yield Diagnostic("SW104", f"`key` cannot be the string `{shorten(key)}`", at, fix)
            continue
        for index, name in enumerate(key):
            if known is not None and name not in known:
                message = f"`{tool.name}` has no argument `{name}` for the key"
                fix = did_you_mean(name, known, "arguments") if known else "it has no arguments: write `request`"
                yield Diagnostic("SW258", message, at / index, fix)


_ONCE_KEYS: Final = ("all", "request")
"""Values of `once.key` other than a list of arguments."""


def _get_message(policy: Mapping[str, Json]) -> str | None:
    confirm = policy.get("confirm")
    return confirm.get("message") if isinstance(confirm, dict) else None


def _check_braces(text: str, at: Place) -> Iterator[Diagnostic]:
    for match in BRACES.finditer(text):
        if match[0] in ("{", "}"):
            message = f"the `{match[0]}` at character {match.start() + 1} of the message is unmatched"
            yield Diagnostic(
                "SW105", message, at, f"write `{{name}}` for an argument, and `{match[0] * 2}` for a brace"
            )


def check_public_cache(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that lists are not cached publicly if they depend on the caller's scopes (MCP 2026-07-28, "Caching")."""
    entry = resolved.entry
    if (entry.get("cache") or {}).get("scope") != "public":
        return
    declared = [
        *resolved.tools,
        *(primitive for section in vocabulary.PRIMITIVES for primitive in resolved.primitives[section]),
    ]
    scoped = [primitive.name for primitive in declared if (primitive.extension.get("policy") or {}).get("scopes")]
    if scoped:
        reason = f"`{scoped[0]}` is only listed for callers with its scopes"
    elif (entry.get("policy") or {}).get("scopes"):
        reason = "tools are only listed for callers with the scopes in `policy`"
    elif (entry.get("auth") or {}).get("requiredScopes"):
        reason = "callers need the `requiredScopes` in `auth`"
    else:
        return
    yield Diagnostic(
        "SW253",
        f"a public cache would show all callers the same lists, but {reason}",
        Place(resolved.bundle.entry, ("cache", "scope")),
        "write `scope: private`, or remove it",
    )


def check_described(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that tools have descriptions: models choose tools by description."""
    for tool in resolved.tools:
        text = tool.wire.get("description")
        if not (isinstance(text, str) and text.strip()):
            yield Diagnostic(
                "SW312",
                f"`{tool.name}` has no description",
                tool.place / "description" if text is not None else tool.place / "name",
                "describe what it does and when to use it: models choose tools by their descriptions",
            )


def check_inlined(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that schemas can be sent without references under `wire: {refs: inlined}`."""
    if not resolved.inlines:
        return
    for tool in resolved.tools:
        for field, outline in resolved.list_schemas(tool):
            result = resolved.inline(outline)
            if result.kept is not None:
                message = f"the `{field}` of `{tool.name}` still has references: {result.kept}"
                yield Diagnostic("SW341", message, (tool.place / field).point_at_key(), result.help)


_DESTROYING: Final = re.compile(r"(?i:delete|destroy|erase|purge|wipe|uninstall)(?![a-z])")
"""Name prefixes that suggest a destructive tool."""

_UNASKED: Final = "clients run such tools without asking"
_CHANGING: Final = ("PUT", "PATCH", "DELETE")
"""Methods that always write. A POST might be a search (RFC 9110, section 9.3)."""


def check_hints(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that hints do not contradict each other or the rest of the tool (MCP 2025-03-26, `ToolAnnotations`)."""
    for tool in resolved.tools:
        hints = tool.wire.get("annotations")
        if not isinstance(hints, dict):
            continue
        place = tool.place / "annotations"
        if hints.get("readOnlyHint") is True:
            if hints.get("destructiveHint") is True:
                message = f"`{tool.name}` is declared both read-only and destructive"
                fix = "remove `destructiveHint` if it only reads, otherwise `readOnlyHint`"
                yield Diagnostic("SW330", message, place / "destructiveHint", f"{fix}: {_UNASKED}")
            elif (reason := _find_change(tool)) is not None:
                message = f"`{tool.name}` is declared read-only, but {reason}"
                fix = "remove `readOnlyHint` if it changes anything"
                yield Diagnostic("SW330", message, place / "readOnlyHint", f"{fix}: {_UNASKED}")
        elif hints.get("destructiveHint") is False and (reason := _find_destruction(tool)) is not None:
            message = f"`{tool.name}` is declared non-destructive, but {reason}"
            fix = "set `destructiveHint: true` if it destroys data: clients ask before they run such tools"
            yield Diagnostic("SW330", message, place / "destructiveHint", fix)


def check_repeatable(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that tools that write declare the effect of repeated calls. Reports all tools in one warning."""
    if not resolved.serves:
        return
    unsure = [
        Diagnostic("SW350", f"`{tool.name}`", tool.place, "") for tool in resolved.tools if _lacks_idempotency(tool)
    ]
    kept = lint.suppress(resolved, unsure)
    if kept:
        more = f" and {len(kept) - _MAX_NAMED:,} more" if len(kept) > _MAX_NAMED else ""
        names = ", ".join(diagnostic.message for diagnostic in kept[:_MAX_NAMED])
        yield Diagnostic(
            "SW350",
            f"the effect of repeated calls is not declared for {names}{more}",
            kept[0].at,
            "write `stubwright: {policy: {once: {key: request}}}` to run repeated calls once, or add `idempotentHint` "
            "to `annotations`: `true` if a repeated call has no further effect, otherwise `false`",
        )


_MAX_NAMED: Final = 5
"""Messages list at most this many tools."""


def _lacks_idempotency(tool: Declaration) -> bool:
    hints = tool.wire.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    if hints.get("readOnlyHint") is True or "idempotentHint" in hints:
        return False
    if (tool.wire.get("execution") or {}).get("taskSupport", "forbidden") != "forbidden":
        return False  # the handler calls `ctx.once`
    writes = hints.get("readOnlyHint") is False or "destructiveHint" in hints or _get_method(tool) in ("POST", "PATCH")
    return writes and not (tool.extension.get("policy") or {}).get("once")


def _get_method(tool: Declaration) -> str:
    return str((tool.extension.get("http") or {}).get("method", "")).upper()


def _find_change(tool: Declaration) -> str | None:
    """Return evidence that a tool changes something, as a clause, or None."""
    method = _get_method(tool)
    if method in _CHANGING:
        return f"is a {method}"
    if (tool.extension.get("policy") or {}).get("confirm"):
        return "asks for confirmation before it runs"
    return "its name suggests that it destroys data" if _DESTROYING.match(tool.name) else None


def _find_destruction(tool: Declaration) -> str | None:
    if _get_method(tool) == "DELETE":
        return "is a DELETE"
    return "its name suggests that it destroys data" if _DESTROYING.match(tool.name) else None


def check_web_resources(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Warn about `https://` resources, which clients should fetch themselves (MCP 2025-11-25, "Common URI Schemes")."""
    for section in (vocabulary.RESOURCES, vocabulary.TEMPLATES):
        for primitive in resolved.primitives[section]:
            if primitive.key.lower().startswith("https://"):
                yield Diagnostic(
                    "SW332",
                    f"clients could fetch `{primitive.key}` themselves",
                    primitive.place / section.key,
                    "use your own scheme, such as `docs://`, for content that only this server can read",
                )


def check_icons(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that icons have `https:` or `data:` URIs. Clients must reject other URIs (MCP 2025-11-25, "Icons")."""
    bundle = resolved.bundle
    holders = [(Place(bundle.entry, ("server",)), resolved.entry["server"])]
    for path in dict.fromkeys(fragment.path for fragment in bundle.fragments):
        for section in vocabulary.SECTIONS:
            holders += [(place, entry) for place, entry in list_entries(bundle, path, section) if "icons" in entry]
    for place, holder in holders:
        for index, icon in enumerate(holder.get("icons") or ()):
            if not icon["src"].lower().startswith(_ICON_SCHEMES):
                yield Diagnostic(
                    "SW333",
                    f"clients reject an icon at `{shorten(icon['src'])}`",
                    place / "icons" / index / "src",
                    "use an `https:` or a `data:` URI",
                )
