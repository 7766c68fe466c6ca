"""JSON Pointers (RFC 6901) in URI fragments."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from stubwright_runtime.values.text import split_pointer

if TYPE_CHECKING:
    from stubwright.diagnostics import Pointer
    from stubwright.ir import Json


@lru_cache(maxsize=1 << 16)
def format_pointer(pointer: Pointer) -> str:
    """Format a pointer as a URI fragment: `#/$defs/a%20b` for `("$defs", "a b")`."""
    return "#" + "".join(f"/{_escape_step(str(step))}" for step in pointer)


def _escape_step(step: str) -> str:
    plain = step.replace("~", "~0").replace("/", "~1")
    return re.sub(r"[^\w.~!$&'()*+,;=:@-]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), plain)


def resolve_local(root: Json, reference: str) -> Json:
    """Return the target of a reference such as `#/$defs/Place`.

    Raises:
        LookupError: The reference is not a local pointer or does not resolve.
    """
    if reference != "#" and not reference.startswith("#/"):
        raise LookupError(reference)
    here = root
    for step in split_pointer(unquote(reference[1:])):
        if isinstance(here, dict):
            here = here[step]
        elif isinstance(here, list) and step.isdecimal():
            here = here[int(step)]
        else:
            raise LookupError(reference)
    return here
