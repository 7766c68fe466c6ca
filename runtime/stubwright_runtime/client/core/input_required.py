"""The rounds of a request to which the server answers with questions before it gives the result.

The questions are answered by the callbacks of the `mcp.Client`, one after the other, since most are put to the same
person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from mcp_types import INVALID_REQUEST, ErrorData, InputRequiredResult

from ..rpc.mcp_error import MCPError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_types import InputResponseRequestParams, InputResponses

    from ..rpc.untyped import UntypedClient

_Params = TypeVar("_Params", bound="InputResponseRequestParams")
_Result = TypeVar("_Result")

_PAUSES: Final = (0.05, 0.1, 0.2, 0.25)
"""Seconds before the next round where the server asked nothing and only wants to be called again."""


async def send_until_result(
    client: UntypedClient, params: _Params, send: Callable[[_Params], Awaitable[_Result | InputRequiredResult]]
) -> _Result:
    """Send a request until it has a result (MCP 2026-07-28, "Multi Round-Trip Requests").

    Args:
        client: Whose callbacks answer, and whose `input_required_max_rounds` is the bound.
        params: The parameters of the first round. Those that follow have the answers, and the server's `requestState`.
        send: Sends one round.

    Raises:
        MCPError: There is no callback for a question, or the callback refused; or the server kept asking.
        Exception: What `send` or a callback raised.
    """
    bound = client.input_required_max_rounds
    for number in range(bound + 1):
        answer = await send(params)
        if not isinstance(answer, InputRequiredResult):
            return answer
        if number < bound:
            responses = await answer_input_requests(client, answer)
            if responses is None:
                await anyio.sleep(_PAUSES[min(number, len(_PAUSES) - 1)])
            params = params.model_copy(update={"input_responses": responses, "request_state": answer.request_state})
    raise MCPError(code=INVALID_REQUEST, message=f"the server kept asking for more than {bound} rounds")


async def answer_input_requests(client: UntypedClient, asked: InputRequiredResult) -> InputResponses | None:
    """Return the answers of the client's callbacks, by the keys of the questions; `None` if nothing was asked.

    Raises:
        MCPError: There is no callback for a question, or it refused.
        Exception: What a callback raised.
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
