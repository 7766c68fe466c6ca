"""Types and type guards for JSON values, because `isinstance` does not narrow the types of keys and items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Never, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None
"""A value that `json.loads` returns."""


def refuse_constant(name: str) -> Never:
    """Reject `NaN`, `Infinity` and `-Infinity`, as `parse_constant` for `json.loads`.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{name} is not JSON")


def is_mapping(value: object) -> TypeIs[Mapping[Any, Any]]:
    """Return whether a value is a mapping with any keys and values."""
    return isinstance(value, Mapping)


def is_object(value: object) -> TypeIs[dict[Any, Any]]:
    """Return whether a value is a dictionary with any keys and values."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeIs[list[Any] | tuple[Any, ...]]:
    """Return whether a value is a list or tuple with any items."""
    return isinstance(value, list | tuple)


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value whose depth is bounded."""
    if is_object(value):
        return {name: copy_json(each) for name, each in value.items()}
    return [copy_json(each) for each in value] if is_list(value) else value


def is_group(error: BaseException) -> TypeIs[BaseExceptionGroup[BaseException]]:
    """Return whether an exception is an exception group."""
    return isinstance(error, BaseExceptionGroup)
