"""Calls over HTTP: how many a second a server answers, on one connection and on many, in both eras of the protocol.

Takes a URL; speaks HTTP/1.1 by hand over connections that stay open, so that the client costs little beside the server.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HANDSHAKE, STATELESS = "2025-06-18", "2026-07-28"
WAIT = 30.0  # seconds for anything at all

_CLIENT = {"name": "bench", "version": "1"}


@dataclass(slots=True)
class Connection:
    """One connection, which is one session where the revision has sessions."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    revision: str
    headers: dict[str, str]
    number: int = 0

    @classmethod
    async def opened(cls, port: int, revision: str, more: Mapping[str, str] | None = None) -> Connection:
        """Connect, and shake hands where the revision wants that; each request has `more` headers."""
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
        """Call a tool; gives its result.

        Raises:
            RuntimeError: The call failed.
        """
        return _result(await self.messages(name, arguments))

    async def messages(
        self, name: str, arguments: dict[str, Any], meta: Mapping[str, Any] | None = None
    ) -> list[bytes]:
        """Call a tool, with more in its `_meta`; gives all messages of the answer, the result last."""
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if meta:
            params["_meta"] = {**meta}
        routing: dict[str, str] = {}
        if self.revision == STATELESS:
            params["_meta"] = {
                **(meta or {}),
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": _CLIENT,
            }
            routing = {"Mcp-Method": "tools/call", "Mcp-Name": name}
        _, body = await self._post(self._request("tools/call", params), routing)
        return [line.removeprefix(b"data:").strip() for line in body.splitlines() if line.startswith((b"data:", b"{"))]

    async def listen(self) -> None:
        """Open the stream of the session, which the connection is for from then on.

        Raises:
            RuntimeError: There is no stream.
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

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        return {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}

    async def _post(self, message: dict[str, Any], more: dict[str, str]) -> tuple[dict[str, str], bytes]:
        body = json.dumps(message).encode()
        headers = {**self.headers, **more, "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        async with asyncio.timeout(WAIT):
            return await self._response()

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


def _result(messages: Sequence[bytes]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(messages[-1])
    if "result" not in answer or answer["result"].get("isError"):
        raise RuntimeError(f"the call failed: {answer}")
    result: dict[str, Any] = answer["result"]
    return result


async def calls_a_second(
    port: int, revision: str, connections: int, calls: int, call: dict[str, Any], more: Mapping[str, str] | None = None
) -> float:
    """How many of `calls`, on this many connections that each wait for their answer, are answered in a second.

    Each request has `more` headers.
    """
    opened = [await Connection.opened(port, revision, more) for _ in range(connections)]

    async def repeat(connection: Connection, times: int) -> None:
        for _ in range(times):
            await connection.call(call["name"], call["arguments"])

    try:
        await asyncio.gather(*(repeat(connection, 2) for connection in opened))
        each = max(1, calls // connections)
        began = time.perf_counter()
        await asyncio.gather(*(repeat(connection, each) for connection in opened))
        return each * connections / (time.perf_counter() - began)
    finally:
        for connection in opened:
            connection.close()


async def answers(port: int) -> None:
    """Wait until something listens at the port.

    Raises:
        TimeoutError: Nothing does.
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
