"""Keeps `print()` in handlers from failing their calls.

On Windows, and with some values of `PYTHONIOENCODING`, the encoding of standard output lacks most characters, and
`print("✓")` raises an exception.
"""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def escape_unprintable() -> Generator[None, None, None]:
    """Escape characters that standard output cannot encode during the block, as standard error does."""
    stdout = sys.stdout
    if not isinstance(stdout, io.TextIOWrapper):
        yield
        return
    before = stdout.errors
    stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        stdout.reconfigure(errors=before)
