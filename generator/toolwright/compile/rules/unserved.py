"""Parts of a manifest that are checked, but that generated servers do not serve yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwright.compile.resolve import manifests
from toolwright.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolwright.compile.resolve import Resolved
    from toolwright.ir import Json

SECTIONS = ("handles", "auth")
SERVED = frozenset({"confirm", "redact", "sanitize"})
"""The parts of a tool's policy that its package keeps: clients ask, audit records leave out, and results are clean."""

_GUARDS = frozenset({"auth", "policy.scopes", "toolwright.policy.scopes"})
_TASK_ONLY = "execution.taskSupport: required"


def find_unserved(resolved: Resolved) -> Iterator[Diagnostic]:
    """One warning for all of them, where there are any."""
    parts: dict[str, Place] = {}
    for name, place in _parts(resolved):
        parts.setdefault(name, place)
    if not parts:
        return
    helps = ["the generated package works without them"] if parts.keys() != {_TASK_ONLY} else []
    if not parts.keys().isdisjoint(_GUARDS):
        helps.append("anybody who reaches the server may call all of its tools")
    if _TASK_ONLY in parts:
        helps.append("with `taskSupport: required`, clients see a tool that only runs as a task; leave it out")
    message = f"checked, but not served yet: {', '.join(f'`{name}`' for name in parts)}"
    yield Diagnostic("TW390", message, next(iter(parts.values())), "; ".join(helps))


def _parts(resolved: Resolved) -> Iterator[tuple[str, Place]]:
    for path, manifest in manifests(resolved.bundle):
        for section in SECTIONS:
            if manifest.get(section):
                yield section, Place(path, (section,), "key")
        for key in _limits(manifest.get("policy")):
            yield f"policy.{key}", Place(path, ("policy", key), "key")
    for tool in resolved.tools:
        is_bounded = "large" in (tool.extension.get("http") or {})
        for key in _limits(tool.extension.get("policy")):
            if is_bounded and key == "maxResultBytes":
                continue
            yield f"toolwright.policy.{key}", tool.place_of("policy", key).key()
        support = (tool.wire.get("execution") or {}).get("taskSupport")
        if support in ("optional", "required"):
            name = _TASK_ONLY if support == "required" else "execution.taskSupport"
            yield name, tool.place / "execution" / "taskSupport"


def _limits(policy: Mapping[str, Json] | None) -> list[str]:
    return [key for key in policy or () if key not in SERVED and not key.startswith("x-")]
