"""One call of a tool, from its arguments to its result.

Takes the handlers object and, for each call, a tool, its arguments and a context; gives the result as it goes on the
wire in the newest revision. Whatever happens in a handler ends as a result; only cancellation leaves. It knows no
transport and nothing of the protocol's library but its content blocks.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp_types import ContentBlock

from .content import Reply
from .errors import is_tool_error
from .hygiene import block, clean, mirrored, whole
from .model import Model, Root
from .validation import Validator, input_validator, output_validator

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Mapping, Sequence

    from .context import Context
    from .tools import Tool


class Engine:
    """The handlers, ready to be called."""

    def __init__(self, handlers: object, log: logging.Logger) -> None:
        """Take the handlers, one method for each tool, and the log that learns what callers must not."""
        self._handlers = handlers
        self._log = log
        self._routes: dict[Tool, _Route] = {}

    async def call(self, tool: Tool, arguments: Mapping[str, Any] | None, context: Context) -> dict[str, Any]:
        """Call a tool.

        Args:
            tool: The tool.
            arguments: What the caller sent; absent arguments are an empty object.
            context: What the handler gets as `ctx`.

        Returns:
            `content`, and `structuredContent` where the tool has an `outputSchema`; or `content` and `isError`.
        """
        try:
            route = self._routes.get(tool) or self._prepare(tool)
            values = whole(arguments) if arguments else {}
            if violations := route.input.violations(values):
                lines = "".join(f"\n- {line}" for line in violations)
                return _failure(f"Invalid arguments for {tool.name}:{lines}")
            value = await route.run(route.model.model_validate(values), context)
            return self._result(tool, route, value)
        except BaseException as error:  # a handler's SystemExit must not end the server
            if isinstance(error, anyio.get_cancelled_exc_class()) and _is_cancelled():
                raise
            if texts := _told(error):
                return _failure("\n".join(texts))
            return self._internal(tool, error)

    def _prepare(self, tool: Tool) -> _Route:
        method = getattr(self._handlers, tool.method)
        validator, model = output_validator(tool), tool.Output
        route = _Route(
            input=input_validator(tool),
            model=tool.Input,
            method=method,
            is_async=inspect.iscoroutinefunction(method),
            output=None if validator is None or model is None else _Output(validator, model),
        )
        self._routes[tool] = route
        return route

    def _result(self, tool: Tool, route: _Route, value: object) -> dict[str, Any]:
        reply = value if isinstance(value, Reply) else Reply(value)
        if route.output is None:
            result: dict[str, Any] = {"content": _content(tool, reply.model)}
        else:
            data, text = mirrored(_data(tool, route.output.model, reply.model))
            if violations := route.output.validator.violations(data, "result"):
                return self._broken(tool, violations)
            result = {"content": [{"type": "text", "text": text}], "structuredContent": data}
        result["content"] += [block(one) for one in reply.content]
        if reply.meta is not None:
            result["_meta"] = mirrored(dict(reply.meta))[0]
        return result

    def _broken(self, tool: Tool, violations: Sequence[str]) -> dict[str, Any]:
        reference = secrets.token_hex(4)
        self._log.error(
            "%s returned what its outputSchema forbids (reference %s):\n%s",
            tool.method,
            reference,
            "\n".join(violations),
        )
        return _failure(f"The result of {tool.name} breaks its own output schema (reference {reference}).")

    def _internal(self, tool: Tool, error: BaseException) -> dict[str, Any]:
        reference = secrets.token_hex(4)
        self._log.error("%s failed (reference %s)", tool.method, reference, exc_info=error)
        return _failure(f"Internal error in {tool.name} (reference {reference}).")


@dataclass(frozen=True, slots=True)
class _Output:
    validator: Validator
    model: type[Model] | type[Root[Any]]


@dataclass(frozen=True, slots=True)
class _Route:
    """What a call of one tool needs, looked up once."""

    input: Validator
    model: type[Model]
    method: Callable[[Model, Context], Any]
    is_async: bool
    output: _Output | None

    async def run(self, arguments: Model, context: Context) -> object:
        """Run the handler: an `async def` here, a plain `def` in a worker thread, so that it can block."""
        if self.is_async:
            value = await self.method(arguments, context)
        else:
            value, error = await anyio.to_thread.run_sync(
                _outcome, self.method, arguments, context, abandon_on_cancel=True
            )
            if error is not None:
                raise error
            if inspect.isawaitable(value):
                value = await value
        return value


def _outcome(
    method: Callable[[Model, Context], Any], arguments: Model, context: Context
) -> tuple[Any, BaseException | None]:
    """What a method gives and what it raises; not every exception can be thrown from a thread into a coroutine."""
    try:
        return method(arguments, context), None
    except BaseException as error:  # noqa: BLE001 - it is raised again, in the coroutine
        return None, error


def _data(tool: Tool, expected: type[Model] | type[Root[Any]], value: object) -> Any:
    """The JSON of an output model; a value that is JSON already is taken, too, since the schema decides."""
    if isinstance(value, expected):
        return value.model_dump(mode="json")
    if isinstance(value, dict) or (not issubclass(expected, Model) and not isinstance(value, Model | Root)):
        return value
    raise TypeError(f"{tool.method} returned {_kind(value)}; it should return {expected.__name__}")


def _content(tool: Tool, value: object) -> list[dict[str, Any]]:
    if isinstance(value, str):
        return [{"type": "text", "text": clean(value)}]
    if isinstance(value, ContentBlock):
        return [block(value)]
    if isinstance(value, list | tuple) and all(isinstance(one, ContentBlock) for one in value):
        return [block(one) for one in value]
    raise TypeError(f"{tool.method} returned {_kind(value)}; it should return text, a content block, or a list of them")


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _failure(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": clean(text)}], "isError": True}


def _told(error: BaseException) -> list[str]:
    """What the caller is told: the texts of a `ToolError`, or of a group (of a task group) that holds nothing else."""
    if is_tool_error(error):
        return [str(error)]
    if isinstance(error, BaseExceptionGroup):
        parts = [_told(inner) for inner in error.exceptions]
        return [text for part in parts for text in part] if all(parts) else []
    return []


def _is_cancelled() -> bool:
    """Whether this task is being cancelled; else the handler awaited something that was."""
    if anyio.current_effective_deadline() == -math.inf:
        return True
    task = asyncio.current_task() if anyio.get_cancelled_exc_class() is asyncio.CancelledError else None
    return task is not None and task.cancelling() > 0
