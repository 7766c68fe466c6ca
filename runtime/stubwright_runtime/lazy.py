"""Lazy imports for packages, and the version of the interface between generated packages and this runtime."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

API: Final = 1
"""The interface version of newly generated code."""

OLDEST: Final = 1
"""The oldest supported interface version, one before `API`."""


class IncompatibleRuntimeError(ImportError):
    """A package was generated for an interface version that this runtime does not support."""


def lazy(
    package: str, modules: Mapping[str, Sequence[str]], *, api: int | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a package or module.

    Args:
        package: The caller's `__name__`.
        modules: The names to import from each module, keyed by the module's relative name, such as `.client`.
        api: A generated package's interface version; if set, the package also exports the runtime's names.

    Raises:
        IncompatibleRuntimeError: The interface version is not supported.
    """
    module_of = {name: path for path, names in modules.items() for name in names}
    if api is not None:
        check(package, api)
        module_of = {**dict.fromkeys(importlib.import_module(_RUNTIME).__all__, _RUNTIME), **module_of}

    def load(name: str) -> object:
        path = module_of.get(name)
        if path is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        package_module = sys.modules[package]
        value = getattr(importlib.import_module(path, package_module.__package__), name)
        setattr(package_module, name, value)
        return value

    return load, lambda: sorted(module_of), list(module_of)


def check(package: str, api: int) -> None:
    """Check that this runtime supports a generated package's interface version.

    Raises:
        IncompatibleRuntimeError: The interface version is not supported.
    """
    if OLDEST <= api <= API:
        return
    served = f"version {API}" if OLDEST == API else f"versions {OLDEST} to {API}"
    is_newer = api > API and not _is_vendored(package)
    remedy = "upgrade the runtime" if is_newer else "run `stubwright generate`"
    raise IncompatibleRuntimeError(
        f"{package} was generated for interface version {api} of {_RUNTIME}; the installed runtime supports {served};"
        f" {remedy}",
        name=package,
    )


def _is_vendored(package: str) -> bool:
    """Return whether `stubwright generate` copied this runtime next to the package."""
    from pathlib import Path

    file = getattr(sys.modules.get(package), "__file__", None)
    return isinstance(file, str) and Path(file).parents[1] == Path(__file__).parents[1]


_RUNTIME: Final = "stubwright_runtime"
