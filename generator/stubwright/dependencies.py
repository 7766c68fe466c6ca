"""Lists the modules that generated packages need, which a package of the same name would hide.

They are in `dependencies.json`, so that names do not depend on the machine. `python tests/support/dependencies.py`
writes that file.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Final

from stubwright import package_data

FILE: Final = package_data.ROOT / "dependencies.json"
"""The modules of each distribution that `stubwright-runtime` needs with all its extras, on any platform."""


@cache
def list_modules() -> frozenset[str]:
    """Return the names of the modules."""
    return frozenset(name for names in json.loads(FILE.read_bytes()).values() for name in names)
