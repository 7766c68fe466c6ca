"""The structured result of a call, checked against the tool's own `outputSchema`.

What the server says about its schemas now changes nothing: the compiled manifest decides.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...observability.logs import redact_text
from ...schema.validation import get_output_validator
from .errors import InvalidResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from ...package import Tool


def read_structured(tool: Tool, result: CallToolResult, *, mirrored: bool) -> Any:
    """Return the value of `structuredContent`.

    Args:
        tool: The tool, which has an `outputSchema`.
        result: A result that is no error.
        mirrored: Whether the value may are in a text block alone. Before 2025-06-18 there is no `structuredContent`,
            and before 2026-07-28 it holds objects only; servers send the JSON text for such clients, too (MCP
            2025-06-18, server/tools, "Structured Content").

    Raises:
        InvalidResult: There is no value, or it breaks the schema; `DeviatingResult`, which is one, where the call is a
            lenient one and the server reports that what came does not fit.
    """
    if tool.is_lenient:
        from . import deviation

        deviation.raise_if_deviating(tool, result)
    if "structured_content" in result.model_fields_set:
        value = result.structured_content
    elif mirrored:
        value = _mirror(tool, result)
    else:
        raise InvalidResult(tool.name, ["result: structuredContent is required, but missing"], result)
    validator = get_output_validator(tool)
    try:
        violations = [] if validator is None else validator.find_errors(value, "result")
    except (ValueError, RecursionError) as error:  # what a text holds may be nested deeper than a message may be
        raise InvalidResult(tool.name, [f"result: it cannot be checked: {error}"], result) from None
    if violations:
        raise InvalidResult(tool.name, [redact_text(line) for line in violations], result)
    return value


def _mirror(tool: Tool, result: CallToolResult) -> Any:
    """Return the value of the first text block that is JSON."""
    for block in result.content:
        if block.type == "text":
            try:
                return json.loads(block.text)
            except (ValueError, RecursionError):
                continue
    raise InvalidResult(
        tool.name, ["result: structuredContent is required, but missing, and no text is its JSON"], result
    )
