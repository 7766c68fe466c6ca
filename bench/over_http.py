"""Measures calls per second over HTTP, on one connection and on many, in both protocol eras.

Sends handwritten HTTP/1.1 to a URL over persistent connections, so that the client uses little CPU time compared with
the server.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HANDSHAKE, STATELESS = "2025-06-18", "2026-07-28"
WAIT = 30.0  # seconds for any operation

_CLIENT = {"name": "bench", "version": "1"}
_FIRST = 1_000_000  # first ID of repeated calls; all IDs have the same number of digits
_SLOWEST = 0.1  # maximum seconds per call, on average
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


@dataclass(slots=True)
class Connection:
    """One connection, which is one session if the revision has sessions."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    revision: str
    headers: dict[str, str]
    number: int = 0

    @classmethod
    async def open(cls, port: int, revision: str, more: Mapping[str, str] | None = None) -> Connection:
        """Connect, and initialize if the revision requires it. Each request has `more` headers."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        common = {
            "Host": f"127.0.0.1:{port}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            **(more or {}),
        }
        made = cls(reader, writer, revision, common)
        if revision == HANDSHAKE:
            hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": _CLIENT}
            headers, _ = await made._post(made._request("initialize", hello), {})
            common["Mcp-Session-Id"] = headers["mcp-session-id"]
            await made._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})
        common["MCP-Protocol-Version"] = revision
        return made

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool, and return its result.

        Raises:
            RuntimeError: The call failed.
        """
        return _result(await self.messages(name, arguments))

    async def messages(
        self, name: str, arguments: dict[str, Any], meta: Mapping[str, Any] | None = None
    ) -> list[bytes]:
        """Call a tool with more `_meta`. Return all messages in the response, with the result last."""
        _, body = await self._post(*self._tool_call(name, arguments, meta))
        return [line.removeprefix(b"data:").strip() for line in body.splitlines() if line.startswith((b"data:", b"{"))]

    async def repeat(self, name: str, arguments: dict[str, Any], times: int) -> None:
        """Call a tool repeatedly. The connection cannot be used for other requests afterwards.

        Raises:
            RuntimeError: A call failed.
        """
        first = max(self.number + 1, _FIRST)
        self.number = first - 1
        before, key, after = self._request_bytes(*self._tool_call(name, arguments)).partition(b'"id": ')
        self.number = first + times - 1
        ids = range(first, first + times)
        caller = _Caller(self.writer.transport, before + key, after.removeprefix(b"%d" % first), ids)
        async with asyncio.timeout(WAIT + times * _SLOWEST):
            await caller.done

    async def listen(self) -> None:
        """Open the session's stream. The connection cannot be used for other requests afterwards.

        Raises:
            RuntimeError: The server does not open a stream.
        """
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        self.writer.write(f"GET /mcp HTTP/1.1\r\n{head}\r\n".encode())
        async with asyncio.timeout(WAIT):
            answer = await self.reader.readuntil(b"\r\n\r\n")
        if b"text/event-stream" not in answer:
            raise RuntimeError(f"there is no stream: {answer!r}")

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()

    def _tool_call(
        self, name: str, arguments: dict[str, Any], meta: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if meta:
            params["_meta"] = {**meta}
        if self.revision != STATELESS:
            return self._request("tools/call", params), {}
        params["_meta"] = {
            **(meta or {}),
            "io.modelcontextprotocol/protocolVersion": self.revision,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": _CLIENT,
        }
        return self._request("tools/call", params), {"Mcp-Method": "tools/call", "Mcp-Name": name}

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        return {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}

    async def _post(self, message: dict[str, Any], more: dict[str, str]) -> tuple[dict[str, str], bytes]:
        self.writer.write(self._request_bytes(message, more))
        async with asyncio.timeout(WAIT):
            return await self._response()

    def _request_bytes(self, message: dict[str, Any], more: dict[str, str]) -> bytes:
        body = json.dumps(message).encode()
        headers = {**self.headers, **more, "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body

    async def _response(self) -> tuple[dict[str, str], bytes]:
        status, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("transfer-encoding") != "chunked":
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        else:
            body = b""
            while size := int(await self.reader.readline(), 16):
                body += (await self.reader.readexactly(size + 2))[:size]
            await self.reader.readline()
        if not status.startswith("HTTP/1.1 2"):
            raise RuntimeError(f"{status}: {body[:200]!r}")
        return headers, body


class _Caller(asyncio.Protocol):
    """Sequential calls on one connection.

    The client shares this machine with the server, so it does the minimum: requests differ only in their id, and
    responses are not parsed.

    Attributes:
        done: Completes after the last response.
    """

    def __init__(self, transport: asyncio.WriteTransport, before: bytes, after: bytes, ids: Iterable[int]) -> None:
        """Send the first call. A request consists of `before`, its ID, and `after`."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport = transport
        self._before, self._after = before, after
        self._ids = iter(ids)
        self._read = b""
        transport.set_protocol(self)
        self._send()

    def data_received(self, data: bytes) -> None:
        """Send the next call after a complete response."""
        self._read += data
        head, _, body = self._read.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not (body.endswith(b"\r\n0\r\n\r\n") if length is None else len(body) == int(length[1])):
            return
        if not head.startswith(b"HTTP/1.1 200 ") or b'"result":' not in body or b'"isError":true' in body:
            self.done.set_exception(RuntimeError(f"the call failed: {self._read!r}"))
        else:
            self._read = b""
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail if calls remain."""
        if not self.done.done():
            self.done.set_exception(exc or RuntimeError("the server closed the connection"))

    def _send(self) -> None:
        number = next(self._ids, None)
        if number is None:
            self.done.set_result(None)
        else:
            self._transport.write(b"%b%d%b" % (self._before, number, self._after))


def _result(messages: Sequence[bytes]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(messages[-1])
    if "result" not in answer or answer["result"].get("isError"):
        raise RuntimeError(f"the call failed: {answer}")
    result: dict[str, Any] = answer["result"]
    return result


async def calls_a_second(
    port: int, revision: str, connections: int, calls: int, call: dict[str, Any], more: Mapping[str, str] | None = None
) -> float:
    """Return the calls per second for `calls` calls over a number of connections, each with one call at a time.

    Each request has `more` headers.
    """
    opened = [await Connection.open(port, revision, more) for _ in range(connections)]

    name, arguments = call["name"], call["arguments"]
    try:
        for connection in opened:
            await connection.call(name, arguments)
        each = max(1, calls // connections)
        began = time.perf_counter()
        await asyncio.gather(*(connection.repeat(name, arguments, each) for connection in opened))
        return each * connections / (time.perf_counter() - began)
    finally:
        for connection in opened:
            connection.close()


async def wait_for_port(port: int) -> None:
    """Wait until a process listens on the port.

    Raises:
        TimeoutError: No process listens.
    """
    async with asyncio.timeout(WAIT):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
