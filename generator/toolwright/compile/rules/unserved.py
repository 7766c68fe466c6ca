"""Parts of a manifest that are checked, but that generated servers do not serve yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwright.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolwright.compile.resolve import Resolved
    from toolwright.diagnostics import Place

_TASK_ONLY = "execution.taskSupport: required"


def find_unserved(resolved: Resolved) -> Iterator[Diagnostic]:
    """One warning for all of them, where there are any."""
    parts: dict[str, Place] = {}
    for name, place in _parts(resolved):
        parts.setdefault(name, place)
    if not parts:
        return
    helps = []
    if _TASK_ONLY in parts:
        helps.append("the server does not start with `taskSupport: required`; leave it out")
    if not helps:
        helps.append("the generated package works without it")
    message = f"checked, but not served yet: {', '.join(f'`{name}`' for name in parts)}"
    yield Diagnostic("TW390", message, next(iter(parts.values())), "; ".join(helps))


def _parts(resolved: Resolved) -> Iterator[tuple[str, Place]]:
    for tool in resolved.tools:
        support = (tool.wire.get("execution") or {}).get("taskSupport")
        if support in ("optional", "required"):
            name = _TASK_ONLY if support == "required" else "execution.taskSupport"
            yield name, tool.place / "execution" / "taskSupport"
