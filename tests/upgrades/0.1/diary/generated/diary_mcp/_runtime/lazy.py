# Part of stubwright's runtime, copied as it is. DO NOT EDIT.
"""A package whose names are loaded when they are first used.

Takes a table of homes (module, relative to the package, to the names it holds) and gives the module functions of
PEP 562. It never imports a home before one of its names is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence


def lazy(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package.

    Args:
        package: The package's own `__name__`.
        homes: For each module, written relative to the package (`.client`), the names that it defines.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home, package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(home_of), list(home_of)
