"""Checks and sanitizes content from a server, by the rules that our own servers follow."""

from __future__ import annotations

import json
from operator import is_
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

from ...values.json import is_list, is_object, refuse_constant
from ...values.nesting import DEEPEST, is_too_deep
from ...values.sanitizing import check_base64, check_mime_type, clean, is_clean
from ..transports.bounds import MOST_BLOCKS
from .errors import InvalidResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_types import CallToolResult, ContentBlock, TextContent

    from ...package import Tool
    from .options import Sanitize

_Model = TypeVar("_Model", bound=BaseModel)

_WRONG: Final = "is not valid MCP"
_DATA: Final = frozenset({"data", "blob"})
"""Base64 fields in content blocks, which need no sanitizing."""

_NOT_TEXT: Final = _DATA | {"type"}

_N, _I = b"NI"  # ten times as fast to find as the words `NaN` and `Infinity`

_MOST_PROBLEMS: Final = 20
"""The maximum number of problems that an error message lists."""


class ToolContent(list["ContentBlock"]):
    """The result content of a tool without an `outputSchema`: a list of content blocks.

    Attributes:
        tool: The tool's wire name.
        result: The whole result, with sanitized content.
    """

    def __init__(self, tool: str, result: CallToolResult) -> None:
        super().__init__(result.content)
        self.tool = tool
        self.result = result

    @property
    def text(self) -> str:
        """The text blocks, joined by line breaks. Raises `InvalidResult` if there are no text blocks."""
        texts = [block.text for block in self if block.type == "text"]
        if not texts:
            kinds = ", ".join(dict.fromkeys(block.type for block in self))
            raise InvalidResult(self.tool, [f"content: {kinds or 'no blocks'}"], self.result, "has no text")
        return "\n".join(texts)

    def json(self) -> Any:
        """Parse `text` as JSON.

        Raises:
            InvalidResult: The result has no text, or the text is not JSON (RFC 8259, without `NaN`).
        """
        try:
            return json.loads(self.text, parse_constant=refuse_constant)
        except RecursionError:
            problem = "nested too deeply"
        except ValueError as error:
            problem = str(error)
        raise InvalidResult(self.tool, [f"text: {problem}"], self.result, "is not JSON")


def check_result(
    tool: Tool, result: CallToolResult, sanitize: Sanitize, size: int | None = None
) -> tuple[CallToolResult, int]:
    """Return the sanitized result and the number of strings that changed.

    Args:
        tool: The tool.
        result: The server's result.
        sanitize: `text` sanitizes strings in content, `all` also strings in `structuredContent` and `_meta`; `none`
            disables sanitizing and the checks for data and MIME types.
        size: The size of `structuredContent` as JSON, if known; see `measure_json`.

    Raises:
        InvalidResult: Data is not base64, a MIME type is invalid, there are more than 10,000 blocks, or the result is
            nested too deeply.
    """
    if len(result.content) > MOST_BLOCKS:
        wrong = f"content: {len(result.content):,} blocks, more than {MOST_BLOCKS:,}"
        raise InvalidResult(tool.name, [wrong], result, _WRONG)
    deep = "structuredContent" if is_too_deep(result.structured_content, size) else _find_too_deep(result)
    if deep is not None:
        raise InvalidResult(tool.name, [f"{deep}: nested more than {DEEPEST} levels deep"], result, _WRONG)
    if sanitize == "none" or (sanitize == "text" and all(map(_is_clean_text, result.content))):
        return result, 0
    if broken := find_problems(result.content, "content"):
        raise InvalidResult(tool.name, broken, result, _WRONG)
    sanitizer = _Sanitizer()
    try:
        changes: dict[str, Any] = {"content": sanitizer.clean(result.content)}
        if sanitize == "all":
            for name in {"structured_content", "meta"} & result.model_fields_set:
                changes[name] = sanitizer.clean(getattr(result, name))
    except RecursionError:
        raise InvalidResult(tool.name, ["content: nested too deeply"], result, _WRONG) from None
    return (result.model_copy(update=changes) if sanitizer.count else result), sanitizer.count


