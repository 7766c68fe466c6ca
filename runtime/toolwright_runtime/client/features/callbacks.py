"""What a caller answers the server with: questions to a person, samples of a model, and roots.

Takes the caller's own functions; gives the callbacks of the SDK's client, and only those that were asked for, since the
SDK announces a capability for each that it has. It never imports the protocol's library before a connection is asked
for.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

from ...mcp.revisions import Revision
from ...values.json import is_list
from .elicitation import fill
from .questions import Question
from .url_elicitation import Visits

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp.client.session import (
        ElicitationFnT,
        IncomingMessage,
        ListRootsFnT,
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
        Root,
    )

    from ..core.in_flight import InFlight
    from .questions import Callbacks, OnQuestion, OnSample, Roots, Sample

_T = TypeVar("_T")


class SdkCallbacks(TypedDict, total=False):
    """The callbacks as parameters of `mcp.Client`."""

    elicitation_callback: ElicitationFnT
    sampling_callback: SamplingFnT
    list_roots_callback: ListRootsFnT
    message_handler: MessageHandlerFnT


def for_sdk(callbacks: Callbacks, in_flight: InFlight, hear: MessageHandlerFnT | None = None) -> SdkCallbacks:
    """The callbacks of the SDK's client; those not given are not there.

    Args:
        callbacks: What the caller answers with.
        in_flight: The requests of the connection, whose clocks stop while a callback works.
        hear: Is told of the server's notifications, too.

    Raises:
        TypeError: The roots are none.
        ValueError: A root is no file.
    """
    made: SdkCallbacks = {}
    if callbacks.on_question is not None:
        visits = Visits(callbacks.on_question)
        in_flight.visit = visits.visit
        made["elicitation_callback"] = _asking(callbacks.on_question, visits, in_flight)
        made["message_handler"] = visits.hear if hear is None else _both(hear, visits.hear)
    if callbacks.on_sample is not None:
        made["sampling_callback"] = _sampling(callbacks.on_sample, in_flight)
    if callbacks.roots is not None:
        made["list_roots_callback"] = _listing(callbacks.roots, in_flight)
    return made


def _both(first: MessageHandlerFnT, second: MessageHandlerFnT) -> MessageHandlerFnT:
    async def handle(message: IncomingMessage) -> None:
        await first(message)
        await second(message)

    return handle


def _asking(on_question: OnQuestion, visits: Visits, in_flight: InFlight) -> ElicitationFnT:
    async def answered(question: Question) -> ElicitResult:
        return fill(await _awaited(on_question(question)), question.schema)

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        key = str(context.request_id) if _is_round(context) else None
        if params.mode == "url":
            question = visits.question(params, key)
        else:
            question = Question(params.message, schema=params.requested_schema, key=key)
        return await _in_time(context, in_flight, answered(question))

    return elicit


def _sampling(on_sample: OnSample, in_flight: InFlight) -> SamplingFnT:
    from mcp_types import INVALID_PARAMS, CreateMessageResult, ErrorData, TextContent

    async def sampled(params: CreateMessageRequestParams) -> CreateMessageResult:
        made: Sample = await _awaited(on_sample(params))
        if isinstance(made, str):
            return CreateMessageResult(role="assistant", content=TextContent(text=made), model="unknown")
        return made

    async def sample(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        if params.tools or params.tool_choice:  # an error, since the capability is not announced (MCP 2025-11-25)
            return ErrorData(code=INVALID_PARAMS, message="This client samples without tools")
        return await _in_time(context, in_flight, sampled(params))

    return sample


def _listing(roots: Roots, in_flight: InFlight) -> ListRootsFnT:
    from mcp_types import ListRootsResult

    give = roots if callable(roots) else None
    fixed = [] if callable(roots) else _checked(roots)

    async def listed() -> ListRootsResult:
        return ListRootsResult(roots=fixed if give is None else _checked(await _awaited(give())))

    async def list_roots(context: ClientRequestContext) -> ListRootsResult | ErrorData:
        return await _in_time(context, in_flight, listed())

    return list_roots


async def _in_time(context: ClientRequestContext, in_flight: InFlight, working: Awaitable[_T]) -> _T:
    """Wait for a callback. Between rounds no clock runs, and what it raises is the caller's at once."""
    if _is_round(context):
        return await working
    with in_flight.question():
        return await working


def _is_round(context: ClientRequestContext) -> bool:
    """Whether this is asked between two rounds of a call (from 2026-07-28 on), and not in the middle of it."""
    return Revision.of(context.session.protocol_version or "").has("stateless")


async def _awaited(value: _T | Awaitable[_T]) -> _T:
    if inspect.isawaitable(value):
        later: Awaitable[_T] = value
        return await later
    return value


def _checked(roots: object) -> list[Root]:
    if not is_list(roots):
        raise TypeError(f"roots are a sequence of paths, file:// URIs or mcp_types.Root, not {roots!r}")
    return [_root(root) for root in roots]


def _root(root: object) -> Root:
    from mcp_types import Root
    from pydantic import FileUrl

    if isinstance(root, Root):
        return root
    if isinstance(root, str) and "://" in root:
        if not root.startswith("file://"):
            raise ValueError(f"{root!r} is no root; a root is a path or a file:// URI")
        return Root(uri=FileUrl(root))
    if isinstance(root, str | Path):
        return Root(uri=FileUrl(Path(root).absolute().as_uri()))
    raise TypeError(f"{root!r} is no root; a root is a path, a file:// URI or an mcp_types.Root")
