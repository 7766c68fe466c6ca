"""Changes of toolsets: which there are, and which tools are in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.diagnostics import Place
from stubwright.diff.changes import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.diff.kinds.tools import ManifestPair


def compare(pair: ManifestPair, files: tuple[str, str]) -> Iterator[Change]:
    """Yield changes of toolsets and of what is in them; `files` are the two entry files."""
    before, after = pair.old.toolsets, pair.new.toolsets
    there = {tool.name for tool in pair.new.tools}

    def locate(name: str) -> tuple[Place | None, Place | None]:
        old, new = (Place(file, ("toolsets", name)) for file in files)
        return old if name in before else None, new if name in after else None

    for name in before:
        if name not in after:
            yield Change("SW561", "wire", "breaking", f"toolset `{name}`", "the toolset is gone", *locate(name))
            continue
        old, new = before[name]["tools"], after[name]["tools"]
        for tool in old:
            if tool not in new and tool in there:  # one that is gone is a change of its own
                yield Change("SW561", "wire", "breaking", f"toolset `{name}`", f"`{tool}` is out of it", *locate(name))
        for tool in new:
            if tool not in old:
                yield Change(
                    "SW561", "wire", "compatible", f"toolset `{name}`", f"`{tool}` is in it now", *locate(name)
                )
        if bool(before[name].get("readOnly")) != bool(after[name].get("readOnly")):
            message = "it is read-only now" if after[name].get("readOnly") else "it is no longer read-only"
            yield Change("SW561", "wire", "cosmetic", f"toolset `{name}`", message, *locate(name))
    for name in after:
        if name not in before:
            yield Change("SW561", "wire", "compatible", f"toolset `{name}`", "the toolset is new", *locate(name))
