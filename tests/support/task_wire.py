"""A client with tasks on the wire, over memory, stdio or HTTP: raw requests, raw results.

Answers the server's requests with functions, and records its notifications.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

import forked
from server_fixture import ENVELOPE, HELLO

if TYPE_CHECKING:
    from pathlib import Path

    from stubwright_runtime.in_process import InProcessServer

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
STATELESS = "2026-07-28"
HANDSHAKE = "2025-11-25"

Message = dict[str, Any]
Answer = Callable[[Message], Message]


class Transport(Protocol):
    """Sends messages. Received messages go to the wire's `heard`."""

    async def send(self, message: Message) -> None:
        """Send a message."""


class Wire:
    """A client.

    Attributes:
        notes: The server's notifications, in order.
        asked: Its requests, in order.
        offered: The server's capabilities, after a handshake.
    """

    def __init__(self, revision: str, capabilities: Mapping[str, Any], answer: Answer | None) -> None:
        self.revision = revision
        self.notes: list[Message] = []
        self.asked: list[Message] = []
        self.offered: Message = {}
        self.transport: Transport
        self._capabilities = capabilities
        self._answer = answer
        self._ids = itertools.count(1)
        self._waiting: dict[object, asyncio.Future[Message]] = {}

    async def heard(self, message: Message) -> None:
        """Process a message from the server."""
        if "method" not in message:
            assert message["id"] in self._waiting, message
            waiting = self._waiting.pop(message["id"])
            if not waiting.done():  # the caller may have given up in the meantime
                waiting.set_result(message)
        elif "id" in message:
            self.asked.append(message)
            if self._answer is not None:
                await self.transport.send({"id": message["id"], "result": self._answer(message)})
        else:
            self.notes.append(message)

    async def open(self) -> Message:
        """Initialize if the revision requires it, and return the server's capabilities."""
        if self.revision >= STATELESS:
            found: Message = (await self("server/discover"))["capabilities"]
            return found
        hello: Message = {**HELLO, "capabilities": self._capabilities, "protocolVersion": self.revision}
        said = await self("initialize", **hello)
        await self.transport.send({"method": "notifications/initialized"})
        self.offered = said["capabilities"]
        return self.offered

    def start(self, method: str, **params: Any) -> asyncio.Task[Message]:
        """Send a request without waiting for its response."""
        return asyncio.ensure_future(self(method, **params))

    async def __call__(self, method: str, *, seconds: float = 60, **params: Any) -> Message:
        """Return the result of a request, or `{"error": …}`."""
        if self.revision >= STATELESS:
            envelope = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": self._capabilities}
            params = {**params, "_meta": {**envelope, **params.get("_meta", {})}}
        number = next(self._ids)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(seconds):
            await self.transport.send({"id": number, "method": method, "params": params})
            message = await future
        found: Message = {"error": message["error"]} if "error" in message else message["result"]
        return found

    async def until(self, task: str, *statuses: str, seconds: float = 60) -> Message:
        """Return the task when it has one of these statuses."""
        async with asyncio.timeout(seconds):
            while (said := await self("tasks/get", taskId=task)).get("status") not in statuses:
                assert "error" not in said, said
                await asyncio.sleep(0.01)
        return said

    async def questioned(self, seconds: float = 60) -> None:
        """Wait until the server has sent a request."""
        async with asyncio.timeout(seconds):
            while not self.asked:  # noqa: ASYNC110 - the requests are a list
                await asyncio.sleep(0.01)

    async def noted(self, method: str, count: int = 1, seconds: float = 60) -> list[Message]:
        """Return the parameters of notifications when this many have arrived."""
        async with asyncio.timeout(seconds):
            while True:
                found = [note["params"] for note in self.notes if note["method"] == method]
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.01)


class _Memory:
    """The connection to a server in this process."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send

    async def send(self, message: Message) -> None:
        await self._send(json.dumps({"jsonrpc": "2.0", **message}).encode())


@asynccontextmanager
async def in_memory(
    server: InProcessServer, revision: str, capabilities: Mapping[str, Any], answer: Answer | None = None
) -> AsyncIterator[Wire]:
    """Open a client for a server in this process."""
    wire = Wire(revision, capabilities, answer)

    async def deliver(message: bytes) -> None:
        await wire.heard(json.loads(message))

    async with server.open_connection(deliver) as send:
        wire.transport = _Memory(send)
        if revision < STATELESS:
            await wire.open()
        yield wire


class _Pipe:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def send(self, message: Message) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        await self._process.stdin.drain()


@asynccontextmanager
async def over_stdio(
    package: str,
    folder: Path,
    revision: str,
    capabilities: Mapping[str, Any],
    answer: Answer | None = None,
    *,
    python: Sequence[str] = (),
) -> AsyncIterator[Wire]:
    """Open a client for a server process. `python` replaces the forking interpreter."""
    wire = Wire(revision, capabilities, answer)
    process = await asyncio.create_subprocess_exec(
        *(python or forked.interpreter()),
        "-m",
        package,
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    wire.transport = _Pipe(process)
    assert process.stdout is not None
    output = process.stdout

    async def listen() -> None:
        while line := await output.readline():
            await wire.heard(json.loads(line))

    listening = asyncio.ensure_future(listen())
    try:
        if revision < STATELESS:
            await wire.open()
        yield wire
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 60)
        await listening


class _Http:
    """Streamable HTTP: each message is a POST, and the response can be an event stream."""

    def __init__(self, client: httpx2.AsyncClient, url: str, wire: Wire) -> None:
        self._client, self._url, self._wire = client, url, wire
        self._headers = {"accept": "application/json, text/event-stream"}
        self._sending: set[asyncio.Task[None]] = set()

    async def send(self, message: Message) -> None:
        headers = dict(self._headers)
        params = message.get("params") or {}
        if self._wire.revision >= STATELESS:
            headers |= {"mcp-protocol-version": self._wire.revision, "mcp-method": message["method"]}
            if (name := params.get("name", params.get("taskId", params.get("uri")))) is not None:
                headers["mcp-name"] = name
        elif message.get("method") != "initialize":
            headers["mcp-protocol-version"] = self._wire.revision
        task = asyncio.ensure_future(self._post({"jsonrpc": "2.0", **message}, headers))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        if "id" not in message or "result" in message:
            await task

    async def _post(self, message: Message, headers: Mapping[str, str]) -> None:
        async with self._client.stream("POST", self._url, json=message, headers=dict(headers)) as response:
            if "mcp-session-id" in response.headers:
                self._headers["mcp-session-id"] = response.headers["mcp-session-id"]
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                async for line in response.aiter_lines():
                    if line.startswith("data:") and line[5:].strip():
                        await self._wire.heard(json.loads(line[5:]))
                return
            body = await response.aread()
            if body.strip():
                await self._wire.heard(json.loads(body))

    async def close(self) -> None:
        for task in [*self._sending]:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@asynccontextmanager
async def over_http(
    url: str,
    revision: str,
    capabilities: Mapping[str, Any],
    answer: Answer | None = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Wire]:
    """Open a client for a server over HTTP."""
    wire = Wire(revision, capabilities, answer)
    async with httpx2.AsyncClient(timeout=60, headers=dict(headers or {})) as client:
        transport = wire.transport = _Http(client, url, wire)
        try:
            if revision < STATELESS:
                await wire.open()
            yield wire
        finally:
            await transport.close()
