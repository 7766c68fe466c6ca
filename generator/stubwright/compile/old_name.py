"""Manifests from before stubwright had its name: one finding for a file, which says all there is to change in it.

A key of the old name would otherwise count as unknown, and what it asks for, such as a rate limit, would be lost with a
warning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from stubwright.diagnostics import Diagnostic, Place
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.compile.source import Document
    from stubwright.ir import Json

NAME: Final = "toolwright"
"""The old name of stubwright."""

_CODE: Final = re.compile(r"TW[0-9]{3}")
_MOST: Final = 20
"""The most lines that are listed."""


def check(document: Document) -> Diagnostic | None:
    """Return the finding for a file that has the old name in it; None for any other."""
    places = [*_find(document.value, Place(document.path))]
    if not places:
        return None
    lines = sorted({document.find_span(place).line for place in places})
    shown = ", ".join(map(str, lines[:_MOST])) + (f" and {len(lines) - _MOST} more" if len(lines) > _MOST else "")
    where = f"in line{'s' if len(lines) > 1 else ''} {shown}"
    return Diagnostic(
        "SW107",
        f"`{NAME}` is called `stubwright` now",
        min(places, key=document.find_span),
        f"{where}, write `stubwright` for `{NAME}` and `SW…` for codes such as `TW…`",
    )


def _find(document: Json, at: Place) -> Iterator[Place]:
    """Yield the places of keys that have the old name, and of codes that begin as they did."""
    if not isinstance(document, dict):
        return
    entries = [(document, at)]
    for section in vocabulary.SECTIONS:
        listed = document.get(section.name)
        for number, entry in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(entry, dict):
                entries.append((entry, at / section.name / number))
    for entry, place in entries:
        if NAME in entry:
            yield (place / NAME).point_at_key()
            yield from _find_codes(entry[NAME], place / NAME)
        yield from _find_codes(entry, place)


def _find_codes(settings: Json, at: Place) -> Iterator[Place]:
    for key in ("lint", "diff"):
        ignored = settings.get(key) if isinstance(settings, dict) else None
        codes = ignored.get("ignore") if isinstance(ignored, dict) else None
        for number, code in enumerate(codes if isinstance(codes, list) else ()):
            if isinstance(code, str) and _CODE.fullmatch(code):
                yield at / key / "ignore" / number
