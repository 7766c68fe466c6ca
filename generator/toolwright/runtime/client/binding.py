"""The base of generated clients: connecting, the options of a call, and the course of one call.

Takes typed arguments from a generated method; gives the validated, typed result. It never imports the protocol's
library before a connection is asked for.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import BaseModel, ValidationError

from .arguments import to_json
from .audit import report
from .bounds import MAX_RESULT_BYTES
from .confirmation import confirm_call
from .errors import InvalidResult, ToolFailed
from .guarded import describe_problems
from .in_flight import InFlight
from .options import OMIT, CallEvent, Confirm, Omit, OnCall, OnProgress, Options
from .questions import Callbacks, OnQuestion, OnSample, Roots
from .results import read_structured
from .session import Session
from .transport import Connection, Target, client_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from httpx2 import Auth
    from mcp import Client
    from mcp_types import CallToolResult, ContentBlock

    from ..package import Package, Tool

__all__ = ["OMIT", "Binding", "CallEvent", "Omit"]

_WANTED: Final = {"on_question": "elicitation", "on_sample": "sampling", "roots": "sampling"}
"""Options of `connect`, with the features that they need, where the manifest does not ask for these by itself."""

_T = TypeVar("_T")
_Output = TypeVar("_Output", bound=BaseModel)


class Binding:
    """What every generated client can do beside its tools, prompts and resources.

    A tool's method raises the following; the methods of prompts and resources raise the last two alone.

    - `ToolFailed` where the tool answered with `isError`; it carries the whole result.
    - `InvalidResult` where the result breaks the tool's `outputSchema`.
    - `CallRefused` where `confirm` said no.
    - `mcp.MCPError` for a protocol error, such as an unknown tool; for an answer that is none of MCP's
      (`mcp_types.PARSE_ERROR`), that is larger than `max_result_bytes`, or that does not come in time
      (`mcp_types.REQUEST_TIMEOUT`); and for a connection that is lost.
    - `TypeError` or `ValueError` for an argument that is no JSON value; nothing is sent then. The same for an answer
      of `on_question` that does not fit the question, and whatever else a callback of `connect` raises.
    """

    _package: ClassVar[Package]

    def __init__(self, _session: Session, _subscriptions: Any, _options: Options) -> None:
        """Not to be called: `connect` gives a client."""
        self._session = _session
        self._subscriptions = _subscriptions
        self._options = _options

    @classmethod
    def connect(
        cls,
        target: Target,
        *,
        timeout: float | None = None,
        max_result_bytes: int | None = MAX_RESULT_BYTES,
        confirm: Confirm | None = None,
        on_call: OnCall | None = None,
        on_progress: OnProgress | None = None,
        on_question: OnQuestion | None = None,
        on_sample: OnSample | None = None,
        roots: Roots | None = None,
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        drift: Literal["ignore", "warn", "error"] = "ignore",
    ) -> AbstractAsyncContextManager[Self, None]:
        """Connect for the length of an `async with` block, which gives the client.

        Args:
            target: The URL of a Streamable HTTP endpoint (`str`); a command to start (a sequence of `str`); a server
                object in this process; or a transport or a client of the SDK that is not open yet, for what is not
                offered here, such as `mcp.Client(url, logging_callback=…)`.
            timeout: Seconds that the server may take for each answer, while connecting too, but without the time in
                which `on_question`, `on_sample` or `roots` work for it; `None` for no bound of ours. An `mcp.Client`
                brings its own `read_timeout_seconds`.
            max_result_bytes: Bytes that each answer of the server may have, after decompression; `None` for no bound.
                No more is read: over HTTP the call raises, and a command, whose answers come in one row, is given up.
                Only for a URL and a command.
            confirm: Asked before each call of a tool that the compiled manifest calls dangerous: one with
                `policy.confirm`, else one that is neither `readOnlyHint: true` nor `destructiveHint: false` (MCP
                2025-11-25, schema, `ToolAnnotations`). Takes the tool's name on the wire and its arguments; whatever
                it gives but `True` refuses the call. May be `async`. `None` asks nobody.
            on_call: Told at the start and at the end of each call, for indicators and audit logs. May be `async`.
            on_progress: Told of progress: how much is done, of how much, and a message. May be `async`.
            on_question: Asked what the server wants to know from a person. Takes a `Question`; gives the values of its
                form as a mapping or a model, or `Accepted()`, `Declined()` or `Cancelled()`. What is absent gets its
                default from the question's schema. May be `async`. `None` tells servers that nobody can be asked.
            on_sample: Asked for a message of a model. Takes `mcp_types.CreateMessageRequestParams`; gives
                `mcp_types.CreateMessageResult`, or a text. May be `async`. `None` tells servers that there is no model.
            roots: The paths or `file://` URIs that the server may look at, or a function that gives them, which may be
                `async`. `None` tells servers nothing of roots.
            headers: HTTP headers of every request; only for a URL.
            auth: Authorizes every request, such as the SDK's `OAuthClientProvider`, which gets tokens when the server
                asks for one or for more scopes; the seconds of `timeout` go on meanwhile. Only for a URL.
            env: Environment variables for the command, beside the few that the SDK passes on (`PATH`, `HOME` and the
                like); `os.environ` for all.
            cwd: The folder that the command starts in.
            drift: What to do where the server's tools are not those that this client was compiled for: another title or
                description, other schemas or annotations, tools that are new or not listed any more. `warn` gives a
                `DriftWarning`, and `error` raises `DriftError`, when the block is entered. `ignore` asks for nothing.

        Raises:
            TypeError: The target is none of these.
            ValueError: A string is no http or https URL (it never becomes a process), or an option does not fit; an
                `mcp.Client` brings its own callbacks.
        """
        if drift not in ("ignore", "warn", "error"):
            raise ValueError(f"drift is 'ignore', 'warn' or 'error', not {drift!r}")
        options = Options(timeout, confirm, on_call, on_progress, max_result_bytes)
        callbacks = Callbacks(on_question, on_sample, roots)
        given = callbacks.given()
        in_flight = InFlight(expects_questions=bool(given))
        answering = cls._needed(given[0], "client_requests", "client.callbacks") if given else None
        changing = cls._package.feature("changes", "client.subscriptions")
        subscriptions = None if changing is None else changing.Subscriptions()
        client = client_for(
            target,
            given=given,
            callbacks=lambda: {} if answering is None else answering.for_sdk(callbacks, in_flight),
            hear=None if subscriptions is None else subscriptions.hear,
            timeout=timeout,
            max_result_bytes=max_result_bytes,
            headers=headers,
            auth=auth,
            env=env,
            cwd=cwd,
        )
        if client is target:
            options = options.but(timeout=client.read_timeout_seconds if timeout is None else timeout)
        mirroring = cls._package.feature("headers", "client.parameter_headers")
        made = cls(Session(client, in_flight, mirroring), subscriptions, options)

        async def opened() -> None:
            if drift != "ignore":
                from .drift import notice

                await notice(made.__toolwright__[0], cls._package.tools, options, drift)

        return Connection(client, made, None if subscriptions is None else subscriptions.close, opened)

    @classmethod
    def _needed(cls, option: str, feature: str, module: str) -> Any:
        """A module of the feature that an option of `connect` needs.

        Raises:
            ValueError: The package does not have the feature.
        """
        found = cls._package.feature(feature, module)
        if found is None:
            raise ValueError(f"{option} needs `python: {{features: [{_WANTED[option]}]}}` in the package's manifest")
        return found

    def with_options(
        self,
        *,
        timeout: float | Omit | None = OMIT,
        max_result_bytes: int | Omit | None = OMIT,
        confirm: Confirm | Omit | None = OMIT,
        on_call: OnCall | Omit | None = OMIT,
        on_progress: OnProgress | Omit | None = OMIT,
    ) -> Self:
        """The same client on the same connection, with other options; those not given stay.

        `None` takes an option away. For their meaning see `connect`.
        """
        other = copy.copy(self)
        other._options = self._options.but(
            timeout=timeout,
            max_result_bytes=max_result_bytes,
            confirm=confirm,
            on_call=on_call,
            on_progress=on_progress,
        )
        return other

    @property
    def raw(self) -> Client:
        """The SDK's client below, for what has no method here; nothing checks or confirms what goes through it."""
        return self._session.client

    @property
    def __toolwright__(self) -> tuple[Session, Any, Options]:
        """The session, the subscriptions and the options, for functions that are no methods."""
        return self._session, self._subscriptions, self._options

    async def _call(self, name: str, arguments: Mapping[str, object], output: type[_Output]) -> _Output:
        """Call a tool that has an `outputSchema`."""

        def read(tool: Tool, result: CallToolResult) -> _Output:
            value = read_structured(tool, result, mirrored=not self._session.modern)
            try:
                return output.model_validate(value)
            except (ValidationError, RecursionError) as error:  # no JSON, though the schema has nothing against it
                wrong = describe_problems(error) if isinstance(error, ValidationError) else "it is nested too deeply"
                raise InvalidResult(tool.name, [f"result: {wrong}"], result) from None

        return await self._perform(self._package.tools[name], arguments, read)

    async def _call_content(self, name: str, arguments: Mapping[str, object]) -> list[ContentBlock]:
        """Call a tool that has no `outputSchema`."""
        return await self._perform(self._package.tools[name], arguments, lambda _, result: result.content)

    async def _perform(self, tool: Tool, given: Mapping[str, object], read: Callable[[Tool, CallToolResult], _T]) -> _T:
        """One call: tell its start, ask for leave, send it, check its result, tell its end."""
        arguments = to_json(given)
        with tool.hiding(arguments):
            async with report(tool, arguments, self._options.on_call):
                await confirm_call(tool, arguments, self._options.confirm)
                result = await self._session.call(tool, arguments, self._options)
                if result.is_error:
                    raise ToolFailed(result)
                return read(tool, result)
