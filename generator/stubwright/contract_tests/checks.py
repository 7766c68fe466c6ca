"""The table of checks: the meaning, severity and source of each.

`docs/reference.py` prints it. A violation of a MUST in the specification is an error, and so is any fault that makes a
server unusable; a violation of a SHOULD is a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from stubwright_runtime.mcp.revisions import REVISIONS

Severity: TypeAlias = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Check:
    """A rule for server responses.

    Attributes:
        name: The check's name in reports, which never changes.
        severity: "error" if a fault always fails a run, "warning" if it does only with `--strict`.
        meaning: A statement that is true if the check passes.
        source: The rule's source: an MCP revision and page, or this project.
        is_new: True if the revision in `source` introduced the rule.
    """

    name: str
    severity: Severity
    meaning: str
    source: str
    is_new: bool = False

    @property
    def since(self) -> str:
        """The first MCP revision with the rule."""
        named = next((date for date in REVISIONS if date in self.source), REVISIONS[0])
        return named if self.is_new else REVISIONS[0]


SURVIVES: Final = Check(
    "server-survives", "error", "no call crashes the server or breaks its connection", "stubwright's own"
)
IN_TIME: Final = Check("answers-in-time", "error", "each call gets a response within `--deadline`", "stubwright's own")
MESSAGES_ONLY: Final = Check(
    "sends-only-messages",
    "error",
    "the server sends only JSON-RPC messages, without `print` output or the number `NaN`",
    "MCP 2025-11-25, basic/transports, stdio (MUST NOT)",
)
NO_PROTOCOL_ERROR: Final = Check(
    "valid-is-no-protocol-error",
    "error",
    "valid arguments of a listed tool never cause a protocol error; the tool may reject them in its result",
    "MCP 2025-11-25, server/tools, Error Handling",
)
WELL_FORMED: Final = Check(
    "result-is-well-formed", "error", "a result is a `CallToolResult`", "MCP 2025-11-25, schema, CallToolResult"
)
FITS_OUTPUT: Final = Check(
    "result-fits-output-schema",
    "error",
    "a result that is not an error has `structuredContent` that matches the `outputSchema`",
    "MCP 2025-06-18, server/tools, Output Schema (MUST)",
    is_new=True,
)
MIRRORED: Final = Check(
    "text-mirrors-structured",
    "warning",
    "a text block contains the JSON of `structuredContent`, for clients that read only text",
    "MCP 2025-06-18, server/tools, Structured Content (SHOULD)",
    is_new=True,
)
REFUSED: Final = Check(
    "invalid-is-refused",
    "error",
    "arguments that the `inputSchema` forbids are rejected",
    "MCP 2025-11-25, server/tools, Security Considerations (servers MUST validate all tool inputs)",
)
TOOL_ERROR: Final = Check(
    "invalid-is-a-tool-error",
    "warning",
    "invalid arguments cause a result with `isError`, which models see, instead of a protocol error",
    "MCP 2025-11-25, server/tools, Error Handling",
    is_new=True,
)
SAYS_WHAT: Final = Check(
    "error-says-what",
    "warning",
    "an error has text, which includes the argument's name if only one is invalid",
    "MCP 2025-11-25, server/tools, Error Handling (actionable feedback)",
    is_new=True,
)
NO_STACK: Final = Check(
    "error-is-not-a-stack",
    "error",
    "no error contains a stack trace from the server",
    "MCP 2025-11-25, server/tools, Security Considerations (servers MUST sanitize tool outputs)",
)
VALID_SCHEMA: Final = Check(
    "schemas-are-valid",
    "error",
    "each `inputSchema` and `outputSchema` is a valid JSON Schema",
    "MCP 2025-11-25, server/tools, Tool (MUST be a valid JSON Schema object)",
)
DECLARED: Final = Check(
    "tools-are-declared",
    "error",
    "a server with tools declares the capability `tools`",
    "MCP 2025-11-25, server/tools, Capabilities (MUST)",
)
NAMES: Final = Check(
    "tool-names",
    "warning",
    "tool names are unique and consist of 1 to 128 of the characters A-Z, a-z, 0-9, `_`, `-` and `.`",
    "MCP 2025-11-25, server/tools, Tool Names (SHOULD)",
    is_new=True,
)
SAME_ORDER: Final = Check(
    "list-keeps-its-order",
    "warning",
    "`tools/list` returns the same tools in the same order when called again",
    "MCP 2026-07-28, server/tools, Capabilities (SHOULD)",
    is_new=True,
)
UNKNOWN_TOOL: Final = Check(
    "unknown-tool-is-refused",
    "error",
    "a tool that is not listed cannot be called",
    "MCP 2025-11-25, server/tools, Error Handling",
)
UNKNOWN_TOOL_ERROR: Final = Check(
    "unknown-tool-is-a-protocol-error",
    "warning",
    "a call to an unknown tool causes the protocol error -32602 instead of a result",
    "MCP 2025-11-25, server/tools, Error Handling",
)
UNKNOWN_CURSOR: Final = Check(
    "unknown-cursor-is-refused",
    "warning",
    "a cursor that the server never returned causes the error -32602",
    "MCP 2025-11-25, server/utilities/pagination, Error Handling (SHOULD)",
)
UNKNOWN_METHOD: Final = Check(
    "unknown-method-is-refused",
    "error",
    "a method that does not exist causes an error",
    "JSON-RPC 2.0, section 5.1 (-32601)",
)
CONCURRENT: Final = Check(
    "answers-concurrent-calls",
    "error",
    "concurrent calls get the same kind of response as single calls",
    "stubwright's own",
)

CANCELLED: Final = Check(
    "goes-on-after-cancelling",
    "error",
    "after a call is cancelled, the server responds to the next request",
    "MCP 2025-11-25, basic/utilities/cancellation, Error Handling",
)
READ_ONLY: Final = Check(
    "read-only-changes-nothing",
    "error",
    "a call to a tool with `readOnlyHint: true` does not change the result of `--probe`",
    "MCP 2025-11-25, schema, ToolAnnotations",
)
IDEMPOTENT: Final = Check(
    "idempotent-changes-nothing-more",
    "error",
    "a second, identical call to a tool with `idempotentHint: true` does not change the result of `--probe`",
    "MCP 2025-11-25, schema, ToolAnnotations",
)
ONCE: Final = Check(
    "repeated-call-runs-once",
    "error",
    "if the target is a manifest, a repeated call to a `policy.once` tool returns the first result, marked as replayed",
    "stubwright's own",
)

CHECKS: Final = tuple(check for check in tuple(globals().values()) if isinstance(check, Check))
"""All checks above, in the order of reports."""

OF_CALLS: Final = (
    IN_TIME,
    NO_PROTOCOL_ERROR,
    WELL_FORMED,
    FITS_OUTPUT,
    MIRRORED,
    REFUSED,
    TOOL_ERROR,
    SAYS_WHAT,
    CONCURRENT,
    CANCELLED,
    ONCE,
)
"""The checks that require a tool call."""

OF_PROBES: Final = (READ_ONLY, IDEMPOTENT)
"""The checks that require `--probe`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A failed check of a response, with a description of the failure."""

    check: Check
    message: str
