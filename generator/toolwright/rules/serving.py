"""Parts of a manifest that are checked, but that generated servers do not serve yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwright.assembly import manifests
from toolwright.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolwright.assembly import Assembly
    from toolwright.ir import Json

_SECTIONS = ("handles", "auth")
_TOOL_PARTS = ("http",)
_SERVED = frozenset({"confirm", "redact"})
"""The parts of a tool's policy that its package keeps: clients ask, and audit records leave out."""

_TASK_ONLY = "execution.taskSupport: required"


def unserved(assembly: Assembly) -> Diagnostic | None:
    """One warning for all of them; None where everything is served."""
    parts: dict[str, Place] = {}
    for name, place in _parts(assembly):
        parts.setdefault(name, place)
    if not parts:
        return None
    mend = "the generated package works without them"
    if _TASK_ONLY in parts:
        others = "" if len(parts) == 1 else f"{mend}, but for one: "
        mend = f"{others}with `taskSupport: required`, clients see a tool that only runs as a task; leave it out"
    return Diagnostic(
        "TW390",
        f"checked, but not served yet: {', '.join(f'`{name}`' for name in parts)}",
        next(iter(parts.values())),
        mend,
    )


def _parts(assembly: Assembly) -> Iterator[tuple[str, Place]]:
    for path, manifest in manifests(assembly.bundle):
        for section in _SECTIONS:
            if manifest.get(section):
                yield section, Place(path, (section,), "key")
        for key in _keys(manifest.get("policy")):
            yield f"policy.{key}", Place(path, ("policy", key), "key")
    for tool in assembly.tools:
        for part in _TOOL_PARTS:
            if tool.ours.get(part):
                yield f"toolwright.{part}", tool.said(part).key()
        for key in _keys(tool.ours.get("policy")):
            if key not in _SERVED:
                yield f"toolwright.policy.{key}", tool.said("policy", key).key()
        support = (tool.wire.get("execution") or {}).get("taskSupport")
        if support in ("optional", "required"):
            name = _TASK_ONLY if support == "required" else "execution.taskSupport"
            yield name, tool.place / "execution" / "taskSupport"


def _keys(policy: Mapping[str, Json] | None) -> list[str]:
    return [key for key in policy or () if not key.startswith("x-")]
