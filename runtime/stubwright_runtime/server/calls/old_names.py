"""Calls by an old name of a tool (`aliases` in a manifest), and the notes on them for the caller and the log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...mcp.vocabulary import ALIAS_META_KEY
from ...values.json import is_object

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping

    from ...mcp.aliases import Alias
    from ..core.outcomes import Outcome


def find_mirrored_schema(
    schema: Mapping[str, Any], alias: Alias | None, *, has_headers: bool = True
) -> Mapping[str, Any] | None:
    """Return the schema that the headers of a call are compared with; `None` if they are not compared.

    Clients learn from the list which arguments to mirror, and an old name is not listed: a call by an old name may lack
        such headers. If it has some, they must be right, under the old names of the arguments.

    Args:
        schema: The schema of the tool's arguments.
        alias: The old name that the tool is called by, if it is one.
        has_headers: True if the call has headers that repeat arguments (MCP 2026-07-28, server/tools, "x-mcp-header").
    """
    if alias is None:
        return schema
    properties = schema.get("properties")
    if not has_headers or not is_object(properties):
        return None
    old = {new: was for was, new in alias.arguments.items()}
    return {**schema, "properties": {old.get(key, key): value for key, value in properties.items()}}


class OldNames:
    """The old names that one server was called by."""

    def __init__(self, log: logging.Logger) -> None:
        """Take the log for one line about each."""
        self._log = log
        self._logged: set[str] = set()

    def note(self, alias: Alias, outcome: Outcome) -> Outcome:
        """Return an outcome whose result names the tool in `_meta`, under a key that no handler can take from it."""
        if alias.name not in self._logged:
            self._logged.add(alias.name)
            until = "" if alias.remove_after is None else f"; the alias is removed after {alias.remove_after}"
            self._log.warning("%s was called by its old name, %s%s", alias.tool, alias.name, until)
        renaming = {"tool": alias.tool}
        if alias.remove_after is not None:
            renaming["removeAfter"] = alias.remove_after
        meta = {**(outcome.result.get("_meta") or {}), ALIAS_META_KEY: renaming}
        return replace(outcome, result={**outcome.result, "_meta": meta})
