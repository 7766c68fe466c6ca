"""HTTP tools that send invalid arguments to the API anyway (`http: {input: lenient}`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...package import Tool


@dataclass(frozen=True, slots=True)
class InvalidArguments:
    """Arguments that do not match a tool's schema. The handler receives them instead of a model."""

    values: Mapping[str, Any]


class LenientHandlers:
    """Handlers with HTTP tools, some of which accept invalid arguments."""

    def accepts_invalid(self, tool: Tool) -> bool:
        """Return whether an HTTP tool sends invalid arguments to its API."""
        raise NotImplementedError


def accepts_invalid(handlers: object, tool: Tool) -> bool:
    """Return whether a tool's handler accepts arguments that do not match the tool's schema."""
    if not tool.accepts_invalid:
        return False
    if not tool.is_bound:  # a mock accepts the same arguments as its server
        return True
    return isinstance(handlers, LenientHandlers) and handlers.accepts_invalid(tool)
