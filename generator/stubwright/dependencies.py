"""The modules that generated packages import, which a package with the same name would shadow.

The list is in `dependencies.json`, so that package names do not depend on the installed modules.
`python tests/support/dependencies.py` writes that file.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Final

from stubwright import package_data

FILE: Final = package_data.ROOT / "dependencies.json"
"""The modules in each distribution that `stubwright-runtime` requires with all extras, on any platform."""


@cache
def list_modules() -> frozenset[str]:
    """Return the names of the modules that generated packages import."""
    return frozenset(name for names in json.loads(FILE.read_bytes()).values() for name in names)
