"""Checks and lowers `aliases`, the old names of tools."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from stubwright.compile.resolve import find_argument_names
from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import did_you_mean, shorten
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.ir import Json

_NAME: Final = re.compile(vocabulary.TOOL_NAME)

_NUMBER: Final = r"(0|[1-9]\d*)"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*))*))?"
    r"(?:\+[\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*)?",
    re.ASCII,
)
"""A semantic version (semver.org 2.0.0, items 2, 9 and 10)."""


def lower(tool: Declaration) -> list[Mapping[str, Json]]:
    """Return a tool's aliases for the package's `manifest.json`, with the tool's prefixes."""
    prefix = _prefix(tool)
    return [{**alias, "name": prefix + alias["name"]} for alias in tool.extension.get("aliases") or ()]


def check(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each alias is valid, unused and not expired, and only maps to existing arguments."""
    tools = {tool.name for tool in resolved.tools}
    first: dict[str, str] = {}
    is_dated = False
    for tool in resolved.tools:
        for index, alias in enumerate(lower(tool)):
            at, name = tool.place_of("aliases") / index, alias["name"]
            if problem := _find_name_problem(name, tools, first.get(name)):
                yield Diagnostic("SW245", f"`{shorten(name)}` cannot be an alias: {problem}", at / "name")
            first.setdefault(name, tool.name)
            if "removeAfter" in alias:
                is_dated = True
                yield from _check_expiry(resolved.entry["server"]["version"], alias, at)
            yield from _check_arguments(resolved, tool, alias, at)
    version = resolved.entry["server"]["version"]
    if is_dated and _precedence(version) is None:
        place = Place(resolved.bundle.entry, ("server", "version"))
        yield _report_version(version, place, "which `removeAfter` is compared with")


def _prefix(tool: Declaration) -> str:
    """Return the prefix of a tool's aliases. In an overlay, aliases and tool names both omit the overlay's prefix."""
    match tool.place_of("aliases").pointer:
        case ("overlay", "tools", name, *_):
            return tool.name.removesuffix(str(name))
        case _:
            return tool.prefix


def _find_name_problem(name: str, tools: set[str], other: str | None) -> str | None:
    if not _NAME.fullmatch(name):
        return "tool names consist of 1 to 128 letters, digits, `_`, `-` and `.`"
    if name in tools:
        return "a tool already has this name"
    return None if other is None else f"it is already an alias for `{other}`"


def _check_expiry(version: str, alias: Mapping[str, Json], at: Place) -> Iterator[Diagnostic]:
    last, now = _precedence(alias["removeAfter"]), _precedence(version)
    if last is None:
        yield _report_version(alias["removeAfter"], at / "removeAfter", "the last version that accepts the alias")
    elif now is not None and now > last:
        name = shorten(alias["name"])
        message = f"the alias `{name}` has expired: `removeAfter` is {alias['removeAfter']}, and this is {version}"
        yield Diagnostic("SW243", message, at / "removeAfter", "remove the alias, or specify a later version")


def _report_version(version: str, place: Place, role: str) -> Diagnostic:
    message = f"`{shorten(version)}`, {role}, is not a semantic version"
    return Diagnostic("SW244", message, place, "write three numbers, as in `3.0.0`")


def _check_arguments(
    resolved: ResolvedBundle, tool: Declaration, alias: Mapping[str, Json], at: Place
) -> Iterator[Diagnostic]:
    renamed: Mapping[str, str] = alias.get("arguments") or {}
    outline = resolved.outlines[tool.place / "inputSchema"]
    names = find_argument_names(resolved.bundle_schema(outline).wire, outline.dialect)
    known = None if names is None else [name for name in names if name not in (tool.extension.get("bind") or {})]
    counts = Counter(renamed.values())
    seen: dict[str, str] = {}
    for old, new in renamed.items():
        place = at / "arguments" / old
        if known is not None and new not in known:
            message = f"`{tool.name}` has no argument `{shorten(new)}` for the old `{shorten(old)}`"
            yield Diagnostic("SW258", message, place, did_you_mean(new, known, "arguments"))
        elif counts[new] > 1 and new in seen:
            message = f"`{shorten(seen[new])}` and `{shorten(old)}` both map to `{shorten(new)}`"
            yield Diagnostic("SW246", message, place, "map only one argument to it")
        seen.setdefault(new, old)


def _precedence(version: str) -> tuple[object, ...] | None:
    """Return a sort key for a semantic version (semver.org 2.0.0, item 11), or None for any other version."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    identifiers = [
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in (match[4] or "").split(".") if part
    ]
    return (*(int(number) for number in match.groups()[:3]), not identifiers, identifiers)
