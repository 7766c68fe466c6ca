"""The base class for generated clients. The MCP libraries are imported when a connection is opened."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel

from ...mcp.vocabulary import LOG_LEVELS
from ..features.deprecation import make_deprecated_awaitable
from ..features.questions import Callbacks, OnQuestion, OnSample, Roots
from ..features.subscriptions import Subscriptions
from ..transports.bounds import MAX_RESULT_BYTES
from ..transports.connect import Connection, create_client, narrow
from .calls import call_content, call_model
from .content import ToolContent
from .options import (
    OMIT,
    TIMEOUT,
    CallEvent,
    Confirm,
    Omit,
    OnCall,
    OnLog,
    OnProgress,
    Options,
    Sanitize,
)
from .pending_requests import PendingRequests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from httpx2 import Auth

    from ...mcp.vocabulary import LogLevel
    from ...observability.failures import Failures
    from ...package import Package
    from ..features.callbacks import SdkCallbacks
    from ..rpc.untyped import Target, UntypedClient
    from .responses import CallResponse
    from .session import Session

__all__ = ["OMIT", "Binding", "CallEvent", "Omit"]

_Output = TypeVar("_Output", bound=BaseModel)


class Binding:
    """The base class for generated clients.

    Tool methods raise the following exceptions; prompt and resource methods raise only the last three groups.

    - `ToolFailed` if the tool returned `isError`; `result` is the whole result.
    - `InvalidResult` if the result violates the tool's `outputSchema`, or its content is invalid.
    - `ResultTooLarge` if the result exceeds `max_result_bytes`.
    - `CallRefused` if `confirm` declined.
    - `MCPError` for a protocol error, such as an unknown tool, and for a response that is not MCP
      (`mcp_types.PARSE_ERROR`), exceeds `max_result_bytes`, or does not arrive in time
      (`mcp_types.REQUEST_TIMEOUT`). If the connection failed, it is a `ConnectError`: `Unauthorized`,
      `Forbidden`, `NotFound`, `NotMCP`, `SessionLost`, `Unreachable` or `ServerExited`.
    - `TypeError` or `ValueError` for an argument that is not a JSON value, for an `idempotency_key` that the tool
      does not accept (in both cases the call is not sent), and for an invalid answer from `on_question`.
    - Any exception raised by a callback passed to `connect`.
    """

    _package: ClassVar[Package]
    _toolset: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        """Make deprecated methods usable as agent framework tools."""
        super().__init_subclass__()
        make_deprecated_awaitable(cls)

    def __init__(self, _session: Session, _subscriptions: Any, _options: Options) -> None:
        """Do not call this; use `connect`."""
        self._session = _session
        self._subscriptions = _subscriptions
        self._options = _options

    @classmethod
    def connect(
        cls,
        target: Target,
        *,
        timeout: float | Omit | None = OMIT,
        max_result_bytes: int | None = MAX_RESULT_BYTES,
        sanitize: Sanitize = "text",
        confirm: Confirm | None = None,
        confirm_all: bool = False,
        on_call: OnCall | None = None,
        on_progress: OnProgress | None = None,
        on_log: OnLog | None = None,
        log_level: LogLevel = "info",
        on_question: OnQuestion | None = None,
        on_sample: OnSample | None = None,
        roots: Roots | None = None,
        headers: Mapping[str, str] | None = None,
        toolset: str | None = None,
        auth: Auth | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        drift: Literal["ignore", "warn", "error"] = "ignore",
        raise_errors: bool = False,
    ) -> AbstractAsyncContextManager[Self, None]:
        """Connect on entering an `async with` block, and disconnect on exit. The value of the block is the client.

        Args:
            target: A Streamable HTTP endpoint URL (`str`); a command to start (a sequence of `str`); a server object in
                the same process; an `mcp.Client`, `ClientSession` or FastMCP client, which stays open if it already is;
                or an SDK transport that is not open yet.
            timeout: The seconds to wait for each response, including connecting but excluding time spent in
                `on_question`, `on_sample` or `roots`; `None` for no limit. Defaults to 60, or to the
                `read_timeout_seconds` of an `mcp.Client`.
            max_result_bytes: The maximum size of each response in bytes, after decompression; `None` for no limit. The
                client stops reading a larger response: over HTTP the call raises, and a command is stopped, since its
                responses share one stream. Results from other targets are measured after they are received.
            sanitize: Which parts of a response to strip of control characters, escape sequences and bidirectional
                overrides: `text` for all strings in content, `all` to include `structuredContent` and `_meta`, `none`
                for nothing. Except with `none`, data and MIME types are also checked. Exceptions contain the original
                text.
            confirm: Called before each call to a tool that the compiled manifest declares dangerous: a tool with
                `policy.confirm`, with neither `readOnlyHint: true` nor `destructiveHint: false` (MCP 2025-11-25,
                schema, `ToolAnnotations`), or with hints that the manifest does not trust. Receives the tool's wire
                name and the arguments; any return value except `True` declines the call. May be `async`. By default,
                calls need no confirmation.
            confirm_all: Call `confirm` before every call.
            on_call: Called at the start and end of each call, for indicators and audit logs. May be `async`.
            on_progress: Called on progress with the amount done, the total, and a message. May be `async`.
            on_log: Called for each log message from the server with the level, the logger's name or `None`, and the
                unmodified data. May be `async`; its exceptions are logged.
            log_level: The lowest level of messages for `on_log` (MCP 2026-07-28, server/utilities/logging). In older
                revisions, the client sets the level once, on servers that declare `logging`, and drops messages below
                it.
            on_question: Called with a `Question` for a person. Returns the form's values as a mapping or a model, or
                `Accepted()`, `Declined()` or `Cancelled()`. Missing values get the defaults from the question's schema.
                May be `async`. Without it, the client does not declare elicitation.
            on_sample: Called to sample a message from a model, with `mcp_types.CreateMessageRequestParams`. Returns an
                `mcp_types.CreateMessageResult` or a string. May be `async`. Without it, the client does not declare
                sampling.
            roots: The paths or `file://` URIs that the server may access, or a function, possibly `async`, that returns
                them. Without it, servers get no roots.
            headers: HTTP headers for every request; only for a URL.
            toolset: The server's toolset to use; only for a URL or a generated server's command. A toolset client gets
                the tools that are in both toolsets.
            auth: Authorizes every request. The SDK's `OAuthClientProvider`, for example, gets tokens when the server
                requires a token or additional scopes; authorization counts toward `timeout`. Only for a URL.
            env: Environment variables for the command, in addition to the few that it always inherits (`PATH`, `HOME`
                and similar). Pass `os.environ` to pass all.
            cwd: The command's working directory.
            drift: What to do if titles, descriptions, schemas or annotations of the server's tools differ from the
                compiled ones, or if tools were added or removed. On entry, `warn` issues a `DriftWarning` and `error`
                raises `DriftError`; `ignore` does not list the tools.
            raise_errors: For tests: raise the handler's own exception instead of `Internal error in … (reference …)`.
                Only for a server object created by `build_server`. A `ToolError` remains a `ToolFailed`.

        Raises:
            TypeError: The target has an unsupported type.
            ValueError: A string is not an http or https URL (strings never start a process), or an option does not
                apply to the target; for example, an existing client has its own callbacks.
        """
        if drift not in ("ignore", "warn", "error"):
            raise ValueError(f"drift must be 'ignore', 'warn' or 'error', not {drift!r}")
        if log_level not in LOG_LEVELS:
            raise ValueError(f"log_level must be one of {', '.join(LOG_LEVELS)}, not {log_level!r}")
        failures = _keep_failures(target) if raise_errors else None
        own = getattr(target, "read_timeout_seconds", None) if isinstance(timeout, Omit) else None
        seconds = (own or TIMEOUT) if isinstance(timeout, Omit) else timeout
        options = Options(seconds, confirm, on_call, on_progress, max_result_bytes, confirm_all, sanitize)
        callbacks = Callbacks(on_question, on_sample, roots)
        given = callbacks.list_given()
        in_flight = PendingRequests(expects_questions=bool(given))
        if on_log is not None:
            given.append("on_log")
        subscriptions = Subscriptions()
        on_message = subscriptions.on_message

        def respond() -> SdkCallbacks:
            if not given:
                return {}
            from ..features.callbacks import adapt_for_sdk

            return adapt_for_sdk(callbacks, in_flight, on_message, on_log, log_level)

        seen = [name for name in (cls._toolset, toolset) if name is not None]
        if seen:
            target, headers = narrow(target, headers, toolset, cls._toolset)
        client = create_client(
            target,
            identity=(cls._package.name, cls._package.version),
            given=given,
            callbacks=respond,
            on_message=on_message,
            timeout=seconds,
            revision=(cls._package.manifest.get("client") or {}).get("revision"),
            max_result_bytes=max_result_bytes,
            headers=headers,
            auth=auth,
            env=env,
            cwd=cwd,
        )
        from .session import Session

        binding = cls(Session(client, in_flight, failures), subscriptions, options)

        def close() -> None:
            subscriptions.close()
            in_flight.close()

        async def open_session() -> None:
            in_flight.start()
            if on_log is not None:
                from ..features.log_levels import request_log_level

                await request_log_level(binding._session, log_level, options)
            if drift != "ignore":
                from ..features.drift import report_drift

                await report_drift(binding.__stubwright__[0], cls._package, seen, options, drift)

        return Connection(client, binding, cls._package.name, close, open_session, in_flight.fail)

    def with_options(
        self,
        *,
        timeout: float | Omit | None = OMIT,
        max_result_bytes: int | Omit | None = OMIT,
        sanitize: Sanitize | Omit = OMIT,
        confirm: Confirm | Omit | None = OMIT,
        confirm_all: bool | Omit = OMIT,
        on_call: OnCall | Omit | None = OMIT,
        on_progress: OnProgress | Omit | None = OMIT,
        idempotency_key: str | Omit | None = OMIT,
    ) -> Self:
        """Return a client for the same connection, with some options replaced.

        `None` removes an option. See `connect` for the options. `idempotency_key` is the key for one call to a tool
        with `once: {key: request}`; pass the same key to retry the call later.
        """
        other = copy.copy(self)
        other._options = self._options.with_changes(
            timeout=timeout,
            max_result_bytes=max_result_bytes,
            sanitize=sanitize,
            confirm=confirm,
            confirm_all=confirm_all,
            on_call=on_call,
            on_progress=on_progress,
            idempotency_key=idempotency_key,
        )
        return other

    def tools_for(self, target: str) -> list[dict[str, Any]]:
        """Return the tools in a model API's format, for the `tools` of a request.

        Args:
            target: The API: `openai`, `openai-responses`, `openai-strict`, `anthropic`, `anthropic-strict`, `gemini`,
                `gemini-developer-api` or `bedrock`.

        Raises:
            ValueError: The API is unknown.
        """
        from ..features.functions import list_functions

        return list_functions(self._package, target, self._toolset)

    async def call_for(self, target: str, name: str, arguments: Mapping[str, Any] | str) -> CallResponse[Any]:
        """Call the function from `tools_for` that a model chose.

        Args:
            target: The API.
            name: The function's name.
            arguments: The model's arguments, as an object or its JSON.

        Returns:
            The whole response, even if the tool failed.

        Raises:
            ProjectionError: The function is unknown, or its arguments cannot be parsed; the message is for the model.
            ValueError: The API is unknown.
        """
        from ..features.functions import read_call
        from .responses import Responses

        tool_name, given = read_call(self._package, target, name, arguments, self._toolset)
        return await Responses(self)._call_tool(self._package.tools[tool_name], given)

    @property
    def raw(self) -> UntypedClient:
        """The untyped client, for requests without a typed method; its calls are neither validated nor confirmed."""
        return self._session.client

    @property
    def __stubwright__(self) -> tuple[Session, Any, Options]:
        """The session, subscriptions and options, for functions outside the class."""
        return self._session, self._subscriptions, self._options

    async def _call(
        self,
        name: str,
        arguments: Mapping[str, object],
        output: type[_Output],
        extra: Mapping[str, object] | None = None,
    ) -> _Output:
        tool = self._package.tools[name]
        return (await call_model(self._session, self._options, tool, arguments, extra, output))[0]

    async def _call_content(
        self, name: str, arguments: Mapping[str, object], extra: Mapping[str, object] | None = None
    ) -> ToolContent:
        tool = self._package.tools[name]
        return (await call_content(self._session, self._options, tool, arguments, extra))[0]


def _keep_failures(target: Target) -> Failures:
    failures: Failures | None = getattr(target, "failures", None)
    if failures is None:
        raise ValueError("raise_errors requires a server object created by build_server")
    failures.keep()
    return failures
