"""The tools as a part of the server.

Takes requests; answers `tools/list` and `tools/call`. What is in a call is the dispatcher's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp_types import INVALID_PARAMS

from ..revisions import result_for
from .dispatcher import Dispatcher
from .parts import Answer, Host, Needed, Refused, Request
from .sanitizing import clean

if TYPE_CHECKING:
    from ..package import Package


class Calls:
    """All tools of a package."""

    def __init__(self, package: Package) -> None:
        """Take the package."""
        self._package = package

    def needed(self) -> list[Needed]:
        """The methods of the handlers."""
        return [
            Needed(
                tool.method,
                (f"args: {tool.input_name}", f"ctx: {tool.context_name}"),
                "Content" if tool.output_name is None else tool.output_name,
                tool.is_bound,
            )
            for tool in self._package.tools.values()
        ]

    def listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """The list."""
        return {"tools": {name: tool.listed for name, tool in self._package.tools.items()}}

    def answers(self, host: Host) -> Mapping[str, Answer]:
        """Its methods."""
        dispatcher = Dispatcher(host)
        listing = host.lists.by_name["tools"]

        async def call(request: Request) -> dict[str, Any]:
            name: str = request.params["name"]
            if name not in listing:
                raise Refused(INVALID_PARAMS, f"Unknown tool: {clean(name)}")
            tool = self._package.tools[name]
            context = host.context(request, name, tool.stem, tool.extension)
            result = await dispatcher.call(tool, request.params.get("arguments"), context)
            return result_for(result, tool.definition, request.revision)

        return {"tools/call": call}
