# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""The base of generated clients: connecting, the options of a call, and the course of one call.

Takes typed arguments from a generated method; gives the validated, typed result. It never imports the protocol's
library before a connection is asked for.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from pydantic import BaseModel

from .arguments import to_json
from .audit import told
from .consent import confirmed
from .errors import ToolFailed
from .exchange import Exchange
from .options import OMIT, CallEvent, Confirm, Omit, OnCall, OnProgress, Options
from .results import structured
from .target import Connection, Target, client_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from mcp import Client
    from mcp_types import CallToolResult, ContentBlock

    from .tools import Tool, Tools

__all__ = ["OMIT", "Binding", "CallEvent", "Omit"]

_T = TypeVar("_T")
_Output = TypeVar("_Output", bound=BaseModel)


class Binding:
    """What every generated client can do beside its tools.

    A tool's method raises:

    - `ToolFailed` where the tool answered with `isError`; it carries the whole result.
    - `InvalidResult` where the result breaks the tool's `outputSchema`.
    - `CallRefused` where `confirm` said no.
    - `mcp.MCPError` for a protocol error, such as an unknown tool, for a connection that is lost, and, with the code
      `mcp_types.REQUEST_TIMEOUT`, for an answer that does not come in time.
    - `TypeError` or `ValueError` for an argument that is no JSON value. Nothing is sent then.
    """

    _tools: ClassVar[Tools]

    def __init__(self, _exchange: Exchange, _options: Options) -> None:
        """Not to be called: `connect` gives a client."""
        self._exchange = _exchange
        self._options = _options

    @classmethod
    def connect(
        cls,
        target: Target,
        *,
        timeout: float | None = None,
        confirm: Confirm | None = None,
        on_call: OnCall | None = None,
        on_progress: OnProgress | None = None,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> AbstractAsyncContextManager[Self, None]:
        """Connect for the length of an `async with` block, which gives the client.

        Args:
            target: The URL of a Streamable HTTP endpoint (`str`); a command to start (a sequence of `str`); a server
                object in this process; or a transport or a client of the SDK that is not open yet, for what is not
                offered here, such as `mcp.Client(url, elicitation_callback=…)` or another way to authenticate.
            timeout: Seconds that the server may take for each answer, while connecting too; `None` for no bound of
                ours. An `mcp.Client` brings its own `read_timeout_seconds`.
            confirm: Asked before each call of a tool that the compiled manifest calls dangerous: one with
                `policy.confirm`, else one that is neither `readOnlyHint: true` nor `destructiveHint: false` (MCP
                2025-11-25, schema, `ToolAnnotations`). Takes the tool's name on the wire and its arguments; whatever
                it gives but `True` refuses the call. May be `async`. `None` asks nobody.
            on_call: Told at the start and at the end of each call, for indicators and audit logs. May be `async`.
            on_progress: Told of progress: how much is done, of how much, and a message. May be `async`.
            headers: HTTP headers of every request; only for a URL.
            env: Environment variables for the command, beside the few that the SDK passes on (`PATH`, `HOME` and the
                like); `os.environ` for all.
            cwd: The folder that the command starts in.

        Raises:
            TypeError: The target is none of these.
            ValueError: A string is no http or https URL (it never becomes a process), or an option does not fit.
        """
        options = Options(timeout, confirm, on_call, on_progress)
        client = client_for(target, timeout=timeout, headers=headers, env=env, cwd=cwd)
        if client is target:
            options = options.but(timeout=client.read_timeout_seconds if timeout is None else timeout)
        return Connection(client, cls(Exchange(client), options))

    def with_options(
        self,
        *,
        timeout: float | Omit | None = OMIT,
        confirm: Confirm | Omit | None = OMIT,
        on_call: OnCall | Omit | None = OMIT,
        on_progress: OnProgress | Omit | None = OMIT,
    ) -> Self:
        """The same client on the same connection, with other options; those not given stay.

        `None` takes an option away. For their meaning see `connect`.
        """
        other = copy.copy(self)
        other._options = self._options.but(timeout=timeout, confirm=confirm, on_call=on_call, on_progress=on_progress)
        return other

    @property
    def raw(self) -> Client:
        """The SDK's client below, for what has no method here; nothing checks or confirms what goes through it."""
        return self._exchange.client

    async def _call(self, name: str, arguments: Mapping[str, object], output: type[_Output]) -> _Output:
        """Call a tool that has an `outputSchema`."""

        def read(tool: Tool, result: CallToolResult) -> _Output:
            return output.model_validate(structured(tool, result, mirrored=not self._exchange.modern))

        return await self._perform(self._tools[name], arguments, read)

    async def _call_content(self, name: str, arguments: Mapping[str, object]) -> list[ContentBlock]:
        """Call a tool that has no `outputSchema`."""
        return await self._perform(self._tools[name], arguments, lambda _, result: result.content)

    async def _perform(self, tool: Tool, given: Mapping[str, object], read: Callable[[Tool, CallToolResult], _T]) -> _T:
        """One call: tell its start, ask for leave, send it, check its result, tell its end."""
        arguments = to_json(given)
        async with told(tool, arguments, self._options.on_call):
            await confirmed(tool, arguments, self._options.confirm)
            result = await self._exchange.call(tool, arguments, self._options)
            if result.is_error:
                raise ToolFailed(result)
            return read(tool, result)
