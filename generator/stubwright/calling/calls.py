"""Calls a tool without a generated client: connects, lists the tools, calls one and checks its result.

The runtime's client makes the call, with its limits, errors and tasks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import mcp_types

from stubwright import __version__
from stubwright.calling.clock import Clock
from stubwright.diagnostics.suggestions import did_you_mean
from stubwright.importers.limits import Limits
from stubwright_runtime.client.core import calls, content, results
from stubwright_runtime.client.core.binding import Binding
from stubwright_runtime.client.core.errors import InvalidResult, ToolFailed
from stubwright_runtime.client.features.list_pages import TooManyPagesError
from stubwright_runtime.client.rpc.mcp_error import MCPError
from stubwright_runtime.client.transports.bounds import TooLargeError
from stubwright_runtime.mcp.vocabulary import ALIAS_META_KEY
from stubwright_runtime.package import Package, Tool
from stubwright_runtime.values.json import is_object

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from stubwright.importers.limits import Progress
    from stubwright.login.authorization import Authorization
    from stubwright_runtime.client.core.options import OnLog, OnProgress
    from stubwright_runtime.client.features.questions import OnQuestion
    from stubwright_runtime.mcp.aliases import Alias

_DEFAULT_LIMITS: Final = Limits()
_LIMITS: Final = {TooManyPagesError: "--max-pages", TooLargeError: "--max-bytes"}


class LimitError(Exception):
    """The server exceeded a limit of time, pages or bytes; the message names the option that raises the limit."""


class UnknownToolError(Exception):
    """The server has no tool with this name, current or old; the message suggests names."""

    def __init__(self, message: str, listed: Collection[str]) -> None:
        super().__init__(message)
        self.listed = listed


@dataclass(frozen=True, slots=True)
class Server:
    """A server to call: a URL with headers and tokens, or a command with environment variables."""

    target: str | Sequence[str]
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    auth: Authorization | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a tool call.

    Attributes:
        result: The result as JSON, with wire names as keys.
        failed: True if the tool reports a failure.
        wrong: The violation of the `outputSchema` or the content rules; None if the result is valid.
        unlisted: Suggested names if the tool failed and is not listed; otherwise None.
    """

    result: Mapping[str, Any]
    failed: bool = False
    wrong: str | None = None
    unlisted: str | None = None

    @property
    def renamed(self) -> Mapping[str, Any] | None:
        """The tool's new name and the last version that accepts the old name; None unless an old name was called."""
        renaming = (self.result.get("_meta") or {}).get(ALIAS_META_KEY)
        return renaming if is_object(renaming) else None


class _Client(Binding):
    _package: ClassVar[Package] = Package("stubwright")


_Client._package.__dict__["manifest"] = {"server": {"version": __version__}}


async def call(
    server: Server,
    name: str,
    make_arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    *,
    limits: Limits = _DEFAULT_LIMITS,
    seconds: float | None = None,
    on_progress: OnProgress | None = None,
    on_log: OnLog | None = None,
    on_question: OnQuestion | None = None,
    on_listed: Callable[[Mapping[str, Any]], None] | None = None,
    aliases: Mapping[str, Alias] = MappingProxyType({}),
) -> Outcome:
    """Call a tool.

    Args:
        name: The tool's name. Unlisted names are also sent, because lists do not contain old tool names.
        make_arguments: Creates the arguments from the listed tool definition.
        limits: The limits on connecting and on listing tools; `size` also limits the result.
        seconds: The time limit for the call, without prompts; if None, only `limits` applies.
        on_progress: Called with the progress that the server reports.
        on_log: Called with the server's log messages.
        on_question: Answers the server's questions; if None, the client does not declare that it can answer.
        on_listed: Called with the tool's definition.
        aliases: The known old tool names, for finding the types of arguments.

    Raises:
        LimitError: The server exceeded a limit.
        UnknownToolError: The server has no tool with this name.
        LoginError: No access token could be obtained for the server.
        MCPError: The server cannot be reached, rejects the call, or returns a protocol error.
        OSError: The command cannot be started.
        TaskCancelled: Another client cancelled the call's task.
        TaskExpired: The call's task is unknown to the server.
        TasksUnsupported: The tool requires a task, which the server does not support.
        Exception: Any exception from `make_arguments`.
    """
    if server.auth is not None:
        await server.auth.prepare()
    clock = Clock(limits, seconds)
    try:
        with clock.enforce():
            connecting = _Client.connect(
                server.target,
                timeout=clock.starting,
                max_result_bytes=limits.size,
                on_progress=on_progress,
                on_log=on_log,
                on_question=None if on_question is None else clock.exclude(on_question),
                headers=server.headers,
                env=server.environment,
                auth=server.auth,
            )
            async with connecting as client:
                clock.start_listing()
                listed = await _list_tools(client, limits.pages, clock.progress)
                clock.start_calling()
                return await _call_listed(client, listed, name, make_arguments, on_listed, aliases)
    except TimeoutError:
        raise LimitError(clock.describe_overrun()) from None


