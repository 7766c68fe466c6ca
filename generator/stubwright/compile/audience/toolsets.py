"""Checks and lowers toolsets: named groups of tools.

With `readOnly: true`, patterns only match tools with `readOnlyHint: true`, and listing any other tool is an error.
"""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Final

from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.ir import Json

_WILD: Final = frozenset("*?[")


def check(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each entry in a toolset matches a tool. A read-only toolset requires read-only tools."""
    names = [tool.name for tool in resolved.tools]
    by_name = {tool.name: tool for tool in resolved.tools}
    for name, toolset in _get_toolsets(resolved).items():
        for index, pattern in enumerate(toolset["tools"]):
            place = Place(resolved.bundle.entry, ("toolsets", name, "tools", index))
            matching = _match(pattern, names)
            if not matching:
                fix = None if _is_wild(pattern) else did_you_mean(pattern, names, "tools")
                yield Diagnostic("SW285", f"no tool matches `{pattern}` in the toolset `{name}`", place, fix)
            elif toolset.get("readOnly") and not _is_wild(pattern) and not _is_read_only(by_name[pattern]):
                yield Diagnostic(
                    "SW286",
                    f"`{pattern}` is in the read-only toolset `{name}`, but is not marked read-only",
                    place,
                    "remove it, or set `annotations: {readOnlyHint: true}` if it has no side effects",
                )
            elif toolset.get("readOnly") and not any(_is_read_only(by_name[each]) for each in matching):
                yield Diagnostic(
                    "SW286",
                    f"`{pattern}` in the read-only toolset `{name}` matches no tool that is marked read-only",
                    place,
                    "set `annotations: {readOnlyHint: true}` on tools without side effects",
                )


def lower(resolved: ResolvedBundle) -> dict[str, Json]:
    """Return each toolset's tool names, for the package's `manifest.json`."""
    names = [tool.name for tool in resolved.tools]
    read_only = frozenset(tool.name for tool in resolved.tools if _is_read_only(tool))
    lowered = {}
    for name, toolset in _get_toolsets(resolved).items():
        members = {each for pattern in toolset["tools"] for each in _match(pattern, names)}
        if toolset.get("readOnly"):
            members &= read_only
        shown = {key: toolset[key] for key in ("title", "description", "readOnly") if key in toolset}
        lowered[name] = {**shown, "tools": [each for each in names if each in members]}
    return lowered


def _get_toolsets(resolved: ResolvedBundle) -> Mapping[str, Mapping[str, Json]]:
    return resolved.entry.get("toolsets") or {}


def _match(pattern: str, names: Sequence[str]) -> list[str]:
    if not _is_wild(pattern):
        return [name for name in names if name == pattern]
    return [name for name in names if fnmatch.fnmatchcase(name, pattern)]


def _is_wild(pattern: str) -> bool:
    return not _WILD.isdisjoint(pattern)


def _is_read_only(tool: Declaration) -> bool:
    annotations = tool.wire.get("annotations")
    return isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
