"""The examples of a package's tools as tests of its handlers.

Takes a tool and one of its examples; calls the tool through the package's own server, in this process, as a client
would. The server validates arguments and result; a result that differs is a failure only if the example says
`exact: true`. A tool that may change something is called only if the example says `run: true`. pytest collects the
tests and is never imported: a failure is an `AssertionError`, and an omitted example is a `SkipTest`.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from unittest import SkipTest

from ...mcp.vocabulary import NEXT_CURSOR
from ...schema import handle_ids
from ...values.equality import are_equal
from ...values.json import Json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_types import CallToolResult

    from ...package import Package, Tool

_ASKS: Final = "{} asks the user a question, which no test can answer"


@dataclass(frozen=True, slots=True)
class Example:
    """One example of a tool.

    Attributes:
        tool: The tool.
        name: The example's own name, or its number.
        given: The example as the manifest has it: `input`, and perhaps `output`, `exact` and `run`.
    """

    tool: Tool
    name: str
    given: dict[str, Any]

    def __str__(self) -> str:
        """Return the id of its test in pytest."""
        return f"{self.tool.name}: {self.name}"

    @property
    def left_out(self) -> str | None:
        """The reason that it is not run; `None` if it is."""
        name = self.tool.name
        hints: Mapping[str, Any] = self.tool.definition.get("annotations") or {}
        if hints.get("readOnlyHint") is not True and self.given.get("run") is not True:
            return f"{name} is not `readOnlyHint: true`; to run the example anyway, add `run: true` to it"
        if self.tool.task_support == "required":
            return f"{name} runs only as a task"
        confirm: Json = self.tool.policy.get("confirm")
        if confirm and not (isinstance(confirm, dict) and confirm.get("fallback") == "allow"):
            return _ASKS.format(name)
        if handle_ids.find_ids(self.tool, "input", self.given["input"]):
            return f"{name} takes the id of a handle, and there is none before the server runs"
        return None


class Examples:
    """All examples of a package, which run as tests."""

    def __init__(self, package: Package) -> None:
        """Take the package, without loading or importing modules yet."""
        self._package = package

    def __iter__(self) -> Iterator[Example]:
        """Yield each example, in the manifest's order."""
        for tool in self._package.tools.values():
            for number, given in enumerate(tool.extension.get("examples") or (), 1):
                yield Example(tool, given.get("name") or f"example {number}", given)

    @property
    def variable(self) -> str:
        """The environment variable with the path of the handlers, such as `WEATHER_MCP_HANDLERS`."""
        return f"{self._package.name.upper()}_HANDLERS"

    def check(self, example: Example) -> None:
        """Call the tool as the example does.

        Raises:
            AssertionError: The tool answers with an error, or with other than it has to; or the handlers cannot be had.
            unittest.SkipTest: The example is left out; the message has the reason.
        """
        __tracebackhide__ = True  # pytest shows the failure without the way to it
        if reason := example.left_out:
            raise SkipTest(reason)
        import anyio
        import mcp
        from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY

        handlers = self._load()
        try:
            result = anyio.run(_call, self._package, handlers, example)
        except mcp.MCPError as error:
            if error.code == MISSING_REQUIRED_CLIENT_CAPABILITY:
                raise SkipTest(_ASKS.format(example.tool.name)) from None
            raise AssertionError(f"{example.tool.name} answered with a protocol error: {error}") from None
        if result.is_error:
            texts = "\n".join(block.text for block in result.content if block.type == "text")
            raise AssertionError(f"{example.tool.name} answered with an error:\n{texts}")
        if example.given.get("exact") is True:
            wanted, got = example.given["output"], result.structured_content
            if example.tool.is_paginated and got is not None and NEXT_CURSOR not in wanted:
                got = {key: value for key, value in got.items() if key != NEXT_CURSOR}  # no cursor is like another
            if not are_equal(wanted, got):
                raise AssertionError(f"{example} gives a different output:\n{_diff(wanted, got)}")

    def _load(self) -> object:
        __tracebackhide__ = True
        from ..app.loading import Handwritten, StartError

        path = os.environ.get(self.variable) or self._package.handlers
        try:
            return Handwritten(path, self._package, self.variable).load()
        except StartError as error:
            raise AssertionError(str(error)) from None


async def _call(package: Package, handlers: object, example: Example) -> CallToolResult:
    """Return the result of the call, read by no schema but the server's own."""
    import mcp
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

    from . import server

    params = CallToolRequestParams(name=example.tool.name, arguments=example.given["input"])
    failures: list[Exception] = []
    scopes: list[str] = example.tool.policy.get("scopes") or []
    async with mcp.Client(server.build_server(package, handlers, local_scopes=scopes)) as client:
        try:
            return await client.session.send_request(CallToolRequest(params=params), CallToolResult)
        except mcp.MCPError as error:  # raised when all is closed, since the SDK's task groups would wrap it
            failures.append(error)
    raise failures[0]


def _diff(wanted: Any, actual: Any) -> str:
    wanted_lines, actual_lines = (
        json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines() for value in (wanted, actual)
    )
    return "\n".join(difflib.unified_diff(wanted_lines, actual_lines, "the example", "the handlers", lineterm=""))
