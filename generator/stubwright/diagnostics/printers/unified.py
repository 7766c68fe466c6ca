"""The difference between two versions of a file, in the unified format."""

from __future__ import annotations

import difflib

from stubwright_runtime.values.terminal import replace_controls, to_one_line


def render(path: str, old: bytes | None, new: bytes | None) -> str:
    """Return the changes of a file as a unified diff; `old` is None for a new file, `new` for a removed one.

    It is to be read: what a terminal would obey is marked, so that it need not be a patch.
    """
    before, after = ([] if data is None else data.decode("utf-8", "replace").splitlines() for data in (old, new))
    shown = to_one_line(path)
    names = "/dev/null" if old is None else f"a/{shown}", "/dev/null" if new is None else f"b/{shown}"
    rows = "\n".join(map(replace_controls, difflib.unified_diff(before, after, *names, lineterm="")))
    if not rows and (old is None or new is None):  # an empty file
        return f"--- {names[0]}\n+++ {names[1]}"
    return rows or f"{shown}: only line breaks differ"
