"""Reports calls by old tool names (`aliases` in a manifest) to the caller and the log."""

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
    """Return the schema for comparing headers with arguments; `None` if they are not compared.

    Clients learn from `tools/list` which arguments to mirror. Old names are not listed, so calls by an old name may
    omit these headers. Headers that are present must match, under the arguments' old names.

    Args:
        schema: The schema of the tool's arguments.
        alias: The alias, if the tool is called by an old name.
        has_headers: True if headers mirror arguments (MCP 2026-07-28, server/tools, "x-mcp-header").
    """
    if alias is None:
        return schema
    properties = schema.get("properties")
    if not has_headers or not is_object(properties):
        return None
    old = {new: was for was, new in alias.arguments.items()}
    return {**schema, "properties": {old.get(key, key): value for key, value in properties.items()}}


class OldNames:
    """Reports calls by old names."""

    def __init__(self, log: logging.Logger) -> None:
        """Create a reporter, which logs each old name once."""
        self._log = log
        self._logged: set[str] = set()

    def report(self, alias: Alias, outcome: Outcome) -> Outcome:
        """Log the old name and return the outcome with the new name in `_meta`."""
        if alias.name not in self._logged:
            self._logged.add(alias.name)
            until = "" if alias.remove_after is None else f"; the alias is removed after {alias.remove_after}"
            self._log.warning("%s was called by its old name, %s%s", alias.tool, alias.name, until)
        renaming = {"tool": alias.tool}
        if alias.remove_after is not None:
            renaming["removeAfter"] = alias.remove_after
        meta = {**(outcome.result.get("_meta") or {}), ALIAS_META_KEY: renaming}
        return replace(outcome, result={**outcome.result, "_meta": meta})
