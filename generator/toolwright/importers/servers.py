"""A live server as a manifest.

Takes what a server says of itself, in whatever quality; gives a manifest that passes `check`, with all schemas as they
came, and tells what had to be fixed or left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from toolwright.importers import acceptance, collisions, primitives, tools
from toolwright.importers.acceptance import Made
from toolwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from toolwright.importers.live import Listed

_INFO: Final = ("title", "description", "instructions", "websiteUrl", "icons")
_KEYS: Final = (
    *("name", "uri", "uriTemplate", "title", "description", "mimeType", "size", "arguments", "inputSchema"),
    *("outputSchema", "annotations", "execution", "icons", "_meta"),
)
"""The order of an entry's keys for people, who look for its name first. Others follow as they came."""

_CAPABILITIES: Final = ("tools", "resources", "prompts", "completions")
"""Capabilities that a manifest can declare; one that announces a list goes without saying where the list has entries.
"""


_UNTRUSTED: Final = (
    "the hints of its tools are not trusted, since somebody else wrote them: the client's `confirm` is asked before "
    "each call; `overlay: {tools: {NAME: {policy: {trusted: true}}}}` believes those of a tool"
)


def manifest(listed: Listed, *, name: str | None, otherwise: str, prefix: str = "", client: bool = False) -> Made:
    """The manifest of a server.

    Args:
        listed: What it says.
        name: Its name; by default what it calls itself.
        otherwise: Its name where it has none.
        prefix: Put in front of the names of tools and prompts.
        client: Write `emit: [client]`, and that hints are not trusted.

    Raises:
        UnsettledError: Nothing that can be left out would make it a manifest.
    """
    notes = list(listed.notes)
    server = _server(listed, name, otherwise, notes)
    made: dict[str, Any] = {"toolwright": 1, "server": server}
    if client:
        made |= {"emit": ["client"], "client": {"hints": "untrusted"}}
    made["tools"] = tools.fixed(listed.sections.get("tools", ()), notes, prefix)
    for section in vocabulary.PRIMITIVES:
        if entries := primitives.fixed(section, listed.sections.get(section.name, ()), notes, prefix):
            made[section.name] = entries
    notes += collisions.tell_apart(made)
    if client and made["tools"]:
        notes.append(_UNTRUSTED)
    settled = acceptance.settle(made)
    kept = {key: _ordered(value) for key, value in settled.manifest.items() if value or key == "tools"}
    counts = [(len(kept.get(section.name, ())), section.noun) for section in vocabulary.SECTIONS]
    told = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count) or "nothing"
    summary = f"{server['name']} {server['version']} (MCP {listed.revision}): {told}"
    return Made(kept, summary, (*notes, *settled.notes), settled.warnings)


def _server(listed: Listed, name: str | None, otherwise: str, notes: list[str]) -> dict[str, Any]:
    info = tools.whole("the server", dict(listed.info), notes)
    server: dict[str, Any] = {"name": name, "version": info.get("version")}
    if server["name"] is None:
        server["name"] = info.get("name")
    for key, instead in (("name", otherwise), ("version", "0.0.0")):
        if not isinstance(server[key], str) or not server[key].strip():
            server[key] = instead
            notes.append(f"the server says no {key}; it got `{instead}`")
    server |= {key: info[key] for key in _INFO if info.get(key) not in (None, "", [])}
    declared = {
        capability: True
        for capability in _CAPABILITIES
        if listed.capabilities.get(capability) is not None
        and not any(listed.sections.get(one.name) for one in vocabulary.SECTIONS if one.capability == capability)
    }
    return {**server, "capabilities": declared} if declared else server


def _ordered(value: Any) -> Any:
    """A list of entries, each with its keys in the order for people; any other value as it is."""
    if not isinstance(value, list):
        return value
    return [_entry(one) if isinstance(one, dict) else one for one in value]


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    extension = {"toolwright": entry["toolwright"]} if "toolwright" in entry else {}
    first: dict[str, Any] = {key: entry[key] for key in _KEYS if key in entry}
    return {**first, **{key: value for key, value in entry.items() if key not in first | extension}, **extension}
