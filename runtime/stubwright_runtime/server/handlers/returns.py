"""The results of handlers: content, and `Reply`, which carries more than a model."""

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
    """A result that carries more than its model.

    Args:
        model: The output model; for a tool without an `outputSchema`, the content itself.
        content: Blocks, or text, to send after the model's JSON text (or after the content itself).
        meta: The result's `_meta`.
        structured: The result's `structuredContent`, as JSON or a model, for a tool without an `outputSchema`; `None`
            for none. Before 2026-07-28 only an object is sent. With an `outputSchema`, it is made of the `model`.
    """

    model: T_co
    content: Sequence[str | ContentBlock] = ()
    meta: dict[str, Any] | None = None
    structured: Any = None


@dataclass(frozen=True, slots=True)
class Unstructured(Reply[Any]):
    """A result of content only, although its tool has an `outputSchema`: another service's answer that does not fit it.

    The `model` is the content.
    """


@dataclass(frozen=True, slots=True)
class UpstreamReply(Reply[Any]):
    """The answer of another service, which may not fit the `outputSchema`.

    Args:
        otherwise: Makes the reply to send if it does not fit; takes the value as JSON text, and its violations.
    """

    otherwise: Callable[[str, Sequence[str]], Unstructured] = field(kw_only=True)


Returns: TypeAlias = T | Reply[T] | Awaitable[T | Reply[T]]
"""The return type of a handler with a result of type `T`: the result, a `Reply` with it, or an awaitable of either."""

MaybeAwaitable: TypeAlias = T | Awaitable[T]
"""The return type of a method for anything but a tool: a value of type `T`, or an awaitable of one."""
