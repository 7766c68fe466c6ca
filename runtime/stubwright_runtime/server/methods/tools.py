"""The `tools/call` method. `calls.pipeline` compiles a function for each tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...mcp.downgrades import downgrade_result
from ...mcp.errors import INVALID_PARAMS, ProtocolError
from ...values.sanitizing import clean
from ..calls.old_names import OldNames
from ..calls.pipeline import Steps, compile_tool
from ..calls.results import Results
from ..core.call_state import record_status
from ..core.feature import HandlerMethod, ServerContext
from ..core.request import Answer, Handle, Request
from ..protocol.messages import repair_unicode

if TYPE_CHECKING:
    from ...package import Package, Tool
    from ..core.outcomes import Outcome


class Calls:
    """A package's tools, as a feature of its server."""

    def __init__(self, package: Package, declare: Callable[[Package, ServerContext, Results], Steps]) -> None:
        """Create the feature.

        Args:
            package: The package that declares the tools.
            declare: Returns the call steps that the package's manifest declares.
        """
        self._package = package
        self._declare = declare

    def list_required_methods(self) -> list[HandlerMethod]:
        """Return the handler methods that run tools."""
        return [
            HandlerMethod(
                tool.method,
                (f"args: {tool.input_name}", f"ctx: {tool.context_name}"),
                "Content" if tool.output_name is None else tool.output_name,
                tool.is_bound,
            )
            for tool in self._package.tools.values()
        ]

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Return the definitions of the tools."""
        return {"tools": {name: tool.listed for name, tool in self._package.tools.items()}}

    def list_handlers(self, server: ServerContext) -> Mapping[str, Answer]:
        """Return the function that handles `tools/call`."""
        return {"tools/call": _CallTool(self._package, server, self._declare).call}


class _CallTool:
    """Handles `tools/call` (MCP 2025-11-25, server/tools, "Calling Tools")."""

    def __init__(
        self, package: Package, server: ServerContext, declare: Callable[[Package, ServerContext, Results], Steps]
    ) -> None:
        self._package = package
        self._server = server
        self._listed, self._scopes = server.lists.by_name["tools"], server.scopes
        self._results = Results(server)
        self._steps = declare(package, server, self._results)
        self._old_names = OldNames(server.log)
        self._entries: dict[str, _Entry] = {}
        if server.tasks is not None:
            server.tasks.serve(server, self.compile_run)

    async def call(self, request: Request) -> dict[str, Any]:
        called: str = request.params["name"]
        alias = self._package.aliases.get(called)
        name = called if alias is None else alias.tool
        if not request.reaches(self._listed, name, self._scopes):
            record_status("denied", self._explain_absence(name, request))
            raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {clean(called)}")
        entry = self._entries.get(name) or self._prepare(name)
        if request.secrets is None:
            request.secrets = []
        sent = request.params.get("arguments")
        request.arguments, request.size = repair_unicode(sent) if sent else ({}, 2)
        if (record := request.record) is not None:
            record.tool, record.arguments, record.size = entry.tool, request.arguments, request.size
        if alias is not None:
            request.errors, request.arguments = alias.find_clashes(request.arguments), alias.rename(request.arguments)
            if record is not None:
                record.arguments = request.arguments
        if self._server.tasks is not None:
            request.begin = self._server.tasks.find_starter(request, entry.tool)
        request.is_answer = request.rounds is not None and request.params.get("requestState") is not None
        outcome = await entry.handle(request)
        if alias is not None:
            outcome = self._old_names.report(alias, outcome)
        if record is not None:
            record.record_outcome(outcome)
        if "any_output" in request.revision.features:
            return outcome.result
        return downgrade_result(outcome.result, entry.definition, request.revision)

    def compile_run(self, name: str) -> Handle:
        """Return the function that runs a tool's tasks, whose calls were already admitted."""
        return compile_tool(self._results, self._server, self._package.tools[name], self._steps, is_run=True)

    def _prepare(self, name: str) -> _Entry:
        """Compile and cache a tool's function, on the first call to the tool."""
        tool = self._package.tools[name]
        try:
            handle = compile_tool(self._results, self._server, tool, self._steps)
        except Exception as error:  # noqa: BLE001 - for example, the tool's model cannot be imported
            failure = error

            async def fail(_request: Request) -> Outcome:
                return self._results.refuse_failure(tool, failure)

            return _Entry(tool, fail, tool.definition)
        self._entries[name] = _Entry(tool, handle, tool.definition)
        return self._entries[name]

    def _explain_absence(self, name: str, request: Request) -> str:
        """Return a word for the reason why a tool is hidden from a caller. Only the audit record contains the word."""
        if name not in self._package.tools:
            return "unknown_tool"
        if request.tools is not None and name not in request.tools:
            return "toolset"
        return "scope" if name in self._listed else "switched_off"


class _Entry(NamedTuple):
    tool: Tool
    handle: Handle
    definition: Mapping[str, Any]
