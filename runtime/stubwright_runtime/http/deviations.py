"""Responses of APIs that do not match the `outputSchema` of their tool.

The call was made, so its content is still returned, with the mismatch in its `_meta` and in the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..observability.logs import log
from ..schema.validation import get_output_validator
from ..server.handlers.returns import Unstructured, UpstreamReply
from .responses import Answer, SchemaMismatch, make_content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..package import Tool

META: Final = "io.stubwright/output"
"""The key in `_meta`; MCP requires a prefix for custom keys (2025-11-25, basic, `_meta`)."""

_MOST: Final = 5


def tolerate(answer: Answer, tool: Tool, make: Callable[[], Any]) -> Any:
    """Return the result that `make` makes of an answer, whether it fits or not.

    Args:
        answer: The answer.
        tool: The tool.
        make: Returns the structured result, or raises `SchemaMismatch` if there can be none.
    """
    try:
        value = make()
    except SchemaMismatch as error:
        came = make_content(answer) if error.instead is None else error.instead
        return _unfitting(tool, came, [{"pointer": "", "keyword": "", "message": str(error)}])
    if isinstance(value, Unstructured):
        return value

    def make_deviation(text: str, lines: Sequence[str]) -> Unstructured:
        violations_found = list(_violations(tool, json.loads(text))) or [
            {"pointer": "", "keyword": "", "message": lines[0]}
        ]
        return _unfitting(tool, text if answer.body.strip() else make_content(answer), violations_found)

    return UpstreamReply(value, otherwise=make_deviation)


def _violations(tool: Tool, value: Any) -> Iterator[dict[str, str]]:
    validator = get_output_validator(tool)
    for path, keyword, lines in () if validator is None else validator.describe_errors(value, "result"):
        for line in lines:
            yield {"pointer": _pointer(path), "keyword": keyword, "message": line}


def _unfitting(tool: Tool, came: Any, violations: Sequence[Mapping[str, str]]) -> Unstructured:
    more = len(violations) - _MOST
    shown: dict[str, Any] = {"fits": False, "violations": [*violations[:_MOST]]}
    if more > 0:
        shown["more"] = more
    lines = "\n".join(violation["message"] for violation in violations[:_MOST])
    log().warning("%s: the API's answer does not fit the outputSchema, and is given as text:\n%s", tool.name, lines)
    return Unstructured(came, meta={META: shown})


def _pointer(path: Iterable[str | int]) -> str:
    """Return a path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
