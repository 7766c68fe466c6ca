"""JSON Pointers (RFC 6901), and what local references lead to.

Takes texts and values; gives steps and subschemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from toolwright.ir import Json


def steps(text: str) -> tuple[str, ...]:
    """The steps between the slashes of a pointer, or of a part of one."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/"))


def local(root: Json, reference: str) -> Json:
    """What a reference such as `#/$defs/Place` leads to in `root`.

    Raises:
        LookupError: It is not a pointer, or leads nowhere.
    """
    if reference != "#" and not reference.startswith("#/"):
        raise LookupError(reference)
    here = root
    for step in steps(unquote(reference[1:]))[1:]:
        if isinstance(here, dict):
            here = here[step]
        elif isinstance(here, list) and step.isdecimal():
            here = here[int(step)]
        else:
            raise LookupError(reference)
    return here
