"""Changes of state handles: which kinds there are, how long they live, and where tools have their ids.

What a change may break is the ids that callers have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stubwright.compile.handles import describe_duration
from stubwright.diff.changes import Change
from stubwright.diff.subsumption.annotations import are_same
from stubwright_runtime.values.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright import ir
    from stubwright.diagnostics import Place
    from stubwright.diff.changes import Impact

_CODE: Final = "SW524"
_MOST: Final = 100
_TIMES: Final = ("ttl", "idle")
_SIDES: Final[Mapping[str, str]] = {"input": "takes", "output": "gives"}


def compare_kinds(old: ir.Manifest, new: ir.Manifest) -> Iterator[Change]:
    """Yield changes of the kinds of handles that a server keeps."""
    before, after = ({handle.name: handle for handle in manifest.handles} for manifest in (old, new))
    declared = [manifest.document.get("handles") or {} for manifest in (old, new)]
    for name, kind in before.items():
        if name not in after:
            why = "ids that callers have are no longer known"
            yield _make_change(name, "breaking", "the kind is gone", kind.place, None, why)
    for name, kind in after.items():
        if name not in before:
            yield _make_change(name, "compatible", "a new kind", None, kind.place)
        else:
            yield from _compare_kind(name, declared[0][name], declared[1][name], (before[name].place, kind.place))


def _compare_kind(
    name: str, was: Mapping[str, Any], now: Mapping[str, Any], at: tuple[Place, Place]
) -> Iterator[Change]:
    """Yield changes of a kind that both have."""
    for key in _TIMES:
        old, new = was.get(key), now.get(key)
        ends = [float("inf") if value is None else parse_duration(value) for value in (old, new)]
        if ends[0] != ends[1]:
            shown = [f"`{describe_duration(value)}`" if value else "absent" for value in (old, new)]
            message = f"`{key}` was {shown[0]}, and is {shown[1]}"
            shorter = ends[1] < ends[0]
            why = "callers that come back later find the handle gone" if shorter else None
            yield _make_change(name, "breaking" if shorter else "compatible", message, at[0] / key, at[1] / key, why)
    old, new = was.get("most", _MOST), now.get("most", _MOST)
    if old != new:
        message = f"the limit for each principal was {old:,}, and is {new:,}"
        why = "existing handles remain, but no new ones can be created" if new < old else None
        yield _make_change(
            name, "may break" if new < old else "compatible", message, at[0] / "most", at[1] / "most", why
        )
    if not are_same(was["state"], now["state"]):
        why = "a stored state that does not fit the new schema counts as gone"
        yield _make_change(name, "may break", "the schema of its states changed", at[0] / "state", at[1] / "state", why)


def compare_ids(
    tool: str, before: Mapping[str, Any], after: Mapping[str, Any], at: tuple[Place, Place]
) -> Iterator[Change]:
    """Yield changes of where a tool has ids; `before` and `after` are what its `manifest.json` says of that."""
    for side, verb in _SIDES.items():
        was, now = (set((declared.get(side) or {}).values()) for declared in (before, after))
        for kind in sorted(now - was):
            breaks = side == "input"
            why = "text that is not such an id is refused" if breaks else None
            message = f"it {verb} ids of `{kind}` now"
            yield Change(_CODE, "wire", "may break" if breaks else "compatible", tool, message, *at, why)
        for kind in sorted(was - now):
            breaks = side == "output"
            why = "callers that got ids from it need another tool" if breaks else None
            message = f"it no longer {verb} ids of `{kind}`"
            yield Change(_CODE, "wire", "breaking" if breaks else "compatible", tool, message, *at, why)


def _make_change(
    name: str, impact: Impact, message: str, old: Place | None, new: Place | None, why: str | None = None
) -> Change:
    return Change(_CODE, "wire", impact, f"handle `{name}`", message, old, new, why)
