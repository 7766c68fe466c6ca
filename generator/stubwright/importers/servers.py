"""Converts a live server's lists to a manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stubwright.importers import acceptance, collisions, primitives, tools
from stubwright.importers.acceptance import ImportResult
from stubwright_runtime.mcp import vocabulary
from stubwright_runtime.mcp.revisions import Revision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stubwright.importers.server_listing import ServerListing

_INFO: Final = ("title", "description", "instructions", "websiteUrl", "icons")
KEYS: Final = (
    *("name", "uri", "uriTemplate", "title", "description", "mimeType", "size", "arguments", "inputSchema"),
    *("outputSchema", "annotations", "execution", "icons", "_meta"),
)
"""The key order in an entry; other keys follow in their original order."""

_CAPABILITIES: Final = ("tools", "resources", "prompts", "completions")
"""Capabilities that a manifest can declare; lists with entries imply theirs."""


UNTRUSTED: Final = (
    "the hints of its tools are not trusted, because they come from the server: the client calls `confirm` before "
    "each call; add `overlay: {tools: {NAME: {policy: {trusted: true}}}}` to trust the hints of a tool"
)
"""The note on a client's manifest."""


def make_manifest(
    listed: ServerListing, *, name: str | None, default_name: str, prefix: str = "", emit: Sequence[str] = ()
) -> ImportResult:
    """Convert a server's lists to a manifest.

    Args:
        listed: The server's lists.
        name: The name in the manifest; by default the name that the server reports.
        default_name: The name for a server without a name.
        prefix: A prefix for tool and prompt names.
        emit: The clients to generate, with untrusted hints; empty for a server's manifest.

    Raises:
        UnfixableError: The manifest is invalid even after removing parts.
    """
    notes = list(listed.notes)
    server = _make_server(listed, name, default_name, notes)
    draft: dict[str, Any] = {"stubwright": 1, "server": server}
    if emit:
        draft |= {"emit": [*emit], "client": {"hints": "untrusted"}}
        if not Revision.from_date(listed.revision).has(
            "stateless"
        ):  # the client already tries revisions without a handshake first
            draft["client"]["revision"] = listed.revision
    draft["tools"] = tools.fix(listed.sections.get("tools", ()), notes, prefix)
    for section in vocabulary.PRIMITIVES:
        if entries := primitives.fix(section, listed.sections.get(section.name, ()), notes, prefix):
            draft[section.name] = entries
    notes += collisions.resolve(draft)
    if emit and draft["tools"]:
        notes.append(UNTRUSTED)
    checked = acceptance.repair(draft)
    ordered = {key: _order(value) for key, value in checked.manifest.items() if value or key == "tools"}
    counts = [(len(ordered.get(section.name, ())), section.noun) for section in vocabulary.SECTIONS]
    contents = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count) or "nothing"
    summary = f"{server['name']} {server['version']} (MCP {listed.revision}): {contents}"
    return ImportResult(
        ordered, summary, (*notes, *checked.notes, *acceptance.report_unfillable(checked.unfillable)), checked.warnings
    )


def _make_server(listed: ServerListing, name: str | None, default_name: str, notes: list[str]) -> dict[str, Any]:
    info = tools.fix_text("the server", dict(listed.info), notes)
    server: dict[str, Any] = {"name": name, "version": info.get("version")}
    if server["name"] is None:
        server["name"] = info.get("name")
    for key, default in (("name", default_name), ("version", tools.NO_VERSION)):
        if not isinstance(server[key], str) or not server[key].strip():
            server[key] = default
            notes.append(f"the server has no {key}; `{default}` was used")
    server |= {key: info[key] for key in _INFO if info.get(key) not in (None, "", [])}
    declared = {
        capability: True
        for capability in _CAPABILITIES
        if listed.capabilities.get(capability) is not None
        and not any(
            listed.sections.get(section.name) for section in vocabulary.SECTIONS if section.capability == capability
        )
    }
    return {**server, "capabilities": declared} if declared else server


def _order(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [_order_keys(entry) if isinstance(entry, dict) else entry for entry in value]


def _order_keys(entry: dict[str, Any]) -> dict[str, Any]:
    extension = {"stubwright": entry["stubwright"]} if "stubwright" in entry else {}
    first: dict[str, Any] = {key: entry[key] for key in KEYS if key in entry}
    return {**first, **{key: value for key, value in entry.items() if key not in first | extension}, **extension}
