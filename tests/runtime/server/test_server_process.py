"""`python -m` of a package as a real process: clean shutdown, an uncorrupted wire, one-line errors."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

import amounts
import forked
import stubwright
from server_fixture import ENVELOPE, HELLO, write_package
from server_process import Process
from stubwright_runtime.server.main import listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HANDLERS = """
import asyncio, os, sys, time
import anyio
from process_mcp.handlers import WeatherHandlers

print("importing", flush=True)

def tell(text):
    print(text, file=sys.stderr, flush=True)

class Weather(WeatherHandlers):
    async def __aenter__(self):
        tell("ENTERED")
        return self

    async def __aexit__(self, *_):
        await anyio.sleep(0.01)
        tell("LEFT")

    async def get_weather(self, args, ctx):
        try:
            tell("STARTED")
            if args.location == "thread":
                await asyncio.to_thread(time.sleep, 60)
            while args.location == "stubborn":
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    pass
            await anyio.sleep(60)
        finally:
            tell("CANCELLED")

    def say(self, args, ctx):
        extra = args.model_extra
        print("printed")
        os.system("echo from a child")
        if "sleep" in extra:
            tell("STARTED")
            time.sleep(60)
        return sys.stdin.read() + extra.get("text", "x" * extra.get("size", 1))

    def cities(self, args, ctx):
        return []

class Half(WeatherHandlers):
    def say(self, args, ctx): ...

class Broken(Weather):
    async def __aenter__(self):
        raise RuntimeError("database is down")

class Grouped(Weather):
    async def __aenter__(self):
        async with asyncio.TaskGroup():
            raise RuntimeError("database is down")

class Leaving(Weather):
    async def __aenter__(self):
        sys.exit(3)

class Lost(Weather):
    async def __aexit__(self, *_):
        raise RuntimeError("database is gone")

class Stuck(Weather):
    async def __aexit__(self, *_):
        print("ENDING", file=sys.stderr, flush=True)
        await anyio.sleep_forever()

class Greedy:
    def __init__(self, database): ...

def make():
    raise ValueError("no database")

nothing = None
"""

MAKE = 1 + HANDLERS.splitlines().index('    raise ValueError("no database")')


WINDOWS = """
import asyncio
from weather import Weather

def refuse(*_):
    raise NotImplementedError

asyncio.SelectorEventLoop.add_signal_handler = asyncio.SelectorEventLoop.remove_signal_handler = refuse
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write_package(folder, "process_mcp")
    (folder / "weather.py").write_text(HANDLERS)
    (folder / "silent.py").write_text(HANDLERS.replace('print("importing", flush=True)', ""))
    (folder / "windows.py").write_text(WINDOWS)
    (folder / "broken.py").write_text("import json\nimport nowhere\n")
    (folder / "wrong.py").write_text("def (:\n")
    return folder


@pytest.fixture
def server(project: Path) -> Iterator[Process]:
    process = Process(project, "--handlers", "weather:Weather")
    process.send("initialize", {**HELLO, "protocolVersion": "2025-11-25"})
    assert process.receive()["result"]["serverInfo"]["name"] == "weather"
    yield process
    process.kill()


def test_nothing_but_messages_goes_out(server: Process) -> None:
    server.call("say", text="answer")
    assert server.receive()["result"]["content"] == [{"type": "text", "text": "answer"}]
    server.close()
    status, log, rest = server.end()
    assert (status, rest) == (0, b"")
    lines = log.splitlines()
    # The server copies its prints in the background, and a child of the handler prints without it.
    assert (lines[:2], sorted(lines[2:-1]), lines[-1]) == (
        ["importing", "ENTERED"],
        ["from a child", "printed"],
        "LEFT",
    )


