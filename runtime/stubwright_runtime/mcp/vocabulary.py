"""Terms of the Model Context Protocol, stated once: lists of servers, hints of tools, and kinds of content.

Pure data. Names have the spelling of the wire and of manifests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

Capability: TypeAlias = Literal["tools", "resources", "prompts"]
"""A capability that announces a list and its changes (MCP 2025-11-25, basic/lifecycle, "Capability Negotiation")."""

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""The severity of a message, from least to most (RFC 5424, 6.2.1)."""

LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)


@dataclass(frozen=True, slots=True)
class Section:
    """One list of a server, which is one section of a manifest.

    Attributes:
        name: The section's key, and the key of the list in results, such as `resourceTemplates`.
        noun: The word for one entry.
        key: The field that identifies an entry. A `prefix` goes before names, and never before URIs.
        capability: The capability that announces the list.
        method: The method that lists it.
    """

    name: str
    noun: str
    key: str
    capability: Capability
    method: str


TOOLS: Final = Section("tools", "tool", "name", "tools", "tools/list")
RESOURCES: Final = Section("resources", "resource", "uri", "resources", "resources/list")
TEMPLATES: Final = Section(
    "resourceTemplates", "resource template", "uriTemplate", "resources", "resources/templates/list"
)
PROMPTS: Final = Section("prompts", "prompt", "name", "prompts", "prompts/list")

PRIMITIVES: Final = (RESOURCES, TEMPLATES, PROMPTS)
"""The lists of a server next to tools."""

SECTIONS: Final = (TOOLS, *PRIMITIVES)
"""All lists of a server (MCP 2025-11-25, server/tools, server/resources, server/prompts)."""

PAGES: Final = "ui://"
"""The prefix of the URIs of pages that hosts show next to results (MCP Apps, SEP-1865, "UI Resource Format")."""

PAGE_MIME: Final = "text/html;profile=mcp-app"
"""The MIME type of these pages."""

PAGES_EXTENSION: Final = "io.modelcontextprotocol/ui"
"""The extension of MCP that has these pages (SEP-1865, "Extension Identifier")."""

SKILLS: Final = "skill://"
"""The prefix of the URIs of the files of skills (SEP-2640, "Resource Mapping")."""

SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
"""The extension of MCP that has skills (SEP-2640, "Extension Identifier")."""

FOLDER_MIME: Final = "inode/directory"
"""The MIME type of a folder of a skill (SEP-2640, "Directory Resources")."""

TOOL_NAME: Final = r"[A-Za-z0-9_.-]{1,128}"
"""A pattern of the names that tools should have (MCP 2025-11-25, server/tools, "Tool Names")."""

SCHEMAS: Final = ("inputSchema", "outputSchema")
"""The fields of a tool that hold a schema (MCP 2025-06-18, server/tools)."""

HEADER: Final = "x-mcp-header"
MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer of an argument that is mirrored into a header; the smallest is its negative (SEP-2243)."""
"""The keyword of a property that clients mirror into an HTTP header (MCP 2026-07-28, server/tools)."""

PROTOCOL_VERSION_META_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_META_KEY: Final = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_META_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_META_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO_META_KEY: Final = "io.modelcontextprotocol/serverInfo"
"""The keys of `_meta` for the facts that the handshake carried before (MCP 2026-07-28, basic)."""


ALIAS_META_KEY: Final = "io.stubwright/alias"
"""The key in the `_meta` of a result that names the tool that was called by an old name (`aliases` in a manifest)."""

IDEMPOTENCY_KEY: Final = "idempotencyKey"
"""The parameter of a call with the client's own key of it, the same in each retry (proposed in SEP-3182)."""

IDEMPOTENCY_META_KEY: Final = f"io.modelcontextprotocol/{IDEMPOTENCY_KEY}"
"""The key in the `_meta` of a call for the same, which proxies pass on that drop unknown parameters."""

REPLAY_META_KEY: Final = "io.stubwright/replayed"
"""The key in the `_meta` of a result that was returned before, to an earlier call (`policy.once` in a manifest)."""


def is_reserved(key: str) -> bool:
    """Return whether a key of `_meta` is MCP's own, by the labels of its prefix.

    Up to 2025-11-25 `mcp` or `modelcontextprotocol` is the second-last label, from 2026-07-28 on the second (basic,
    "_meta"); as the first label it belongs to no other owner, either.
    """
    prefix, slash, _ = key.rpartition("/")
    labels = prefix.split(".")
    return bool(slash) and not _OWN.isdisjoint((*labels[:2], *labels[-2:-1]))


_OWN: Final = frozenset({"mcp", "modelcontextprotocol"})

CONTENT: Final = ("text", "image", "audio", "resource")
"""The kinds of content that a message of a prompt may hold (MCP 2025-11-25, server/prompts)."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A hint of a tool about its behavior: its name, its default, and the words for its two values."""

    name: str
    default: bool
    true: str
    false: str

    def describe(self, value: bool) -> str:
        """Return the words for a value of the hint."""
        return self.true if value else self.false


HINTS: Final = (
    Hint("readOnlyHint", False, "read-only", "changes things"),
    Hint("destructiveHint", True, "destructive", "not destructive"),
    Hint("idempotentHint", False, "idempotent", "not idempotent"),
    Hint("openWorldHint", True, "open world", "closed world"),
)
"""The hints among a tool's annotations (MCP 2025-06-18, schema, `ToolAnnotations`). The defaults are the cautious
values."""

CURSOR: Final = "cursor"
"""The parameter for the start of a page, in lists of MCP (2025-11-25, server/utilities/pagination) and of tools."""

NEXT_CURSOR: Final = "nextCursor"
"""The field of a result with the `cursor` of the next page; missing on the last."""
