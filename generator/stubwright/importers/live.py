"""Lists the tools, resources and prompts of a live server.

Entries are raw JSON, since a client with typed models would reject a whole list for one invalid entry.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from stubwright import __version__
from stubwright.importers.default_callbacks import CAPABILITIES, DefaultCallbacks
from stubwright.importers.document_reader import SourceError
from stubwright.importers.limits import TIMEOUT, Limits, Progress
from stubwright.importers.server_listing import ServerListing
from stubwright.importers.sources import Command, Source
from stubwright_runtime.client.core.connect_errors import (
    ConnectError,
    Forbidden,
    ServerExited,
    ServerNotFound,
    Unauthorized,
)
from stubwright_runtime.client.core.environment import describe_withheld
from stubwright_runtime.client.features.list_pages import MOST_PAGES, EndlessError, TooManyPagesError, follow_pages
from stubwright_runtime.client.rpc.connection import RpcConnection, Transport
from stubwright_runtime.client.rpc.mcp_error import MCPError
from stubwright_runtime.client.transports.bounds import MAX_RESULT_BYTES, Bounds
from stubwright_runtime.client.transports.process import Command as Program
from stubwright_runtime.client.transports.process import ServerProcess
from stubwright_runtime.mcp.vocabulary import SECTIONS, TOOLS, Section
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from types import FrameType

MAX_ENTRIES: Final = 100_000
"""The maximum number of entries per list."""

_DEFAULT_LIMITS: Final = Limits()
_PROBE: Final = 10.0  # seconds for `server/discover`, since old servers might never respond
_MAX_CONCURRENT: Final = 8  # concurrent servers
_POLL: Final = 0.02  # seconds
_ADVICE: Final = (
    ("the proxy", "; check the proxy"),
    ("SSL_CERT_FILE", ""),
    ("", "; check the URL, and that the server runs"),
)
"""Advice for an unreachable server, by a substring of the reason."""

_TERMINATION_SIGNALS: Final = ("SIGTERM", "SIGHUP")
_INFO: Final = {"name": "stubwright", "version": __version__}


class UnreachableError(SourceError):
    """The server cannot be queried; the message explains why."""

    names_source = True


def read(
    source: Source,
    limits: Limits = _DEFAULT_LIMITS,
    *,
    started: Callable[[], None] | None = None,
    revision: str | None = None,
) -> ServerListing:
    """Return a server's lists of tools, resources and prompts.

    Args:
        source: The server. A command gets its own variables and the SDK's default environment.
        limits: Time, size and page limits.
        started: Called on the first response.
        revision: The protocol revision; by default the newest that both sides support.

    Raises:
        UnreachableError: The server cannot be queried, violates the protocol, or exceeds a limit.
    """
    with silence_libraries(), interrupt_on_signals():
        return anyio.run(_read, source, limits, started or (lambda: None), revision)


def read_several(sources: Sequence[Source], limits: Limits = _DEFAULT_LIMITS) -> list[ServerListing | UnreachableError]:
    """List several servers concurrently, and return each listing, or the error that prevented it.

    Args:
        sources: The servers.
        limits: The limits for each server; `starting` applies only to commands.
    """
    answers: dict[int, ServerListing | UnreachableError] = {}

    async def ask(number: int, source: Source, limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            own = limits if isinstance(source, Command) else replace(limits, starting=None)
            try:
                answers[number] = await _read(source, own, lambda: None, None)
            except UnreachableError as error:
                answers[number] = error

    async def list_all() -> None:
        limiter = anyio.CapacityLimiter(_MAX_CONCURRENT)
        async with anyio.create_task_group() as tasks:
            for number, source in enumerate(sources):
                tasks.start_soon(ask, number, source, limiter)

    with silence_libraries(), interrupt_on_signals():
        anyio.run(list_all)
    return [answers[number] for number in range(len(sources))]


@contextmanager
def silence_libraries() -> Iterator[None]:
    """Silence the client libraries' loggers, since each failure is already reported in one message."""
    loggers = [logging.getLogger(name) for name in ("mcp", "client", "httpx2", "httpcore2", "stubwright_runtime")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Handle termination signals like Ctrl-C, so that no child process outlives this one."""
    arrived: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):  # a shell's background jobs ignore Ctrl-C
            raise KeyboardInterrupt
        handler(number, frame)

    numbers = [getattr(signal, name) for name in _TERMINATION_SIGNALS if hasattr(signal, name)]
    # `nohup` ignores SIGHUP, and embedding programs may have their own handlers: keep both.
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if arrived:
            sys.exit(128 + arrived[0])
        raise
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@dataclass(slots=True)
class _Clock:
    """A server's time limits: `starting` seconds for the first response, if set, then `seconds`."""

    seconds: float
    starting: float | None
    started: Callable[[], None]
    advice: str = "; allow more time with --timeout"
    has_answered: bool = False

    @contextmanager
    def limit(self) -> Iterator[Callable[[], None]]:
        """Limit the block's time. Yield a function to call on the first response."""
        with anyio.fail_after(self.seconds if self.starting is None else self.starting) as scope:

            def on_answer() -> None:
                self.has_answered = True
                if self.starting is not None:
                    scope.deadline = anyio.current_time() + self.seconds
                self.started()

            yield on_answer

    def describe_overrun(self, progress: Progress) -> str:
        """Return the exceeded time limit as a clause to follow the server's name."""
        if self.starting is not None and not self.has_answered:
            return f"sent no response within {self.starting:g} s of its start{self.advice}"
        return f"{progress.describe_overrun(self.seconds)}{self.advice}"


@asynccontextmanager
async def open_connection(
    source: Source, seconds: float = TIMEOUT, max_bytes: int = MAX_RESULT_BYTES, *, starting: float | None = None
) -> AsyncIterator[Connection]:
    """Connect to a server, negotiate a revision, and keep the connection open during the block.

    Args:
        source: The server to connect to.
        seconds: The time limit for the negotiation.
        max_bytes: The maximum response size in bytes.
        starting: A separate time limit in seconds for a command's first response, if any.

    Raises:
        UnreachableError: The server cannot be reached, violates the protocol, or is too slow.
    """
    server = _Server(source, Bounds(max_bytes))
    clock = _Clock(seconds, starting if isinstance(source, Command) else None, lambda: None, advice="")
    with _explain_failures(source, server, clock):
        await _prepare(source)
        async with _connect(server) as connection:
            with clock.limit() as answered:
                connection.info, connection.capabilities = await connection.negotiate()
                answered()
            yield connection


async def _read(source: Source, limits: Limits, started: Callable[[], None], revision: str | None) -> ServerListing:
    server = _Server(source, Bounds(limits.size, limits.size), limits.pages)
    clock = _Clock(limits.seconds, limits.starting, started)
    with _explain_failures(source, server, clock):
        await _prepare(source)
        with clock.limit() as answered:
            async with _connect(server) as connection:
                return await _list_everything(connection, answered, revision)
    raise AssertionError("the block returns or raises")


async def _prepare(source: Source) -> None:
    """Log in interactively, outside the time limits. Raises UnreachableError."""
    if isinstance(source, Command) or source.auth is None:
        return
    from stubwright.login.errors import LoginError

    try:
        await source.auth.prepare()
    except LoginError as error:
        raise UnreachableError(f"was not called because authorization failed: {error}") from None


@contextmanager
def _explain_failures(source: Source, server: _Server, clock: _Clock) -> Iterator[None]:
    """Convert errors that close a connection to an UnreachableError."""
    message = ""
    try:
        yield
    # TimeoutError is an OSError, so it comes first.
    except* TimeoutError:
        message = f"`{source.label}` {clock.describe_overrun(server.progress)}"
    except* UnreachableError as group:
        message = f"`{source.label}` {_get_first_error(group)}"
    except* MCPError as group:
        message = f"`{source.label}` {server.describe(_get_first_error(group))}"
    except* OSError as group:
        error = _get_first_error(group)
        message = f"`{source.label}` cannot be started: {getattr(error, 'strerror', None) or error}"
    except* ValueError as group:  # a NUL byte in a command, or a character not allowed in headers
        message = f"`{source.label}` cannot be queried: {to_one_line(str(_get_first_error(group)))}"
    # Raised outside the `except*` blocks, which would wrap the error in a group.
    if message:
        raise UnreachableError(
            message + server.describe_invalid_messages() + server.quote_log() + server.describe_withheld()
        )


def _get_first_error(group: BaseExceptionGroup[BaseException]) -> Any:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Server:
    """Describes the failures of a connection to a server."""

    def __init__(self, source: Source, bounds: Bounds, most_pages: int = MOST_PAGES) -> None:
        self._bounds = bounds
        self.most_pages = most_pages
        self.progress = Progress()
        self._process: ServerProcess | None = None
        self.callbacks = DefaultCallbacks()
        transport: Transport
        if isinstance(source, Command):
            program, *arguments = source.words
            transport = self._process = ServerProcess(
                Program(program, arguments, dict(source.environment)), bounds, None
            )
        else:
            from stubwright_runtime.client.transports.http import HttpTransport  # expensive to import

            transport = HttpTransport(source.url, source.headers, bounds, source.auth)
        self.connection = RpcConnection(transport, bounds, self.callbacks.answer, _ignore_notification)

    def describe(self, error: MCPError) -> str:
        """Return an error as a clause to follow the server's name."""
        if self._bounds.exceeded is not None:
            return (
                f"sends too much: {self._bounds.exceeded}{self.progress.describe()}; raise the limit with --max-bytes"
            )
        if isinstance(error, ServerNotFound):
            return error.why
        if not isinstance(error, ConnectError):
            return f"responded with an error: {to_one_line(error.message)[:500]} ({error.code})"
        fix = ""
        if isinstance(error, Unauthorized | Forbidden):
            fix = "" if error.status is None else "; add credentials with --login, --token or --header"
        elif error.why.startswith("cannot be reached"):
            fix = next(advice for words, advice in _ADVICE if words in error.why)
        return f"{error.why}{' before its first response' if self._process is not None else ''}{fix}"

    def describe_invalid_messages(self) -> str:
        count = self.connection.unreadable
        if not count:
            return ""
        lines = "a line that is" if count == 1 else f"{count} lines that are"
        return f"; it sent {lines} not JSON-RPC"

    def quote_log(self) -> str:
        return "".join(f"\n  | {line}" for line in (self._process.log_lines() if self._process is not None else ()))

    def describe_withheld(self) -> str:
        """Return a hint if the process exited, possibly because of a missing variable, otherwise an empty string."""
        failure = self.connection.failure
        error = None if failure is None else failure()
        if not isinstance(error, ServerExited) or not error.withheld:
            return ""
        return f"\n  help: {describe_withheld(error.withheld, '--env NAME')}"


class Connection:
    """Sends requests in the negotiated revision and returns raw results.

    Attributes:
        info: The server's `serverInfo`, with `instructions`, after the negotiation.
        capabilities: The server's capabilities, after the negotiation.
    """

    def __init__(self, server: _Server) -> None:
        self._rpc = server.connection
        self._server = server
        self.callbacks = server.callbacks
        self.revision = LATEST_MODERN_VERSION
        self.info: Mapping[str, Any] = {}
        self.capabilities: Mapping[str, Any] = {}

    @property
    def revision(self) -> str:
        """The protocol revision of requests."""
        return self._rpc.revision

    @revision.setter
    def revision(self, revision: str) -> None:
        self._rpc.revision = revision

    @property
    def unreadable(self) -> int:
        """The number of invalid messages from the server."""
        return self._rpc.unreadable

    @property
    def has_ended(self) -> bool:
        """True if the server has closed the connection; always False over HTTP, where only requests detect it."""
        return self._rpc.failure is not None

    async def wait_for_end(self) -> None:
        """Wait until the server closes the connection; over HTTP, this may never be detected."""
        while not self.has_ended:  # noqa: ASYNC110 - the transport sends no signal
            await anyio.sleep(_POLL)

    def quote_log(self) -> str:
        """Return the first and last lines of a process's standard error, each after `  | `."""
        return self._server.quote_log()

    async def list_pages(self, section: Section) -> Sequence[Any]:
        """Return all entries of a list. Raises UnreachableError if a response is invalid."""
        return await _list_pages(self, section, self._server.most_pages, self._server.progress)

    async def ask(
        self, method: str, seconds: float | None = None, headers: Mapping[str, str] | None = None, **params: Any
    ) -> dict[str, Any]:
        """Send one request and return its result.

        Args:
            method: An MCP method, such as `tools/list`.
            seconds: The time limit for the response.
            headers: Additional HTTP headers.
            params: The request's parameters.

        Raises:
            MCPError: The server responds with an error or does not respond.
        """
        if self.revision in MODERN_PROTOCOL_VERSIONS:
            params["_meta"] = {
                **params.get("_meta", {}),
                mcp_types.PROTOCOL_VERSION_META_KEY: self.revision,
                mcp_types.CLIENT_INFO_META_KEY: _INFO,
                mcp_types.CLIENT_CAPABILITIES_META_KEY: CAPABILITIES,
            }
        return await self._rpc.request(method, params, seconds=seconds, headers=headers)

    async def negotiate(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Negotiate a revision and return the server's information and capabilities.

        Servers without `server/discover` need a handshake (MCP 2026-07-28, basic/lifecycle). If a server rejects it,
        `server/discover` is retried, since the server might have started slowly.
        """
        for last in (False, True):
            if (described := await self._discover(LATEST_MODERN_VERSION)) is not None:
                return described
            try:
                return await self._initialize()
            except MCPError as error:
                if error.code != mcp_types.UNSUPPORTED_PROTOCOL_VERSION or last:
                    raise
        raise AssertionError("the second try returns or raises")

    async def request_revision(self, revision: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Request a revision and accept the server's counteroffer. Return the same result as `negotiate`.

        Raises:
            UnreachableError: The server does not support a revision without a handshake.
        """
        if revision not in MODERN_PROTOCOL_VERSIONS:
            return await self._initialize(revision)
        if (described := await self._discover(revision)) is None:
            raise UnreachableError(f"does not support the revision {revision}")
        return described

    async def _discover(self, revision: str) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """Return the server's information and capabilities, or None if the server does not support the revision."""
        self.revision = revision
        try:
            answer = await self.ask("server/discover", _PROBE)
        except MCPError as error:
            if error.code == mcp_types.CONNECTION_CLOSED:
                raise
            return None
        if revision not in _list(answer.get("supportedVersions")):
            return None
        stamped = _dict(answer.get("_meta")).get(mcp_types.SERVER_INFO_META_KEY)
        return _describe_server(answer, stamped or answer.get("serverInfo"))

    async def _initialize(self, asked: str = LATEST_HANDSHAKE_VERSION) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        self.revision = asked
        answer = await self.ask("initialize", protocolVersion=asked, capabilities=CAPABILITIES, clientInfo=_INFO)
        revision = answer.get("protocolVersion")
        if revision not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise UnreachableError(f"uses an unknown revision of the protocol: {to_one_line(repr(revision))}")
        self.revision = str(revision)
        await self._rpc.notify("notifications/initialized")
        return _describe_server(answer, answer.get("serverInfo"))


@asynccontextmanager
async def _connect(server: _Server) -> AsyncIterator[Connection]:
    try:
        await server.connection.open()
        yield Connection(server)
    finally:
        await server.connection.close()


async def _ignore_notification(_method: str, _params: Mapping[str, Any] | None) -> None:
    """Ignore a notification from the server."""


async def _list_everything(connection: Connection, answered: Callable[[], None], revision: str | None) -> ServerListing:
    info, capabilities = await (connection.negotiate() if revision is None else connection.request_revision(revision))
    answered()
    sections: dict[str, Sequence[Any]] = {}
    notes: list[str] = []
    for section in SECTIONS:
        # Some servers offer tools without declaring the capability.
        if section.capability not in capabilities and section is not TOOLS:
            continue
        try:
            sections[section.name] = await connection.list_pages(section)
        except MCPError as error:
            if error.code == mcp_types.CONNECTION_CLOSED or (section is TOOLS and section.capability in capabilities):
                raise
            if error.code != mcp_types.METHOD_NOT_FOUND:
                notes.append(
                    f"`{section.method}` failed, so its entries are missing: {to_one_line(error.message)[:500]}"
                )
    notes += connection.callbacks.notes
    return ServerListing(connection.revision, info, capabilities, sections, tuple(notes))


async def _list_pages(connection: Connection, section: Section, most_pages: int, progress: Progress) -> Sequence[Any]:
    entries: list[Any] = []
    prefix = f"answers `{section.method}`"

    async def fetch(cursor: str | None) -> dict[str, Any]:
        if len(entries) > MAX_ENTRIES:
            raise UnreachableError(f"{prefix} with a list that has more than {MAX_ENTRIES:,} entries")
        parameters: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        page = await connection.ask(section.method, **parameters)
        if not isinstance(page.get(section.name), list):
            raise UnreachableError(f"{prefix} without a list of `{section.name}`")
        if not isinstance(page.get("nextCursor"), str | None):
            raise UnreachableError(f"{prefix} with a cursor that is not a string")
        return page

    try:
        async for page in follow_pages(fetch, lambda page: page.get("nextCursor"), most_pages):
            entries += page[section.name]
            progress.add(page[section.name])
    except TooManyPagesError as error:
        raise UnreachableError(
            f"{prefix} with a list that {error}{progress.describe()}; raise the limit with --max-pages"
        ) from None
    except EndlessError as error:
        raise UnreachableError(f"{prefix} with a list that {error}") from None
    return entries


def _describe_server(answer: Mapping[str, Any], info: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    instructions = {"instructions": answer["instructions"]} if "instructions" in answer else {}
    return {**_dict(info), **instructions}, _dict(answer.get("capabilities"))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
