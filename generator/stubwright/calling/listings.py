"""Formats a server's lists as text and JSON: entries, their cost, and the differences between revisions.

Costs are token estimates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from stubwright import tokens
from stubwright.calling.signatures import format_signature
from stubwright_runtime.mcp.revisions import SINCE
from stubwright_runtime.mcp.vocabulary import SECTIONS, TOOLS, Section
from stubwright_runtime.values.terminal import replace_controls, to_one_line

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.importers.server_listing import ServerListing

_SUMMARY: Final = 100
_HEADING: Final = re.compile(r"^\w.*", re.MULTILINE)
_NAME: Final = re.compile(r"(?<=^  )[^\s(]+", re.MULTILINE)
_HINTS: Final = {"readOnlyHint": "read-only", "destructiveHint": "destructive", "idempotentHint": "idempotent"}


def list_manifest(manifest: ir.Manifest, revision: str) -> ServerListing:
    """Return the lists that a manifest's server sends to a caller with all scopes."""
    from stubwright.importers.server_listing import ServerListing

    sections: dict[str, Sequence[Any]] = {TOOLS.name: [tool.listed for tool in manifest.tools]}
    sections |= {
        section.name: [entry.definition for entry in entries] for section, entries in manifest.primitives.items()
    }
    return ServerListing(
        revision, manifest.server, {}, {name: entries for name, entries in sections.items() if entries}
    )


def show(listing: ServerListing, *, needs: Mapping[str, Sequence[str]] | None = None, color: bool = False) -> str:
    """Format a listing as text: one or two lines for each entry, and the cost of the lists.

    Args:
        needs: The required scopes, keyed by tool name.
        color: True to emphasize headings and names.
    """
    info = listing.info
    lines = [to_one_line(f"{info.get('name', '?')} {info.get('version', '')} (MCP {listing.revision})")]
    for section in SECTIONS:
        entries = [entry for entry in listing.sections.get(section.name, ()) if isinstance(entry, dict)]
        if not entries:
            continue
        noun = section.noun if len(entries) == 1 else f"{section.noun}s"
        lines += ["", f"{len(entries)} {noun}, about {sum(map(tokens.count, entries)):,} tokens"]
        for entry in entries:
            lines += _describe(section, entry, (needs or {}).get(str(entry.get("name")), ()))
    lines += [*([""] if listing.notes else []), *(f"note: {note}" for note in listing.notes)]
    text = replace_controls("\n".join(lines)) + "\n"
    return _NAME.sub("\x1b[36m\\g<0>\x1b[0m", _HEADING.sub("\x1b[1m\\g<0>\x1b[0m", text)) if color else text


def to_json(listing: ServerListing) -> dict[str, Any]:
    """Format a listing as JSON, with the estimate for each entry under `cost`."""
    sections = {name: list(entries) for name, entries in listing.sections.items()}
    cost = {
        section.name: {str(entry.get(section.key)): tokens.count(entry) for entry in sections[section.name]}
        for section in SECTIONS
        if section.name in sections
    }
    total = sum(sum(prices.values()) for prices in cost.values())
    head = {"revision": listing.revision, "server": dict(listing.info), "capabilities": dict(listing.capabilities)}
    return {**head, **sections, "cost": {"unit": tokens.name_unit(), "total": total, **cost}}


def find(listing: ServerListing, key: str) -> Mapping[str, Any] | None:
    """Return the entry whose name or URI is `key`, or None."""
    for section in SECTIONS:
        for entry in listing.sections.get(section.name, ()):
            if isinstance(entry, dict) and entry.get(section.key) == key:
                return entry
    return None


def list_keys(listing: ServerListing) -> list[str]:
    """Return the names and URIs of all entries."""
    return [
        str(entry.get(section.key))
        for section in SECTIONS
        for entry in listing.sections.get(section.name, ())
        if isinstance(entry, dict)
    ]


def describe_differences(newer: ServerListing, older: ServerListing, key: str | None = None) -> list[str]:
    """Return the differences between two revisions' listings, one line each.

    Args:
        newer: The listing to compare with.
        older: The listing whose differences are returned.
        key: The only entry to compare; None for all entries and the server description.
    """
    lines: list[str] = []
    if key is None:
        lines += _changes("the server", newer.info, older.info)
        lines += _changes("capabilities", newer.capabilities, older.capabilities)
    for section in SECTIONS:
        before, after = (_index_entries(section, listing) for listing in (newer, older))
        for name in before | after:
            if key is not None and name != key:
                continue
            label = f"{section.noun} `{name}`"
            if name not in after:
                lines.append(f"{label} is not listed")
            elif name not in before:
                lines.append(f"{label} is also listed")
            else:
                lines += _changes(label, before[name], after[name])
    return [to_one_line(line) for line in lines]


def describe_unknown(listing: ServerListing, date: str) -> str:
    """Describe the fields of entries that a revision's clients do not support; return an empty string without any."""
    unknown = [
        f"`{field}` of {section.noun}s"
        for section in SECTIONS
        for field, since in SINCE[section.name].items()
        if since > date and any(field in entry for entry in _index_entries(section, listing).values())
    ]
    return f"its clients do not support {', '.join(unknown)}" if unknown else ""


def _index_entries(section: Section, listing: ServerListing) -> dict[str, Mapping[str, Any]]:
    entries = listing.sections.get(section.name, ())
    return {str(entry.get(section.key)): entry for entry in entries if isinstance(entry, dict)}


def _changes(label: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    lost = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    other = [name for name in before if name in after and before[name] != after[name]]
    for names, words in ((lost, "without"), (new, "with"), (other, "other")):
        if names:
            yield f"{label}: {words} {', '.join(f'`{name}`' for name in names)}"


def _describe(section: Section, entry: Mapping[str, Any], needs: Sequence[str]) -> Iterator[str]:
    name = format_signature(entry) if section is TOOLS else to_one_line(str(entry.get(section.key)))
    yield f"  {name}"
    text = str(entry.get("description") or entry.get("title") or "").strip()
    first = " ".join(text.partition("\n\n")[0].split())
    summary = first if len(first) <= _SUMMARY else f"{first[: _SUMMARY - 1]}…"
    hints = entry.get("annotations") if section is TOOLS else None
    words = [word for hint, word in _HINTS.items() if isinstance(hints, dict) and hints.get(hint) is True]
    words = ["read-only"] if "read-only" in words else words  # the other hints have no meaning for read-only tools
    words += [f"needs {', '.join(f'`{scope}`' for scope in needs)}"] if needs else []
    words.append(f"{tokens.count(entry):,} tokens")
    yield f"      {summary}{' ' if summary else ''}({', '.join(words)})"
