"""Resources, resource templates and prompts as a server lists them, for a manifest.

Takes the entries of a list as they came; gives those that can be called, with a note for each that was fixed or
left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolwright.importers.tools import whole
from toolwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence


def fixed(
    section: vocabulary.Section, listed: Sequence[Any], notes: list[str], prefix: str = ""
) -> list[dict[str, Any]]:
    """The entries of a list as a manifest has them.

    Args:
        section: Which list.
        listed: Its entries as they came.
        notes: Is told what was fixed.
        prefix: Put in front of each prompt's name.
    """
    what, key = section.noun, section.key
    made: list[dict[str, Any]] = []
    seen: set[str] = set()
    for index, given in enumerate(listed):
        if not isinstance(given, dict) or not isinstance(given.get(key), str) or not given[key]:
            notes.append(f"entry {index} of `{section.name}` is not a {what} with a `{key}`, and was left out")
            continue
        entry = whole(f"{what} `{given[key]}`", given, notes)
        called = prefix + entry[key] if key == "name" else entry[key]
        if called in seen:
            notes.append(f"{what} `{called}` is listed twice; the second was left out")
            continue
        seen.add(called)
        entry = {**entry, key: called}
        if entry.pop("toolwright", None) is not None:
            notes.append(f"{what} `{called}` had a key `toolwright`, which is a manifest's own; it was left out")
        if not isinstance(entry.get("name"), str) or not entry["name"]:
            entry["name"] = called
            notes.append(f"{what} `{called}` had no `name`; it got its `{key}` as one")
        made.append(entry)
    return made
