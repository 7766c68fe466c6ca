"""Adapts the caller's callbacks (questions, sampling, roots, logs) to the SDK's signatures."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

from ...mcp.revisions import Revision
from ...mcp.vocabulary import LOG_LEVELS
from ...values.json import is_list
from .elicitation import build_result, find_fault
from .questions import Question
from .url_elicitation import UrlElicitation

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp.client.session import (
        ElicitationFnT,
        IncomingMessage,
        ListRootsFnT,
        LoggingFnT,
        MessageHandlerFnT,
        SamplingFnT,
    )
    from mcp_types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        ElicitRequestParams,
        ElicitResult,
        ErrorData,
        ListRootsResult,
        LoggingMessageNotificationParams,
        Root,
    )

    from ...mcp.vocabulary import LogLevel
    from ..core.options import OnLog
    from ..core.pending_requests import PendingRequests
    from .questions import Callbacks, OnQuestion, OnSample, Roots, Sample

_T = TypeVar("_T")


class SdkCallbacks(TypedDict, total=False):
    """Callbacks, keyed by the names of `mcp.Client` parameters."""

    elicitation_callback: ElicitationFnT
    sampling_callback: SamplingFnT
    list_roots_callback: ListRootsFnT
    message_handler: MessageHandlerFnT
    logging_callback: LoggingFnT
    log_level: LogLevel


def adapt_for_sdk(
    callbacks: Callbacks,
    in_flight: PendingRequests,
    on_message: MessageHandlerFnT | None = None,
    on_log: OnLog | None = None,
    log_level: LogLevel = "info",
) -> SdkCallbacks:
    """Adapt the caller's callbacks for the SDK's client.

    Args:
        callbacks: The caller's callbacks.
        in_flight: The connection's pending requests; their timers pause during a callback.
        on_message: Called with the server's notifications.
        on_log: Called with the server's log messages.
        log_level: The lowest level of messages for `on_log`.

    Raises:
        TypeError: The roots are invalid.
        ValueError: A root is not a `file://` URI.
    """
    sdk_callbacks: SdkCallbacks = {}
    if callbacks.on_question is not None:
        url_elicitation = UrlElicitation(callbacks.on_question)
        in_flight.open_urls = url_elicitation.open_urls
        sdk_callbacks["elicitation_callback"] = _make_elicit(callbacks.on_question, url_elicitation, in_flight)
        sdk_callbacks["message_handler"] = (
            url_elicitation.on_message if on_message is None else _call_both(on_message, url_elicitation.on_message)
        )
    if callbacks.on_sample is not None:
        sdk_callbacks["sampling_callback"] = _make_sample(callbacks.on_sample, in_flight)
    if callbacks.roots is not None:
        sdk_callbacks["list_roots_callback"] = _make_list_roots(callbacks.roots, in_flight)
    if on_log is not None:
        sdk_callbacks["logging_callback"] = _make_log(on_log, log_level)
        sdk_callbacks["log_level"] = log_level
    return sdk_callbacks


def _make_log(on_log: OnLog, lowest: LogLevel) -> LoggingFnT:
    levels = LOG_LEVELS[LOG_LEVELS.index(lowest) :]

    async def log(params: LoggingMessageNotificationParams) -> None:
        if params.level in levels:
            await _resolve(on_log(params.level, params.logger, params.data))

    return log


def _call_both(first: MessageHandlerFnT, second: MessageHandlerFnT) -> MessageHandlerFnT:
    async def handle(message: IncomingMessage) -> None:
        await first(message)
        await second(message)

    return handle


def _make_elicit(
    on_question: OnQuestion, url_elicitation: UrlElicitation, in_flight: PendingRequests
) -> ElicitationFnT:
    from mcp_types import INVALID_PARAMS, ErrorData

    async def respond(question: Question) -> ElicitResult:
        return build_result(await _resolve(on_question(question)), question.schema)

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        key = str(context.request_id) if _is_between_requests(context) else None
        if params.mode == "url":
            question = url_elicitation.make_question(params, key)
        else:
            fault = find_fault(params.requested_schema)
            if fault is not None:
                return ErrorData(code=INVALID_PARAMS, message=f"The question's form is invalid: {fault}")
            question = Question(params.message, schema=params.requested_schema, key=key)
        return await _run_callback(context, in_flight, respond(question))

    return elicit


def _make_sample(on_sample: OnSample, in_flight: PendingRequests) -> SamplingFnT:
    from mcp_types import INVALID_PARAMS, CreateMessageResult, ErrorData, TextContent

    async def respond_to_sampling(params: CreateMessageRequestParams) -> CreateMessageResult:
        answer: Sample = await _resolve(on_sample(params))
        if isinstance(answer, str):
            return CreateMessageResult(role="assistant", content=TextContent(text=answer), model="unknown")
        return answer

    async def sample(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        if params.tools or params.tool_choice:  # the client does not declare `sampling.tools` (MCP 2025-11-25)
            return ErrorData(code=INVALID_PARAMS, message="This client does not support tools in sampling")
        return await _run_callback(context, in_flight, respond_to_sampling(params))

    return sample


def _make_list_roots(roots: Roots, in_flight: PendingRequests) -> ListRootsFnT:
    from mcp_types import ListRootsResult

    fixed = [] if callable(roots) else _check_roots(roots)

    async def respond_to_roots() -> ListRootsResult:
        return ListRootsResult(roots=_check_roots(await _resolve(roots())) if callable(roots) else fixed)

    async def list_roots(context: ClientRequestContext) -> ListRootsResult | ErrorData:
        return await _run_callback(context, in_flight, respond_to_roots())

    return list_roots


async def _run_callback(context: ClientRequestContext, in_flight: PendingRequests, callback: Awaitable[_T]) -> _T:
    if _is_between_requests(context):
        return await callback  # no request is pending
    with in_flight.pause_for_question():
        return await callback


def _is_between_requests(context: ClientRequestContext) -> bool:
    """Return whether the question came in a round's result (MCP 2026-07-28 and later), not during a request."""
    return Revision.from_date(context.session.protocol_version or "").has("stateless")


async def _resolve(value: _T | Awaitable[_T]) -> _T:
    if inspect.isawaitable(value):
        later: Awaitable[_T] = value
        return await later
    return value


def _check_roots(roots: object) -> list[Root]:
    if not is_list(roots):
        raise TypeError(f"roots must be a sequence of paths, file:// URIs or mcp_types.Root, not {roots!r}")
    return [_to_root(root) for root in roots]


def _to_root(root: object) -> Root:
    from mcp_types import Root
    from pydantic import FileUrl

    if isinstance(root, Root):
        return root
    if isinstance(root, str) and "://" in root:
        if not root.startswith("file://"):
            raise ValueError(f"{root!r} is not a root; pass a path or a file:// URI")
        return Root(uri=FileUrl(root))
    if isinstance(root, str | Path):
        return Root(uri=FileUrl(Path(root).absolute().as_uri()))
    raise TypeError(f"{root!r} is not a root; pass a path, a file:// URI or an mcp_types.Root")
