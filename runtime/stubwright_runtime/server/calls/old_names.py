"""Reports calls to a tool's old name (`aliases` in a manifest) to the caller and in the log."""

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
    """Return the schema for comparing `Mcp-Param-…` headers with arguments; `None` if they are not compared.

    `tools/list` defines which arguments clients mirror in headers. The list has no old names, so a call to an old
    name may omit these headers. If the call sends the headers, they must match the arguments, under their old names.

    Args:
        schema: The tool's input schema.
        alias: The alias if the call uses an old name, otherwise `None`.
        has_headers: True if the request has headers that mirror arguments (MCP 2026-07-28, server/tools,
            "x-mcp-header").
    """
    if alias is None:
        return schema
    properties = schema.get("properties")
    if not has_headers or not is_object(properties):
        return None
    old = {new: was for was, new in alias.arguments.items()}
    return {**schema, "properties": {old.get(key, key): value for key, value in properties.items()}}


class OldNames:
    """Reports calls to tools' old names."""

    def __init__(self, log: logging.Logger) -> None:
        """Create a reporter. It logs each old name once."""
        self._log = log
        self._logged: set[str] = set()

    def report(self, alias: Alias, outcome: Outcome) -> Outcome:
        """Log the first call to an old name, and return the outcome with the new name in `_meta`."""
        if alias.name not in self._logged:
            self._logged.add(alias.name)
            until = "" if alias.remove_after is None else f"; the alias is removed after {alias.remove_after}"
            self._log.warning("a client called %s by its old name, %s%s", alias.tool, alias.name, until)
        renaming = {"tool": alias.tool}
        if alias.remove_after is not None:
            renaming["removeAfter"] = alias.remove_after
        meta = {**(outcome.result.get("_meta") or {}), ALIAS_META_KEY: renaming}
        return replace(outcome, result={**outcome.result, "_meta": meta})
