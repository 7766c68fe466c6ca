"""Results that tool handlers can return instead of an output model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from mcp_types import ContentBlock

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply(Generic[T_co]):
    """A tool result with more than an output model.

    Args:
        model: The output model; for a tool without an `outputSchema`, the content.
        content: Strings and blocks to send after the model or content.
        meta: The `_meta` to send with the result.
        structured: The `structuredContent` of a tool without an `outputSchema`, as JSON or a model; `None` to send
            none. MCP 2025-11-25 and earlier allow only objects; other values are not sent. If the tool has an
            `outputSchema`, leave this unset: `model` is the structured content.
    """

    model: T_co
    content: Sequence[str | ContentBlock] = ()
    meta: dict[str, Any] | None = None
    structured: Any = None


@dataclass(frozen=True, slots=True)
class UnstructuredReply(Reply[Any]):
    """A result without structured content from a tool that has an `outputSchema`; `model` is the content.

    HTTP tools return it if the API's response does not match the schema.
    """


@dataclass(frozen=True, slots=True)
class UpstreamReply(Reply[Any]):
    """An API's response. Its `model` might not match the tool's `outputSchema`.

    Args:
        otherwise: Called if the response does not match, with its JSON text and the validation errors; returns the
            result to send instead.
    """

    otherwise: Callable[[str, Sequence[str]], UnstructuredReply] = field(kw_only=True)


Returns: TypeAlias = T | Reply[T] | Awaitable[T | Reply[T]]
"""The return type of a tool handler whose result is of type `T`."""

MaybeAwaitable: TypeAlias = T | Awaitable[T]
"""The return type of other handler methods whose result is of type `T`."""
