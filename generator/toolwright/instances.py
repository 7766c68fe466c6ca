"""Where in an instance an error of the validator is.

Takes an error of jsonschema-rs and the instance; gives the path of keys and indexes. In the library's own path a key
that reads as a number, such as `1`, `01` or `+1`, is that number, and an empty key is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jsonschema_rs import ValidationError

    from toolwright.diagnostics import Pointer
    from toolwright.ir import Json

_NUMBER = re.compile(r"\+?[0-9]+", re.ASCII)


def located(error: ValidationError, value: Json) -> tuple[Pointer, Json]:
    """The path to what an error is about, with keys as they are, and what stands there.

    Of several paths that the library would tell alike, the plainest is taken that leads to what it found wrong.
    """
    readings = [*_readings(error.instance_path, value)]
    return next((reading for reading in readings if reading[1] == error.instance), readings[0])


def _readings(path: Sequence[str | int], value: Json) -> Iterator[tuple[Pointer, Json]]:
    """The paths from a value on that the library would tell as `path`, the plainest first, with what stands there."""
    if not path:
        yield (), value
    for key in _keys(path[0], value) if path else ():
        for below, found in _readings(path[1:], value[key]):
            yield (key, *below), found
    if isinstance(value, dict) and "" in value:
        for below, found in _readings(path, value[""]):
            yield ("", *below), found


def _keys(given: str | int, value: Json) -> list[str] | list[int]:
    """The keys or the index of a value that the library would tell as `given`."""
    if isinstance(value, list):
        return [given] if isinstance(given, int) and given < len(value) else []
    if not isinstance(value, dict):
        return []
    if isinstance(given, str):
        return [given] if given in value else []
    keys = [key for key in value if _NUMBER.fullmatch(key) and int(key) == given]
    return sorted(keys, key=lambda key: (len(key), key))
