"""The parts of a package's server: its tools, and what else the package has by its own word.

Takes a package; gives its parts. The modules of features are imported by name, and only those that the package names,
since the others need not be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .calls import Calls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..package import Package
    from .parts import Part

_PARTS: Final = {"resources": "Resources", "prompts": "Prompts", "completion": "Completions"}
"""The features that are parts of a server, with the classes of these in their modules."""


def parts(package: Package) -> tuple[Part, ...]:
    """The parts of a package's server, in the order in which stubs of missing methods are shown."""
    others: list[Part] = [
        getattr(module, name)(package)
        for feature, name in _PARTS.items()
        if (module := package.feature(feature, f"server.{feature}")) is not None
    ]
    return (*([Calls(package)] if _has_tools(package) else []), *others)


def _has_tools(package: Package) -> bool:
    """Whether there are tools to call, or the manifest says that the server lists tools all the same."""
    declared: Mapping[str, Any] = package.manifest["server"].get("capabilities") or {}
    return bool(package.tools) or declared.get("tools") is True
