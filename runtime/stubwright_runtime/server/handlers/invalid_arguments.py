"""Arguments that are sent to an HTTP API although the `inputSchema` refuses them (`http: {input: lenient}`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...package import Tool


@dataclass(frozen=True, slots=True)
class InvalidArguments:
    """Arguments that do not fit the schema, in place of a model."""

    values: Mapping[str, Any]


class LenientHandlers:
    """Handlers with HTTP calls, some of which may take misfits."""

    def accepts_invalid(self, tool: Tool) -> bool:
        """Return whether a call of a tool may have arguments that do not fit."""
        raise NotImplementedError


def accepts_invalid(handlers: object, tool: Tool) -> bool:
    """Return whether a tool is an HTTP call that is sent even if the schema refuses it."""
    if not tool.accepts_invalid:
        return False
    if not tool.is_bound:  # of a mock, which makes no call and takes what the server takes
        return True
    return isinstance(handlers, LenientHandlers) and handlers.accepts_invalid(tool)
