"""Invalid arguments to HTTP tools that are sent to the API anyway (`http: {input: lenient}`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...package import Tool


@dataclass(frozen=True, slots=True)
class InvalidArguments:
    """Arguments that do not match the schema, passed instead of a model."""

    values: Mapping[str, Any]


class LenientHandlers:
    """Handlers for a server with HTTP tools that accept invalid arguments."""

    def accepts_invalid(self, tool: Tool) -> bool:
        """Return whether a tool accepts invalid arguments."""
        raise NotImplementedError


def accepts_invalid(handlers: object, tool: Tool) -> bool:
    """Return whether a tool accepts arguments that do not match its schema."""
    if not tool.accepts_invalid:
        return False
    if not tool.is_bound:  # a mock accepts the same arguments as its server
        return True
    return isinstance(handlers, LenientHandlers) and handlers.accepts_invalid(tool)
