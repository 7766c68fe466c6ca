"""The types that handlers return."""

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
    """A result with more than an output model.

    Args:
        model: The output model; for a tool without an `outputSchema`, the content.
        content: Additional text or blocks, sent after the model's JSON or content.
        meta: The result's `_meta`.
        structured: The `structuredContent`, as JSON or a model, for a tool without an `outputSchema`; `None` if there
            is none. In MCP 2025-11-25 and earlier, only objects are sent. With an `outputSchema`, the `model` is the
            structured content.
    """

    model: T_co
    content: Sequence[str | ContentBlock] = ()
    meta: dict[str, Any] | None = None
    structured: Any = None


@dataclass(frozen=True, slots=True)
class UnstructuredReply(Reply[Any]):
    """A result without structured content, although its tool has an `outputSchema`; the `model` is the content.

    HTTP tools return it for responses that do not match the schema.
    """


@dataclass(frozen=True, slots=True)
class UpstreamReply(Reply[Any]):
    """A response from another service, which may not match the `outputSchema`.

    Args:
        otherwise: Returns the reply to send if it does not match, from the JSON text and its validation errors.
    """

    otherwise: Callable[[str, Sequence[str]], UnstructuredReply] = field(kw_only=True)


Returns: TypeAlias = T | Reply[T] | Awaitable[T | Reply[T]]
"""The return type of a tool handler with a result of type `T`."""

MaybeAwaitable: TypeAlias = T | Awaitable[T]
"""The return type of other handlers with a result of type `T`."""
