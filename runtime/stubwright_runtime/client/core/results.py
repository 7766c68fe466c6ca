"""Validates a call's structured result against the compiled `outputSchema`, not the server's current one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...observability.logs import redact_text
from ...schema.validation import get_output_validator
from .content import measure_json
from .errors import InvalidResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from ...package import Tool


def read_structured(tool: Tool, result: CallToolResult, size: int | None, *, mirrored: bool) -> Any:
    """Return the validated value of `structuredContent`.

    Args:
        tool: The tool, which has an `outputSchema`.
        result: A result without `isError`.
        size: The size of `structuredContent` as JSON; see `measure_json`.
        mirrored: Whether a text block may contain the value instead. MCP 2025-03-26 and earlier have no
            `structuredContent`, and 2025-11-25 and earlier allow only objects there, so servers also send the JSON
            as text (MCP 2025-06-18, server/tools, "Structured Content").

    Raises:
        InvalidResult: The value is missing or violates the schema. If the call is lenient and the server reports a
            mismatch, this is the subclass `DeviatingResult`.
    """
    if tool.is_lenient:
        from . import deviation

        deviation.raise_if_deviating(tool, result)
    if "structured_content" in result.model_fields_set:
        value = result.structured_content
    elif mirrored:
        value = _mirror(tool, result)
        size = measure_json(value)
    else:
        raise InvalidResult(tool.name, ["result: structuredContent is required but missing"], result)
    validator = get_output_validator(tool)
    try:
        violations = [] if validator is None else validator.find_errors(value, "result", size=size)
    except (ValueError, RecursionError) as error:  # JSON in text can exceed the nesting limit for messages
        raise InvalidResult(tool.name, [f"result: cannot be validated: {error}"], result) from None
    if violations:
        raise InvalidResult(tool.name, [redact_text(line) for line in violations], result)
    return value


def _mirror(tool: Tool, result: CallToolResult) -> Any:
    """Return the parsed JSON of the first text block that contains JSON."""
    for block in result.content:
        if block.type == "text":
            try:
                return json.loads(block.text)
            except (ValueError, RecursionError):
                continue
    raise InvalidResult(
        tool.name, ["result: structuredContent is required but missing, and no text block is JSON"], result
    )
