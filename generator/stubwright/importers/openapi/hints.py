"""Derives annotations from HTTP methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

READING: Final = frozenset({"get", "head", "options", "query"})
"""Safe methods."""
_REPEATABLE: Final = READING | {"put", "delete"}


def make_annotations(method: str, title: str) -> dict[str, bool | str]:
    """Return the annotations for a tool that sends `method`; every writing method could be destructive."""
    return {
        "title": title,
        "readOnlyHint": method in READING,
        "destructiveHint": method not in READING,
        "idempotentHint": method in _REPEATABLE,
        "openWorldHint": True,
    }


def report_guesses(posting: Sequence[str]) -> list[str]:
    """Return a note on tools that POST, since that method does not reveal their effects.

    Args:
        posting: The names of these tools.
    """
    if not posting:
        return []
    count = "1 tool, which POSTs" if len(posting) == 1 else f"{len(posting)} tools, which POST"
    hints = "`readOnlyHint: false` and `destructiveHint: true`"
    correct = f"overlay: {{tools: {{{posting[0]}: {{annotations: {{destructiveHint: false}}}}}}}}"
    return [f"{hints} are a guess for {count}; correct them with `{correct}`"]
