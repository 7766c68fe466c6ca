"""Checks and applies `lint: {ignore: […]}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.compile.resolve import list_entries, list_manifests
from stubwright.diagnostics import CODES, Diagnostic, Place, Span
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.ir import Json


def check_codes(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that ignored codes exist and are warnings."""
    for place, codes, _ in _lists(resolved):
        for index, code in enumerate(codes):
            if code not in CODES:
                yield Diagnostic(
                    "SW381",
                    f"`{code}` is not a diagnostic code",
                    place / index,
                    "write a code as `stubwright check` prints it, such as `SW312`",
                )
            elif CODES[code].severity == "error":
                yield Diagnostic(
                    "SW380",
                    f"`{code}` is an error, and errors cannot be ignored",
                    place / index,
                    "remove the code from the list",
                )


def suppress(resolved: ResolvedBundle, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return `diagnostics` without ignored warnings.

    A list in the entry file applies to the whole manifest, one in a fragment applies to that file, and one in an entry
    applies to that entry.
    """
    ignored = [(frozenset(codes), places) for _, codes, places in _lists(resolved)]
    return [
        diagnostic
        for diagnostic in diagnostics
        if diagnostic.severity == "error"
        or not any(diagnostic.code in codes and _is_within(diagnostic.at, places) for codes, places in ignored)
    ]


def _lists(resolved: ResolvedBundle) -> Iterator[tuple[Place, list[str], tuple[Place, ...] | None]]:
    """Yield each list of ignored codes with the list's location and scope. The scope is None for the whole manifest."""
    for path, manifest in list_manifests(resolved.bundle):
        if codes := _get_codes(manifest):
            everywhere = path == resolved.bundle.entry
            yield Place(path, ("lint", "ignore")), codes, None if everywhere else (Place(path),)
        for section in vocabulary.PRIMITIVES:
            for place, entry in list_entries(resolved.bundle, path, section):
                if codes := _get_codes(entry.get("stubwright") or {}):
                    yield place / "stubwright" / "lint" / "ignore", codes, (place,)
    for tool in resolved.tools:
        if codes := _get_codes(tool.extension):
            own = (place for place, _ in tool.layers if place.pointer[:1] != ("auth",))
            yield tool.place_of("lint", "ignore"), codes, (tool.place, *own)


def _get_codes(extension: Mapping[str, Json]) -> list[str]:
    return list((extension.get("lint") or {}).get("ignore") or ())


def _is_within(at: Place | Span | None, places: tuple[Place, ...] | None) -> bool:
    if places is None:
        return True
    if isinstance(at, Place):
        return any(at.file == above.file and at.pointer[: len(above.pointer)] == above.pointer for above in places)
    return isinstance(at, Span) and Place(at.file) in places
