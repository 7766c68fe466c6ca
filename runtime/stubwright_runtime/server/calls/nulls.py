"""Treats optional arguments that are null as omitted (`wire: {nulls: omitted}`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...projection.merging import SchemaMerger
from ...schema.validation import get_input_validator

if TYPE_CHECKING:
    import logging

    from ...package import Tool
    from ..core.outcomes import Outcome
    from ..core.request import Handle, Request


class NullOmission:
    """A call step that omits null arguments and logs the first affected call to each tool."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    def wrap(self, tool: Tool, call_next: Handle) -> Handle:
        """Wrap a tool's calls to omit optional arguments that are null, if their schemas do not accept null."""
        refusing = find_refusing(tool)
        if not refusing:
            return call_next
        is_logged = False

        async def call(request: Request) -> Outcome:
            nonlocal is_logged
            arguments = request.arguments
            nulls = [name for name in refusing if name in arguments and arguments[name] is None]
            if nulls:
                request.arguments = {name: value for name, value in arguments.items() if name not in nulls}
                if not is_logged:
                    is_logged = True
                    names = ", ".join(nulls)
                    self._log.warning("%s was called with null for %s, which is treated as omitted", tool.name, names)
            return await call_next(request)

        return call


def find_refusing(tool: Tool) -> list[str]:
    """Return a tool's optional arguments whose schemas do not accept null."""
    view = SchemaMerger(tool.accepts).view([tool.accepts])
    optional = [name for name in view.properties if name not in view.required]
    refused = {*get_input_validator(tool).find_error_paths(dict.fromkeys(optional))}
    return [name for name in optional if (name,) in refused]
