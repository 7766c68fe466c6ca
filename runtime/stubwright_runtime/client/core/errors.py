"""Exceptions of a failed call.

Exception
├── ToolFailed      the tool answered with an error
├── InvalidResult   the result breaks the tool's `outputSchema`, or its content is not valid MCP
├── ResultTooLarge  the result has more bytes than `max_result_bytes`
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
    """A tool answered with `isError: true`. The message is the text of its content, safe to show on a terminal.

    Attributes:
        result: The whole result, as the server sent it.
    """

    def __init__(self, result: CallToolResult) -> None:
        """Create an error from the result of the failed tool."""
        texts = [block.text for block in result.content if block.type == "text"]
        super().__init__(replace_controls("\n".join(texts)) or "the tool failed without a reason")
        self.result = result


class InvalidResult(Exception):
    """A tool's result is invalid. The message lists the violations.

    It breaks the compiled `outputSchema`, or its content is broken: data that is not base64, or an invalid MIME type.

    Attributes:
        tool: The tool's name on the wire.
        violations: One line each.
        result: The whole result, as the server sent it.
    """

    def __init__(
        self, tool: str, violations: Sequence[str], result: CallToolResult, wrong: str = "breaks its outputSchema"
    ) -> None:
        """Show the tool and the problem."""
        lines = "".join(f"\n  {violation}" for violation in violations)
        super().__init__(replace_controls(f"the result of {tool!r} {wrong}:{lines}"))
        self.tool = tool
        self.violations = tuple(violations)
        self.result = result


class ResultTooLarge(Exception):
    """A tool's result has more bytes than `max_result_bytes`. The rest was not read.

    Attributes:
        tool: The tool's name on the wire.
        size: The number of bytes received when the limit was exceeded.
        limit: The maximum number of bytes, after decompression.
    """

    def __init__(self, tool: str, size: int, limit: int) -> None:
        """Show the tool, the size of its result, and the limit."""
        super().__init__(
            replace_controls(f"the result of {tool!r} has {size:,} bytes or more, and max_result_bytes is {limit:,}")
        )
        self.tool = tool
        self.size = size
        self.limit = limit


class CallRefused(Exception):
    """The client's `confirm` callback declined. Nothing was sent to the server.

    Attributes:
        tool: The tool's name on the wire.
        arguments: The arguments that the call would have had.
    """

    def __init__(self, tool: str, arguments: Mapping[str, object]) -> None:
        """Create an error for a call."""
        super().__init__(f"the call of {tool!r} was not confirmed")
        self.tool = tool
        self.arguments = arguments


def make_safe_to_show(error: _Error) -> _Error:
    """Make the text of an exception of another library safe to show on a terminal; its attributes do not change."""
    if replace_controls(text := str(error)) != text:
        safe = _subclass_safe_to_show(type(error))
        setattr(error, "__class__", safe)  # noqa: B010 - type checkers reject the assignment
    return error


@contextmanager
def clean_raised() -> Generator[None, None, None]:
    """Make the texts of the SDK's exceptions in the block safe to show."""
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
