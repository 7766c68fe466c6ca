"""JSON Pointers (RFC 6901) in references: formatting as a URI fragment, and resolving local ones."""

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
    """Return a pointer as the fragment of a URI: `("$defs", "a b")` gives `#/$defs/a%20b`."""
    return "#" + "".join(f"/{_fragment(str(step))}" for step in pointer)


def _fragment(step: str) -> str:
    plain = step.replace("~", "~0").replace("/", "~1")
    return re.sub(r"[^\w.~!$&'()*+,;=:@-]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), plain)


def resolve_local(root: Json, reference: str) -> Json:
    """Return the target of a reference such as `#/$defs/Place` in `root`.

    Raises:
        LookupError: It is not a pointer, or does not resolve.
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
