"""Functions that create prompt messages, for handlers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mcp_types import ContentBlock, PromptMessage, TextContent

Messages: TypeAlias = str | ContentBlock | PromptMessage | Sequence[PromptMessage]
"""A prompt handler's result: a string or a block, sent as a user message, or one or more messages."""


def user(content: str | ContentBlock) -> PromptMessage:
    """Return a message from the user."""
    return PromptMessage(role="user", content=_block(content))


def assistant(content: str | ContentBlock) -> PromptMessage:
    """Return a message from the assistant."""
    return PromptMessage(role="assistant", content=_block(content))


def as_message(part: object) -> PromptMessage:
    """Return a message unchanged, or a content block as a user message. Raises TypeError for any other value."""
    if isinstance(part, PromptMessage):
        return part
    if isinstance(part, ContentBlock):
        return user(part)
    raise TypeError(f"returned a value of type {type(part).__name__}; expected a string, a content block, or messages")


def _block(content: str | ContentBlock) -> ContentBlock:
    return TextContent(type="text", text=content) if isinstance(content, str) else content
