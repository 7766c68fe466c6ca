"""Rules about responses of HTTP calls: selected parts, headers and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright.compile.rules.http import find_argument_names, list_calls
from stubwright.diagnostics import Diagnostic
from stubwright.diagnostics.suggestions import find_nearest, quote, suggest
from stubwright.http import TOKEN
from stubwright.jsonschema.selection import SchemaSelector
from stubwright_runtime.http.selections import make_tree, parse_steps
from stubwright_runtime.http.selections import select_below as kept_below
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.diagnostics import Place
    from stubwright.ir import Json

_PARTS: Final = ("items", "next", "more", "total")
_REQUIRED_KEYS: Final = {"cursor": ("argument", "next"), "link": (), "offset": ("argument",), "number": ("argument",)}
"""Required keys for each pagination style."""


def check_parts(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that pointers into responses can resolve."""
    for tool, http in list_calls(resolved):
        pointers: list[tuple[Place, str]] = [
            (tool.place_of("http", "select") / index, pointer) for index, pointer in enumerate(http.get("select") or ())
        ]
        page = http.get("page") or {}
        pointers += [(tool.place_of("http", "page", key), page[key]) for key in _PARTS if key in page]
        outline = dict(resolved.list_schemas(tool)).get("outputSchema")
        if not pointers or outline is None:
            continue
        selector = SchemaSelector(resolved.bundle_schema(outline).wire)
        for place, pointer in pointers:
            yield from _check_pointer(selector, tool, place, pointer)


def _check_pointer(selector: SchemaSelector, tool: Declaration, place: Place, pointer: str) -> Iterator[Diagnostic]:
    schemas: Sequence[Json] = [selector.root]
    reached = ""
    for step, text in zip(parse_steps(pointer), pointer.split("/")[1:], strict=True):
        following = selector.follow(schemas, step)
        if following is None:
            return
        reached += f"/{text}"
        if not following:
            known = [] if step is None else selector.list_known(schemas)
            near = None if step is None else find_nearest(step, known)
            others = f"it can have {quote(known[:8])}" if known else "remove this step"
            fix = suggest(step, near) if step and near else others
            yield Diagnostic("SW266", f"no response of `{tool.name}` has `{reached}`", place, fix)
            return
        schemas = following


def check_headers(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that response headers have valid names."""
    for tool, http in list_calls(resolved):
        for name, spec in (http.get("responseHeaders") or {}).items():
            header = spec if isinstance(spec, str) else spec["name"]
            if not TOKEN.fullmatch(header):
                place = tool.place_of("http", "responseHeaders", name)
                yield Diagnostic(
                    "SW265",
                    f"`{header}` is not a valid header name",
                    place if isinstance(spec, str) else place / "name",
                    "use letters, digits and `-` (RFC 9110, section 5.6.2)",
                )


def check_large(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that tools with truncated results (`large`) do not promise structured output."""
    apis = {api.name: api.settings for api in resolved.apis}
    for tool, http in list_calls(resolved):
        output = http.get("output", apis.get(http.get("api", ""), {}).get("output", "strict"))
        has_schema = "outputSchema" in tool.wire or not {"page", "responseHeaders"}.isdisjoint(http)
        if "large" in http and output == "strict" and has_schema:
            yield Diagnostic(
                "SW264",
                f"a partial result of `{tool.name}` does not match its `outputSchema`",
                tool.place_of("http", "large").point_at_key(),
                "add `output: lenient`, or remove `large`",
            )


def check_pages(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that `page` is complete, and that `select` includes the items."""
    for tool, http in list_calls(resolved):
        if "page" in http:
            for key, message, fix in _find_page_problems(http, find_argument_names(resolved, tool)):
                place = tool.place_of("http", "page", *([key] if key in http["page"] else []))
                yield Diagnostic("SW267", message, place if key in http["page"] else place.point_at_key(), fix)


def _find_page_problems(http: Mapping[str, Json], known: set[str]) -> Iterator[tuple[str, str, str]]:
    page: Mapping[str, Json] = http["page"]
    for key in _REQUIRED_KEYS[page["by"]]:
        if key not in page:
            yield key, f"pagination by {page['by']} requires `{key}`", f"add `{key}`"
    for key in ("argument", "limit"):
        if key in page and page[key] not in known:
            near = find_nearest(page[key], known)
            fix = suggest(page[key], near) if near else "add it to the `properties` of its `inputSchema`"
            yield key, f"the tool has no argument `{page[key]}`", fix
    if vocabulary.CURSOR in known and page.get("argument") != vocabulary.CURSOR:
        fix = "set `argument` to its name, or rename it"
        yield "argument", f"the tool already has an argument `{vocabulary.CURSOR}`, which pages need", fix
    if "*" in page.get("items", "").split("/"):
        yield "items", "the items must be in one list", "remove `*`"
        return
    here = make_tree(http.get("select") or ())
    for step in parse_steps(page.get("items", "")):
        following = None if step is None else kept_below(here, step)
        if following is None:
            fix = "add pointers into the items to `select`"
            yield "items", f"`select` omits everything in `{page['items']}`", fix
            return
        here = following
