"""JSON values for type checkers, which know nothing of what is inside where `isinstance` says dictionary or list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None
"""What `json.loads` gives."""


def is_mapping(value: object) -> TypeIs[Mapping[Any, Any]]:
    """Whether a value is a mapping of anything."""
    return isinstance(value, Mapping)


def is_object(value: object) -> TypeIs[dict[Any, Any]]:
    """Whether a value is a dictionary of anything."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeIs[list[Any] | tuple[Any, ...]]:
    """Whether a value is a list or a tuple of anything."""
    return isinstance(value, list | tuple)


def is_group(error: BaseException) -> TypeIs[BaseExceptionGroup[BaseException]]:
    """Whether an exception is a group of others, as task groups raise them."""
    return isinstance(error, BaseExceptionGroup)