@pytest.fixture
def checkmarks(project: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Handlers that print what standard output, as Windows has it, cannot encode."""
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    printing = HANDLERS.replace('print("importing"', 'print("importing \u2713"').replace(
        '"printed"', '"printed \u2713"'
    )
    (project / "checkmarks.py").write_text(printing, "utf-8")
    return "checkmarks:Weather"


def test_what_cannot_be_encoded_is_printed_as_an_escape(project: Path, checkmarks: str) -> None:
    process = Process(project, "--handlers", checkmarks, python=[sys.executable])
    process.send("initialize", {**HELLO, "protocolVersion": "2025-11-25"})
    assert process.receive()["result"]["serverInfo"]["name"] == "weather"
    process.call("say", text="answer")
    assert process.receive()["result"]["content"] == [{"type": "text", "text": "answer"}]
    process.close()
    status, log, rest = process.end()
    assert (status, rest) == (0, b"")
    assert [line for line in log.splitlines() if "\\" in line] == ["importing \\u2713", "printed \\u2713"]


@pytest.mark.long  # the same over stdio is above
def test_what_cannot_be_encoded_is_printed_as_an_escape_over_http_too(project: Path, checkmarks: str) -> None:
    process = Process(project, "--handlers", checkmarks, "--http", "127.0.0.1:0", python=[sys.executable])
    process.close()  # which the handler reads to its end
    with httpx2.Client(timeout=60) as http:
        send = spoken(http, process.url(), "2026-07-28")
        answer = send(7, "tools/call", {"name": "say", "arguments": {"text": "answer"}})
    process.popen.send_signal(signal.SIGTERM)
    status, _, rest = process.end()
    assert "answer" in str(answer), answer
    assert status == 0
    assert rest.splitlines()[:2] == [b"importing \\u2713", b"printed \\u2713"]


def test_big_messages_and_half_characters(server: Process) -> None:
    server.call("say", size=3_000_000, padding="y" * 1_000_000)
    assert len(server.receive()["result"]["content"][0]["text"]) == 3_000_000
    for text, expected in (
        (rb'"a\ud800b"', "a\ufffdb"),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\\ud800"', r"\ud800"),
        (b'"\xff"', "\ufffd"),
    ):
        params = b'{"name":"say","arguments":{"text":' + text + b"}}"
        server.write(b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":' + params + b"}\n")
        assert server.receive()["result"]["content"][0]["text"] == expected


def test_a_batch_is_answered_by_an_array(project: Path) -> None:
    """MCP 2025-03-26, basic, "Batching"; JSON-RPC 2.0, 6."""
    process = Process(project, "--handlers", "weather:Weather")
    process.send("initialize", {**HELLO, "protocolVersion": "2025-03-26"})
    process.receive()
    call = {"name": "say", "arguments": {"text": "hi"}}
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "two", "method": "ping"},
        5,
    ]
    process.write(json.dumps(batch).encode() + b"\n")
    answers: Any = process.receive()
    assert {str(answer["id"]): next(iter({*answer} - {"id", "jsonrpc"})) for answer in answers} == {
        "1": "result",
        "two": "result",
        "None": "error",
    }
    process.write(b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]\n[]\n[7]\n')
    assert process.receive()["error"]["code"] == -32600  # the first is not reported; the second is one error
    refused: Any = process.receive()
    assert [answer["error"]["code"] for answer in refused] == [-32600]
    process.close()
    assert process.end()[0] == 0


def test_a_batch_has_at_most_a_thousand_messages(project: Path) -> None:
    process = Process(project, "--handlers", "weather:Weather")
    process.send("initialize", {**HELLO, "protocolVersion": "2025-03-26"})
    process.receive()
    pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(1001)]
    process.write(json.dumps(pings[:1000]).encode() + b"\n")
    answers: Any = process.receive()
    assert sorted(answer["id"] for answer in answers) == [*range(1000)]
    assert all(answer["result"] == {} for answer in answers)
    process.write(json.dumps(pings).encode() + b"\n")
    refused = process.receive()["error"]
    text = "The message is a batch of 1001 messages; a batch may have 1 to 1000"
    assert refused == {"code": -32600, "message": text}
    process.close()
    assert process.end()[0] == 0


def test_batches_are_answered(server: Process) -> None:
    big = 2**53 + 1
    pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (big, "two")]
    server.write(b" " + json.dumps([*pings, 5]).encode() + b"\n")
    assert sorted(str(server.receive().get("id")) for _ in range(3)) == [str(big), "None", "two"]


STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_stops_cleanly(server: Process, number: signal.Signals) -> None:
    server.call("get-weather", location="Paris")
    server.await_log("STARTED")
    server.popen.send_signal(number)
    status, log, rest = server.end()
    assert status == 0
    assert re.findall("CANCELLED|LEFT|Traceback", log) == ["CANCELLED", "LEFT"]
    assert cut_off(json.loads(rest)) == server.number


@pytest.mark.parametrize("number", amounts.sample(STOPS, 1))
def test_a_signal_stops_cleanly_where_loops_take_no_handlers(number: signal.Signals, project: Path) -> None:
    """As on Windows."""
    process = Process(project, "--handlers", "windows:Weather")
    process.send("initialize", {**HELLO, "protocolVersion": "2025-11-25"})
    process.receive()
    process.call("get-weather", location="Paris")
    process.await_log("STARTED")
    process.popen.send_signal(number)
    status, log, rest = process.end()
    assert (status, f"stopping: {number.name}" in log) == (0, True)
    assert re.findall("CANCELLED|LEFT|Traceback", log) == ["CANCELLED", "LEFT"]
    assert cut_off(json.loads(rest)) == process.number
    process.kill()


@pytest.mark.parametrize("number", amounts.sample(STOPS, 1))
def test_a_signal_completes_what_listens(number: signal.Signals, project: Path) -> None:
    process = Process(project, "--handlers", "weather:Weather")
    listening = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
    process.send("subscriptions/listen", listening)
    assert process.receive()["method"] == "notifications/subscriptions/acknowledged"
    process.popen.send_signal(number)
    status, log, rest = process.end()
    assert (status, "Traceback" in log) == (0, False)
    [answer] = map(json.loads, rest.splitlines())
    assert answer["id"] == process.number
    assert answer["result"]["resultType"] == "complete"
    process.kill()


def test_a_call_that_outlasts_the_input_is_answered_with_an_error(server: Process) -> None:
    server.call("get-weather", location="Paris")
    server.await_log("STARTED")
    server.close()
    status, log, rest = server.end()
    assert (status, "Traceback" in log) == (0, False)
    assert cut_off(json.loads(rest)) == server.number


@pytest.mark.parametrize(
    ("number", "revision"),
    amounts.sample([*((each, "2025-11-25") for each in STOPS), (signal.SIGTERM, "2026-07-28")], 2),
)
def test_calls_that_outlast_the_grace_are_answered_with_errors(
    number: signal.Signals, revision: str, project: Path
) -> None:
    process = Process(project, "--handlers", "weather:Weather", "--http", "127.0.0.1:0", "--grace", "0")
    url = process.url()
    with httpx2.Client(timeout=60) as http, ThreadPoolExecutor() as pool:
        send = spoken(http, url, revision)
        calls = [
            pool.submit(send, 7, "tools/call", {"name": "get-weather", "arguments": {"location": "Paris"}}),
            pool.submit(send, 8, "tools/call", {"name": "say", "arguments": {"sleep": True}}),
        ]
        process.await_log("STARTED")
        process.await_log("STARTED")
        process.popen.send_signal(number)
        assert [cut_off(call.result()) for call in calls] == [7, 8]
    status, log, _ = process.end()
    assert "Traceback" not in log, log
    assert (status, "LEFT" in log) == (0, True)
    process.kill()


def cut_off(message: dict[str, Any]) -> int:
    """The id of a request that was answered with an error since the server stopped."""
    assert message["error"]["code"] == -32603
    assert message["error"]["message"].startswith("The server stopped before it could respond.")
    number: int = message["id"]
    return number


def spoken(http: httpx2.Client, url: str, revision: str) -> Callable[[int, str, dict[str, Any]], dict[str, Any]]:
    """What sends a request of a revision and gives its answer."""
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": revision}
    meta: dict[str, Any] = {}

    def send(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        named = {"mcp-method": method, "mcp-name": params.get("name", "")} if meta else {}
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, **meta}}
        response = http.post(url, json=body, headers={**headers, **named})
        if "mcp-session-id" in response.headers:
            headers["mcp-session-id"] = response.headers["mcp-session-id"]
        lines = [
            line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith(("data: {", "{"))
        ]
        answer: dict[str, Any] = json.loads(lines[-1])
        return answer

    if revision < "2026-07-28":
        send(1, "initialize", {**HELLO, "protocolVersion": revision})
        http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    else:
        about = {"protocolVersion": revision, "clientInfo": HELLO["clientInfo"], "clientCapabilities": {}}
        meta["_meta"] = {f"io.modelcontextprotocol/{key}": value for key, value in about.items()}
    return send


def test_a_blocked_thread_does_not_hold_up_the_stop(server: Process) -> None:
    server.call("say", sleep=True)
    server.await_log("STARTED")
    started = time.perf_counter()
    server.popen.send_signal(signal.SIGTERM)
    status, log, _ = server.end()
    assert status == 0
    assert "LEFT" in log
    assert "a handler is still running in a thread; exiting without waiting for it" in log
    assert time.perf_counter() - started < 30


@pytest.mark.parametrize("kind", ["stubborn", "thread"])
def test_a_handler_that_ignores_its_cancellation_is_left_if_the_exit_fails(kind: str, project: Path) -> None:
    process = Process(project, "--handlers", "weather:Lost")
    process.send("tools/call", {"name": "get-weather", "arguments": {"location": kind}, "_meta": ENVELOPE})
    process.await_log("STARTED")
    process.popen.send_signal(signal.SIGTERM)
    status, log, _ = process.end()
    assert status == 1
    assert "the handlers failed to exit: RuntimeError: database is gone" in log
    assert log.splitlines()[-1].endswith("exiting without waiting for it")


@pytest.mark.parametrize(
    ("kind", "way"), [("stubborn", "signal"), ("stubborn", "end of input"), ("stubborn", "http"), ("thread", "signal")]
)
def test_a_handler_that_ignores_its_cancellation_does_not_hold_up_the_stop(kind: str, way: str, project: Path) -> None:
    """The client nevertheless receives an error."""
    arguments = ["--http", "127.0.0.1:0", "--grace", "0"] if way == "http" else []
    process = Process(project, "--handlers", "weather:Weather", *arguments)
    call = ("tools/call", {"name": "get-weather", "arguments": {"location": kind}})
    with ThreadPoolExecutor() as pool, httpx2.Client(timeout=30) as http:
        if way == "http":
            asking = pool.submit(spoken(http, process.url(), "2026-07-28"), 1, *call)
        else:
            process.send(call[0], {**call[1], "_meta": ENVELOPE})
        process.await_log("STARTED")
        process.close() if way == "end of input" else process.popen.send_signal(signal.SIGTERM)
        assert cut_off(asking.result() if way == "http" else process.receive()) == (None if way == "http" else 1)
    status, log, _ = process.end()
    assert status == 0
    where = " in a thread" if kind == "thread" else ""
    assert f"a handler is still running{where}; exiting without waiting for it" in log
    assert "LEFT" in log
    assert "Traceback" not in log


def test_a_client_that_is_gone_ends_the_server_quietly(server: Process) -> None:
    assert server.popen.stdout is not None
    server.popen.stdout.close()
    server.call("say", size=1_000_000)
    assert server.popen.wait(60) == 0
    assert server.popen.stderr is not None
    log = server.popen.stderr.read().decode()
    assert "LEFT" in log
    assert "Traceback" not in log


def test_a_client_that_does_not_read_is_served_no_further(server: Process) -> None:
    """More messages than the budget wait for it: no handler begins until it reads, without loss or corruption."""
    assert server.popen.stderr is not None
    for _ in range(20):
        server.call("say", size=1_000_000)
    for _ in range(20):
        server.await_log("from a child")
    while select.select([server.popen.stderr], [], [], 1)[0]:  # until the last of them has printed all and returned
        os.read(server.popen.stderr.fileno(), 1 << 16)
    for _ in range(10):
        server.call("say", size=1_000_000)
    ready, _, _ = select.select([server.popen.stderr], [], [], 1)
    assert not ready
    answers = [server.receive() for _ in range(30)]
    assert sorted(answer["id"] for answer in answers) == list(range(2, 32))
    assert {len(answer["result"]["content"][0]["text"]) for answer in answers} == {1_000_000}


def test_an_answer_that_is_cancelled_halfway_is_written_to_its_end(server: Process) -> None:
    server.call("say", size=1_000_000)
    server.await_log("from a child")
    assert server.popen.stdout is not None
    assert select.select([server.popen.stdout], [], [], 60)[0]  # its start is in the pipe
    server.write(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}\n')
    server.send("ping", {})
    assert [server.receive()["id"] for _ in range(2)] == [2, 3]


def test_input_that_ends_is_noticed_while_nothing_is_read(server: Process) -> None:
    for _ in range(30):
        server.call("say", size=1_000_000)
    server.close()
    assert server.popen.wait(60) == 0


def test_input_from_a_file(project: Path, tmp_path: Path) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**HELLO, "protocolVersion": "2025-11-25"}}
    given, got = tmp_path / "in", tmp_path / "out"
    given.write_text(json.dumps(hello))
    command = [sys.executable, "-m", "process_mcp", "--handlers", "weather:Weather"]
    with given.open() as source, got.open("w") as sink:
        done = subprocess.run(command, cwd=project, stdin=source, stdout=sink, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 0
    assert json.loads(got.read_text())["result"]["protocolVersion"] == "2025-11-25"


def test_a_host_that_no_name_can_be(project: Path) -> None:
    told, status = refused(project, ["--handlers", "silent:Weather", "--http", "..:8000"])
    assert (told.startswith("process_mcp: cannot listen on ..:8000: "), status) == (True, "status 1")


def test_a_number_that_is_no_open_listener(project: Path) -> None:
    for number, why in ((0, "is not "), (99, "is not an open socket: Bad file descriptor")):
        told, status = refused(project, ["--handlers", "silent:Weather", "--http", f"fd:{number}"])
        assert (told.startswith(f"process_mcp: --http fd:{number} {why}"), status) == (True, "status 1"), told


def test_http(project: Path) -> None:
    process = Process(
        project,
        "--handlers",
        "weather:Weather",
        "--http",
        "127.0.0.1:0",
        "--path",
        "/tools",
        "--allow-host",
        "api.example.com",
    )
    url = process.url()
    params = {"protocolVersion": "2025-11-25", **HELLO}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    headers = {"accept": "application/json, text/event-stream"}
    for host, status in ((None, 200), ("api.example.com", 200), ("evil.example", 421)):
        given = {**headers, "host": host} if host else headers
        assert httpx2.post(url, json=request, headers=given).status_code == status
    address = url.removeprefix("http://").removesuffix("/tools")
    assert refused(project, ["--handlers", "silent:Weather", "--http", address]) == [
        f"process_mcp: cannot listen on {address}: Address already in use; use port 0 for any free port",
        "status 1",
    ]
    process.popen.send_signal(signal.SIGINT)
    status, log, _ = process.end()
    assert status == 0
    assert "LEFT" in log
    assert "Traceback" not in log
    process.kill()


@pytest.mark.parametrize(
    ("level", "logged"), [("debug", "True False"), ("info", "True False"), ("warning", "False False")]
)
def test_requests_are_logged_as_far_as_the_level_allows(level: str, logged: str, tmp_path: Path) -> None:
    program = f"""
import logging
from stubwright_runtime.observability.logs import set_up
set_up({level!r})
print(*(logging.getLogger(name).isEnabledFor(logging.INFO) for name in ("uvicorn.access", "mcp")))
"""
    done = forked.python(["-c", program], tmp_path, path=[Path(stubwright.__file__).parents[1]])
    assert (done.stdout, done.stderr) == (f"{logged}\n", "")


def test_small_answers_are_sent_at_once() -> None:
    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            found.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = listen("127.0.0.1", 0)
        async with await asyncio.start_server(connected, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            try:
                return await asyncio.wait_for(found, 60)
            finally:
                writer.close()

    assert asyncio.run(accepted()) != 0


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_star_is_all_addresses_of_both_families(address: str) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this system has no IPv6")
    with listen("*", 0) as listener, socket.create_connection((address, listener.getsockname()[1]), timeout=60):
        assert listener.family == socket.AF_INET6


# Mistakes. One process reports all of them.

PROGRAM = """
import json, sys
from stubwright_runtime.server.main import main
from process_mcp.registry import PACKAGE

for arguments in json.loads(sys.argv[1]):
    try:
        main(PACKAGE, arguments)
    except SystemExit as end:
        print("status", end.code, file=sys.stderr)
"""


def refused(project: Path, *command_lines: list[str]) -> list[str]:
    """What each command line makes the package say, and the status it would end with."""
    done = forked.python(["-c", PROGRAM, json.dumps(command_lines)], project)
    assert done.stdout in ("", "importing\n")
    return done.stderr.removeprefix("importing\n").splitlines()


def test_mistakes_are_told_in_a_line(project: Path) -> None:
    cases = {
        (): "no handlers specified; set them, for example with --handlers weather:Weather",
        ("--handlers", "weather"): "--handlers must be MODULE:NAME, such as weather:Weather, not 'weather'",
        ("--handlers", "no.where:X"): f"no module 'no' in {project} and in sys.path",
        ("--handlers", "broken:X"): (
            f"broken cannot be imported: ModuleNotFoundError: No module named 'nowhere' ({project}/broken.py:2)"
        ),
        ("--handlers", "wrong:X"): f"wrong cannot be imported: SyntaxError: invalid syntax ({project}/wrong.py:1)",
        ("--handlers", "silent:Wether"): "module 'silent' has no attribute 'Wether'; did you mean 'Weather'?",
        ("--handlers", "silent:nothing"): "silent:nothing is None",
        ("--handlers", "silent:make"): (
            f"cannot call silent:make: ValueError: no database ({project}/silent.py:{MAKE})"
        ),
        ("--handlers", "silent:Greedy"): (
            "cannot call silent:Greedy: TypeError: Greedy.__init__() missing 1 required positional argument: 'database'"
        ),
        ("--handlers", "silent:Weather", "--http", ":0", "--path", "x"): "--path must start with /, not 'x'",
        ("--handlers", "silent:Weather", "--http", ":0", "--allow-host", "https://api.example.com"): (
            "--allow-host must be a host without scheme or path, such as api.example.com, not 'https://api.example.com'"
        ),
        ("--handlers", "silent:Weather", "--http", ":0", "--allow-origin", "https://a.example:443"): (
            "--allow-origin 'https://a.example:443' is not an origin such as "
            "https://app.example.com: in ASCII, without a path or default port"
        ),
    }
    expected = [line for text in cases.values() for line in (f"process_mcp: {text}", "status 2")]
    assert refused(project, *[list(arguments) for arguments in cases]) == expected


def test_missing_methods_come_with_stubs(project: Path) -> None:
    assert "\n".join(refused(project, ["--handlers", "silent:Half"])) == (
        "process_mcp: Half lacks 2 methods. Add them:\n\n"
        "    async def get_weather(self, args: GetWeatherInput, ctx: Context) -> GetWeatherOutput:\n"
        "        raise NotImplementedError\n\n"
        "    async def cities(self, args: CitiesInput, ctx: Context) -> CitiesOutput:\n"
        "        raise NotImplementedError\n"
        "status 2"
    )


def test_what_was_asked_before_the_input_ends_is_answered(project: Path) -> None:
    calls = [{"name": "say", "arguments": {"text": str(number)}} for number in range(8)]
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**HELLO, "protocolVersion": "2025-11-25"}}
    asked: list[dict[str, object]] = [
        hello,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
            for number, call in enumerate(calls, 10)
        ),
    ]
    done = subprocess.run(
        [*forked.interpreter(), "-m", "process_mcp", "--handlers", "weather:Weather"],
        cwd=project,
        input="".join(json.dumps(message) + "\n" for message in asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines()) if "id" in answer}
    assert done.returncode == 0
    assert [answers[number]["result"]["content"][0]["text"] for number in range(10, 18)] == [str(n) for n in range(8)]


def test_a_closed_input_is_told_in_a_line(project: Path) -> None:
    command = f"{sys.executable} -m process_mcp --handlers weather:Weather <&-"
    done = subprocess.run(["sh", "-c", command], cwd=project, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "process_mcp: standard input is closed; start the server from an MCP client\n"


@pytest.mark.parametrize("arguments", [[], ["--http", "127.0.0.1:0"]])
@pytest.mark.parametrize(
    ("handlers", "why"),
    [
        ("Broken", "RuntimeError: database is down ("),
        ("Grouped", "RuntimeError: database is down ("),
        ("Leaving", "RuntimeError: handlers called sys.exit(3) ("),
    ],
)
def test_handlers_that_do_not_start_are_told_in_a_line(
    handlers: str, why: str, arguments: list[str], project: Path
) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**HELLO, "protocolVersion": "2025-11-25"}}
    done = subprocess.run(
        [*forked.interpreter(), "-m", "process_mcp", "--handlers", f"weather:{handlers}", *arguments],
        cwd=project,
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"process_mcp: the handlers failed to start: {why}{project}/weather.py:")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [[], ["--http", "127.0.0.1:0"]])
def test_handlers_that_do_not_end_are_told_in_a_line(arguments: list[str], project: Path) -> None:
    server = Process(project, "--handlers", "weather:Lost", *arguments)
    if arguments:
        server.url()
    else:
        server.send("tools/list", {"_meta": ENVELOPE})
        server.receive()
    server.popen.send_signal(signal.SIGTERM)
    status, log, _ = server.end()
    assert status == 1
    assert log.splitlines()[-1].startswith(
        f"process_mcp: the handlers failed to exit: RuntimeError: database is gone ({project}/weather.py:"
    )
    assert "Traceback" not in log


@pytest.mark.parametrize(("arguments", "number"), amounts.sample([*product([[], ["--http", "127.0.0.1:0"]], STOPS)], 3))
def test_a_second_signal_does_not_wait_for_handlers(
    arguments: list[str], number: signal.Signals, project: Path
) -> None:
    server = Process(project, "--handlers", "weather:Stuck", *arguments)
    if arguments:
        server.url()
    else:
        server.send("tools/list", {"_meta": ENVELOPE})
        server.receive()
    server.popen.send_signal(number)
    server.await_log("ENDING")
    server.popen.send_signal(number)
    assert server.end()[0] == -number
