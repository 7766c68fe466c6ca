"""What HTTP calls keep of responses: parts that there are, headers that can be, pages that lead somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright.compile.rules.http import argument_names, bound
from stubwright.diagnostics import Diagnostic
from stubwright.diagnostics.suggestions import nearest, quoted
from stubwright.http import TOKEN
from stubwright.jsonschema.selecting import Selecting
from stubwright_runtime.http.selections import below as kept_below
from stubwright_runtime.http.selections import steps_of, tree_of
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stubwright.compile.resolve import Declared, Resolved
    from stubwright.diagnostics import Place
    from stubwright.ir import Json

_PARTS: Final = ("items", "next", "more", "total")
_NEEDED: Final = {"cursor": ("argument", "next"), "link": (), "offset": ("argument",), "number": ("argument",)}
"""What each way to the next page needs to be told."""


def parts(resolved: Resolved) -> Iterator[Diagnostic]:
    """Check that a pointer into a response leads to what a response can have."""
    for tool, http in bound(resolved):
        given: list[tuple[Place, str]] = [
            (tool.place_of("http", "select") / index, pointer) for index, pointer in enumerate(http.get("select") or ())
        ]
        page = http.get("page") or {}
        given += [(tool.place_of("http", "page", key), page[key]) for key in _PARTS if key in page]
        outline = dict(resolved.schemas(tool)).get("outputSchema")
        if not given or outline is None:
            continue
        making = Selecting(resolved.bundled(outline).wire)
        for place, pointer in given:
            yield from _led(making, tool, place, pointer)


def _led(making: Selecting, tool: Declared, place: Place, pointer: str) -> Iterator[Diagnostic]:
    schemas: Sequence[Json] = [making.root]
    reached = ""
    for step, text in zip(steps_of(pointer), pointer.split("/")[1:], strict=True):
        following = making.led(schemas, step)
        if following is None:
            return
        reached += f"/{text}"
        if not following:
            known = [] if step is None else making.known(schemas)
            near = None if step is None else nearest(step, known)
            if near:
                fix = f"did you mean `{near}`?"
            else:
                fix = f"it can have {quoted(known[:8])}" if known else "remove this step"
            yield Diagnostic("SW266", f"no response of `{tool.name}` has `{reached}`", place, fix)
            return
        schemas = following


def headers(resolved: Resolved) -> Iterator[Diagnostic]:
    """Check that a header of a response has a name that a header can have."""
    for tool, http in bound(resolved):
        for name, spec in (http.get("responseHeaders") or {}).items():
            header = spec if isinstance(spec, str) else spec["name"]
            if not TOKEN.fullmatch(header):
                place = tool.place_of("http", "responseHeaders", name)
                yield Diagnostic(
                    "SW265",
                    f"`{header}` is not the name of a header",
                    place if isinstance(spec, str) else place / "name",
                    "use letters, digits and `-` (RFC 9110, section 5.6.2)",
                )


def large(resolved: Resolved) -> Iterator[Diagnostic]:
    """Check that a result that may be given in part promises no structure."""
    apis = {api.name: api.settings for api in resolved.apis}
    for tool, http in bound(resolved):
        output = http.get("output", apis.get(http.get("api", ""), {}).get("output", "strict"))
        has_schema = "outputSchema" in tool.wire or not {"page", "responseHeaders"}.isdisjoint(http)
        if "large" in http and output == "strict" and has_schema:
            yield Diagnostic(
                "SW264",
                f"part of a result of `{tool.name}` cannot fit its `outputSchema`",
                tool.place_of("http", "large").key(),
                "add `output: lenient`, or remove `large`",
            )


def pages(resolved: Resolved) -> Iterator[Diagnostic]:
    """Check that pages can be followed: an argument says where one starts, and what is kept has the items."""
    for tool, http in bound(resolved):
        if "page" in http:
            for key, message, fix in _wrong(http, argument_names(resolved, tool)):
                place = tool.place_of("http", "page", *([key] if key in http["page"] else []))
                yield Diagnostic("SW267", message, place if key in http["page"] else place.key(), fix)


def _wrong(http: Mapping[str, Json], known: set[str]) -> Iterator[tuple[str, str, str]]:
    page: Mapping[str, Json] = http["page"]
    for key in _NEEDED[page["by"]]:
        if key not in page:
            yield key, f"pages by {page['by']} need `{key}`", f"add `{key}`"
    for key in ("argument", "limit"):
        if key in page and page[key] not in known:
            near = nearest(page[key], known)
            fix = f"did you mean `{near}`?" if near else "add it to the `properties` of its `inputSchema`"
            yield key, f"the tool has no argument `{page[key]}`", fix
    if vocabulary.CURSOR in known and page.get("argument") != vocabulary.CURSOR:
        fix = "set it as `argument`, or rename it"
        yield "argument", f"the tool already has an argument `{vocabulary.CURSOR}`, which pages need", fix
    if "*" in page.get("items", "").split("/"):
        yield "items", "the items must be in one list", "remove `*`"
        return
    here = tree_of(http.get("select") or ())
    for step in steps_of(page.get("items", "")):
        following = None if step is None else kept_below(here, step)
        if following is None:
            fix = "add pointers into the items to `select`"
            yield "items", f"`select` keeps nothing of `{page['items']}`", fix
            return
        here = following
