"""Compiles the steps of a tool's calls into one function, on the first call to the tool.

Steps are selected at compile time, so a tool pays only for its own steps. Handler failures
become results; only cancellations and questions to the client propagate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...errors import ToolError
from ...observability.redaction import find_secrets
from ...schema.validation import get_input_validator
from ...state.budget import BudgetExceeded
from ...state.store import describe_lost_state, find_state_lost
from ...values.json import copy_json, is_group
from ...values.nesting import DEEPEST, DepthError, is_too_deep
from ...values.units import ARGUMENTS, TASK_ARGUMENTS, parse_size
from ..core.outcomes import Outcome, refuse
from ..execution.threads import NoFreeThreadError
from ..features.input_requests import is_control_flow
from ..handlers.invalid_arguments import InvalidArguments, accepts_invalid
from .invocation import bind_method, compile_context
from .results import Encoder, Results

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...package import Tool
    from ..core.feature import ServerContext
    from ..core.request import Handle, Request, Wrap

_SHALLOW: Final = 2 * DEEPEST
"""Arguments up to this size, as JSON in bytes, cannot exceed the maximum depth."""

_NESTED: Final = frozenset((dict, list))


class Steps(NamedTuple):
    """The steps around a tool's handler, outermost first.

    Attributes:
        admission: The first steps, such as rate limits. A task passes them once, when it is created.
        limits: Steps after admission. They also surround each run of a task.
        binding: Steps after the limits that set or remove arguments. A task passes them once, when it is created.
        preparation: Steps between validation and the handler, such as confirmation.
    """

    admission: Sequence[Wrap]
    limits: Sequence[Wrap]
    binding: Sequence[Wrap]
    preparation: Sequence[Wrap]


def compile_tool(results: Results, server: ServerContext, tool: Tool, steps: Steps, *, is_run: bool = False) -> Handle:
    """Return the function that handles calls to a tool, or that runs the tool's tasks.

    Args:
        results: Encodes the handler's results.
        server: The context that the server's features share.
        tool: The tool to compile.
        steps: The steps that the manifest declares for any of the server's tools.
        is_run: True to run tasks. Their calls were already admitted.
    """
    before = steps.limits if is_run else (*steps.admission, *steps.limits, *steps.binding)
    call = _wrap(tool, steps.preparation, _call_handler(results, server, tool))
    return _wrap(tool, before, _hide_secrets(tool, _validate(results, server, tool, call)))


def _wrap(tool: Tool, steps: Sequence[Wrap], call: Handle) -> Handle:
    for wrap in reversed(steps):
        call = wrap(tool, call)
    return call


def limit_arguments(tool: Tool, call_next: Handle) -> Handle:
    """Refuse calls whose arguments exceed `maxArgumentBytes`."""
    own: str | None = tool.policy.get("maxArgumentBytes")
    most, most_of_task = parse_size(own or ARGUMENTS), parse_size(own or TASK_ARGUMENTS)

    async def call(request: Request) -> Outcome:
        size, limit = request.size, most if request.begin is None else most_of_task
        if size is None or size <= limit:
            return await call_next(request)
        name = tool.name if request.begin is None else f"a task of {tool.name}"
        text = f"The arguments of {name} are too large: {size:,} bytes; the limit is {limit:,}. Send smaller arguments."
        return refuse(text, "limited", "argument_size")

    return call


def _hide_secrets(tool: Tool, call_next: Handle) -> Handle:
    """Keep a tool's secret arguments out of the log."""
    if not tool.redacted and "handles" not in tool.extension:
        return call_next

    async def call(request: Request) -> Outcome:
        request.secrets = [*(request.secrets or ()), *find_secrets(tool, request.arguments)]
        return await call_next(request)

    return call


def _validate(results: Results, server: ServerContext, tool: Tool, call_next: Handle) -> Handle:
    """Reject invalid arguments, and convert every failure of the call to an outcome."""
    find_errors = get_input_validator(tool).find_errors
    is_lenient = accepts_invalid(server.handlers, tool)

    async def call(request: Request) -> Outcome:
        arguments, size = request.arguments, request.size
        try:
            if (size is None or size > _SHALLOW) and is_too_deep(arguments, size=size):
                return _refuse_arguments(tool, [f"nested more than {DEEPEST} levels deep"])
            if request.errors:
                return _refuse_arguments(tool, request.errors)
            if errors := find_errors(arguments, size=size):
                if not is_lenient:
                    return _refuse_arguments(tool, errors)
                request.errors = errors
            if request.record is not None:
                request.record.is_valid = True
            return await call_next(request)
        except BaseException as error:  # a handler's SystemExit must not stop the server
            if is_control_flow(error):
                raise
            return refuse_error(results, tool, request, error)

    return call


def _call_handler(results: Results, server: ServerContext, tool: Tool) -> Handle:
    run, encode = bind_method(server.handlers, tool.method, "tool"), Encoder(results, tool).encode
    make_context, name = compile_context(server, tool.stem, tool.extension), tool.name
    make_model: Callable[[Any], Any] = tool.Input.model_validate

    async def call(request: Request) -> Outcome:
        request.has_begun = True
        if request.errors:
            lines = "; ".join(request.errors)
            server.log.warning("%s was called with invalid arguments: %s", tool.name, lines)
            arguments = InvalidArguments(copy_json(request.arguments))
        elif _NESTED.isdisjoint(map(type, request.arguments.values())):
            arguments = make_model(request.arguments)
        else:  # models can share nested values, and cursors and later rounds are bound to the arguments as sent
            arguments = make_model(copy_json(request.arguments))
        value = await run(request, arguments, make_context(request, name))
        try:
            return encode(value, request.page)
        except DepthError as error:
            return results.refuse_depth(tool, error)

    return call


def refuse_error(results: Results, tool: Tool, request: Request, error: BaseException) -> Outcome:
    """Return the outcome of a tool call that raised `error`."""
    if isinstance(error, BudgetExceeded):
        return refuse(str(error), "limited", "storage")
    if isinstance(error, NoFreeThreadError):
        return refuse(f"{tool.name} was not run. {error}", "limited", "threads")
    if texts := _list_error_texts(error):
        return refuse("\n".join(texts), "tool_error", "tool_error")
    if (loss := find_state_lost(error)) is not None:
        text = describe_lost_state(is_unknown=loss.is_unknown or request.has_begun)
        return refuse(text, "limited", "state_lost")
    return results.refuse_failure(tool, error)


def _refuse_arguments(tool: Tool, errors: Sequence[str]) -> Outcome:
    lines = "".join(f"\n- {line}" for line in errors)
    return refuse(f"Invalid arguments for {tool.name}:{lines}", "invalid", "input_schema")


def _list_error_texts(error: BaseException) -> list[str]:
    """Return the messages of a `ToolError` or of a group of `ToolError`s, or an empty list for any other exception."""
    if isinstance(error, ToolError):
        return [str(error)]
    if is_group(error):
        parts = [_list_error_texts(inner) for inner in error.exceptions]
        return [text for part in parts for text in part] if all(parts) else []
    return []
