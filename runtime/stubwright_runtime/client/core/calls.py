"""Performs a call: reports the start, confirms the call, sends it, validates the result, and reports the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from ...mcp.problems import describe_problems
from ...observability.redaction import hide_secrets
from ..observability.audit import Record
from .arguments import to_json, with_extra
from .confirmation import confirm_call
from .content import ToolContent, check_result, measure_json
from .errors import InvalidResult, ToolFailed
from .results import read_structured

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp_types import CallToolResult

    from ...package import Tool
    from .options import Options
    from .session import Session

_T = TypeVar("_T")
_Output = TypeVar("_Output", bound=BaseModel)

Read: TypeAlias = "Callable[[CallToolResult, int | None], _T]"
"""Parses a result, given the size of its `structuredContent` as JSON; see `measure_json`."""


def call_model(
    session: Session,
    options: Options,
    tool: Tool,
    arguments: Mapping[str, object],
    extra: Mapping[str, object] | None,
    output: type[_Output],
) -> Awaitable[tuple[_Output, CallToolResult]]:
    """Call a tool that has an `outputSchema`, and return the output as a model, with the MCP result.

    Raises:
        ToolFailed: The tool returned `isError`.
        Exception: Any other exception that `Binding` documents.
    """
    read = make_reader(session, tool, output)
    return _perform(session, options, tool, with_extra(tool, arguments, extra), read)


def call_content(
    session: Session,
    options: Options,
    tool: Tool,
    arguments: Mapping[str, object],
    extra: Mapping[str, object] | None,
) -> Awaitable[tuple[ToolContent, CallToolResult]]:
    """Call a tool that has no `outputSchema`, and return the content and the MCP result.

    Raises the same exceptions as `call_model`.
    """
    return _perform(session, options, tool, with_extra(tool, arguments, extra), make_content_reader(tool))


def make_content_reader(tool: Tool) -> Read[ToolContent]:
    """Return a function that reads the content of a result."""
    return lambda result, _size: ToolContent(tool.name, result)


def make_reader(session: Session, tool: Tool, output: type[_Output]) -> Read[_Output]:
    """Return a function that parses a result into the `outputSchema`'s model or raises `InvalidResult`."""

    def read(result: CallToolResult, size: int | None) -> _Output:
        value = read_structured(tool, result, size, mirrored=not session.modern)
        try:
            return output.model_validate(value)
        except (ValidationError, RecursionError) as error:  # the schema allows the value; the model rejects it
            wrong = describe_problems(error) if isinstance(error, ValidationError) else "it is nested too deeply"
            raise InvalidResult(tool.name, [f"result: {wrong}"], result) from None

    return read


async def _perform(
    session: Session, options: Options, tool: Tool, given: Mapping[str, object], read: Read[_T]
) -> tuple[_T, CallToolResult]:
    arguments = to_json(given)
    record = Record(tool, arguments, options.on_call)
    with hide_secrets(tool, arguments):
        await record.begin()
        try:
            if options.idempotency_key is not None:
                _check_key(tool)
            if options.confirm is not None:
                await confirm_call(tool, arguments, options)
            result = await _choose_call(session, tool)(tool, arguments, options)
            answer = read_result(tool, result, options, read, record)
        except BaseException as error:
            await record.end(error)
            raise
        await record.end(None)
        return answer


def _check_key(tool: Tool) -> None:
    from ..rpc.retries import accepts_key

    if not accepts_key(tool):
        raise ValueError(f"{tool.name} does not accept an idempotency key without `once: {{key: request}}`")


def _choose_call(session: Session, tool: Tool) -> Callable[[Tool, dict[str, Any], Options], Awaitable[CallToolResult]]:
    if tool.task_support == "forbidden":
        return session.call
    from ..tasks import runs

    return runs.choose_call(session, tool)


def read_result(
    tool: Tool, result: CallToolResult, options: Options, read: Read[_T], record: Record
) -> tuple[_T, CallToolResult]:
    """Return a result's value and the sanitized result; `record` gets the number of sanitized strings.

    Raises:
        ToolFailed: The result has `isError`.
        InvalidResult: The content is invalid, or `read` rejects the result.
    """
    if result.is_error:
        raise ToolFailed(result)
    size = measure_json(result.structured_content)
    result, record.cleaned = check_result(tool, result, options.sanitize, size)
    return read(result, size), result
