"""Detects renamed tools and renamed handler methods."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from stubwright import naming
from stubwright.codegen.handler_methods import name_method
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from stubwright.ir import Json

_OURS: Final = "stubwright"


def match_renamed(old: Mapping[str, Mapping[str, Json]], new: Mapping[str, Mapping[str, Json]]) -> dict[str, str]:
    """Map old names to new ones. A removed entry matches if exactly one new entry differs only in name and title.

    Args:
        old: The old definitions as listed, keyed by name.
        new: The new definitions as listed, keyed by name.
    """
    gone = {name: _serialize_definition(entry) for name, entry in old.items() if name not in new}
    fresh = {name: _serialize_definition(entry) for name, entry in new.items() if name not in old}
    renames = {}
    for name, description in gone.items():
        twins = [other for other, its in fresh.items() if description is not None and its == description]
        rivals = [other for other, its in gone.items() if its == description]
        if len(twins) == len(rivals) == 1:
            renames[name] = twins[0]
    return renames


def match_renamed_methods(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, str]:
    """Map old names of handler methods to new names.

    Args:
        old: The previously generated `manifest.json`.
        new: The current `manifest.json`.
    """
    renames: dict[str, str] = {}
    for section in vocabulary.SECTIONS:
        before, after = (
            {entry[section.key]: entry for entry in document.get(section.name) or ()} for document in (old, new)
        )
        pairs = (
            {key: key for key in before if key in after} | match_renamed(before, after) | _map_successors(before, after)
        )
        for was, now in pairs.items():
            names = [name_method(section, entry) for entry in (before[was], after[now])]
            if names[0] != names[1]:
                renames[names[0]] = names[1]
    return renames


def _map_successors(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, str]:
    """Map names of removed entries to the names of the new entries that list them as aliases."""
    return {
        alias["name"]: name
        for name, entry in new.items()
        for alias in (entry.get(_OURS) or {}).get("aliases") or ()
        if alias["name"] in old and alias["name"] not in new
    }


def find_current_names(name: str, renamed: Mapping[str, str], known: Collection[str]) -> list[str]:
    """Return the known names that a renamed class could have now.

    Args:
        name: The class's old name.
        renamed: The new names of methods, keyed by old name. Class names derive from method names.
        known: All current class names.
    """
    starts = {naming.to_pascal(old): naming.to_pascal(new) for old, new in renamed.items()}
    return [
        now
        for old, new in starts.items()
        if name.startswith(old) and (now := f"{new}{name.removeprefix(old)}") in known
    ]


def _serialize_definition(entry: Mapping[str, Json]) -> str | None:
    """Serialize a definition without its name, for comparison.

    Return None if both description and arguments are missing.
    """
    fields = {key: value for key, value in entry.items() if key not in ("name", "title", "uri", _OURS)}
    schema = entry.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return json.dumps(fields, sort_keys=True) if entry.get("description") or properties else None
