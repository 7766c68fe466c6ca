"""Requests for model output and roots (MCP 2025-11-25, client/sampling, client/roots)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ListRootsResult,
    ModelPreferences,
    Result,
    Root,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
)
from pydantic import ValidationError

from ...values.sanitizing import clean
from .input_requests import reject_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .input_requests import InputRequests

_Result = TypeVar("_Result", bound=Result)


def make_request(
    messages: str | Sequence[SamplingMessage],
    max_tokens: int,
    system: str | None,
    temperature: float | None,
    stop: Sequence[str] | None,
    model: ModelPreferences | None,
    tools: Sequence[Tool] | None,
    tool_choice: ToolChoice | None,
) -> CreateMessageRequest:
    """Return a sampling request; see `Context.sample` for the arguments."""
    turns = (
        [SamplingMessage(role="user", content=TextContent(type="text", text=clean(messages)))]
        if isinstance(messages, str)
        else [*messages]
    )
    params = CreateMessageRequestParams(
        messages=turns,
        max_tokens=max_tokens,
        system_prompt=system,
        temperature=temperature,
        stop_sequences=None if stop is None else [*stop],
        model_preferences=model,
        tools=None if tools is None else [*tools],
        tool_choice=tool_choice,
    )
    return CreateMessageRequest(params=params)


async def sample(
    input_requests: InputRequests, key: str, request: CreateMessageRequest
) -> CreateMessageResult | CreateMessageResultWithTools:
    """Return a message that the client's model generated. Raises MissingCapability."""
    asked = request.model_dump(by_alias=True, mode="json", exclude_none=True)
    if request.params.tools is None:
        return await input_requests.ask(key, asked, partial(_parse_answer, CreateMessageResult), "sampling")
    return await input_requests.ask(key, asked, partial(_parse_answer, CreateMessageResultWithTools), "sampling.tools")


async def roots(input_requests: InputRequests, key: str) -> list[Root]:
    """Return the client's roots. Raises MissingCapability."""
    result = await input_requests.ask(key, {"method": "roots/list"}, partial(_parse_answer, ListRootsResult), "roots")
    return result.roots


def _parse_answer(kind: type[_Result], answer: Mapping[str, Any]) -> _Result:
    try:
        return kind.model_validate(answer, by_name=False)
    except ValidationError as error:
        raise reject_answer(error) from error
