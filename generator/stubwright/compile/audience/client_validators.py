"""Finds schemas that the server accepts but client-side validators reject.

Clients built on the official SDKs compile each `outputSchema`. Some do so when they list the tools, and then one
rejected schema makes every tool unavailable. No client compiles an `inputSchema` to call a tool.
"""

from __future__ import annotations

import re
import warnings
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from stubwright.compile.syntax.yamlwriter import is_imported
from stubwright.diagnostics import Diagnostic, Place
from stubwright.jsonschema.dialects import DRAFT_4
from stubwright.jsonschema.ecma262 import find_invalid_part
from stubwright.jsonschema.expressions import find_patterns, is_expression
from stubwright_runtime.values.json import is_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect
    from stubwright.jsonschema.references import Outline

_INPUT: Final = "inputSchema"
_MULTIPLES: Final = 1_000
"""Number of multiples to try. Binary division fails on small multiples, if at all."""

_PYTHON_FIXES: Final = (
    (re.compile(r"\\[pP]\{"), "list the characters in a class, or name them in the description"),
    (re.compile(r"\(\?<[^=!]"), "write an unnamed group, `(…)`"),
    (re.compile(r"\\u\{"), "write the character itself"),
    (re.compile(r"\[\^?\]"), "write `[\\s\\S]` for any character"),
    (re.compile(r"\\[wdsWDS]-|-\\[wdsWDS]"), "write `\\-` for a hyphen in a class"),
)
"""Syntax that Python's `re` rejects, each with advice; the first match wins."""


def check_javascript(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each pattern is valid JavaScript with the `u` flag, as JSON Schema recommends (2020-12 Core, 6.4).

    In imported files this is only a warning, since users cannot change another server's schemas.
    """
    results = _collect_schemas(resolved, "outputSchema")
    for outline in (results | _collect_schemas(resolved, "inputSchema")).values():
        checks_results = outline.place in results
        is_error = checks_results and not is_imported(resolved.bundle.documents[outline.place.file].text)
        for place, pattern in find_patterns(outline):
            part = find_invalid_part(pattern) if is_expression(pattern) else None
            if part is not None:
                consequence = "cannot list the server's tools" if checks_results else "may not check arguments"
                yield Diagnostic(
                    "SW288" if is_error else "SW325",
                    f"`{pattern}` is not a valid JavaScript regular expression, because of `{part}`",
                    place,
                    f"{_advise_for_javascript(part)}; otherwise a JavaScript client {consequence}",
                )


def check_official_clients(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the official SDKs' clients accept each `outputSchema`."""
    for outline in _collect_schemas(resolved, "outputSchema").values():
        if outline.dialect is DRAFT_4:
            yield Diagnostic(
                "SW326",
                "the TypeScript SDK's client rejects draft-04 schemas, and then cannot list the server's tools",
                outline.place / "$schema" if outline.find_having("$schema") else outline.place.point_at_key(),
                "write the schema in a newer dialect, best without `$schema`",
            )
        for place, pattern in find_patterns(outline):
            reason = _find_python_error(pattern) if is_expression(pattern) else None
            if reason is not None:
                yield Diagnostic(
                    "SW326",
                    f"Python's `re` does not compile `{pattern}` ({reason}), so the Python SDK's client raises an error"
                    " for every result",
                    place,
                    _advise_for_python(pattern),
                )
        for pointer, schema in outline.find_having("multipleOf"):
            step = schema["multipleOf"]
            rejected = _find_rejected_multiple(step) if isinstance(step, float) else None
            if rejected is not None:
                yield Diagnostic(
                    "SW326",
                    f"the SDKs' clients use binary division, and reject {rejected} as a multiple of {step!r}",
                    outline.locate(pointer) / "multipleOf",
                    "use integers in a smaller unit (cents), or describe the step in the description",
                )


def check_divided_objects(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that all properties of an object are declared in one schema.

    FastMCP's `.data` loses other properties, and pydantic-ai closes each half for OpenAI's models, so no arguments are
    valid (`python bench/references.py`). One warning is enough, since one line in the manifest fixes all objects.
    """
    if resolved.inlines:
        return
    outlines = {
        outline.place: outline
        for field in ("outputSchema", "inputSchema")
        for outline in _collect_schemas(resolved, field, is_bundled=True).values()
    }
    places = [
        outline.locate(pointer) / keyword
        for outline in outlines.values()
        for pointer, schema in outline.find_having("properties")
        if (keyword := _find_extension(schema, outline.dialect)) is not None
        and not is_imported(resolved.bundle.documents[outline.place.file].text)
    ]
    if places:
        name, more = places[0].pointer[-1], len(places) - 1
        lost = "the target of this `$ref`" if name == "$ref" else f"the properties that this `{name}` adds"
        others = f"; the same applies to {more} more schema{'' if more == 1 else 's'}" if more else ""
        yield Diagnostic(
            "SW346",
            f"some clients only read `properties`, and lose {lost}{others}",
            places[0],
            "write `wire: {refs: inlined}` in the manifest to merge them into one object",
        )


def _find_extension(schema: Mapping[str, Json], dialect: Dialect) -> str | None:
    """Return a keyword next to `properties` that adds properties to the same object, or None."""
    if "$ref" in schema and not dialect.reference_hides_siblings:
        return "$ref"
    parts = schema.get("allOf")
    adds_properties = isinstance(parts, list) and any(
        is_object(part) and ("properties" in part or "$ref" in part) for part in parts
    )
    return "allOf" if adds_properties else None


def _find_rejected_multiple(step: float) -> float | None:
    """Return the first multiple of a step that binary division does not recognize as a multiple, or None."""
    exact = Decimal(repr(step))
    multiples = (float(exact * count) for count in range(1, _MULTIPLES))
    return next((multiple for multiple in multiples if not (multiple / step).is_integer()), None)


def _collect_schemas(resolved: ResolvedBundle, field: str, *, is_bundled: bool = False) -> dict[Place, Outline]:
    """Return the schemas of all tools in one field, and the shared schemas that the tools' schemas reference.

    Return nothing if the manifest emits no server. With `is_bundled`, omit schemas that are sent without references.
    """
    if not resolved.serves:
        return {}
    roots = [outline for tool in resolved.tools for name, outline in resolved.list_schemas(tool) if name == field]
    if is_bundled:
        roots = [root for root in roots if not resolved.sends_inlined(root)]
    return {each.place: each for root in roots for each in resolved.find_closure(root)}


def _find_python_error(pattern: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return None


def _advise_for_python(pattern: str) -> str:
    plain = pattern.replace("\\\\", "")
    fixes = (fix for part, fix in _PYTHON_FIXES if part.search(plain))
    return next(fixes, "use the syntax that ECMA-262 and Python's `re` share, or describe the rule in the description")


def _advise_for_javascript(part: str) -> str:
    if part in ("{", "}", "]"):
        return f"write `\\{part}`"
    if len(part) == 2 and part[0] == "\\" and not part[1].isalnum():
        return f"write `{part[1]}` without the backslash"
    return "use ECMA-262 syntax with the `u` flag"
