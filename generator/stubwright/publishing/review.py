"""Writes the page for directory reviewers: the tools with their hints, and the reasons for the hints.

OpenAI's app review requires a reason for each of three hints on every tool; other directories require the hints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright import ir

HINTS: Final = ("readOnlyHint", "destructiveHint", "openWorldHint")
"""The hints that require a value and a reason."""


def write(manifest: ir.Manifest) -> str:
    """Return the reviewers' page as Markdown."""
    server = manifest.server
    lines = [f"# Tools of {_escape_cell(str(server.get('title') or server['name']))} {server['version']}", ""]
    for tool in manifest.tools:
        title = tool.definition.get("title") or tool.annotations.get("title")
        lines += [f"## `{tool.name}`" + (f": {_escape_cell(str(title))}" if title else ""), ""]
        lines += [_escape_cell(tool.description), ""] if tool.description else []
        lines += ["| hint | value | reason |", "|---|---|---|"]
        for hint in dict.fromkeys((*HINTS, *tool.reasons)):
            value = tool.annotations.get(hint)
            words = "not said" if value is None else f"`{str(value).lower()}`"
            lines.append(f"| `{hint}` | {words} | {_escape_cell(tool.reasons.get(hint, ''))} |")
        lines.append("")
    return "\n".join(lines)


def find_missing(manifest: ir.Manifest) -> Iterator[Diagnostic]:
    """Yield a warning for each tool with a hint that lacks a value or a reason."""
    for tool in manifest.tools:
        lacking = [hint for hint in HINTS if tool.annotations.get(hint) is None or not tool.reasons.get(hint)]
        if lacking:
            names = ", ".join(f"`{hint}`" for hint in lacking)
            fix = "write the hints under `annotations`, and the reasons under `stubwright: {reasons: …}`"
            yield Diagnostic("SW414", f"`{tool.name}` lacks a value or a reason for {names}", tool.place / "name", fix)


def _escape_cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
