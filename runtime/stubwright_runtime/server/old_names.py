"""Calls by an old name of a tool (`aliases` in a manifest): what the caller and the log are told of them.

Takes the outcome of such a call; gives it with a note, so that whoever maintains the client learns the new name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..mcp.vocabulary import ALIAS_META_KEY

if TYPE_CHECKING:
    import logging

    from ..package import Alias
    from .core.outcomes import Outcome


class OldNames:
    """The old names that one server was called by."""

    def __init__(self, log: logging.Logger) -> None:
        """Take the log that is told of each, once."""
        self._log = log
        self._logged: set[str] = set()

    def note(self, alias: Alias, outcome: Outcome) -> Outcome:
        """Return an outcome whose result names the tool in `_meta`, under a key that no handler can take from it."""
        if alias.name not in self._logged:
            self._logged.add(alias.name)
            until = "" if alias.remove_after is None else f"; the alias is removed after {alias.remove_after}"
            self._log.warning("%s was called by its old name, %s%s", alias.tool, alias.name, until)
        told = {"tool": alias.tool}
        if alias.remove_after is not None:
            told["removeAfter"] = alias.remove_after
        meta = {**(outcome.result.get("_meta") or {}), ALIAS_META_KEY: told}
        return replace(outcome, result={**outcome.result, "_meta": meta})
