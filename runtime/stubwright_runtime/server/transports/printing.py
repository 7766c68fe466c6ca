"""Printing by handlers, which must not fail their calls.

On Windows, and depending on `PYTHONIOENCODING`, it has an encoding that lacks most characters, so that a `print("✓")`
raises an exception.
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
    """Print characters that standard output cannot encode as escapes, as standard error does, until the block ends."""
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
