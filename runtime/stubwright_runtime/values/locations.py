"""Restores the original path of a validation error.

The validator converts keys such as `1`, `01` or `+1` to numbers, and omits empty keys.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from .json import Json, is_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jsonschema_rs import ValidationError

_NUMBER: Final = re.compile(r"\+?[0-9]+", re.ASCII)


def locate(error: ValidationError, value: Any) -> tuple[tuple[str | int, ...], Any]:
    """Return an error's path with the original keys, and the value at that path. The simplest candidate is chosen."""
    readings = [*_readings(error.instance_path, value)]
    return next((reading for reading in readings if len(readings) == 1 or reading[1] == error.instance), readings[0])


def normalize_path(path: Iterable[str | int]) -> tuple[str, ...]:
    """Convert a path to the form that the validator reports."""
    return tuple(_normalize_step(str(step)) for step in path if step != "")


def _normalize_step(step: str) -> str:
    return step.lstrip("+0") or "0" if _NUMBER.fullmatch(step) else step


def _readings(path: Sequence[str | int], value: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the paths that the validator reports as `path`, simplest first, with the values at those paths."""
    waiting: list[tuple[tuple[str | int, ...], int, Any]] = [((), 0, value)]
    while waiting:
        pointer, read, here = waiting.pop()
        if is_object(here) and "" in here:
            waiting.append(((*pointer, ""), read, here[""]))
        if read == len(path):
            yield pointer, here
        else:
            waiting += [((*pointer, key), read + 1, here[key]) for key in reversed(_keys(path[read], here))]


def _keys(given: str | int, value: Json) -> Sequence[str | int]:
    """Return the keys or the index that the validator reports as `given`."""
    if isinstance(value, list):
        return [given] if isinstance(given, int) and given < len(value) else []
    if not isinstance(value, dict):
        return []
    if isinstance(given, str):
        return [given] if given in value else []
    keys = sorted(key for key in value if _normalize_step(key) == str(given))
    return sorted(keys, key=len)
