"""Abandoned HTTP sessions and aborted uploads: bounded, and logged in one line."""

from __future__ import annotations

import importlib
import json
import re
import socket
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

import amounts
import prompt_ends
from server_fixture import HELLO, import_package, write_package
from server_process import Process
from serving import asgi

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

ends_are_prompt = prompt_ends.ends_are_prompt

LARGE = 3_900_000  # bytes; the SDK takes bodies of up to 4 MiB
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
HANDLERS = """
from process_mcp.handlers import WeatherHandlers

class Weather(WeatherHandlers):
    def get_weather(self, args, ctx): ...
    def cities(self, args, ctx): ...
    async def say(self, args, ctx):
        return "x" * (args.model_extra or {}).get("size", 1)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("sessions")
    write_package(folder, "sessions_mcp")
    module: ModuleType = import_package(folder, "sessions_mcp")
    return module


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write_package(folder, "process_mcp", handlers="weather:Weather")
    (folder / "weather.py").write_text(HANDLERS)
    return folder


@pytest.fixture
def process(project: Path) -> Iterator[Process]:
    # The test measures this interpreter's memory. It releases free blocks of megabytes immediately; otherwise, the
    # number of blocks that glibc retains depends on their addresses.
    python = ["env", "MALLOC_MMAP_THRESHOLD_=1000000", sys.executable]
    made = Process(project, "--http", "127.0.0.1:0", "--log-level", "info", python=python)
    yield made
    made.kill()


def message(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def opened(web: httpx2.Client, url: str, **said: Any) -> httpx2.Response:
    hello = {**HELLO, "protocolVersion": "2025-11-25", **said}
    return web.post(url, json=message("initialize", hello), headers=HEADERS)


def resident(process: Process) -> float:
    """MiB."""
    status = Path(f"/proc/{process.popen.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def large(kind: str) -> dict[str, Any]:
    """A message that is large, or whose answer is."""
    match kind:
        case "arguments":
            return message("tools/call", {"name": "say", "arguments": {"a": "x" * LARGE}})
        case "result":
            return message("tools/call", {"name": "say", "arguments": {"size": LARGE}})
        case "unknown method":
            return message("no/such", {"a": "x" * LARGE})
        case "subscription":
            return message("resources/subscribe", {"uri": "a://" + "x" * LARGE})
        case _:
            return {"jsonrpc": "2.0", "id": 1, "result": {"a": "x" * LARGE}}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize(
    "kind",
    [
        "arguments",
        amounts.mark_long("result"),
        amounts.mark_long("unknown method"),
        amounts.mark_long("subscription"),
        amounts.mark_long("answer"),
        amounts.mark_long("handshake"),
    ],
)
def test_sessions_that_are_left_behind_keep_little(process: Process, kind: str) -> None:
    url = process.url()
    with httpx2.Client(timeout=60) as web:
        first = opened(web, url).headers["mcp-session-id"]
        web.post(url, json=large("unknown method"), headers={**HEADERS, "mcp-session-id": first})  # loads the SDK
        before = resident(process)
        for _ in range(10):
            if kind == "handshake":
                opened(web, url, capabilities={"experimental": {"a": {"b": "x" * LARGE}}})
                continue
            session = {"mcp-session-id": opened(web, url).headers["mcp-session-id"]}
            web.post(url, content=json.dumps(large(kind)), headers={**HEADERS, **session})
        # Their 37 MiB are all released.
        deadline = time.monotonic() + 60
        while (grown := resident(process) - before) >= 20:
            assert time.monotonic() < deadline, grown
            opened(web, url)
            time.sleep(0.1)


def test_a_session_ends_when_nobody_uses_it_and_there_are_so_many(package: ModuleType) -> None:
    def none(args: object, ctx: object) -> None: ...

    server = package.build_server(SimpleNamespace(get_weather=none, say=none, cities=none))
    runtime = importlib.import_module("stubwright_runtime.server.transports.http.asgi")
    app = runtime.asgi_app(server.core, session_idle_timeout=2, max_sessions=2)
    with asgi(app) as root, httpx2.Client(timeout=60) as web:
        url = f"{root}/mcp"
        sessions = [opened(web, url).headers["mcp-session-id"] for _ in range(2)]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        for session in sessions:
            assert web.post(url, json=ping, headers={**HEADERS, "mcp-session-id": session}).status_code == 200
        full = opened(web, url)
        assert (full.status_code, full.headers["retry-after"]) == (503, "5")
        deadline = time.monotonic() + 60
        while opened(web, url).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        for session in sessions:
            assert web.post(url, json=ping, headers={**HEADERS, "mcp-session-id": session}).status_code == 404


@pytest.mark.parametrize(
    ("length", "revision"),
    [
        ("Content-Length: 1000", "2025-06-18"),
        ("Transfer-Encoding: chunked", "2026-07-28"),
        amounts.mark_long(("Content-Length: 1000", "2026-07-28")),
        amounts.mark_long(("Transfer-Encoding: chunked", "2025-06-18")),
    ],
)
def test_an_upload_that_breaks_off_is_a_line_in_the_log(project: Path, revision: str, length: str) -> None:
    process = Process(project, "--http", "127.0.0.1:0", "--log-level", "info")
    url = process.url()
    host, port = re.findall(r"//(.*):(\d+)/", url)[0]
    lines = [f"Host: {host}", length, f"MCP-Protocol-Version: {revision}"]
    lines += [f"{name}: {value}" for name, value in HEADERS.items()]
    head = "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""])
    for _ in range(3):
        with socket.create_connection((host, int(port)), timeout=60) as broken:
            broken.sendall(head.encode() + (b"5\r\n" if "chunked" in length else b"") + b'{"a":')
            time.sleep(0.1)  # it is read by then
    with httpx2.Client(timeout=60) as web:
        assert opened(web, url).status_code == 200
    process.popen.terminate()
    assert process.popen.stderr is not None
    log = process.popen.stderr.read().decode()
    assert log.count("clients disconnected while sending a body: 1; the last after 5 bytes") == 1
    assert "Traceback" not in log
    assert "ERROR" not in log
    process.kill()
