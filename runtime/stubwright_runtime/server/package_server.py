"""The server object of a generated package, for in-process clients."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ..observability.logs import redact_library_logs
from ..state.store import MEMORY
from .app.builder import build_core
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
    """Return a package's server.

    Args:
        package: The package to serve.
        handlers: An object with the required methods; `None` if no methods are required. If it is an async context
            manager, it is entered before the server's first connection and exited after the last.
        state: The URL of the store: `memory://` for this process, or `redis://…`, which processes can share.
        local_scopes: The scopes of local callers, over stdio or in-process.
        audit: Where to write call records: a function that receives each `CallRecord`, or a file.
        threads: The total number of threads for plain `def` handlers; each method uses at most half.
        toolset: The server's toolset; by default all tools.
        tasks: The task engine; by default a stream in the Redis at `state`.

    Raises:
        OSError: The audit file cannot be opened.
        TypeError: Handler methods are missing or have the wrong signature; the message lists them all.
        ValueError: `threads` is not positive, or the toolset does not exist.
        StoreConfigurationError: `state` is not a store URL.
        UnsupportedManifestError: The manifest declares a feature that this runtime does not support.
    """
    return PackageServer(
        build_core(
            package,
            handlers,
            state=state,
            local_scopes=local_scopes,
            audit=audit,
            threads=threads,
            toolsets=() if toolset is None else (toolset,),
            tasks=tasks,
        )
    )


class PackageServer:
    """One package's server.

    Generated clients connect to it with `connect(server)`, and clients of the official SDK with `mcp.Client(server)`:
    it is one of the SDK's transports.

    Attributes:
        core: The core, which handles all messages.
        package: The package.
        failures: Exceptions from handlers, for in-process clients with `raise_errors`.
        tools: Shows and hides tools, for all clients.
        prompts: Shows and hides prompts.
        resources: Shows and hides resources and resource templates, and reports updates.
    """

    tools: Visibility
    prompts: Visibility
    resources: ResourceVisibility

    def __init__(self, core: Core) -> None:
        self.core = core
        self.package = core.package
        self.failures = core.failures
        self.tools, self.prompts, self.resources = core.tools, core.prompts, core.resources
        self._opened: dict[asyncio.Task[object] | None, list[AsyncExitStack]] = {}
        """SDK clients' connections by task, because a client closes its connection in the task that opened it."""
        redact_library_logs()

    async def complete(self, elicitation: str) -> bool:
        """Notify the client that the user completed a URL elicitation (MCP 2025-11-25, client/elicitation).

        Args:
            elicitation: The elicitation ID.

        Returns:
            True if a connected client received its first notification of the completion.
        """
        return await self.core.input_requests.urls.complete(elicitation)

    def open_connection(self, deliver: Send, /) -> AbstractAsyncContextManager[Send]:
        """Connect a client during an `async with` block.

        Args:
            deliver: Called with each JSON-RPC message for the client; the server waits until it returns.

        Returns:
            A context manager that yields the function to send a message to the server.
        """
        return open_connection(self.core, deliver)

    async def __aenter__(
        self,
    ) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]:
        """Connect an SDK client, and return the client's streams for reading and writing."""
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
