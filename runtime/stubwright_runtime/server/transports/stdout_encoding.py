"""Prevents calls from failing because a handler prints a character that standard output cannot encode.

On Windows, and with some values of `PYTHONIOENCODING`, the encoding lacks most characters, so `print("✓")` raises an
exception.
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
    """During the block, escape characters that standard output cannot encode, as Python does on standard error."""
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
