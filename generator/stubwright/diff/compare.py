"""Compares two manifests without any I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from stubwright.diff.changes import IMPACTS, Change
from stubwright.diff.kinds import primitives, python, server, skills, targets, tools, toolsets
from stubwright.diff.kinds.tools import ManifestPair

if TYPE_CHECKING:
    from stubwright import ir

_SHOWN: Final = 3
"""The maximum number of locations to list for a change to a shared schema."""


def compare(
    old: ir.Manifest,
    new: ir.Manifest,
    values: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
    files: tuple[str, str] | None = None,
    ignored: Collection[str] = (),
    audience: Sequence[str] = (),
    *,
    on_wire_alone: bool = False,
) -> list[Change]:
    """Return all changes from `old` to `new`, sorted by impact and then by the new manifest's order.

    Args:
        values: The old and new entry file's contents, with `auth`, `policy` and other keys that lowering drops.
        files: The old and new entry file's paths, as in source locations.
        ignored: The change codes to treat as harmless.
        audience: Targets to check instead of the new manifest's.
        on_wire_alone: Whether to skip the Python side, which is slow and does not exist for a live server's lists.
    """
    pair = ManifestPair(old, new)
    changes = [
        *server.compare(pair, *values, files or (old.source, new.source)),
        *tools.compare(pair),
        *primitives.compare(pair),
        *skills.compare(pair, files or (old.source, new.source)),
        *toolsets.compare(pair, files or (old.source, new.source)),
        *targets.compare(pair, audience, (files or (old.source, new.source))[1]),
        *(() if on_wire_alone else python.compare(pair)),
    ]
    marked = [replace(change, ignored=change.code in ignored) for change in _merge_shared(changes)]
    return sorted(marked, key=lambda change: IMPACTS.index(change.impact))


def _merge_shared(changes: Sequence[Change]) -> Iterator[Change]:
    """Merge equal changes to a shared schema into one change, with the worst impact and a list of affected subjects."""
    groups: dict[object, list[Change]] = {}
    for number, change in enumerate(changes):
        place = change.new or change.old
        is_shared = place is not None and place.pointer[:1] == ("schemas",) and change.side == "wire"
        key = (change.code, change.message, change.old, change.new) if is_shared else number
        groups.setdefault(key, []).append(change)
    for group in groups.values():
        if len(group) == 1:
            yield group[0]
            continue
        worst_change = min(group, key=lambda change: IMPACTS.index(change.impact))
        place = worst_change.new or worst_change.old
        name = place.pointer[1] if place is not None and len(place.pointer) > 1 else ""
        subjects = [*dict.fromkeys(change.subject for change in group)]
        rest = f" and {len(subjects) - _SHOWN} more" if len(subjects) > _SHOWN else ""
        affected = f"affects {len(subjects)} places: {'; '.join(subjects[:_SHOWN])}{rest}"
        help_ = f"{worst_change.help}; {affected}" if worst_change.help else affected
        yield replace(worst_change, subject=f"schema `{name}`", help=help_)
