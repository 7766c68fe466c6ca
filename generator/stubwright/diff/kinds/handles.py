"""Compares state handles: their kinds, their lifetimes, and the use of their IDs in tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stubwright.compile.handles import describe_duration
from stubwright.diff.changes import Change, Subject
from stubwright.diff.kinds.policies import describe_change
from stubwright.diff.subsumption.annotations import are_same
from stubwright_runtime.values.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright import ir
    from stubwright.diff.changes import Impact

_CODE: Final = "SW524"
_MOST: Final = 100
_TIMES: Final = ("ttl", "idle")
_SIDES: Final[Mapping[str, str]] = {"input": "accepts", "output": "returns"}


def compare_kinds(old: ir.Manifest, new: ir.Manifest) -> Iterator[Change]:
    """Yield changes to the declared handle kinds."""
    before, after = ({handle.name: handle for handle in manifest.handles} for manifest in (old, new))
    declared = [manifest.document.get("handles") or {} for manifest in (old, new)]
    for name, kind in before.items():
        if name not in after:
            why = "callers' existing IDs are no longer valid"
            yield Subject(f"handle `{name}`", kind.place).change(_CODE, "breaking", "the handle was removed", why)
    for name, kind in after.items():
        if name not in before:
            yield Subject(f"handle `{name}`", None, kind.place).change(_CODE, "compatible", "the handle was added")
        else:
            subject = Subject(f"handle `{name}`", before[name].place, kind.place)
            yield from _compare_kind(subject, declared[0][name], declared[1][name])


def _compare_kind(subject: Subject, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    for key in _TIMES:
        old, new = was.get(key), now.get(key)
        ends = [float("inf") if value is None else parse_duration(value) for value in (old, new)]
        if ends[0] != ends[1]:
            shown = [describe_duration(value) if value else None for value in (old, new)]
            shorter = ends[1] < ends[0]
            why = "handles of callers that return later may have expired" if shorter else None
            impact: Impact = "breaking" if shorter else "compatible"
            yield subject.at(key).change(_CODE, impact, describe_change(f"`{key}`", *shown), why)
    old, new = was.get("most", _MOST), now.get("most", _MOST)
    if old != new:
        message = f"the limit per principal changed from {old:,} to {new:,}"
        why = "existing handles remain, but no new ones can be created" if new < old else None
        yield subject.at("most").change(_CODE, "may break" if new < old else "compatible", message, why)
    if not are_same(was["state"], now["state"]):
        why = "stored state that does not match the new schema is lost"
        yield subject.at("state").change(_CODE, "may break", "its state schema changed", why)


def compare_ids(tool: Subject, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Yield changes to the handle IDs in a tool's schemas. `before` and `after` are the `handles` in the tool's
    extension.
    """
    for side, verb in _SIDES.items():
        was, now = (set((declared.get(side) or {}).values()) for declared in (before, after))
        for kind in sorted(now - was):
            breaks = side == "input"
            why = "other strings are rejected" if breaks else None
            yield tool.change(_CODE, "may break" if breaks else "compatible", f"it now {verb} IDs of `{kind}`", why)
        for kind in sorted(was - now):
            breaks = side == "output"
            why = "callers need another tool for these IDs" if breaks else None
            message = f"it no longer {verb} IDs of `{kind}`"
            yield tool.change(_CODE, "breaking" if breaks else "compatible", message, why)
