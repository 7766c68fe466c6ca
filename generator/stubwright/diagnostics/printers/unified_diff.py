"""Formats the difference between two file versions as a unified diff."""

from __future__ import annotations

import difflib

from stubwright_runtime.values.terminal import replace_controls, to_one_line


def render(path: str, old: bytes | None, new: bytes | None) -> str:
    """Format the changes to a file as a unified diff. `old` is None for a new file, `new` for a removed file.

    The diff is for reading. Control characters are replaced, so it cannot always be applied as a patch.
    """
    before, after = ([] if data is None else data.decode("utf-8", "replace").splitlines() for data in (old, new))
    shown = to_one_line(path)
    names = "/dev/null" if old is None else f"a/{shown}", "/dev/null" if new is None else f"b/{shown}"
    rows = "\n".join(map(replace_controls, difflib.unified_diff(before, after, *names, lineterm="")))
    if not rows and (old is None or new is None):  # an empty file
        return f"--- {names[0]}\n+++ {names[1]}"
    return rows or f"{shown}: only line breaks differ"
