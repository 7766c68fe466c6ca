"""A server process, for tests from the client's perspective."""

from __future__ import annotations

import json
import re
import select
import subprocess
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import forked
from processes import start_process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Process:
    """The `process_mcp` package's server in a separate process."""

    def __init__(self, project: Path, *arguments: str, python: Sequence[str] = ()) -> None:
        """Start it. `python` replaces the forking interpreter."""
        command = [*(python or forked.interpreter()), "-m", "process_mcp", *arguments]
        pipe = subprocess.PIPE
        # Unbuffered, because `select` ignores lines that are already in a buffer.
        self._ending = ExitStack()
        options: dict[str, Any] = {"cwd": project, "stdin": pipe, "stdout": pipe, "stderr": pipe, "bufsize": 0}
        started = start_process(
            command, **options, start_new_session=bool(python)
        )  # `python` may start the server as a child process
        self.popen: subprocess.Popen[bytes] = self._ending.enter_context(started)
        self.number = 0
        self._received = b""

    def send(self, method: str, params: dict[str, Any]) -> None:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, line: bytes) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(line)
        self.popen.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.popen.stdout is not None
        while b"\n" not in self._received:
            ready, _, _ = select.select([self.popen.stdout], [], [], 60)
            # Read all available bytes: `readline` of an unbuffered pipe reads single bytes.
            part = self.popen.stdout.read(1 << 20) if ready else b""
            assert part, "no answer"
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def call(self, name: str, **arguments: Any) -> None:
        self.send("tools/call", {"name": name, "arguments": arguments})

    def await_log(self, text: str) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            if text in line.decode():
                return
        pytest.fail(f"{text} was not logged")

    def end(self) -> tuple[int, str, bytes]:
        """Wait for its exit. Return the exit status, the log, and the other output."""
        assert self.popen.stdout is not None
        assert self.popen.stderr is not None
        status = self.popen.wait(60)
        return status, self.popen.stderr.read().decode(), self._received + self.popen.stdout.read()

    def url(self) -> str:
        """Wait until it serves, and return its URL."""
        assert self.popen.stderr is not None
        log = ""
        while "startup complete" not in log:
            line = self.popen.stderr.readline().decode()
            assert line, log
            log += line
        found: str = re.findall(r"serving (http://127\.0\.0\.1:\d+/\S+)", log)[0]
        return found

    def drain(self) -> None:
        """Discard its future log output, however large."""
        assert self.popen.stderr is not None
        threading.Thread(target=self.popen.stderr.read, daemon=True).start()

    def close(self) -> None:
        """Close its input."""
        assert self.popen.stdin is not None
        self.popen.stdin.close()

    def kill(self) -> None:
        """Kill it."""
        self._ending.close()
