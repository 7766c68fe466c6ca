"""Changes of state handles: which kinds there are, how long they live, and where tools have their ids.

Takes what two manifests say of them; gives changes. Ids that were given out are what a change may break.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from toolwright.compile.handles import duration
from toolwright.diff.changes import Change
from toolwright.diff.subsumption.congruence import same
from toolwright_runtime.values.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolwright import ir
    from toolwright.diagnostics import Place
    from toolwright.diff.changes import Impact

_CODE: Final = "TW524"
_MOST: Final = 100
_TIMES: Final[Mapping[str, str]] = {"ttl": "after it was made", "idle": "without use"}
_SIDES: Final[Mapping[str, str]] = {"input": "takes", "output": "gives"}


def kinds(old: ir.Manifest, new: ir.Manifest) -> Iterator[Change]:
    """Changes of the kinds that a server keeps."""
    before, after = ({each.name: each for each in manifest.handles} for manifest in (old, new))
    said = [manifest.document.get("handles") or {} for manifest in (old, new)]
    for name, kind in before.items():
        if name not in after:
            why = "ids that were given out are no longer known"
            yield _change(name, "breaking", "the kind is gone", kind.place, None, why)
    for name, kind in after.items():
        if name not in before:
            yield _change(name, "compatible", "a new kind", None, kind.place)
        else:
            yield from _kept(name, said[0][name], said[1][name], (before[name].place, kind.place))


def _kept(name: str, was: Mapping[str, Any], now: Mapping[str, Any], at: tuple[Place, Place]) -> Iterator[Change]:
    """Changes of a kind that both have."""
    for key, since in _TIMES.items():
        old, new = was.get(key), now.get(key)
        ends = [float("inf") if each is None else parse_duration(each) for each in (old, new)]
        if ends[0] != ends[1]:
            shown = [f"`{duration(each)}` {since}" if each else "never" for each in (old, new)]
            message = f"one ended {shown[0]}, and ends {shown[1]}"
            shorter = ends[1] < ends[0]
            why = "whoever comes back later finds it gone" if shorter else None
            yield _change(name, "breaking" if shorter else "compatible", message, at[0] / key, at[1] / key, why)
    old, new = was.get("most", _MOST), now.get("most", _MOST)
    if old != new:
        message = f"one principal might have {old:,}, and may have {new:,}"
        why = "what was made before is kept, and nothing new beside it" if new < old else None
        yield _change(name, "may break" if new < old else "compatible", message, at[0] / "most", at[1] / "most", why)
    if not same(was["state"], now["state"]):
        why = "a state that was kept and no longer fits counts as gone"
        yield _change(name, "may break", "the schema of its states changed", at[0] / "state", at[1] / "state", why)


def marks(tool: str, before: Mapping[str, Any], after: Mapping[str, Any], at: tuple[Place, Place]) -> Iterator[Change]:
    """Changes of where a tool has ids; `before` and `after` are what its `manifest.json` says of that."""
    for side, verb in _SIDES.items():
        was, now = (set((said.get(side) or {}).values()) for said in (before, after))
        for kind in sorted(now - was):
            breaks = side == "input"
            why = "a text that is none is refused" if breaks else None
            message = f"it {verb} ids of `{kind}` now"
            yield Change(_CODE, "wire", "may break" if breaks else "compatible", tool, message, *at, why)
        for kind in sorted(was - now):
            breaks = side == "output"
            why = "whoever got ids from it needs another tool" if breaks else None
            message = f"it no longer {verb} ids of `{kind}`"
            yield Change(_CODE, "wire", "breaking" if breaks else "compatible", tool, message, *at, why)


def _change(
    name: str, impact: Impact, message: str, old: Place | None, new: Place | None, why: str | None = None
) -> Change:
    return Change(_CODE, "wire", impact, f"handle `{name}`", message, old, new, why)
