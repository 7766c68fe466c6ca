"""Servers for client tests: over HTTP in a thread, and with questions to the client in either era."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Literal

import anyio
import mcp
import mcp_types
import pytest
import uvicorn
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from stubwright_runtime.server.main import listen
from stubwright_runtime.server.package_server import PackageServer
from stubwright_runtime.server.transports.http.asgi import asgi_app
from stubwright_runtime.server.transports.http.listener.graceful_shutdown import GracefulServer

Handler = Callable[[Any], Awaitable[Mapping[str, Any]]]

_RESULTS: dict[str, type[mcp_types.Result]] = {
    "elicitation/create": mcp_types.ElicitResult,
    "sampling/createMessage": mcp_types.CreateMessageResult,
    "roots/list": mcp_types.ListRootsResult,
}
_REQUESTS: dict[str, type[mcp_types.Request[Any, Any]]] = {
    "elicitation/create": mcp_types.ElicitRequest,
    "sampling/createMessage": mcp_types.CreateMessageRequest,
    "roots/list": mcp_types.ListRootsRequest,
}


@contextmanager
def serve(server: Server[Any] | PackageServer, port: int = 0) -> Iterator[str]:
    """Run the server over Streamable HTTP in a thread, on a free port by default; yield its URL."""
    app = asgi_app(server.core) if isinstance(server, PackageServer) else server.streamable_http_app()
    with asgi(app, port) as url:
        yield f"{url}/mcp"


@contextmanager
def asgi(app: Any, port: int = 0) -> Iterator[str]:
    """Run an ASGI application over HTTP in a thread; yield its URL without a path."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen()
    runner = uvicorn.Server(uvicorn.Config(app, http="h11", log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=runner.run, args=([listening],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        runner.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def listening(app: Any, parser: Literal["httptools", "h11"]) -> Iterator[str]:
    """Run an ASGI application behind our own listener in a thread; yield its URL without a path."""
    with pytest.MonkeyPatch.context() as patch:
        if parser == "h11":
            patch.setitem(sys.modules, "stubwright_runtime.server.transports.http.listener.httptools_parser", None)
        server = GracefulServer(app, 1, lambda: None)
    listener = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


WAYS: Sequence[Callable[[Any], AbstractContextManager[str]]] = (
    asgi,
    partial(listening, parser="httptools"),
    partial(listening, parser="h11"),
)
"""The ways to serve HTTP: behind any ASGI server, and behind our own listener."""


@asynccontextmanager
async def pipe(server: Server[Any] | PackageServer, handshake: bool) -> AsyncIterator[Any]:
    """Run the server in this process behind a transport's streams; with a handshake, it does not support discovery."""
    send, sent = anyio.create_memory_object_stream[Any](0)
    heard, received = anyio.create_memory_object_stream[Any](0)
    streams: Any = server if isinstance(server, PackageServer) else create_client_server_memory_streams()

    async with streams as opened, anyio.create_task_group() as tasks, send, sent, heard, received:
        if isinstance(server, PackageServer):
            incoming, outgoing = opened
        else:
            (incoming, outgoing), theirs = opened
            tasks.start_soon(server.run, theirs[0], theirs[1], server.create_initialization_options())

        async def forward() -> None:
            async for item in sent:
                if handshake and getattr(item.message, "method", None) == "server/discover":
                    error = mcp_types.ErrorData(code=mcp_types.METHOD_NOT_FOUND, message="Method not found")
                    await heard.send(
                        SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=item.message.id, error=error))
                    )
                else:
                    await outgoing.send(item)

        async def give_back() -> None:
            with suppress(anyio.BrokenResourceError):  # the client has closed its end
                async for item in incoming:
                    await heard.send(item)

        tasks.start_soon(forward)
        tasks.start_soon(give_back)
        yield received, send
        tasks.cancel_scope.cancel()


KINDS = ("memory", "pipe", "pipe legacy", "http", "http legacy")
"""The ways to reach a server; "legacy" requires a handshake."""


@asynccontextmanager
async def reach(kind: str, handling: ScriptedServer) -> AsyncIterator[Any]:
    """Return a client's target for the server over this transport."""
    handling.handshake = kind.endswith("legacy")
    if kind.startswith("http"):
        with serve(handling.server) as url:
            yield url
    elif kind.startswith("pipe"):
        yield pipe(handling.server, handling.handshake)
    else:
        yield handling.server


class Asked(Exception):  # noqa: N818 - not an error: the round ends with questions
    """Ends a round with questions, since 2026-07-28."""


class ScriptedServer:
    """A server with functions for some methods' requests. They can ask the client.

    Attributes:
        seen: The method and the parameters of each request to such a function.
        capabilities: The client's capabilities in the last of these requests.
        handshake: Whether it supports only revisions with a handshake.
    """

    def __init__(self, **handlers: Handler) -> None:
        """Create a server from a function for each method, with `_` for `/` in the name."""
        self.handshake = False
        self.seen: list[tuple[str, Mapping[str, Any]]] = []
        self.capabilities: Mapping[str, Any] = {}
        self.server: Server[Any] = Server("handling", version="1")
        self.server.middleware.append(self._answer)
        self._handlers = {name.replace("_", "/"): handler for name, handler in handlers.items()}

    async def _answer(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        if self.handshake and ctx.method == "server/discover":
            raise mcp.MCPError(code=mcp_types.METHOD_NOT_FOUND, message="Method not found")
        handler = self._handlers.get(ctx.method)
        if handler is None:
            return await call_next(ctx)
        self.seen.append((ctx.method, ctx.params or {}))
        can = ctx.session.client_capabilities
        self.capabilities = can.model_dump(mode="json", by_alias=True, exclude_none=True) if can else {}
        try:
            return {"resultType": "complete", **await handler(ctx)}
        except Asked as asked:
            return {"resultType": "input_required", "requestState": "sealed", "inputRequests": asked.args[0]}


async def ask(ctx: Any, key: str, method: str, params: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Ask the client, during the call or in a separate round."""
    wire = {"method": method, **({} if params is None else {"params": params})}
    if ctx.protocol_version >= "2026-07-28":
        responses: Mapping[str, Any] = (ctx.params or {}).get("inputResponses") or {}
        if key not in responses:
            raise Asked({key: wire})
        answer: Mapping[str, Any] = responses[key]
        return answer
    result = await ctx.session.send_request(
        _REQUESTS[method].model_validate(wire),
        _RESULTS[method],
        metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
    )
    dumped: Mapping[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped
