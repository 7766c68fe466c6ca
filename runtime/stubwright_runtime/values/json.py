"""JSON values for type checkers, which do not know the types inside after `isinstance(value, dict)` or `list`.

Also refuses the numbers that Python's reader takes and JSON does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Never, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None
"""A value that `json.loads` returns."""


def refuse_constant(name: str) -> Never:
    """Refuse `NaN`, `Infinity` or `-Infinity`, which `json` reads unless this is its `parse_constant`.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{name} is not JSON")


def is_mapping(value: object) -> TypeIs[Mapping[Any, Any]]:
    """Return whether a value is a mapping, with any keys and values."""
    return isinstance(value, Mapping)


def is_object(value: object) -> TypeIs[dict[Any, Any]]:
    """Return whether a value is a dictionary, with any keys and values."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeIs[list[Any] | tuple[Any, ...]]:
    """Return whether a value is a list or a tuple, with any items."""
    return isinstance(value, list | tuple)


def is_group(error: BaseException) -> TypeIs[BaseExceptionGroup[BaseException]]:
    """Return whether an exception is a group, as task groups raise them."""
    return isinstance(error, BaseExceptionGroup)
