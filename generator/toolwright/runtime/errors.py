"""What goes wrong in a call, as exceptions.

    Exception
    ├── ToolError      raised by a handler: the caller is told this text
    ├── ToolFailed     raised by a client: the tool answered with an error
    ├── InvalidResult  raised by a client: the result breaks the tool's `outputSchema`
    ├── CallRefused    raised by a client: its own `confirm` said no; nothing was sent
    ├── DriftError     raised by a client while connecting: the server's tools are not those that were compiled
    └── UserWarning
        └── DriftWarning  the same as a warning

Takes and gives plain values; imports nothing of the protocol's library.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from .terminal import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mcp_types import CallToolResult

_Error = TypeVar("_Error", bound=Exception)

_MARK: Final = "_toolwright_tool_error"


class ToolError(Exception):
    """Raised by a handler when the caller should know why.

    The text goes to the caller as it is, in a result with `isError: true`, so that a model can fix its call
    (MCP 2025-11-25, server/tools, "Error Handling"). It should say what to do differently, and hold no secret.
    """

    _toolwright_tool_error = True

    def __init__(self, message: str) -> None:
        """Say why.

        Args:
            message: What the caller reads.
        """
        super().__init__(message)
        self.message = message


def is_tool_error(error: BaseException) -> bool:
    """Whether `error` is a `ToolError`, of this package or of any other generated one in the process.

    Each generated package has a `ToolError` class of its own. A handler that two servers share may raise either's,
    so the class is known by a marker instead of by identity.
    """
    return getattr(type(error), _MARK, False) is True


class ToolFailed(Exception):  # noqa: N818 - it says what happened
    """A tool answered with `isError: true`. The message is the text of its content, safe to show on a terminal.

    Attributes:
        result: The whole result, as the server sent it.
    """

    def __init__(self, result: CallToolResult) -> None:
        """Wrap the result of the tool that failed."""
        texts = [block.text for block in result.content if block.type == "text"]
        super().__init__(visible("\n".join(texts)) or "the tool failed and did not say why")
        self.result = result


class InvalidResult(Exception):  # noqa: N818 - it says what happened
    """A tool's result breaks the `outputSchema` that the client was compiled with. The message names each violation.

    Attributes:
        tool: The tool's name on the wire.
        violations: One line each.
        result: The whole result, as the server sent it.
    """

    def __init__(self, tool: str, violations: Sequence[str], result: CallToolResult) -> None:
        """Say which tool, and what is wrong."""
        lines = "".join(f"\n  {violation}" for violation in violations)
        super().__init__(visible(f"the result of {tool!r} breaks its outputSchema:{lines}"))
        self.tool = tool
        self.violations = tuple(violations)
        self.result = result


class CallRefused(Exception):  # noqa: N818 - it says what happened
    """The client's `confirm` callback said no. Nothing was sent to the server.

    Attributes:
        tool: The tool's name on the wire.
        arguments: The arguments that the call would have had.
    """

    def __init__(self, tool: str, arguments: Mapping[str, object]) -> None:
        """Name the call that was refused."""
        super().__init__(f"the call of {tool!r} was not confirmed")
        self.tool = tool
        self.arguments = arguments


def shown(error: _Error) -> _Error:
    """The same exception, whose text is safe to show on a terminal; its attributes stay as they came.

    It is for those whose class is not ours, such as `mcp.MCPError`, where the text is a server's.
    """
    if visible(text := str(error)) != text:
        setattr(error, "__class__", _shown(type(error)))  # noqa: B010 - to be told that it is the same type
    return error


@contextmanager
def safe_to_show() -> Iterator[None]:
    """Let the text of what the SDK raises in the block be safe to show."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] == "mcp":
            shown(error)
        raise


def _shown(kind: type[Exception]) -> type[Exception]:
    def __str__(self: Exception) -> str:  # noqa: N807 - the method of a class
        return visible(kind.__str__(self))

    return type(kind.__name__, (kind,), {"__str__": __str__, "__module__": kind.__module__})


_TOLD: Final = 20
"""How many changes a message has."""


def _drift(changes: Sequence[str]) -> str:
    more = [f"and {len(changes) - _TOLD} more"] if len(changes) > _TOLD else []
    lines = "".join(f"\n  {line}" for line in [*changes[:_TOLD], *more])
    return visible(f"the server's tools are not those that this client was compiled for:{lines}")


class DriftError(Exception):
    """The server's tools are not those that the client was compiled for. The message has a line for each.

    Attributes:
        changes: One line for each tool that differs.
    """

    def __init__(self, changes: Sequence[str]) -> None:
        """Say what differs."""
        super().__init__(_drift(changes))
        self.changes = tuple(changes)


class DriftWarning(UserWarning):
    """The server's tools are not those that the client was compiled for. The message has a line for each.

    Attributes:
        changes: One line for each tool that differs.
    """

    def __init__(self, changes: Sequence[str]) -> None:
        """Say what differs."""
        super().__init__(_drift(changes))
        self.changes = tuple(changes)
