"""Prevents `print()` in handlers from failing calls.

On Windows, and with some values of `PYTHONIOENCODING`, the standard output encoding lacks most characters, and
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
    """During the block, escape characters that standard output cannot encode, as standard error does."""
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
