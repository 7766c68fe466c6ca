"""Toolsets: subsets of the tools for a process, endpoint or request.

Several toolsets are intersected, so a request cannot extend the toolset of its server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

HEADER: Final = "x-mcp-toolset"
"""The HTTP header with one or more toolsets, separated by commas."""

REQUESTED: Final[ContextVar[tuple[str, ...]]] = ContextVar("toolsets", default=())
"""The toolsets of the current request."""


class UnknownToolsetError(ValueError):
    """The toolset is not in the manifest."""


class Toolsets:
    """The toolsets of one server."""

    def __init__(self, manifest: Mapping[str, Any], own: Sequence[str] = ()) -> None:
        """Create a server's toolsets; `own` lists the toolsets that the server was started with.

        Raises:
            UnknownToolsetError: A toolset is not in the manifest.
        """
        declared: Mapping[str, Any] = manifest.get("toolsets") or {}
        self._tools = {name: frozenset(toolset["tools"]) for name, toolset in declared.items()}
        for name in own:
            if name not in self._tools:
                raise UnknownToolsetError(f"no toolset {name!r}; {self.describe()}")
        self._own = tuple(own)

    def __contains__(self, name: str) -> bool:
        """Return whether the manifest has a toolset."""
        return name in self._tools

    def __iter__(self) -> Any:
        """Iterate over the names of the toolsets."""
        return iter(self._tools)

    def describe(self) -> str:
        """Return the toolset names for a message."""
        return f"the toolsets are {', '.join(self._tools)}" if self._tools else "the manifest declares none"

    def list_present(self) -> frozenset[str] | None:
        """Return the names of the tools in all toolsets of the current request; `None` for all tools."""
        present: frozenset[str] | None = None
        for name in (*self._own, *REQUESTED.get()):
            tools = self._tools.get(name, frozenset[str]())
            present = tools if present is None else present & tools
        return present
