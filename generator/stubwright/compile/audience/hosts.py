"""Checks host-specific `_meta` keys, and the pages that hosts show next to results (MCP Apps, SEP-1865).

`_meta` is sent unchanged, and hosts silently ignore invalid values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import did_you_mean, find_misspelt, suggest
from stubwright.targets import metadata
from stubwright_runtime.mcp import vocabulary
from stubwright_runtime.values.json import is_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.ir import Json

_OPENAI_MIME: Final = "text/html+skybridge"
"""The media type for `openai/outputTemplate`, which ChatGPT requires (Apps SDK reference, "Component resource")."""


def check(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check the `_meta` of tools and resources, and tools' pages."""
    if not resolved.serves:
        return  # users cannot change an imported server
    resources = resolved.primitives[vocabulary.RESOURCES]
    templates = resolved.primitives[vocabulary.TEMPLATES]
    known = dict.fromkeys(resource.key for resource in resources)
    for tool in resolved.tools:
        yield from _check_metadata(tool, "tool")
        for uri, place in _list_pages(tool):
            if uri not in known and not any(_may_match(template.key, uri) for template in templates):
                message = f"`{tool.name}` uses the page `{uri}`, which is not a resource of this server"
                fix = did_you_mean(uri, [each for each in known if each.startswith(vocabulary.PAGES)], "pages")
                # A saved `tools/list` result has no resources, even if its server does.
                yield Diagnostic("SW274" if known or templates else "SW347", message, place, fix)
    for resource in (*resources, *templates):
        yield from _check_metadata(resource, "resource")
        mime_type = resource.wire.get("mimeType")
        if resource.key.startswith(vocabulary.PAGES) and mime_type not in (vocabulary.PAGE_MIME, _OPENAI_MIME):
            has = "has no `mimeType`" if mime_type is None else f"has the `mimeType` `{mime_type}`"
            place = resource.place / "mimeType" if mime_type is not None else resource.place / resource.section.key
            yield Diagnostic(
                "SW274",
                f"`{resource.key}` {has}, and hosts only show MCP Apps pages",
                place,
                f"write `mimeType: {vocabulary.PAGE_MIME}`",
            )


def _check_metadata(declared: Declaration, kind: metadata.Kind) -> Iterator[Diagnostic]:
    import jsonschema_rs

    known = metadata.load_keys(kind)
    for name, value in _get_metadata(declared).items():
        place = declared.place / "_meta" / name
        key = known.get(name)
        if key is None:
            if (near := find_misspelt(name, known)) is not None:
                message = f"no host reads `{name}` of `{declared.name}`"
                yield Diagnostic("SW347", message, place.point_at_key(), suggest(name, near))
        elif error := next(jsonschema_rs.iter_errors(key.schema, value), None):
            message = f"{key.host} ignores this `{name}` of `{declared.name}`, which specifies {key.says}"
            at = Place(place.file, (*place.pointer, *error.instance_path))
            yield Diagnostic("SW347", message, at, f"write {key.takes} ({key.source})")


def _may_match(template: str, uri: str) -> bool:
    first, *rest = re.split(r"\{[^}]*\}", template)
    if not rest:
        return uri == first
    *middle, last = rest
    at = len(first)
    for part in middle:  # the first match leaves the most characters for later parts
        at = uri.find(part, at) + len(part)
        if at < len(part):
            return False
    return uri.startswith(first) and uri.endswith(last) and at + len(last) <= len(uri)


def _list_pages(tool: Declaration) -> Iterator[tuple[str, Place]]:
    meta = _get_metadata(tool)
    place = tool.place / "_meta"
    ui = meta.get("ui")
    if is_object(ui) and isinstance(uri := ui.get("resourceUri"), str):
        yield uri, place / "ui" / "resourceUri"
    if isinstance(uri := meta.get("openai/outputTemplate"), str):
        yield uri, place / "openai/outputTemplate"


def _get_metadata(declared: Declaration) -> Mapping[str, Json]:
    return declared.wire.get("_meta") or {}
