"""Exceptions for failed calls.

Exception
├── ToolFailed      the tool returned an error
├── InvalidResult   the result violates the tool's `outputSchema`, or its content is not valid MCP
├── ResultTooLarge  the result exceeds `max_result_bytes`
└── CallRefused     the client's own `confirm` declined; nothing was sent
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ...values.terminal import replace_controls

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from mcp_types import CallToolResult


_Error = TypeVar("_Error", bound=Exception)


class ToolFailed(Exception):
    """A tool returned `isError: true`. The message is the text in the result, safe to show on a terminal.

    Attributes:
        result: The whole result, as the server sent it.
    """

    def __init__(self, result: CallToolResult) -> None:
        texts = [block.text for block in result.content if block.type == "text"]
        super().__init__(replace_controls("\n".join(texts)) or "the tool failed without an error message")
        self.result = result


class InvalidResult(Exception):
    """A tool's result is invalid. The message lists the violations.

    The result violates the compiled `outputSchema`, or the content has an invalid MIME type or data that is not base64.

    Attributes:
        tool: The tool's wire name.
        violations: The violations, one line each.
        result: The whole result, as the server sent it.
    """

    def __init__(
        self, tool: str, violations: Sequence[str], result: CallToolResult, wrong: str = "violates its outputSchema"
    ) -> None:
        lines = "".join(f"\n  {violation}" for violation in violations)
        super().__init__(replace_controls(f"the result of {tool!r} {wrong}:{lines}"))
        self.tool = tool
        self.violations = tuple(violations)
        self.result = result


class ResultTooLarge(Exception):
    """A tool's result exceeds `max_result_bytes`. The rest of the result was not read.

    Attributes:
        tool: The tool's wire name.
        size: The bytes received when the limit was exceeded.
        limit: The maximum size in bytes, after decompression.
    """

    def __init__(self, tool: str, size: int, limit: int) -> None:
        super().__init__(
            replace_controls(f"the result of {tool!r} has at least {size:,} bytes, but max_result_bytes is {limit:,}")
        )
        self.tool = tool
        self.size = size
        self.limit = limit


class CallRefused(Exception):
    """The client's `confirm` callback declined. Nothing was sent to the server.

    Attributes:
        tool: The tool's wire name.
        arguments: The arguments of the declined call.
    """

    def __init__(self, tool: str, arguments: Mapping[str, object]) -> None:
        super().__init__(f"the call to {tool!r} was not confirmed")
        self.tool = tool
        self.arguments = arguments


def make_safe_to_show(error: _Error) -> _Error:
    """Make the text of another library's exception safe to show on a terminal, but keep the attributes."""
    if replace_controls(text := str(error)) != text:
        safe = _subclass_safe_to_show(type(error))
        setattr(error, "__class__", safe)  # noqa: B010 - type checkers reject the assignment
    return error


@contextmanager
def clean_raised() -> Generator[None, None, None]:
    """Make the text of SDK exceptions that the block raises safe to show on a terminal."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] == "mcp":
            make_safe_to_show(error)
        raise


def _subclass_safe_to_show(kind: type[Exception]) -> type[Exception]:
    def __str__(self: Exception) -> str:
        return replace_controls(kind.__str__(self))

    return type(kind.__name__, (kind,), {"__str__": __str__, "__module__": kind.__module__})
