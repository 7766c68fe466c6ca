"""Modules that others may have loaded. Looking for them loads nothing.

Takes the name of a module; gives it once it is there and whole: another thread may be loading it right now.
"""

from __future__ import annotations

import sys
from typing import Any


def find_loaded(name: str) -> Any:
    """Return the module, or `None` if it is not loaded yet, or is still being loaded."""
    module = sys.modules.get(name)
    return None if module is None or getattr(module.__spec__, "_initializing", False) else module
