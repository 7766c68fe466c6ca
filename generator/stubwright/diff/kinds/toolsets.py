"""Compares toolsets and their tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.diff.kinds.tools import ManifestPair


def compare(pair: ManifestPair, files: tuple[str, str]) -> Iterator[Change]:
    """Yield changes to toolsets and their tools. `files` are the old and new entry file's paths."""
    before, after = pair.old.toolsets, pair.new.toolsets
    listed = {tool.name for tool in pair.new.tools}
    for name in {**before, **after}:
        old, new = (
            Place(file, ("toolsets", name)) if name in toolsets else None
            for file, toolsets in zip(files, (before, after), strict=True)
        )
        subject = Subject(f"toolset `{name}`", old, new)
        if name not in after:
            yield subject.change("SW561", "breaking", "the toolset was removed")
        elif name not in before:
            yield subject.change("SW561", "compatible", "the toolset was added")
        else:
            was, now = before[name]["tools"], after[name]["tools"]
            for tool in was:
                if tool not in now and tool in listed:  # a removed tool is reported separately
                    yield subject.change("SW561", "breaking", f"the tool `{tool}` was removed")
            for tool in now:
                if tool not in was:
                    yield subject.change("SW561", "compatible", f"the tool `{tool}` was added")
            if bool(before[name].get("readOnly")) != bool(after[name].get("readOnly")):
                message = "it is now read-only" if after[name].get("readOnly") else "it is no longer read-only"
                yield subject.change("SW561", "cosmetic", message)
