"""The tools as a part of the server.

Takes requests; answers `tools/list` and `tools/call`. The dispatcher runs the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...mcp.downgrades import downgrade_result
from ...mcp.errors import INVALID_PARAMS, ProtocolError
from ...mcp.revisions import Revision
from ...values.sanitizing import clean
from ..core.call_state import CURRENT, note
from ..core.dispatcher import Dispatcher
from ..core.exchange import chain_steps
from ..core.parts import Answer, Host, Needed, Request
from ..core.sanitizing import repair_unicode
from ..core.steps import Call
from ..declared import list_limits, list_steps
from ..old_names import OldNames

if TYPE_CHECKING:
    from ...package import Package


class Calls:
    """All tools of a package."""

    def __init__(self, package: Package) -> None:
        """Take the package."""
        self._package = package

    def list_needed(self) -> list[Needed]:
        """Return the methods of the handlers."""
        return [
            Needed(
                tool.method,
                (f"args: {tool.input_name}", f"ctx: {tool.context_name}"),
                "Content" if tool.output_name is None else tool.output_name,
                tool.is_bound,
            )
            for tool in self._package.tools.values()
        ]

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Return the list."""
        return {"tools": {name: tool.listed for name, tool in self._package.tools.items()}}

    def list_answers(self, host: Host) -> Mapping[str, Answer]:
        """Return its methods."""
        last, limits = Dispatcher(host).call, list_limits(self._package)
        run = chain_steps([*list_steps(self._package, host.store, limits)], last)
        old_names = OldNames(host.log)
        if host.tasks is not None:
            host.tasks.serve(host, chain_steps(limits, last))

        async def call(request: Request) -> dict[str, Any]:
            called: str = request.params["name"]
            alias = self._package.aliases.get(called)
            name = called if alias is None else alias.tool
            call_state = CURRENT.get()
            if not host.offers(request, "tools", name):
                note("denied", self._why_not(name, host, request))
                raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {clean(called)}")
            tool = self._package.tools[name]
            if call_state is not None:
                call_state.tool = tool
            context = host.make_context(request, name, tool.stem, tool.extension)
            sent = request.params.get("arguments")
            values: tuple[dict[str, Any], int | None] = repair_unicode(sent) if sent else ({}, 2)
            clashes: Sequence[str] = ()
            if alias is not None:
                clashes, values = alias.find_clashes(values[0]), (alias.rename(values[0]), values[1])
            is_answer = (
                Revision.from_date(request.revision).has("stateless") and request.params.get("requestState") is not None
            )
            if call_state is not None:
                call_state.arguments, call_state.size = values
            begin = None if host.tasks is None else host.tasks.find_starter(request, tool)
            outcome = await run(Call(tool, *values, context, is_answer, begin=begin, clashes=clashes))
            if alias is not None:
                outcome = old_names.note(alias, outcome)
            if call_state is not None:
                call_state.note_outcome(outcome)
            return downgrade_result(outcome.result, tool.definition, request.revision)

        return {"tools/call": call}

    def _why_not(self, name: str, host: Host, request: Request) -> str:
        """Return the reason that a tool is not there for a caller, which goes into the record only."""
        if name not in self._package.tools:
            return "unknown_tool"
        if request.tools is not None and name not in request.tools:
            return "toolset"
        return "scope" if name in host.lists.by_name["tools"] else "switched_off"
