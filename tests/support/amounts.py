"""How many cases tests take that would never end: a sample, many in `make verify`, or all that somebody asks for."""

from __future__ import annotations

import os


def choose(variable: str, sample: int, many: int, everything: int) -> int:
    """Return the number for what this variable of the environment is: absent or empty, `many`, or anything else."""
    value = os.environ.get(variable, "")
    return everything if value not in ("", "many") else many if value else sample
