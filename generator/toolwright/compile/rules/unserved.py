"""Parts of a manifest that are checked, but that generated servers do not serve yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwright.compile.resolve import manifests
from toolwright.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolwright.compile.resolve import Resolved


def find_unserved(resolved: Resolved) -> Iterator[Diagnostic]:
    """One warning for all of them, where there are any."""
    parts: dict[str, Place] = {}
    for name, place in _parts(resolved):
        parts.setdefault(name, place)
    if not parts:
        return
    help_ = "the server does not start with `handles`, since it would take any"
    message = f"checked, but not served yet: {', '.join(f'`{name}`' for name in parts)}"
    yield Diagnostic("TW390", message, next(iter(parts.values())), help_)


def _parts(resolved: Resolved) -> Iterator[tuple[str, Place]]:
    for path, manifest in manifests(resolved.bundle):
        if manifest.get("handles"):
            yield "handles", Place(path, ("handles",), "key")