async def _list_tools(client: Binding, most_pages: int, progress: Progress) -> Sequence[mcp_types.Tool]:
    session, _, options = client.__stubwright__
    tools: list[mcp_types.Tool] = []
    try:
        async for page in session.fetch_pages(client.raw.list_tools, options, most_pages):
            progress.add(page.tools)
            tools += page.tools
    except MCPError as error:
        option = next((name for kind, name in _LIMITS.items() if isinstance(error.__cause__, kind)), None)
        if option is None:
            raise
        raise LimitError(
            f"cannot be listed: {error.message}{progress.describe()}; raise the limit with {option}"
        ) from None
    return tools


async def _call_listed(
    client: Binding,
    listed: Sequence[mcp_types.Tool],
    name: str,
    make_arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    on_listed: Callable[[Mapping[str, Any]], None] | None,
    aliases: Mapping[str, Alias],
) -> Outcome:
    definitions = {tool.name: tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in listed}
    own = aliases[name].tool if name in aliases else name
    if on_listed is not None and own in definitions:
        on_listed(definitions[own])
    called = client.with_options(timeout=None)
    if name in definitions:
        return await _send(called, _make_tool(definitions[name]), make_arguments(definitions[name]))
    definition = _rename(definitions[own], aliases[name]) if own in definitions else _make_unlisted(name)
    nearest = did_you_mean(name, definitions, "tools")
    unknown = UnknownToolError(f"there is no tool `{name}`; {nearest}", definitions)
    try:
        outcome = await _send(called, _make_tool(definition), make_arguments(definition))
    except MCPError as error:
        if error.code in (mcp_types.INVALID_PARAMS, mcp_types.METHOD_NOT_FOUND):
            raise unknown from error
        raise
    # With older SDKs, an unknown name looks like a failing tool.
    return replace(outcome, unlisted=nearest) if outcome.failed and outcome.renamed is None else outcome


async def _send(client: Binding, tool: Tool, arguments: Mapping[str, Any]) -> Outcome:
    session, _, options = client.__stubwright__
    try:
        _, result = await calls.call_content(session, options, tool, arguments, None)
        wrong = None
        if "outputSchema" in tool.definition:
            try:
                size = content.measure_json(result.structured_content)
                results.read_structured(tool, result, size, mirrored=not session.modern)
            except InvalidResult as error:
                wrong = str(error)
        return Outcome(_to_json(result), wrong=wrong or _find_impossible(result))
    except ToolFailed as error:
        return Outcome(_to_json(error.result), failed=True)
    except InvalidResult as error:
        return Outcome(_to_json(error.result), wrong=str(error))


def _find_impossible(result: CallToolResult) -> str | None:
    """Return a description of a number that Python's parser accepts but JSON forbids (RFC 8259, section 6), or None."""
    for name, value in (("structuredContent", result.structured_content), ("_meta", result.meta)):
        try:
            json.dumps(value, allow_nan=False)
        except ValueError:
            return f"{name} in the result is NaN or infinite, which JSON does not support; it is shown as null"
    return None


def _make_unlisted(name: str) -> Mapping[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


def _rename(definition: Mapping[str, Any], alias: Alias) -> Mapping[str, Any]:
    """Return a tool's definition under its old name, with old and new argument names, because servers accept both."""
    schema = definition["inputSchema"]
    known = schema.get("properties") or {}
    old = {was: known[new] for was, new in alias.arguments.items() if new in known}
    return {**definition, "name": alias.name, "inputSchema": {**schema, "properties": {**known, **old}}}


def _to_json(result: CallToolResult) -> Mapping[str, Any]:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def _make_tool(definition: Mapping[str, Any]) -> Tool:
    package = Package("stubwright", tools=[Tool(str(definition["name"]), method="call")])
    package.__dict__["manifest"] = {"server": {"version": __version__}, "tools": [dict(definition)]}
    return package.tools[str(definition["name"])]


def describe(error: MCPError) -> str:
    """Describe a protocol error, except for the command's log, which has already been shown on standard error."""
    from stubwright_runtime.client.core.connect_errors import ConnectError

    if isinstance(error, ConnectError):
        return f"`{error.target}` {error.why}"
    return f"{error.message} (MCP error {error.code})"
