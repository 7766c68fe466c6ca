"""Server processes over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from over_http import wait_for_port


class Process:
    """A stdio server after its handshake and first list, with a line-by-line client.

    Attributes:
        first: Seconds from its start to that list.
        notifications: Notifications received before the responses to `ask`.
    """

    def __init__(self, command: Sequence[str], cwd: Path) -> None:
        began = time.perf_counter()
        self._process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0
        self.notifications = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list", {})
        self.first = time.perf_counter() - began

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request."""
        self._request(method, params)
        return self._answer()

    def seconds_to_message(self, method: str, params: dict[str, Any]) -> float:
        """Return the seconds until the first notification of a request, and read its response.

        Raises:
            RuntimeError: The first message is not a notification.
        """
        began = time.perf_counter()
        self._request(method, params)
        message = self._read()
        seconds = time.perf_counter() - began
        if "method" not in message:
            raise RuntimeError(f"the response came without a notification: {message}")
        self._answer()
        return seconds

    def _request(self, method: str, params: dict[str, Any]) -> None:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})

    def _answer(self) -> dict[str, Any]:
        while (answer := self._read()).get("id") != self._number:
            self.notifications += 1
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        message: dict[str, Any] = json.loads(self._process.stdout.readline())
        return message

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self._process.pid

    def memory(self) -> float:
        """Its resident memory in MB (Linux)."""
        return memory(self.pid)

    def stop(self) -> None:
        """Close its input, and wait until it exits."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


def memory(pid: int) -> float:
    """Return the resident memory of a process in MB (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


class HttpServer(NamedTuple):
    """A server over HTTP: its port, and its process."""

    port: int
    pid: int


@contextmanager
def serve(command: Sequence[str], cwd: Path) -> Iterator[int]:
    """Run a server over HTTP. Yield its port, which ends the last argument."""
    with start_server(command, cwd) as server:
        yield server.port


@contextmanager
def start_server(command: Sequence[str], cwd: Path) -> Iterator[HttpServer]:
    """Run a server over HTTP. Yield its port and process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    *rest, last = command
    process = subprocess.Popen([*rest, f"{last}{port}"], cwd=cwd)
    try:
        asyncio.run(wait_for_port(port))
        yield HttpServer(port, process.pid)
    finally:
        process.terminate()
        process.wait(15)
