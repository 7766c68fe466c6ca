"""`diff`: what changed between two manifests, and whom it breaks.

Takes two lowered manifests and gives changes, each on one of two sides: what a model or a client that knew the old
server sees (`wire`), and what handlers and typed callers see (`python`). Nothing is read, fetched or printed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolwright.diff import primitives, python, server, tools
from toolwright.diff.changes import IMPACTS, Change
from toolwright.diff.tools import Pair

if TYPE_CHECKING:
    from toolwright import ir


def compare(
    old: ir.Manifest,
    new: ir.Manifest,
    values: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
    files: tuple[str, str] | None = None,
    ignored: Collection[str] = (),
) -> list[Change]:
    """All changes from `old` to `new`, the worst first, else in the order of the new manifest.

    Args:
        old: The manifest as it was.
        new: The manifest as it is.
        values: What the two entry files hold, for `auth`, `policy` and what else lowering does not keep.
        files: Their paths, as places have them.
        ignored: Codes of changes that count as harmless.
    """
    pair = Pair(old, new)
    found = [
        *server.changes(pair, *values, files or (old.source, new.source)),
        *tools.changes(pair),
        *primitives.changes(pair),
        *python.changes(pair),
    ]
    marked = [replace(change, ignored=change.code in ignored) for change in found]
    return sorted(marked, key=lambda change: IMPACTS.index(change.impact))
