"""Calls handler methods: `async def` on the event loop, plain `def` in a worker thread."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ...errors import ToolError
from ...mcp.errors import INTERNAL_ERROR, ProtocolError
from ...package import EXACT_FORMATS
from ...state.store import StateLost, find_state_lost
from ...values.sanitizing import clean
from ..core.call_state import make_reference
from ..execution.cancellation import is_cancelled
from ..execution.threads import NoFreeThreadError
from ..features.context import Context
from ..features.input_requests import is_control_flow
from .around import HandlerCall, find_around

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ..core.feature import ServerContext
    from ..core.request import Request
    from .around import Around, Kind

_T = TypeVar("_T")

MakeContext: TypeAlias = "Callable[[Request, str], Context]"
"""Creates the `ctx` of a request, from the request and the requested name or URI."""

Method: TypeAlias = "Callable[..., Awaitable[Any]]"
"""Calls a handler method with a request and the method's arguments; the last argument is the context."""


def bind_method(handlers: object, name: str, kind: Kind) -> Method:
    """Return a function that calls a handler method, wrapped in `around` if the handlers define it.

    A plain `def` runs in a worker thread, so that it can block. If the request is cancelled, `ctx.on_cancel` callbacks
    run and the thread continues. The function raises NoFreeThreadError if all threads remain busy.
    """
    function = getattr(handlers, name)
    around = find_around(handlers)
    call: Method = function if inspect.iscoroutinefunction(function) else partial(_run_in_thread, function)
    takes_request = call is not function
    if around is not None:
        call, takes_request = partial(_run_around, around, kind, name, call, takes_request), True

    async def run(request: Request, *arguments: Any) -> Any:
        request.running = name
        try:
            return await _await_value(call(request, *arguments) if takes_request else call(*arguments))
        except BaseException as error:
            if is_cancelled(error):
                request.cancellation.cancel()
            raise

    return run


async def _await_value(value: Awaitable[Any]) -> Any:
    """Await a handler's coroutine. If the coroutine raises, undo any cancellation that it left on the current task.

    A failing `asyncio.TaskGroup` cancels its parent task and, before Python 3.13, does not undo the cancellation, so
    the task's next await would be cancelled.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    try:
        return await value
    except BaseException as error:
        while task is not None and task.cancelling() > before and not isinstance(error, asyncio.CancelledError):
            task.uncancel()
        raise


async def _run_in_thread(function: Callable[..., Any], request: Request, *arguments: Any) -> Any:
    try:
        value = await request.run_in_thread(partial(function, *arguments))
    except NoFreeThreadError:  # the handler never ran
        request.has_begun = False
        raise
    return await value if inspect.isawaitable(value) else value


async def _run_around(
    around: Around, kind: Kind, name: str, call: Method, takes_request: bool, request: Request, *arguments: Any
) -> Any:
    given: Any = None

    async def proceed() -> Any:
        nonlocal given
        given = await _await_value(call(request, *arguments) if takes_request else call(*arguments))
        return given

    *args, context = arguments
    value = await around(HandlerCall(kind, name, args[0] if args else None, context), proceed)
    if value is None and given is not None:
        raise TypeError(f"`around` returned None instead of the result of {name}; add `return await proceed()`")
    return value


def compile_context(server: ServerContext, stem: str, extension: Mapping[str, Any]) -> MakeContext:
    """Return a factory for a handler's `ctx`.

    The class is generated if the entry has questions, handles or pagination. Otherwise, the class is `Context`.

    Args:
        server: The context that the server's features share.
        stem: The prefix of the entry's generated class names.
        extension: The entry's `stubwright` settings in the manifest.
    """
    kind, lists = Context, server.lists
    questions: Mapping[str, Any] = extension.get("ask") or {}
    if questions or "handles" in extension or "paginate" in extension:
        kind = server.package.load_context(f"{stem}Context")
    if questions and server.package.has_exact_formats:
        questions = {key: {**each, EXACT_FORMATS: True} for key, each in questions.items()}
    return lambda request, name: kind(request, name, lists, questions)


async def answer_by_handler(
    server: ServerContext, method: str, kind: Kind, read: Callable[[Any], _T], request: Request, *arguments: object
) -> _T:
    """Call a handler method and convert the returned value with `read`.

    Raises:
        ProtocolError: The method raised a `ToolError`, no thread was free, or the method failed with an internal error,
            whose cause is only logged (MCP 2025-11-25, server/prompts and server/resources, "Error Handling").
        StateLost: The method needs the store, which is unavailable.
    """
    try:
        return read(await bind_method(server.handlers, method, kind)(request, *arguments))
    except NoFreeThreadError as error:
        raise ProtocolError(INTERNAL_ERROR, str(error)) from None
    except BaseException as error:  # a handler's SystemExit must not stop the server
        if is_control_flow(error) or isinstance(error, ProtocolError):
            raise
        if isinstance(error, ToolError):
            raise ProtocolError(INTERNAL_ERROR, clean(error.message)) from None
        if find_state_lost(error) is not None:
            raise StateLost(f"{method} needs the store", is_unknown=True) from error
        reference_id = make_reference()
        server.failures.add(reference_id, error)
        server.log.exception("%s failed (reference %s)", method, reference_id)
        raise ProtocolError(INTERNAL_ERROR, f"Internal error in {method} (reference {reference_id})") from None
