"""Finds schemas that the server's validator accepts, and clients' validators reject.

Clients of the official SDKs compile each `outputSchema` to check results, some of them when they list tools, so one
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
from stubwright.jsonschema.ecma262 import find_unread_part
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
"""The number of multiples that are tried; if any is rejected, an early one is."""

_PYTHON_FIXES: Final = (
    (re.compile(r"\\[pP]\{"), "list the characters in a class, or name them in the description"),
    (re.compile(r"\(\?<[^=!]"), "write an unnamed group, `(…)`"),
    (re.compile(r"\\u\{"), "write the character itself"),
    (re.compile(r"\[\^?\]"), "write `[\\s\\S]` for any character"),
    (re.compile(r"\\[wdsWDS]-|-\\[wdsWDS]"), "write `\\-` for a hyphen in a class"),
)
"""Parts of patterns that Python's `re` rejects, with advice, in the order of the search."""


def check_javascript(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each pattern is valid in JavaScript with the flag `u`, as JSON Schema recommends (2020-12 Core, 6.4).

    In an imported file that is a warning: a user who imports the schemas of another server cannot change them.
    """
    results = _reached(resolved, "outputSchema")
    for outline in (results | _reached(resolved, "inputSchema")).values():
        is_of_results = outline.place in results
        is_error = is_of_results and not is_imported(resolved.bundle.documents[outline.place.file].text)
        for place, pattern in find_patterns(outline):
            part = find_unread_part(pattern) if is_expression(pattern) else None
            if part is not None:
                consequence = "cannot list the server's tools" if is_of_results else "may not check arguments"
                yield Diagnostic(
                    "SW288" if is_error else "SW325",
                    f"`{pattern}` is not a regular expression of JavaScript, because of `{part}`",
                    place,
                    f"{_fix(part)}; otherwise a client in JavaScript {consequence}",
                )


def check_official_clients(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the clients of the official SDKs accept each `outputSchema`."""
    for outline in _reached(resolved, "outputSchema").values():
        if outline.dialect is DRAFT_4:
            yield Diagnostic(
                "SW326",
                "the TypeScript SDK's client rejects schemas of draft-04, and then cannot list the server's tools",
                outline.place / "$schema" if outline.find_having("$schema") else outline.place.point_at_key(),
                "write the schema in a newer dialect, best without `$schema`",
            )
        for place, pattern in find_patterns(outline):
            reason = _refuse_in_python(pattern) if is_expression(pattern) else None
            if reason is not None:
                yield Diagnostic(
                    "SW326",
                    f"Python's `re` does not compile `{pattern}` ({reason}), so the Python SDK's client raises an error"
                    " at each result",
                    place,
                    _fix_for_python(pattern),
                )
        for pointer, schema in outline.find_having("multipleOf"):
            step = schema["multipleOf"]
            refused = _refused_multiple(step) if isinstance(step, float) else None
            if refused is not None:
                yield Diagnostic(
                    "SW326",
                    f"the SDKs' clients divide in binary, and refuse {refused} as a multiple of {step!r}",
                    Place(outline.place.file, (*outline.place.pointer, *pointer)) / "multipleOf",
                    "use integers in a smaller unit (cents), or describe the step in the description",
                )


def check_divided_objects(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the properties of an object are in one place.

    FastMCP's `.data` loses properties elsewhere, and pydantic-ai closes each half for OpenAI's models, so that no
    arguments are valid (`python bench/references.py`). There is only one warning, since one line in the manifest fixes
    all objects.
    """
    if resolved.inlines:
        return
    outlines = {
        outline.place: outline
        for field in ("outputSchema", "inputSchema")
        for outline in _reached(resolved, field, is_bundled=True).values()
    }
    places = [
        Place(outline.place.file, (*outline.place.pointer, *pointer)) / keyword
        for outline in outlines.values()
        for pointer, schema in outline.find_having("properties")
        if (keyword := _elsewhere(schema, outline.dialect)) is not None
        and not is_imported(resolved.bundle.documents[outline.place.file].text)
    ]
    if places:
        name, more = places[0].pointer[-1], len(places) - 1
        lost = "the target of this `$ref`" if name == "$ref" else f"the properties that this `{name}` adds"
        others = f"; likewise in {more} more schema{'' if more == 1 else 's'}" if more else ""
        yield Diagnostic(
            "SW346",
            f"some clients read only `properties`, and lose {lost}{others}",
            places[0],
            "write `wire: {refs: inlined}` in the manifest, so that both become one object",
        )


def _elsewhere(schema: Mapping[str, Json], dialect: Dialect) -> str | None:
    """Return the keyword next to `properties` that adds properties to the same object, if any."""
    if "$ref" in schema and not dialect.reference_hides_siblings:
        return "$ref"
    parts = schema.get("allOf")
    gives = isinstance(parts, list) and any(
        is_object(part) and ("properties" in part or "$ref" in part) for part in parts
    )
    return "allOf" if gives else None


def _refused_multiple(step: float) -> float | None:
    """Return the first multiple of a step, below a limit, that binary division does not recognize."""
    exact = Decimal(repr(step))
    multiples = (float(exact * count) for count in range(1, _MULTIPLES))
    return next((multiple for multiple in multiples if not (multiple / step).is_integer()), None)


def _reached(resolved: ResolvedBundle, field: str, *, is_bundled: bool = False) -> dict[Place, Outline]:
    """Return the schemas of a field of all tools, including shared ones; none if the manifest has no server.

    `is_bundled` omits schemas that are sent without references.
    """
    if "server" not in (resolved.entry.get("emit") or ("server",)):
        return {}
    roots = [outline for tool in resolved.tools for name, outline in resolved.list_schemas(tool) if name == field]
    if is_bundled:
        roots = [root for root in roots if not resolved.sends_inlined(root)]
    return {each.place: each for root in roots for each in resolved.find_closure(root)}


def _refuse_in_python(pattern: str) -> str | None:
    """Return the reason why Python's `re` rejects a pattern, if it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return None


def _fix_for_python(pattern: str) -> str:
    """Return advice on writing a pattern that Python's `re` rejects."""
    plain = pattern.replace("\\\\", "")
    fixes = (fix for part, fix in _PYTHON_FIXES if part.search(plain))
    return next(fixes, "use the syntax that ECMA-262 and Python's `re` share, or put the rule in the description")


def _fix(part: str) -> str:
    """Return advice on writing a part of a pattern differently."""
    if part in ("{", "}", "]"):
        return f"write `\\{part}`"
    if len(part) == 2 and part[0] == "\\" and not part[1].isalnum():
        return f"write `{part[1]}` without the backslash"
    return "use the syntax of ECMA-262 with the flag `u`"
