"""Packages whose names are loaded when they are first used, and the interface between them and this runtime.

Takes a table of homes (module, relative to the package, to the names it holds) and gives the module functions of
PEP 562. It never imports a home before one of its names is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

API: Final = 1
"""The interface that code which is generated today needs."""

OLDEST: Final = 1
"""The oldest interface that this runtime still serves: that of today, and the one before."""


class IncompatibleRuntimeError(ImportError):
    """A package was generated for an interface that this runtime does not serve."""


def lazy(
    package: str, homes: Mapping[str, Sequence[str]], *, api: int | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package, or of a module.

    Args:
        package: Its own `__name__`.
        homes: For each module, written relative to the package (`.client`), the names that it defines.
        api: The interface that the package needs, if it is a generated one: it has what this runtime exports, too.

    Raises:
        IncompatibleRuntimeError: This runtime does not serve that interface.
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    if api is not None:
        check(package, api)
        home_of = {**dict.fromkeys(importlib.import_module(_RUNTIME).__all__, _RUNTIME), **home_of}

    def load(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = sys.modules[package]
        value = getattr(importlib.import_module(home, module.__package__), name)
        setattr(module, name, value)
        return value

    return load, lambda: sorted(home_of), list(home_of)


def check(package: str, api: int) -> None:
    """Let a package be imported that was generated for an interface.

    Raises:
        IncompatibleRuntimeError: This runtime does not serve it.
    """
    if OLDEST <= api <= API:
        return
    served = f"version {API}" if OLDEST == API else f"versions {OLDEST} to {API}"
    is_newer = api > API and not _is_vendored(package)
    remedy = "pip install --upgrade toolwright-runtime" if is_newer else "toolwright generate"
    raise IncompatibleRuntimeError(
        f"{package} was generated for version {api} of the interface of {_RUNTIME}; the one that is installed serves "
        f"{served}. Run: {remedy}",
        name=package,
    )


def _is_vendored(package: str) -> bool:
    """Whether `toolwright generate` wrote this runtime beside the package, as it writes the package itself."""
    from pathlib import Path

    file = getattr(sys.modules.get(package), "__file__", None)
    return isinstance(file, str) and Path(file).parents[1] == Path(__file__).parents[1]


_RUNTIME: Final = "toolwright_runtime"
