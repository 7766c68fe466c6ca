"""What a tool costs its users: the tokens of a model's context that its definition takes.

Takes a definition; gives an estimate. Each model counts in its own way, and each client puts the definition before it
in its own way, so that a nearer figure would say no more.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CHARACTERS: Final = 4
"""Characters of JSON that make one token, about, in English text and in names."""


def tokens(definition: Mapping[str, Any]) -> int:
    """The estimate for a tool: the characters of its compact JSON in `tools/list`, divided by `CHARACTERS`."""
    return math.ceil(len(json.dumps(definition, ensure_ascii=False, separators=(",", ":"))) / CHARACTERS)
