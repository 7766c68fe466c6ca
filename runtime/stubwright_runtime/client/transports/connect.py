"""Creates the client for a target, and keeps the connection open during a block.

A string is never run as a command.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, Generic, Never, TypeGuard, TypeVar, cast
from urllib.parse import urlsplit

from ...in_process import InProcessServer
from ...mcp.problems import describe_problems
from ...observability.logs import name_records, redact_library_logs
from ...values.modules import find_loaded
from ..core.errors import make_safe_to_show
from .bounds import MAX_RESULT_BYTES, Bounds
from .owner_task import OwnerTask

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from httpx2 import Auth
    from mcp.client.session import IncomingMessage, MessageHandlerFnT
    from typing_extensions import TypeIs

    from ..rpc.untyped import Target, UntypedClient
    from .process import Command


_T = TypeVar("_T")


_HOST_AND_PORT: Final = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):\d+(?:[/?]\S*)?\Z|[\w.-]+\.\w+/\S*\Z")
"""The start of a URL without a scheme: a host with a port, or a host with a dot and a path."""

_TOOLSET: Final = "X-MCP-Toolset"


def narrow(
    target: Target, headers: Mapping[str, str] | None, toolset: str | None, own: str | None
) -> tuple[Target, Mapping[str, str] | None]:
    """Return the target and headers that select only the tools that every toolset contains.

    Args:
        target: The target passed to `connect`.
        headers: The HTTP headers passed to `connect`, which can also select a toolset.
        toolset: The toolset requested by the caller.
        own: The toolset of the client class, or `None`.

    Raises:
        ValueError: The caller requests a toolset that the target cannot select.
    """
    names = [name for name in (own, toolset) if name is not None]
    if isinstance(target, str):
        others = {name: value for name, value in (headers or {}).items() if name.lower() != _TOOLSET.lower()}
        given = [value for name, value in (headers or {}).items() if name not in others]
        return target, {**others, _TOOLSET: ", ".join(dict.fromkeys([*given, *names]))}
    if _is_command(target):
        return [*target, *(word for name in dict.fromkeys(names) for word in ("--toolset", name))], headers
    if toolset is not None:
        raise ValueError("toolset requires a URL or a command; for a server object, use build_server(…, toolset=…)")
    return target, headers


def create_client(
    target: Target,
    *,
    identity: tuple[str, str] | None = None,
    given: Sequence[str] = (),
    callbacks: Callable[[], Mapping[str, Any]] = dict,
    on_message: MessageHandlerFnT | None = None,
    timeout: float | None = None,
    revision: str | None = None,
    max_result_bytes: int | None = MAX_RESULT_BYTES,
    headers: Mapping[str, str] | None = None,
    auth: Auth | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> UntypedClient:
    """Create the client for a target, without opening it.

    Args:
        target: The URL, command, server object, client, session or transport.
        identity: The name and version that the client sends; by default the SDK's.
        given: The names of the callbacks that the caller passed.
        callbacks: Returns the callbacks as `mcp.Client` parameters.
        on_message: Receives the server's notifications.
        timeout: The timeout in seconds for each step of opening the connection.
        revision: A revision that the server supports; only for a URL or a command.
        max_result_bytes: The maximum message size in bytes, unless the request has its own limit; `None` for no limit.
            Only for a URL or a command.
        headers: HTTP headers for every request; only for a URL.
        auth: Authorizes every request; only for a URL.
        env: Environment variables for the process, in addition to the inherited ones (`PATH`, `HOME`, …); only for a
            command.
        cwd: The working directory of the process; only for a command.

    Raises:
        TypeError: The target has an unsupported type, or the roots are invalid.
        ValueError: A string is not an http or https URL, a command is empty, or an option does not apply to this
            target.
    """
    if (headers is not None or auth is not None) and not isinstance(target, str):
        raise ValueError("headers and auth require a URL as the target")
    if (env is not None or cwd is not None) and not _is_command(target):
        raise ValueError("env and cwd require a command as the target")
    if hasattr(type(target), "send_request") or hasattr(type(target), "session"):
        from ..rpc.wrapped import WrappedClient, find_session

        if given:
            raise ValueError(f"a connected client has its own callbacks; do not pass {', '.join(given)}")
        sdk = find_loaded("mcp.client.client")
        if sdk is None or not isinstance(target, sdk.Client) or find_session(target) is not None:
            return WrappedClient(target)
        client = cast("UntypedClient", target)
        if on_message is not None:
            client.message_handler = _call_both(on_message, client.message_handler)
        return client
    options: dict[str, Any] = {"message_handler": on_message, **callbacks()}
    if identity is not None:
        from mcp_types import Implementation

        options["client_info"] = Implementation(name=identity[0], version=identity[1])
    bounds = Bounds(max_result_bytes)
    if isinstance(target, str):
        from ..rpc.client import RpcClient
        from .http import HttpTransport

        transport = HttpTransport(_check_url(target), headers or {}, bounds, auth)
        address = _parse_address(target)
        return RpcClient(transport, bounds, read_timeout_seconds=timeout, revision=revision, address=address, **options)
    if _is_command(target):
        from ..rpc.client import RpcClient
        from .process import ServerProcess

        process = ServerProcess(_parse_command(target, env, cwd), bounds, sys.stderr)
        return RpcClient(process, bounds, read_timeout_seconds=timeout, revision=revision, **options)
    if isinstance(target, InProcessServer):
        from ..rpc.client import RpcClient
        from .memory import MemoryTransport

        return RpcClient(MemoryTransport(target), bounds, read_timeout_seconds=timeout, **options)
    if _is_of_sdk(target):
        import mcp

        server: Any = target
        return mcp.Client(server, read_timeout_seconds=timeout, **options)
    raise TypeError(
        f"cannot connect to {target!r}; pass a URL (str), a command (a sequence of str), a server object, "
        "a client, a session, or an SDK transport"
    )


class Connection(AbstractAsyncContextManager[_T, None], Generic[_T]):
    """Keeps a client open during an `async with` block.

    Exceptions from the block, and the reason why a connection could not be opened, propagate without the
    `ExceptionGroup`s from the SDK's task groups, so that `except ToolFailed:` around the block works. If the connection
    failed, the block raises the reason, or adds it as a note to its own exception.
    """

    def __init__(
        self,
        client: UntypedClient,
        value: _T,
        package: str,
        closing: Callable[[], None] | None = None,
        opened: Callable[[], Awaitable[None]] | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Prepare a connection.

        Args:
            client: The client, which is not open yet.
            value: The block's value.
            package: The package name for log records.
            closing: Called when the block is exited, before the connection closes.
            opened: Called when the connection is open; an exception closes it again.
            failed: Called with the exception that ended the connection while the block was running.
        """
        self._client = client
        self._made = value
        self._package = package
        self._closing = closing
        self._opened = opened
        self._failed = failed
        self._task: OwnerTask | None = None

    async def __aenter__(self) -> _T:
        """Open the connection and negotiate a revision.

        The connection has its own task, so any task may close it.

        Raises:
            RuntimeError: The event loop is not asyncio's.
            OSError: The command cannot be started.
            ConnectError: The server cannot be reached or rejects the connection: `Unauthorized`, `Forbidden`,
                `NotFound`, `NotMCP`, `Unreachable` or `ServerExited`.
            MCPError: The server returns a protocol error.
            DriftError: The server's tools differ from the compiled ones, and `drift` is `error`.
        """
        redact_library_logs()
        task = OwnerTask(self._client, f"{self._package} connection", self._report_early_failure)
        try:
            with name_records(self._package):  # also applies in the tasks that the connection starts
                await task.open()
        except ExceptionGroup as group:
            raise make_safe_to_show(_describe_refusal(_unwrap_only(group))) from None
        except Exception as error:
            described = _describe_refusal(error)
            if described is error:
                make_safe_to_show(error)
                raise
            raise described from None
        self._task = task
        if self._opened is not None:
            try:
                await self._opened()
            except BaseException as error:
                await self.__aexit__(type(error), error, error.__traceback__)
                raise
        return self._made

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection. If the block was cancelled, cancel the connection's task, too.

        Raises:
            RuntimeError: The connection was opened in another event loop.
        """
        if self._task is not None:
            self._task.check_loop()
        if self._closing is not None:
            self._closing()
        task, self._task = self._task, None
        if task is None:
            return
        try:
            is_cancelled = error is not None and not isinstance(error, Exception)
            await task.close(cancel=is_cancelled, seconds=self._client.read_timeout_seconds)
        except Exception as failure:  # noqa: BLE001 - the SDK and its transports can raise anything
            from ..rpc.mcp_error import convert

            reason = make_safe_to_show(convert(_unwrap_only(failure)))
            if reason is error:  # a request in the block raised it
                return
            if error is None or _follows_from(error, reason):
                raise reason from reason.__cause__
            error.add_note(f"The connection also failed: {type(reason).__name__}: {reason}")

    if not TYPE_CHECKING:  # type checkers report these mistakes, too

        def __getattr__(self, name: str) -> Never:
            raise AttributeError(
                f"{_explain_not_open(self)}; the return value of connect has no {name!r}", name=name, obj=self
            )

        def __await__(self) -> Never:
            raise TypeError(f"{_explain_not_open(self)}; do not await it")

    def _report_early_failure(self, error: Exception) -> None:
        if self._failed is not None:
            self._failed(_unwrap_only(error))


def _explain_not_open(connection: Connection[Any]) -> str:
    made = type(vars(connection).get("_made")).__name__  # `copy` reads attributes before it sets them
    return f"use connect in an `async with` statement: `async with {made}.connect(…) as client:`"


def _call_both(first: MessageHandlerFnT, second: MessageHandlerFnT | None) -> MessageHandlerFnT:
    if second is None:
        return first

    async def handle(message: IncomingMessage) -> None:
        await first(message)
        await second(message)

    return handle


def _follows_from(error: BaseException, reason: Exception) -> bool:
    """Return whether an exception from the block only reports that the connection failed for `reason`."""
    from mcp_types import CONNECTION_CLOSED

    from ..rpc.mcp_error import MCPError, convert

    if error is reason:
        return True
    if isinstance(error, BaseExceptionGroup):
        return all(_follows_from(each, reason) for each in error.exceptions)
    converted = convert(error) if isinstance(error, Exception) else error
    return isinstance(converted, MCPError) and converted.code == CONNECTION_CLOSED


def _unwrap_only(error: Exception) -> Exception:
    """Return the only exception in nested groups, or the outermost group if there are several."""
    only = error
    while _is_group(only) and len(only.exceptions) == 1:
        only = only.exceptions[0]
    return error if _is_group(only) else only


def _is_group(error: Exception) -> TypeIs[ExceptionGroup[Exception]]:
    return isinstance(error, ExceptionGroup)


def _describe_refusal(error: Exception) -> Exception:
    """Convert an exception raised while a connection opens to the exception that the caller gets."""
    from mcp_types import PARSE_ERROR, UNSUPPORTED_PROTOCOL_VERSION
    from pydantic import ValidationError

    from ..rpc.mcp_error import MCPError, convert

    if isinstance(error, ValidationError):
        return MCPError(code=PARSE_ERROR, message=f"the server's response is not valid MCP: {describe_problems(error)}")
    if type(error) is RuntimeError and "protocol version" in str(error):  # the SDK has no class for this target
        return MCPError(code=UNSUPPORTED_PROTOCOL_VERSION, message=str(error))
    return convert(error)


def _is_of_sdk(target: Target) -> bool:
    if isinstance(target, AbstractAsyncContextManager):
        return True
    servers = find_loaded("mcp.server")
    if not hasattr(servers, "MCPServer"):  # not loaded, or version 1 of the SDK
        return False
    return isinstance(target, servers.Server | servers.MCPServer)


def _is_command(target: Target) -> TypeGuard[Sequence[str]]:
    return isinstance(target, Sequence) and not isinstance(target, str | bytes | bytearray)


def _check_url(target: str) -> str:
    parts = urlsplit(target)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{target!r} is not an http or https URL{_suggest(target)}")
    return target


def _suggest(target: str) -> str:
    """Return the end of an error message for a string that is not a URL: a suggested fix."""
    if "://" in target or not target.strip():
        return ", such as 'http://localhost:8000/mcp'"
    if _HOST_AND_PORT.match(target):
        return f"; did you mean {'http://' + target!r}?"
    return f"; pass a command as a sequence of strings: {_split(target)!r}"


def _parse_address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _parse_command(command: Sequence[str], env: Mapping[str, str] | None, cwd: str | Path | None) -> Command:
    from .process import Command

    if not command:
        raise ValueError("the command is empty; its first item is the program to start")
    program, *args = map(_check_word, command)
    return Command(program, args, env, cwd)


def _check_word(item: object) -> str:
    if not isinstance(item, str):
        raise TypeError(f"a command must be a sequence of strings; {item!r} is of type {type(item).__name__}")
    return item
