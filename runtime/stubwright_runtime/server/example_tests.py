"""Runs tools' examples as tests of their handlers.

The server validates arguments and results. Outputs are compared only with `exact: true`. A tool that is not
`readOnlyHint: true` is called only with `run: true`. pytest is not imported: failures raise `AssertionError`, and
skipped examples raise `SkipTest`.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from unittest import SkipTest

from ..mcp.errors import MISSING_REQUIRED_CLIENT_CAPABILITY
from ..mcp.vocabulary import CLIENT_CAPABILITIES_META_KEY, NEXT_CURSOR, PROTOCOL_VERSION_META_KEY
from ..schema import handle_ids
from ..values.equality import are_equal
from ..values.json import Json
from .protocol.messages import to_json
from .protocol.refusals import STATELESS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..package import Package, Tool

_META: Final = {PROTOCOL_VERSION_META_KEY: STATELESS[-1], CLIENT_CAPABILITIES_META_KEY: dict[str, Any]()}
_ASKS: Final = "{} asks the user a question, which a test cannot answer"


@dataclass(frozen=True, slots=True)
class Example:
    """One example of a tool in the manifest.

    Attributes:
        tool: The tool that the example calls.
        name: The example's name, or `example N` if it has no name.
        fields: The example in the manifest: `input`, and optionally `output`, `exact` and `run`.
    """

    tool: Tool
    name: str
    fields: dict[str, Any]

    def __str__(self) -> str:
        """Return the example's test ID."""
        return f"{self.tool.name}: {self.name}"

    @property
    def skip_reason(self) -> str | None:
        """The reason that the example cannot run as a test; `None` if it can."""
        name = self.tool.name
        hints: Mapping[str, Any] = self.tool.definition.get("annotations") or {}
        if hints.get("readOnlyHint") is not True and self.fields.get("run") is not True:
            return f"{name} is not `readOnlyHint: true`; to run the example anyway, add `run: true` to it"
        if self.tool.task_support == "required":
            return f"{name} runs only as a task"
        confirm: Json = self.tool.policy.get("confirm")
        if confirm and not (isinstance(confirm, dict) and confirm.get("fallback") == "allow"):
            return _ASKS.format(name)
        if handle_ids.find_ids(self.tool, "input", self.fields["input"]):
            return f"{name} requires a handle ID, and the test's new server has no handles"
        return None


class Examples:
    """The examples of a package's tools."""

    def __init__(self, package: Package) -> None:
        self._package = package

    def __iter__(self) -> Iterator[Example]:
        """Yield each example, in the manifest's order."""
        for tool in self._package.tools.values():
            for number, fields in enumerate(tool.extension.get("examples") or (), 1):
                yield Example(tool, fields.get("name") or f"example {number}", fields)

    @property
    def variable(self) -> str:
        """The environment variable that sets the path to the handlers, such as `WEATHER_MCP_HANDLERS`."""
        return f"{self._package.name.upper()}_HANDLERS"

    def check(self, example: Example) -> None:
        """Call the tool with the example's input, and check the result.

        Raises:
            AssertionError: The tool returns an error or a different output, or the handlers cannot be loaded.
            unittest.SkipTest: The example cannot run as a test.
        """
        __tracebackhide__ = True  # pytest omits this frame from tracebacks
        if reason := example.skip_reason:
            raise SkipTest(reason)
        answer = asyncio.run(_call(self._package, self._load(), example))
        if "error" in answer:
            error: dict[str, Any] = answer["error"]
            if error["code"] == MISSING_REQUIRED_CLIENT_CAPABILITY:
                raise SkipTest(_ASKS.format(example.tool.name))
            raise AssertionError(f"{example.tool.name} returned a protocol error: {error['message']}")
        result: dict[str, Any] = answer["result"]
        if result.get("isError"):
            texts = "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
            raise AssertionError(f"{example.tool.name} returned an error:\n{texts}")
        if example.fields.get("exact") is True:
            wanted, got = example.fields["output"], result.get("structuredContent")
            if example.tool.is_paginated and got is not None and NEXT_CURSOR not in wanted:
                got = {
                    key: value for key, value in got.items() if key != NEXT_CURSOR
                }  # cursors are encrypted with a random nonce
            if not are_equal(wanted, got):
                raise AssertionError(f"{example} returned a different output:\n{_diff(wanted, got)}")

    def _load(self) -> object:
        __tracebackhide__ = True
        from .app.loader import HandlerLocation, StartError

        path = os.environ.get(self.variable) or self._package.handlers
        try:
            return HandlerLocation(path, self._package, self.variable).load()
        except StartError as error:
            raise AssertionError(str(error)) from None


async def _call(package: Package, handlers: object, example: Example) -> dict[str, Any]:
    from .package_server import build_server

    scopes: list[str] = example.tool.policy.get("scopes") or []
    answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def deliver(message: bytes) -> None:
        response: dict[str, Any] = json.loads(message)
        if response.get("id") == 1 and not answer.done():
            answer.set_result(response)

    params = {"name": example.tool.name, "arguments": example.fields["input"], "_meta": _META}
    async with build_server(package, handlers, local_scopes=scopes).open_connection(deliver) as send:
        await send(to_json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        return await answer


def _diff(wanted: Any, actual: Any) -> str:
    wanted_lines, actual_lines = (
        json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines() for value in (wanted, actual)
    )
    return "\n".join(difflib.unified_diff(wanted_lines, actual_lines, "the example", "the handlers", lineterm=""))
