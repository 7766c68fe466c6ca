"""Toolsets: subsets of the tools for a process, an endpoint or a request.

A request gets the tools that are in all of its toolsets, so it cannot extend the toolset of its server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

HEADER: Final = "x-mcp-toolset"
"""The HTTP header that selects one or more toolsets, separated by commas."""

REQUESTED: Final[ContextVar[tuple[str, ...]]] = ContextVar("toolsets", default=())
"""The toolsets that the current HTTP request selects."""


class UnknownToolsetError(ValueError):
    """The manifest declares no toolset with this name."""


class Toolsets:
    """A manifest's toolsets, and the toolsets that the server was started with."""

    def __init__(self, manifest: Mapping[str, Any], own: Sequence[str] = ()) -> None:
        """Create a server's toolsets; `own` lists the toolsets that the server was started with.

        Raises:
            UnknownToolsetError: The manifest does not declare one of `own`.
        """
        declared: Mapping[str, Any] = manifest.get("toolsets") or {}
        self._tools = {name: frozenset(toolset["tools"]) for name, toolset in declared.items()}
        for name in own:
            if name not in self._tools:
                raise UnknownToolsetError(f"no toolset {name!r}; {self.describe()}")
        self._own = tuple(own)

    def __contains__(self, name: str) -> bool:
        """Return whether the manifest declares a toolset."""
        return name in self._tools

    def __iter__(self) -> Any:
        """Iterate over the names of the declared toolsets."""
        return iter(self._tools)

    def describe(self) -> str:
        """Return a clause for messages that lists the declared toolsets."""
        return f"the toolsets are {', '.join(self._tools)}" if self._tools else "the manifest declares no toolsets"

    def list_present(self) -> frozenset[str] | None:
        """Return the tools in all toolsets of the server and the request, or `None` if no toolset is selected."""
        present: frozenset[str] | None = None
        for name in (*self._own, *REQUESTED.get()):
            tools = self._tools.get(name, frozenset[str]())
            present = tools if present is None else present & tools
        return present
