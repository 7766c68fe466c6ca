"""Converts call arguments to JSON without validation, because the server enforces the schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from ...values.json import is_list, is_mapping
from ...values.nesting import DepthError, is_too_deep
from ...values.text import replace_surrogates
from .options import Omit

if TYPE_CHECKING:
    from ...package import Tool

_DIGITS: Final = 4300
"""The maximum number of digits that Python formats by default. Longer integers break an SDK connection over HTTP."""

_BITS: Final = 14_000  # integers with fewer bits have fewer digits


def with_extra(tool: Tool, given: Mapping[str, object], extra: Mapping[Any, object] | None) -> Mapping[str, object]:
    """Merge a call's arguments with additional arguments for which the method has no parameter.

    Args:
        tool: The tool.
        given: The method's arguments, keyed by wire name; omitted ones are `OMIT`.
        extra: The additional arguments, keyed by wire name.

    Raises:
        TypeError: An additional argument's name is a method parameter, or not a string.
    """
    if not extra:
        return given
    for name in extra:
        if not isinstance(name, str):
            raise TypeError(f"{tool.method}: names in `extra` must be strings, not {name!r}")
        if name in given:
            raise TypeError(f"{tool.method}: {name!r} in `extra` is a parameter of the method; pass it directly")
    return {**given, **extra}


def to_json(given: Mapping[str, object]) -> dict[str, Any]:
    """Convert arguments to JSON.

    `OMIT` is dropped, and models are dumped with `model_dump(mode="json")`. A lone surrogate becomes U+FFFD: no
    transport can send it, and some close the connection.

    Args:
        given: The arguments, keyed by wire name.

    Raises:
        TypeError: A value is not a JSON value.
        ValueError: A number is infinite or NaN, which the SDK would send as `null`, or an integer has more than 4,300
            digits, which neither Python nor servers parse.
        DepthError: A value is nested too deeply for a message.
    """
    return {
        replace_surrogates(name): _to_sendable(value, name)
        for name, value in given.items()
        if not isinstance(value, Omit)
    }


def _to_sendable(value: object, name: str) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    try:
        json_value = _to_json(value, name)
    except RecursionError:
        raise DepthError(name) from None
    if isinstance(json_value, dict | list) and is_too_deep([json_value]):  # the arguments object is one level, too
        raise DepthError(name)
    return json_value


def _to_json(value: object, place: str) -> Any:
    if isinstance(value, BaseModel):
        return _to_json(value.model_dump(mode="json"), place)
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, int) and value.bit_length() > _BITS and abs(value) >= 10**_DIGITS:
        raise ValueError(f"{place}: an integer with more than {_DIGITS} digits cannot be sent")
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{place}: JSON cannot represent the number {value}")
        return value
    if is_mapping(value):
        return {_check_key(key, place): _to_json(below, f"{place}.{key}") for key, below in value.items()}
    if is_list(value):
        return [_to_json(below, f"{place}[{index}]") for index, below in enumerate(value)]
    from ...models import formats

    try:
        text = formats.write(value)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    if text is not None:
        return text
    raise TypeError(
        f"{place}: a value of type {type(value).__name__} cannot be converted to JSON"
    )  # omit the value, which can be a secret


def _check_key(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{place}: the key {key!r} is not a string")
    return replace_surrogates(key)
