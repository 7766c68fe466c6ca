"""Asking the client for a message of its model, and for its folders (MCP 2025-11-25, client/sampling, client/roots).

Takes what handlers ask for; gives what the client answers. It judges nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, overload

from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ListRootsRequest,
    ListRootsResult,
    ModelPreferences,
    Root,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
)

from ..hygiene import clean
from . import client_requests

if TYPE_CHECKING:
    from collections.abc import Sequence

_T = TypeVar("_T")


class Context(client_requests.Context):
    """One request, seen from its handler, which can ask the client's model and for its folders."""

    __slots__ = ()

    @overload
    async def sample(
        self,
        messages: str | Sequence[SamplingMessage],
        *,
        max_tokens: int = ...,
        system: str | None = ...,
        temperature: float | None = ...,
        stop: Sequence[str] | None = ...,
        model: ModelPreferences | None = ...,
        tools: None = None,
        tool_choice: None = None,
        key: str = ...,
    ) -> CreateMessageResult: ...

    @overload
    async def sample(
        self,
        messages: str | Sequence[SamplingMessage],
        *,
        max_tokens: int = ...,
        system: str | None = ...,
        temperature: float | None = ...,
        stop: Sequence[str] | None = ...,
        model: ModelPreferences | None = ...,
        tools: Sequence[Tool],
        tool_choice: ToolChoice | None = ...,
        key: str = ...,
    ) -> CreateMessageResultWithTools: ...

    async def sample(
        self,
        messages: str | Sequence[SamplingMessage],
        *,
        max_tokens: int = 1000,
        system: str | None = None,
        temperature: float | None = None,
        stop: Sequence[str] | None = None,
        model: ModelPreferences | None = None,
        tools: Sequence[Tool] | None = None,
        tool_choice: ToolChoice | None = None,
        key: str = "sample",
    ) -> CreateMessageResult | CreateMessageResultWithTools:
        """Have the client's model go on with a conversation (MCP 2025-11-25, client/sampling).

        Args:
            messages: The conversation; a text is one message of the user.
            max_tokens: How many tokens the model may write.
            system: A system prompt; the client may change it.
            temperature: How freely the model writes.
            stop: Texts that end the answer.
            model: Which models are preferred.
            tools: Tools that the model may ask to be called; needs the capability `sampling.tools`.
            tool_choice: Whether it may, or must.
            key: What this question is called among those of the request, where several are asked together.

        Raises:
            MissingCapability: The client has no model to offer.
        """
        said = (
            [SamplingMessage(role="user", content=TextContent(type="text", text=clean(messages)))]
            if isinstance(messages, str)
            else [*messages]
        )
        params = CreateMessageRequestParams(
            messages=said,
            max_tokens=max_tokens,
            system_prompt=system,
            temperature=temperature,
            stop_sequences=None if stop is None else [*stop],
            model_preferences=model,
            tools=None if tools is None else [*tools],
            tool_choice=tool_choice,
        )
        request = CreateMessageRequest(params=params)
        if tools is None:
            return await self.rounds.ask(key, request, CreateMessageResult, _same, "sampling")
        return await self.rounds.ask(key, request, CreateMessageResultWithTools, _same, "sampling.tools")

    async def roots(self, key: str = "roots") -> list[Root]:
        """The folders that the client lets the server work in (MCP 2025-11-25, client/roots).

        Raises:
            MissingCapability: The client has no folders to tell of.
        """
        return await self.rounds.ask(key, ListRootsRequest(), ListRootsResult, lambda result: result.roots, "roots")


def _same(result: _T) -> _T:
    return result
