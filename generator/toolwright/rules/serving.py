"""Parts of a manifest that are checked, but that generated servers do not serve yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwright.assembly import manifests
from toolwright.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolwright.assembly import Assembly

_SECTIONS = ("resources", "resourceTemplates", "prompts", "handles", "auth", "policy", "cache", "pageSize", "diff")
_TOOL_PARTS = ("policy", "ask", "http")


def unserved(assembly: Assembly) -> Diagnostic | None:
    """One warning for all of them; None where everything is served."""
    parts: dict[str, Place] = {}
    for name, place in _parts(assembly):
        parts.setdefault(name, place)
    if not parts:
        return None
    return Diagnostic(
        "TW390",
        f"checked, but not served yet: {', '.join(f'`{name}`' for name in parts)}",
        next(iter(parts.values())),
        "the generated package works without them",
    )


def _parts(assembly: Assembly) -> Iterator[tuple[str, Place]]:
    for path, manifest in manifests(assembly.bundle):
        for section in _SECTIONS:
            if manifest.get(section):
                yield section, Place(path, (section,), "key")
    for tool in assembly.tools:
        for part in _TOOL_PARTS:
            if tool.ours.get(part):
                yield f"toolwright.{part}", tool.said(part).key()
        if (tool.wire.get("execution") or {}).get("taskSupport") in ("optional", "required"):
            yield "execution.taskSupport", tool.place / "execution" / "taskSupport"
