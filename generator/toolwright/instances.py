"""Where in an instance an error of the validator is.

Takes the path that jsonschema-rs gives and the instance; gives the path of keys and indexes. The library gives a key
that reads as a number, such as `1`, `01` or `+1`, as that number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolwright.diagnostics import Pointer
    from toolwright.ir import Json

_NUMBER = re.compile(r"\+?[0-9]+", re.ASCII)


def located(path: Iterable[str | int], value: Json) -> tuple[Pointer, Json]:
    """The path with keys as they are, and what stands there.

    Of two keys that read as one number, the plainer is taken, since the library does not tell.
    """
    steps: list[str | int] = []
    for given in path:
        step = _key(given, value) if isinstance(given, int) and isinstance(value, dict) else given
        steps.append(step)
        value = value[step]
    return tuple(steps), value


def _key(number: int, value: dict[str, Json]) -> str:
    keys = [key for key in value if _NUMBER.fullmatch(key) and int(key) == number]
    return min(keys, key=lambda key: (len(key), key))
