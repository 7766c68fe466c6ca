"""`--debug-port`: a debugger attaches to a running server without an effect on the client."""

from __future__ import annotations

import json
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import pytest
from conftest import ROOT

import forked
from processes import start_process

LISTENING: Final = (
    r"a debugger can attach to 127\.0\.0\.1:(\d+) and run any code in this process; in VS Code, attach with (\{.*\})$"
)
INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}


@contextmanager
def serving(*options: str) -> Iterator[subprocess.Popen[str]]:
    """The weather server on standard input and output."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'generated'}{os.pathsep}{ROOT / 'examples'}"}
    command = [sys.executable, "-m", "weather_mcp", *options]
    pipe = subprocess.PIPE
    with start_process(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        yield process


def refused(path: Path, *options: str) -> tuple[int, str]:
    """The exit status of a server that does not start, and its last words; `path` has modules of its own."""
    done = forked.python(["-m", "weather_mcp", *options], path, [path, ROOT / "generated", ROOT / "examples"])
    assert done.stdout == ""
    return done.returncode, done.stderr


def await_line(stream: IO[str] | None, pattern: str) -> re.Match[str]:
    """Read until a line has this."""
    assert stream is not None
    lines = []
    for line in stream:
        lines.append(line)
        if match := re.search(pattern, line):
            return match
    raise AssertionError("".join(lines))


def debug(connection: socket.socket, command: str, **arguments: Any) -> None:
    """Send a request of the Debug Adapter Protocol."""
    message = json.dumps({"seq": 1, "type": "request", "command": command, "arguments": arguments}).encode()
    connection.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(message), message))


def await_message(stream: IO[bytes], kind: str, name: str) -> dict[str, Any]:
    """Read messages until a certain one comes: `event` and its name, or `response` and the request's command."""
    while head := stream.readline():
        length = int(head.removeprefix(b"Content-Length: "))
        assert stream.readline() == b"\r\n"
        message: dict[str, Any] = json.loads(stream.read(length))
        if message["type"] == kind and message["event" if kind == "event" else "command"] == name:
            return message
    raise AssertionError(f"no {kind} {name}")


@pytest.mark.long
def test_a_debugger_attaches_and_the_client_sees_nothing_of_it() -> None:
    with serving("--debug-port", "0") as server:
        port, configuration = await_line(server.stderr, LISTENING).groups()
        connect = {"host": "127.0.0.1", "port": int(port)}
        assert json.loads(configuration) == {"type": "debugpy", "request": "attach", "connect": connect}
        with socket.create_connection(("127.0.0.1", int(port)), 30) as connection, connection.makefile("rb") as stream:
            debug(connection, "initialize", adapterID="debugpy")
            response = await_message(stream, "response", "initialize")
            assert response["success"]
            assert response["body"]["supportsEvaluateForHovers"]
        output, _ = server.communicate(f"{json.dumps(INITIALIZE)}\n", timeout=60)
        [line] = output.splitlines()
        assert json.loads(line)["result"]["serverInfo"]["name"] == "weather"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(port)), 30)


@pytest.mark.long
def test_it_waits_for_a_debugger_if_asked_to() -> None:
    with serving("--debug-port", "0", "--debug-wait") as server:
        port = await_line(server.stderr, LISTENING)[1]
        await_line(server.stderr, "waiting for a debugger to attach")
        assert server.stdin is not None
        server.stdin.write(f"{json.dumps(INITIALIZE)}\n")
        server.stdin.flush()
        with socket.create_connection(("127.0.0.1", int(port)), 30) as connection, connection.makefile("rb") as stream:
            debug(connection, "initialize", adapterID="debugpy")
            assert await_message(stream, "response", "initialize")["success"]
            assert server.stdout is not None
            assert select.select([server.stdout], [], [], 0.5)[0] == []
            debug(connection, "attach", connect={"host": "127.0.0.1", "port": int(port)})
            await_message(stream, "event", "initialized")
            debug(connection, "configurationDone")
            assert await_message(stream, "response", "configurationDone")["success"]
            assert json.loads(server.stdout.readline())["id"] == 1


@pytest.mark.parametrize(
    ("module", "options", "status", "told"),
    [
        (
            "raise ModuleNotFoundError('gone', name='debugpy')",
            ["--debug-port", "5678"],
            2,
            "weather_mcp: --debug-port requires debugpy; install it\n",
        ),
        (
            "def listen(address): raise RuntimeError('Address already in use')",
            ["--debug-port", "5678"],
            1,
            "weather_mcp: cannot listen on --debug-port 5678: Address already in use\n",
        ),
        ("", ["--debug-wait"], 2, "weather_mcp: --debug-wait requires --debug-port, such as --debug-port 5678\n"),
        (
            "",
            ["--debug-port", "70000"],
            2,
            (
                "python -m weather_mcp: error: argument --debug-port: "
                "'70000' is not a port number; expected one such as 5678\n"
            ),
        ),
    ],
)
def test_why_it_does_not_start(module: str, options: list[str], status: int, told: str, tmp_path: Path) -> None:
    (tmp_path / "debugpy.py").write_text(module)
    ended, said = refused(tmp_path, *options)
    assert (ended, said.endswith(told)) == (status, True), said
    assert "Traceback" not in said
