"""Converts a server's listed entries to manifest entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stubwright.importers.tools import fix_text
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence


def fix(section: vocabulary.Section, listed: Sequence[Any], notes: list[str], prefix: str = "") -> list[dict[str, Any]]:
    """Convert a list's entries to manifest entries.

    Args:
        section: The kind of the entries.
        listed: The entries, as the server sent them.
        notes: Receives a note for each fix.
        prefix: A prefix for prompt names.
    """
    what, key = section.noun, section.key
    entries: list[dict[str, Any]] = []
    identifiers: set[str] = set()
    for index, raw in enumerate(listed):
        if not isinstance(raw, dict) or not isinstance(raw.get(key), str) or not raw[key]:
            notes.append(f"entry {index} of `{section.name}` is not a {what} with a `{key}`, and was omitted")
            continue
        entry = fix_text(f"{what} `{raw[key]}`", raw, notes)
        identifier = prefix + entry[key] if key == "name" else entry[key]
        if identifier in identifiers:
            notes.append(f"{what} `{identifier}` is listed twice; the second was omitted")
            continue
        identifiers.add(identifier)
        entry = {**entry, key: identifier}
        if entry.pop("stubwright", None) is not None:
            notes.append(f"{what} `{identifier}` had a key `stubwright`, which only manifests use; it was omitted")
        if not isinstance(entry.get("name"), str) or not entry["name"]:
            entry["name"] = identifier
            notes.append(f"{what} `{identifier}` had no `name`; its `{key}` was used instead")
        entries.append(entry)
    return entries
