"""The exception for results of lenient calls that do not match their `outputSchema`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ...observability.logs import redact_text
from ...values.json import Json, is_list, is_mapping
from .errors import InvalidResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from ...package import Tool

META: Final = "io.stubwright/output"
"""The `_meta` key for the server's description of the mismatch."""


class DeviatingResult(InvalidResult):
    """The call succeeded, but its result, which is available unchanged, does not match the `outputSchema`.

    Attributes:
        text: The result's text.
        value: The text parsed as JSON, or `None` if it is not JSON.
    """

    def __init__(self, tool: str, violations: list[str], result: CallToolResult) -> None:
        super().__init__(tool, violations, result)
        self.text = "\n".join(block.text for block in result.content if block.type == "text")
        self.value: Any = _read(self.text)


def raise_if_deviating(tool: Tool, result: CallToolResult) -> None:
    """Raise `DeviatingResult` if the server reports that a result does not match the tool's `outputSchema`."""
    deviation: Json = (result.meta or {}).get(META)
    if "structured_content" in result.model_fields_set or not is_mapping(deviation):
        return
    violations: Json = deviation.get("violations")
    lines = (
        [violation.get("message") for violation in violations if is_mapping(violation)] if is_list(violations) else []
    )
    raise DeviatingResult(tool.name, [redact_text(line) for line in lines if isinstance(line, str)], result)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
