"""Model Context Protocol constants: lists, tool hints, content types, and `_meta` keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

Capability: TypeAlias = Literal["tools", "resources", "prompts"]
"""A capability that declares a list and its changes (MCP 2025-11-25, basic/lifecycle, "Capability Negotiation")."""

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""A log message's severity, from lowest to highest (RFC 5424, 6.2.1)."""

LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)


@dataclass(frozen=True, slots=True)
class Section:
    """One of a server's lists, which is a section in a manifest.

    Attributes:
        name: The section's key, and the key of the list in results, such as `resourceTemplates`.
        noun: The noun for an entry.
        key: The field that identifies an entry. A `prefix` applies to names, but not to URIs.
        capability: The capability that declares the list.
        method: The protocol method that returns the list.
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
"""A server's lists except tools."""

SECTIONS: Final = (TOOLS, *PRIMITIVES)
"""All of a server's lists (MCP 2025-11-25, server/tools, server/resources, server/prompts)."""

PAGES: Final = "ui://"
"""The URI prefix for pages that applications show with results (MCP Apps, SEP-1865, "UI Resource Format")."""

PAGE_MIME: Final = "text/html;profile=mcp-app"
"""The MIME type for pages of MCP Apps."""

PAGES_EXTENSION: Final = "io.modelcontextprotocol/ui"
"""The extension for pages of MCP Apps (SEP-1865, "Extension Identifier")."""

SKILLS: Final = "skill://"
"""The URI prefix for skill files (SEP-2640, "Resource Mapping")."""

SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
"""The extension for skills (SEP-2640, "Extension Identifier")."""

FOLDER_MIME: Final = "inode/directory"
"""The MIME type for a skill folder (SEP-2640, "Directory Resources")."""

TOOL_NAME: Final = r"[A-Za-z0-9_.-]{1,128}"
"""The recommended pattern for tool names (MCP 2025-11-25, server/tools, "Tool Names")."""

SCHEMAS: Final = ("inputSchema", "outputSchema")
"""The tool fields that contain a schema (MCP 2025-06-18, server/tools)."""

HEADER: Final = "x-mcp-header"
MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer that can be mirrored into a header. The smallest is its negative (SEP-2243)."""
"""The keyword on a property that clients mirror into an HTTP header (MCP 2026-07-28, server/tools)."""

PROTOCOL_VERSION_META_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_META_KEY: Final = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_META_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_META_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO_META_KEY: Final = "io.modelcontextprotocol/serverInfo"
"""The `_meta` keys that replace the handshake (MCP 2026-07-28, basic)."""


ALIAS_META_KEY: Final = "io.stubwright/alias"
"""The `_meta` key for the current name of a tool that was called by an old name (`aliases`)."""

IDEMPOTENCY_KEY: Final = "idempotencyKey"
"""The call parameter for the client's idempotency key, which is equal in each retry (proposed in SEP-3182)."""

IDEMPOTENCY_META_KEY: Final = f"io.modelcontextprotocol/{IDEMPOTENCY_KEY}"
"""The `_meta` key for the idempotency key, for proxies that drop unknown parameters."""

REPLAY_META_KEY: Final = "io.stubwright/replayed"
"""The `_meta` key that marks a replayed result (`policy.once`)."""


def is_reserved(key: str) -> bool:
    """Return whether a `_meta` key is reserved for MCP.

    Up to 2025-11-25, the second-to-last label of a reserved prefix is `mcp` or `modelcontextprotocol`. Since
    2026-07-28, the second label is (basic, "_meta"). A prefix whose first label is one of the two is also treated as
    reserved.
    """
    prefix, slash, _ = key.rpartition("/")
    labels = prefix.split(".")
    return bool(slash) and not _OWN.isdisjoint((*labels[:2], *labels[-2:-1]))


_OWN: Final = frozenset({"mcp", "modelcontextprotocol"})

CONTENT: Final = ("text", "image", "audio", "resource")
"""The content types in prompt messages (MCP 2025-11-25, server/prompts)."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A hint about a tool's behavior: its name, its default, and the descriptions of its values."""

    name: str
    default: bool
    true: str
    false: str

    def describe(self, value: bool) -> str:
        """Return the description of one of the hint's values."""
        return self.true if value else self.false


HINTS: Final = (
    Hint("readOnlyHint", False, "read-only", "changes things"),
    Hint("destructiveHint", True, "destructive", "not destructive"),
    Hint("idempotentHint", False, "idempotent", "not idempotent"),
    Hint("openWorldHint", True, "open world", "closed world"),
)
"""The hints in a tool's annotations (MCP 2025-06-18, schema, `ToolAnnotations`)."""

CURSOR: Final = "cursor"
"""The parameter for the start of a page, in MCP lists (2025-11-25, server/utilities/pagination) and in tools."""

NEXT_CURSOR: Final = "nextCursor"
"""The result field with the `cursor` for the next page. The last page omits it."""
