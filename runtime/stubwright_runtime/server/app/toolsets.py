"""Toolsets: the part of the tools that a process, an endpoint or a request is for.

Several narrow each other: the toolset of a server is an upper bound for its requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

HEADER: Final = "x-mcp-toolset"
"""The header by which a request over HTTP names a toolset, or several with commas between them."""

ASKED: Final[ContextVar[tuple[str, ...]]] = ContextVar("toolsets", default=())
"""The toolsets that the request under way is for."""


class UnknownToolsetError(ValueError):
    """A manifest has no toolset of that name."""


class Toolsets:
    """The toolsets of one server."""

    def __init__(self, manifest: Mapping[str, Any], own: Sequence[str] = ()) -> None:
        """Take the manifest, and the names of the toolsets that the server is for: it has the tools that are in all.

        Raises:
            UnknownToolsetError: There is no such toolset.
        """
        declared: Mapping[str, Any] = manifest.get("toolsets") or {}
        self._tools = {name: frozenset(toolset["tools"]) for name, toolset in declared.items()}
        for name in own:
            if name not in self._tools:
                raise UnknownToolsetError(f"there is no toolset {name!r}; {self.describe()}")
        self._own = tuple(own)

    def __contains__(self, name: str) -> bool:
        """Return whether there is a toolset of that name."""
        return name in self._tools

    def __iter__(self) -> Any:
        """Iterate over their names."""
        return iter(self._tools)

    def describe(self) -> str:
        """Return the names of the toolsets, in words."""
        return f"there are {', '.join(self._tools)}" if self._tools else "the manifest declares none"

    def list_present(self) -> frozenset[str] | None:
        """Return the names of the tools that exist for the request under way; `None` for all tools."""
        present: frozenset[str] | None = None
        for name in (*self._own, *ASKED.get()):
            tools = self._tools.get(name, frozenset[str]())
            present = tools if present is None else present & tools
        return present


def list_named(toolset: str | None) -> tuple[str, ...]:
    """Return the toolset that a caller may have named, as a sequence."""
    return () if toolset is None else (toolset,)
