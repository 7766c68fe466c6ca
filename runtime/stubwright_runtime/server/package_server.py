"""The server object of a generated package, which clients in the same process connect to."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ..observability.logs import redact_library_logs
from ..state.store import MEMORY
from .app.building import build_core
from .app.toolsets import list_named
from .execution.threads import THREADS
from .transports.memory import open_connection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    from ..in_process import Send
    from ..package import Package
    from .app.core import Core
    from .core.lists import ResourceVisibility, Visibility
    from .core.task_engine import TaskEngine
    from .observability.audit import Audit


def build_server(
    package: Package,
    handlers: object,
    *,
    state: str = MEMORY,
    local_scopes: Sequence[str] = (),
    audit: Audit | None = None,
    threads: int = THREADS,
    toolset: str | None = None,
    tasks: TaskEngine | None = None,
) -> PackageServer:
    """Return a server that answers for a package with `handlers`.

    Args:
        package: The package.
        handlers: An object with the methods that the package needs, or `None` for none. An async context manager is
            entered before the server's first connection, and exited after its last.
        state: The URL of the store: `memory://` for this process, or `redis://…`, which processes can share.
        local_scopes: The scopes of callers without a token that do not use HTTP.
        audit: The destination of call records: a function that takes a `CallRecord`, or a file.
        threads: The number of threads for plain `def` methods in all; each method takes at most half.
        toolset: The toolset of the manifest that the server offers; all tools by default.
        tasks: The engine that carries tasks between processes; by default the one in Redis.

    Raises:
        OSError: The file for records cannot be opened.
        TypeError: Methods are missing or cannot be called; the message lists them all.
        ValueError: `threads` is not positive, or there is no such toolset.
        StoreConfigurationError: `state` is not the URL of a store.
        UnsupportedManifestError: The manifest declares a feature that is not supported.
    """
    return PackageServer(
        build_core(
            package,
            handlers,
            state=state,
            local_scopes=local_scopes,
            audit=audit,
            threads=threads,
            toolsets=list_named(toolset),
            tasks=tasks,
        )
    )


class PackageServer:
    """The server of one package.

    Generated clients connect to it with `connect(server)`, and clients of the official SDK with `mcp.Client(server)`:
    it is one of the SDK's transports.

    Attributes:
        core: The core, which answers all messages.
        package: The package.
        failures: Exceptions that handlers raised, for clients in the same process with `raise_errors`.
        tools: The tools, to switch them on and off for all clients.
        prompts: The prompts, likewise.
        resources: The resources and resource templates, likewise, and to report changes.
    """

    tools: Visibility
    prompts: Visibility
    resources: ResourceVisibility

    def __init__(self, core: Core) -> None:
        """Create a server from its core."""
        self.core = core
        self.package = core.package
        self.failures = core.failures
        self.tools, self.prompts, self.resources = core.tools, core.prompts, core.resources
        self._opened: dict[asyncio.Task[object] | None, list[AsyncExitStack]] = {}
        """The connections of SDK clients, by the task that opened them: a client closes its own in the same task."""
        redact_library_logs()

    async def complete(self, elicitation: str) -> bool:
        """Notify a client that all is done at the URL that it was asked to open (MCP 2025-11-25, client/elicitation).

        Args:
            elicitation: The id that the question was asked with.

        Returns:
            True if a client was notified: it is still connected, and was not notified of this question before.
        """
        return await self.core.input_requests.urls.complete(elicitation)

    def open_connection(self, deliver: Send, /) -> AbstractAsyncContextManager[Send]:
        """Connect a client for the length of an `async with` block.

        Args:
            deliver: Receives each JSON-RPC message for the client; the server sends the next one when it returns.

        Returns:
            A context manager that yields the function to send a message to the server.
        """
        return open_connection(self.core, deliver)

    async def __aenter__(
        self,
    ) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]:
        """Connect a client of the SDK, and return the streams that it reads and writes."""
        from .transports.sdk_streams import open_streams

        stack = AsyncExitStack()
        streams = await stack.enter_async_context(open_streams(self.core))
        self._opened.setdefault(asyncio.current_task(), []).append(stack)
        return streams

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Close the connection that the current task opened last."""
        task = asyncio.current_task()
        opened = self._opened[task]
        stack = opened.pop()
        if not opened:
            del self._opened[task]
        return await stack.__aexit__(kind, error, trace)
