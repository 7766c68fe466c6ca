"""Multi-round requests: answers the server's input requests until it returns a result.

Callbacks handle one question at a time, since most questions go to the same person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from mcp_types import INVALID_REQUEST, ErrorData, InputRequiredResult

from ..rpc.mcp_error import MCPError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_types import InputResponses

    from ..rpc.untyped import UntypedClient

_Result = TypeVar("_Result")

_PAUSES: Final = (0.05, 0.1, 0.2, 0.25)
"""Seconds to wait before the next round if the server sent only a `requestState` and no question."""


async def send_until_result(
    client: UntypedClient,
    params: dict[str, Any],
    send: Callable[[dict[str, Any]], Awaitable[_Result | InputRequiredResult]],
) -> _Result:
    """Send a request, and answer the server's questions until it returns a result; see `answer_until_result`."""
    answer = await send(params)
    if isinstance(answer, InputRequiredResult):
        return await answer_until_result(client, params, send, answer)
    return answer


async def answer_until_result(
    client: UntypedClient,
    params: dict[str, Any],
    send: Callable[[dict[str, Any]], Awaitable[_Result | InputRequiredResult]],
    asked: InputRequiredResult,
) -> _Result:
    """Send rounds of a request until the server returns a result (MCP 2026-07-28, "Multi Round-Trip Requests").

    Args:
        client: The client with the callbacks and `input_required_max_rounds`.
        params: The first round's parameters. Later rounds add the answers and the server's `requestState`.
        send: Sends a round.
        asked: The first round's questions.

    Raises:
        MCPError: No callback accepts a question, or the server sent more rounds of questions than allowed.
        Exception: Any exception from `send` or a callback.
    """
    bound = client.input_required_max_rounds
    for number in range(bound):
        responses = await answer_input_requests(client, asked)
        if responses is None:
            await anyio.sleep(_PAUSES[min(number, len(_PAUSES) - 1)])
        answers = {"inputResponses": responses, "requestState": asked.request_state}
        answer = await send(params | {name: value for name, value in answers.items() if value is not None})
        if not isinstance(answer, InputRequiredResult):
            return answer
        asked = answer
    raise MCPError(code=INVALID_REQUEST, message=f"the server asked for input in more than {bound} rounds")


async def answer_input_requests(client: UntypedClient, asked: InputRequiredResult) -> InputResponses | None:
    """Return the callbacks' answers, keyed like the questions; `None` if there are no questions.

    Raises:
        MCPError: No callback accepts a question.
        Exception: Any exception from a callback.
    """
    from ..rpc.client import RequestContext

    responses: InputResponses = {}
    session: Any = client.session
    for key, request in (asked.input_requests or {}).items():
        meta = request.params.meta if request.params else None
        context = RequestContext(session=session, request_id=key, meta=meta)
        response = await session.dispatch_input_request(context, request)
        if isinstance(response, ErrorData):
            raise MCPError.from_error_data(response)
        responses[key] = response
    return responses or None
