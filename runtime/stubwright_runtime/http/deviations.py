"""Returns API responses that do not match the `outputSchema`, and reports the mismatch in `_meta` and in the log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..observability.logs import log
from ..schema.validation import get_output_validator
from ..server.handlers.returns import UnstructuredReply, UpstreamReply
from .responses import Answer, SchemaMismatch, make_content

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ..package import Tool

META: Final = "io.stubwright/output"
"""The `_meta` key for the mismatch; custom keys require a prefix (MCP 2025-11-25, basic, `_meta`)."""

_MOST: Final = 5


async def tolerate(answer: Answer, tool: Tool, make: Callable[[], Any], bound: Callable[[Any], Awaitable[Any]]) -> Any:
    """Return the result from `make`, or the response as text if it does not match the `outputSchema`.

    Args:
        answer: The API's response.
        tool: The tool.
        make: Returns the structured result or raises `SchemaMismatch`.
        bound: Returns a result, or its start and a link if it is too large (`large: resource`).
    """
    try:
        value = await bound(make())
    except SchemaMismatch as error:
        content = await bound(make_content(answer) if error.instead is None else error.instead)
        violations = [{"pointer": "", "keyword": "", "message": str(error)}]
        if isinstance(content, UnstructuredReply) and content.meta is not None:
            content, violations = content.model, [*violations, *content.meta[META]["violations"]]
        return _make_mismatch(tool, content, violations)
    if isinstance(value, UnstructuredReply):
        return value

    def make_deviation(text: str, lines: Sequence[str]) -> UnstructuredReply:
        violations_found = list(_violations(tool, json.loads(text))) or [
            {"pointer": "", "keyword": "", "message": lines[0]}
        ]
        return _make_mismatch(tool, text if answer.body.strip() else make_content(answer), violations_found)

    return UpstreamReply(value, otherwise=make_deviation)


def _violations(tool: Tool, value: Any) -> Iterator[dict[str, str]]:
    validator = get_output_validator(tool)
    for path, keyword, lines in () if validator is None else validator.describe_errors(value, "result"):
        for line in lines:
            yield {"pointer": _pointer(path), "keyword": keyword, "message": line}


def _make_mismatch(tool: Tool, content: Any, violations: Sequence[Mapping[str, str]]) -> UnstructuredReply:
    more = len(violations) - _MOST
    shown: dict[str, Any] = {"fits": False, "violations": [*violations[:_MOST]]}
    if more > 0:
        shown["more"] = more
    lines = "\n".join(violation["message"] for violation in violations[:_MOST])
    log().warning(
        "%s: the API's response does not match the outputSchema and is returned as text:\n%s", tool.name, lines
    )
    return UnstructuredReply(content, meta={META: shown})


def _pointer(path: Iterable[str | int]) -> str:
    """Format a path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
