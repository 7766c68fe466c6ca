"""Where in an instance an error of the validator is.

Takes an error of jsonschema-rs and the instance; gives the path of keys and indexes. In the library's own path a key
that reads as a number, such as `1`, `01` or `+1`, is that number, and an empty key is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from .json import Json, is_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jsonschema_rs import ValidationError

_NUMBER: Final = re.compile(r"\+?[0-9]+", re.ASCII)


def located(error: ValidationError, value: Any) -> tuple[tuple[str | int, ...], Any]:
    """The path to what an error is about, with keys as they are, and what stands there.

    Of several paths that the library would tell alike, the plainest is taken that leads to what it found wrong.
    """
    readings = [*_readings(error.instance_path, value)]
    return next((one for one in readings if len(readings) == 1 or one[1] == error.instance), readings[0])


def told(path: Iterable[str | int]) -> tuple[str, ...]:
    """A path as the library tells it."""
    return tuple(_told(str(step)) for step in path if step != "")


def _told(step: str) -> str:
    return step.lstrip("+0") or "0" if _NUMBER.fullmatch(step) else step


def _readings(path: Sequence[str | int], value: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The paths from a value on that the library would tell as `path`, the plainest first, with what stands there."""
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
    """The keys or the index of a value that the library would tell as `given`."""
    if isinstance(value, list):
        return [given] if isinstance(given, int) and given < len(value) else []
    if not isinstance(value, dict):
        return []
    if isinstance(given, str):
        return [given] if given in value else []
    keys = sorted(key for key in value if _told(key) == str(given))
    return sorted(keys, key=len)