def check_parts(parts: Sequence[_Model], name: str, sanitize: Sanitize) -> list[_Model]:
    """Check and sanitize a resource's contents or a prompt's messages, which errors call `name`.

    Raises:
        MCPError: Data is not base64, or a MIME type is invalid (`PARSE_ERROR`).
    """
    if sanitize == "none":
        return [*parts]
    if broken := find_problems(parts, name):
        from mcp_types import PARSE_ERROR

        from ..rpc.mcp_error import MCPError

        message = f"the server's response {_WRONG}: {'; '.join(broken)}"
        raise MCPError(code=PARSE_ERROR, message=message)
    clean_parts: list[_Model] = _Sanitizer().clean([*parts])
    return clean_parts


def _find_too_deep(result: CallToolResult) -> str | None:
    """Return the path of a `_meta` that is nested too deeply, or `None`."""
    parts: list[tuple[str, Any]] = [("_meta", result.meta)]
    for index, block in enumerate(result.content):
        parts.append((f"content[{index}]._meta", block.meta))
        if block.type == "resource":
            parts.append((f"content[{index}].resource._meta", block.resource.meta))
    return next((name for name, value in parts if value and is_too_deep(value, _count_bytes(value))), None)


def measure_json(value: Any) -> int | None:
    """Return the size of a value's JSON in bytes, or `None` if JSON might not represent the value."""
    text = _write_json(value)
    if text is None or (_N in text and b"NaN" in text) or (_I in text and b"Infinity" in text):
        return None
    return len(text)


def _count_bytes(value: Any) -> int | None:
    text = _write_json(value)
    return None if text is None else len(text)


def _write_json(value: Any) -> bytes | None:
    try:
        return to_json(value, inf_nan_mode="constants")
    except ValueError:  # a lone surrogate, or nested more than pydantic allows
        return None


def find_problems(parts: Sequence[BaseModel], name: str) -> list[str]:
    """Describe each invalid field in content blocks, starting with the field's path."""
    problems: list[str] = []
    for index, part in enumerate(parts):
        for place, wrong in () if _is_text(part) else _find_broken(part):
            if len(problems) == _MOST_PROBLEMS:
                return [*problems, "and more"]
            problems.append(f"{name}[{index}]{place}: {wrong}")
    return problems


def _is_text(part: BaseModel) -> TypeGuard[TextContent]:
    return getattr(part, "type", None) == "text"


def _is_clean_text(part: BaseModel) -> bool:
    return _is_text(part) and part.annotations is None and part.meta is None and is_clean(part.text)


def _find_broken(part: BaseModel) -> Iterator[tuple[str, str]]:
    fields = part.__dict__
    kind = fields.get("type")
    for name in _DATA & fields.keys():
        try:
            check_base64(fields[name])
        except ValueError as error:
            yield f".{name}", str(error)
    if (mime_type := fields.get("mime_type")) is not None:
        try:
            check_mime_type(mime_type, kind if kind in ("image", "audio") else None)
        except ValueError as error:
            yield ".mimeType", str(error)
    for name in ("resource", "content"):  # in an embedded resource or a prompt message
        below = fields.get(name)
        if isinstance(below, BaseModel):
            for place, wrong in _find_broken(below):
                yield f".{name}{place}", wrong


class _Sanitizer:
    def __init__(self) -> None:
        self.count = 0

    def clean(self, value: Any) -> Any:
        """Return a copy of a value with sanitized strings and keys, or the value itself if no string changed."""
        if isinstance(value, str):
            text = clean(value)
            if text is not value:
                self.count += 1
            return text
        if is_list(value):
            items = [self.clean(below) for below in value]
            return value if all(map(is_, items, value)) else items
        if is_object(value):
            entries = {self.clean(key): self.clean(below) for key, below in value.items()}
            return value if all(entries.get(key, entries) is below for key, below in value.items()) else entries
        return self._model(value) if isinstance(value, BaseModel) else value

    def _model(self, model: BaseModel) -> BaseModel:
        changed: dict[str, Any] = {}
        for name, value in model.__dict__.items():
            if value is not None and name not in _NOT_TEXT and (new := self.clean(value)) is not value:
                changed[name] = new
        return model.model_copy(update=changed) if changed else model
