"""`stubwright record` and `replay`: unmodified traffic, redacted secrets, and replies of the double."""

from __future__ import annotations

import asyncio
import base64
import gzip
import html
import json
import os
import quopri
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, quote_plus

import httpx2
import mcp
import mcp_types
import pytest
import yaml
from conftest import ROOT
from mcp.client.stdio import stdio_client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import amounts
import forked
from command_line import stubwright
from packages import manifest, tool
from processes import start_process
from serving import Asked, ScriptedServer, asgi, serve
from stubwright import cli
from stubwright.recording import conversations, encodings, http, stdio
from stubwright.recording import lines as recording_lines
from stubwright.recording.copies import Copies, Copy, Lines
from stubwright.recording.recorder import Recorder
from stubwright.recording.redaction import Redactor
from stubwright.recording.replay import make_manifest

WEATHER: Final = str(ROOT / "specs" / "weather.yaml")
JWT: Final = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"

ECHO: Final = """\
import json, os, sys
TOOL = {"name": "greet", "inputSchema": {"type": "object", "properties": {"pass-word": {"type": "string"}}}}
number = 0
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    params = message.get("params") or {}
    if message["method"] == "initialize":
        info = {"name": "echo", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif message["method"] == "tools/list":
        result = {"tools": [TOOL]}
    else:
        number += 1
        said = json.dumps([number, params["arguments"], os.environ.get("API_KEY"), os.environ.get("TOKEN")])
        result = {"content": [{"type": "text", "text": said}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

ODD: Final = rb"""
import sys, time
data = sys.stdin.buffer.read()
sys.stderr.write("to the log\n")
result = b'{"n":' + b"9" * 40 + b', "m": 1.10, "s": "\\u00fc\xc3\xbc"}'
sys.stdout.buffer.write(b'{"jsonrpc": "2.0",  "id":1, "result":' + result + b"}\r\n")
sys.stdout.buffer.write(b"no JSON \xff\n\n" + data + b'{"jsonrpc": "2.0"')
sys.exit(7)
"""


def handshake(*requests: tuple[str, dict[str, Any]]) -> str:
    """The lines of a client of 2025-06-18, with requests after the handshake."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        *({"id": number, "method": method, "params": params} for number, (method, params) in enumerate(requests, 1)),
    ]
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def call(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


def run(folder: Path, *argv: str, said: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """A command with something on its standard input."""
    command = [*forked.interpreter(), "-m", "stubwright", *argv]
    environment = {**os.environ, **env}
    return subprocess.run(
        command, cwd=folder, input=said, capture_output=True, text=True, check=False, env=environment, timeout=60
    )


def answers(said: str) -> dict[int, Any]:
    """The answers among lines, by their ids."""
    messages = [json.loads(line) for line in said.splitlines()]
    return {message["id"]: message.get("result", message.get("error")) for message in messages if "id" in message}


def record(folder: Path, *requests: tuple[str, dict[str, Any]], options: Sequence[str] = (), **env: str) -> str:
    """The recording of a conversation with the server that echoes."""
    (folder / "echo.py").write_text(ECHO)
    said = handshake(*requests)
    done = run(folder, "record", "-o", "r.jsonl", *options, "--", sys.executable, "echo.py", said=said, **env)
    assert done.returncode == 0, done.stderr
    assert answers(done.stdout).keys() == set(range(len(requests) + 1))
    return (folder / "r.jsonl").read_text()


def replay(folder: Path, *requests: tuple[str, dict[str, Any]], options: Sequence[str] = ()) -> dict[int, Any]:
    """What a replay answers to requests."""
    done = run(folder, "replay", "r.jsonl", *options, said=handshake(*requests))
    assert done.returncode == 0, done.stderr
    return answers(done.stdout)


def test_bytes_and_the_exit_status_are_the_same_with_the_proxy(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_bytes(ODD)
    said = b'{"jsonrpc":"2.0", "id": 1,  "method": "x", "params": {"n": ' + b"7" * 30 + b"}}\r\n\xff half a line"
    command = [sys.executable, "odd.py"]
    plain = subprocess.run(command, cwd=tmp_path, input=said, capture_output=True, check=False)
    proxied = subprocess.run(
        [*forked.interpreter(), "-m", "stubwright", "record", "--", *command],
        cwd=tmp_path,
        input=said,
        capture_output=True,
        check=False,
    )
    assert plain.returncode == proxied.returncode == 7
    assert plain.stdout == proxied.stdout != b""
    assert plain.stderr == proxied.stderr == b"to the log\n"
    header, *lines = [json.loads(line) for line in (tmp_path / "recording.jsonl").read_text().splitlines()]
    assert header["server"] == {"command": command}
    assert [line.get("message", line.get("unreadable")) for line in lines] == [
        {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"n": int("7" * 30)}},
        13,
        {"jsonrpc": "2.0", "id": 1, "result": {"n": int("9" * 40), "m": 1.1, "s": "üü"}},
        9,
        {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"n": int("7" * 30)}},
        30,
    ]


def test_no_secret_is_written_down(tmp_path: Path) -> None:
    tool = {"name": "greet", "inputSchema": {"type": "object"}, "stubwright": {"policy": {"redact": ["/card/number"]}}}
    manifest = {"stubwright": 1, "server": {"name": "echo", "version": "1"}, "tools": [tool]}
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(manifest))
    sent = {"pass-word": "hunter22", "card": {"number": 4111222233334444}, "note": JWT, "role": {"Pass-Word": "user"}}
    options = ["--redact", "pass-word", "--manifest", "m.yaml", "--env", "API_KEY", "--env", "TOKEN=to/ken-é-9"]
    text = record(tmp_path, ("tools/list", {}), call("greet", **sent), options=options, API_KEY="key-of-the-api")
    for secret in ("hunter22", "4111222233334444", JWT, "eyJ", "key-of-the-api", "to/ken", "\\u00e9-9"):
        assert secret not in text
    *_, listed, answer = [json.loads(line)["message"] for line in text.splitlines()[1:]]
    assert listed["result"]["tools"][0]["inputSchema"]["properties"] == {"pass-word": {"type": "string"}}
    hidden = "[redacted]"
    kept = {"pass-word": hidden, "card": {"number": hidden}, "note": hidden, "role": {"Pass-Word": hidden}}
    assert json.loads(answer["result"]["content"][0]["text"]) == [1, kept, hidden, hidden]
    assert json.loads(text.splitlines()[0])["server"]["env"] == ["API_KEY", "TOKEN"]
    assert stat.S_IMODE((tmp_path / "r.jsonl").stat().st_mode) == 0o600
    # Whatever was redacted may have been anything, and the rest counts.
    again = {**sent, "pass-word": "another", "card": {"number": 1}}
    _, same, other = replay(tmp_path, call("greet", **again), call("greet", **{**again, "x": 1})).values()
    assert same == answer["result"]
    assert other["message"].endswith("on line 5, where `x` was missing and is now 1")


def test_a_secret_that_is_a_word_of_the_protocol_leaves_the_messages_whole(tmp_path: Path) -> None:
    text = record(tmp_path, call("greet", user="text"), options=["--redact", "user"])
    answer = json.loads(text.splitlines()[-1])["message"]["result"]["content"][0]
    assert answer == {"type": "text", "text": '[1, {"user": "[redacted]"}, null, null]'}


@pytest.mark.long
def test_a_server_that_prints_what_is_not_a_message_can_be_replayed(tmp_path: Path) -> None:
    """Each of these lines is JSON, or is not."""
    logs = ['"token of ann"', "12", "null", "[]", "[7, {}]", '{"level": "info"}', "[INFO] begun"]
    (tmp_path / "loud.py").write_text(f"print({chr(10).join(logs)!r}, flush=True)\n{ECHO}")
    said = handshake(call("greet"))
    assert run(tmp_path, "record", "-o", "r.jsonl", "--", sys.executable, "loud.py", said=said).returncode == 0
    assert "ann" not in (tmp_path / "r.jsonl").read_text()
    (result,) = replay(tmp_path, call("greet"))[1]["content"]
    assert json.loads(result["text"])[0] == 1


def test_answers_come_in_turn_and_equal_calls_are_the_same(tmp_path: Path) -> None:
    record(tmp_path, call("greet", a=1, b=[2.0]), call("greet", b=[2], a=1.0))
    again = ("tools/call", {"_meta": {"x": 1}, "arguments": {"b": [2], "a": 1}, "name": "greet"})
    _, *given = replay(tmp_path, again, again, again).values()
    assert [json.loads(result["content"][0]["text"])[0] for result in given] == [1, 2, 2]


def test_a_call_that_was_not_recorded_is_refused_with_the_nearest(tmp_path: Path) -> None:
    record(tmp_path, call("greet", city="Rome", days=3), call("greet", city="Oslo", days=3, units="K"))
    nearest = 'r.jsonl has no tools/call for "greet" with these arguments; the closest call is on line'
    refused = replay(tmp_path, call("greet", city="Oslo", days=4, units="K"), call("greet", city="Rome"), call("other"))
    assert {number: (error["code"], error["message"]) for number, error in list(refused.items())[1:]} == {
        1: (
            -32602,
            f"{nearest} 5, where `days` was 3 and is now 4",
        ),
        2: (
            -32602,
            f"{nearest} 4, where `days` was 3 and is now missing",
        ),
        3: (-32602, 'r.jsonl has no tools/call for "other"; it has "greet"'),
    }


def test_runs_are_appended_and_a_mock_answers_what_was_not_recorded(tmp_path: Path) -> None:
    said = handshake(call("get_weather", location="Rome"))
    for _ in range(2):
        server = [*forked.interpreter(), "-m", "stubwright", "mock", WEATHER, "--seed", "1"]
        done = run(tmp_path, "record", "-o", "r.jsonl", "--", *server, said=said)
        assert done.returncode == 0, done.stderr
    headers = [line for line in map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines()) if "version" in line]
    assert len({header["run"] for header in headers}) == len(headers) == 2
    recording = (tmp_path / "r.jsonl").read_text().replace("Partly cloudy", "Hail")
    (tmp_path / "r.jsonl").write_text(recording)
    options = ["--mock", WEATHER]
    _, rome, oslo, unlisted = replay(
        tmp_path,
        *(call("get_weather", location=name) for name in ("Rome", "Oslo")),
        ("tools/list", {}),
        options=options,
    ).values()
    assert rome["structuredContent"]["conditions"] == "Hail"
    assert oslo["structuredContent"]["conditions"] == "Partly cloudy"
    assert {tool["name"] for tool in unlisted["tools"]} >= {"get_weather", "get_forecast"}


@pytest.mark.long
def test_the_client_of_a_toolset_starts_a_replay(tmp_path: Path) -> None:
    record(tmp_path)
    value = manifest([tool("find"), tool("delete")], toolsets={"reading": {"tools": ["find"]}})
    (tmp_path / "m.json").write_text(json.dumps(value))
    listed = replay(tmp_path, ("tools/list", {}), options=["--mock", "m.json", "--toolset", "reading"])[1]
    assert [each["name"] for each in listed["tools"]] == ["find"]


def test_a_line_that_a_killed_process_left_is_dropped(tmp_path: Path) -> None:
    whole = record(tmp_path)
    (tmp_path / "r.jsonl").write_text(whole + '{"run":"00')
    done = run(tmp_path, "replay", "r.jsonl", said=handshake())
    assert (done.returncode, done.stderr) == (0, "note: r.jsonl: the last line is cut off and was omitted\n")
    assert answers(done.stdout)
    done = run(tmp_path, "record", "-o", "r.jsonl", "--", sys.executable, "echo.py", said=handshake())
    assert (done.returncode, done.stderr) == (0, "note: r.jsonl: the last line was cut off and will be removed\n")
    continued = (tmp_path / "r.jsonl").read_text()
    assert continued.startswith(whole)
    assert '"version":1' in continued[len(whole) :].splitlines()[0]


@pytest.mark.parametrize(
    ("edit", "problem"),
    amounts.sample(
        [
            (lambda text: "", "r.jsonl:1: the file is empty; a recording starts with a header"),
            (lambda text: "{}\n", "r.jsonl:1: this is not a recording; write one with `stubwright record`"),
            (lambda text: "name: x\n", "r.jsonl:1: this is not a recording; write one with `stubwright record`"),
            (
                lambda text: text.replace('"version":1', '"version":9', 1),
                "r.jsonl:1: its format version is 9, not 1",
            ),
            (lambda text: text.splitlines()[0], "r.jsonl cannot be replayed: it contains no responses from a server"),
            (
                lambda text: text.replace('"id":1,"method"', '"id":1"method"'),
                "r.jsonl:3: this line is not JSON: Expecting ',' delimiter",
            ),
            (
                lambda text: text.replace('"from":"server"', '"from":"me"', 1),
                "r.jsonl:4: `from` is neither `client` nor `server`",
            ),
            (lambda text: text.replace('"message"', '"mesage"', 1), "r.jsonl:2: the line has no `message`"),
            (
                lambda text: text.splitlines()[0] + "\n",
                "r.jsonl cannot be replayed: it contains no responses from a server",
            ),
        ],
        2,
    ),
)
def test_what_is_wrong_with_a_recording_is_said(tmp_path: Path, edit: Any, problem: str) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    said = handshake(call("greet", city="Rome"))
    assert run(tmp_path, "record", "-o", "r.jsonl", "--", sys.executable, "echo.py", said=said).returncode == 0
    lines = (tmp_path / "r.jsonl").read_text().splitlines(keepends=True)
    # The two directions are in chronological order.
    lines[1:] = sorted(lines[1:], key=lambda line: '"from":"server"' in line)
    del lines[2]
    (tmp_path / "r.jsonl").write_text(edit("".join(lines)))
    done = stubwright("replay", "r.jsonl", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"stubwright: {problem}\n")


HEAD = '{"stubwright":"recording","version":1,"run":"r"}'


def written(*messages: tuple[str, str]) -> bytes:
    """A recording of these messages, each with its sender."""
    lines = (f'{{"run":"r","from":"{sender}","message":{message}}}' for sender, message in messages)
    return "\n".join([HEAD, *lines, ""]).encode()


def test_a_recording_whose_values_take_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(("client", '{"a":[]}'), ("server", '{"a":[[]]}'))
    monkeypatch.setattr(recording_lines, "_PARTS", data.count(b"{") + data.count(b"["))
    assert len([*recording_lines.parse("r.jsonl", data)]) == 2
    data = written(("client", '{"a":[]}'), ("server", '{"a":[[],{}]}'))
    told = r"r\.jsonl:3: more than 8 objects and arrays up to this line; record fewer calls"
    with pytest.raises(recording_lines.RecordingError, match=told):
        list(recording_lines.parse("r.jsonl", data))


@pytest.mark.parametrize("logs", [True, False])
def test_a_replay_declares_that_the_server_logged(logs: bool) -> None:
    """Otherwise a client of 2026-07-28 would not receive the log messages."""
    message = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
    listed = '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}'
    data = written(
        ("client", '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
        ("server", f'{{"jsonrpc":"2.0","id":1,"result":{listed}}}'),
        ("client", '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{}}}'),
        *([("server", message)] if logs else []),
        ("server", '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'),
    )
    described: Any = make_manifest(conversations.read(recording_lines.parse("r.jsonl", data)))[0].document["server"]
    assert described.get("capabilities") == ({"logging": True} if logs else None)


def test_a_file_that_is_no_recording_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine\n")
    done = stubwright("record", "-o", "notes.txt", "--", sys.executable, "-c", "print()", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "stubwright: notes.txt:1: this is not a recording; write one with `stubwright record`\n"
    assert (tmp_path / "notes.txt").read_text() == "mine\n"
    missing = stubwright("replay", "none.jsonl", cwd=tmp_path)
    assert missing.stderr == "stubwright: none.jsonl does not exist; create a recording with `stubwright record`\n"
    assert missing.returncode == 1
    unknown = stubwright("record", "--", "no-such-program", cwd=tmp_path)
    assert unknown.returncode == 3
    assert "`no-such-program` cannot be started: program not found; is it" in unknown.stderr


def test_a_message_that_takes_long_to_record_passes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "_LAST", 0.001)
    (source, written), (read, sink) = os.pipe(), os.pipe()
    os.write(written, b"{}\n")
    os.close(written)
    passing = stdio._RelayThread(source, sink, Lines(lambda line: time.sleep(0.05), print), lambda: None)
    passing.start()
    passing.finish()
    os.close(sink)
    assert os.read(read, 9) == b"{}\n"
    os.close(read)
    os.close(source)


def test_a_signal_ends_the_proxy_and_its_command(tmp_path: Path) -> None:
    program = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(5)); print('{}', flush=True); time.sleep(60)"
    )
    command = [*forked.interpreter(), "-m", "stubwright", "record", "--", sys.executable, "-c", program]
    with start_process(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"{}\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 5


@contextmanager
def over_http(folder: Path, *argv: str) -> Iterator[str]:
    """Run a command that serves over HTTP; yield its URL, and stop it as Ctrl-C does."""
    command = [*forked.interpreter(), "-m", "stubwright", *argv, "--http", "127.0.0.1:0"]
    with start_process(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while (found := re.search(r"(http://127\S+/mcp)\n", said)) is None:
            line = process.stderr.readline()
            assert line, said
            said += line
        yield found[1]
        process.send_signal(signal.SIGINT)
        said += process.stderr.read()
        assert "Traceback" not in said
        (folder / "said").write_text(said)
        assert process.wait(20) == 0


def on_stdio(folder: Path, *argv: str) -> AbstractAsyncContextManager[Any]:
    command = [*forked.interpreter(), "-m", "stubwright", *argv]
    return stdio_client(mcp.StdioServerParameters(command=command[0], args=command[1:], cwd=folder))


async def visit(target: Any, mode: Any) -> list[Any]:
    """All that a client sees of the weather server."""
    async with mcp.Client(target, mode=mode) as client:
        results = [
            await client.list_tools(),
            await client.list_resources(),
            await client.list_prompts(),
            await client.call_tool("get_weather", {"location": "Rome"}),
            await client.read_resource("weather://about"),
            await client.get_prompt("plan_day", {"city": "Rome"}),
        ]
        info = [client.protocol_version, client.server_info, client.instructions]
        return [*info, *(result.model_dump(mode="json", by_alias=True, exclude_none=True) for result in results)]


@pytest.mark.long
@pytest.mark.parametrize("recorded_in", ["legacy", amounts.mark_long("auto")])
def test_a_replay_answers_clients_of_both_eras_as_the_server_did(tmp_path: Path, recorded_in: str) -> None:
    mock = [*forked.interpreter(), "-m", "stubwright", "mock", WEATHER]
    other = "auto" if recorded_in == "legacy" else "legacy"
    with over_http(tmp_path, "mock", WEATHER) as url:
        seen = {mode: asyncio.run(visit(url, mode)) for mode in (recorded_in, other)}
    proxy = on_stdio(tmp_path, "record", "-o", "r.jsonl", "--", *mock)
    assert asyncio.run(visit(proxy, recorded_in)) == seen[recorded_in]
    assert asyncio.run(visit(on_stdio(tmp_path, "replay", "r.jsonl"), other)) == seen[other]
    with over_http(tmp_path, "replay", "r.jsonl") as url:
        for mode, expected in seen.items():
            assert asyncio.run(visit(url, mode)) == expected


class Answering:
    """A tool that reports progress, and a tool that asks a client of 2026-07-28 for a name."""

    async def list(self, _ctx: Any) -> Any:
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("slow", "ask")]
        return {"tools": tools, "ttlMs": 0, "cacheScope": "private"}

    async def call(self, ctx: Any) -> Any:
        if (ctx.params or {}).get("name") == "slow":
            await ctx.session.report_progress(1, 2, "half")
            return {"content": [{"type": "text", "text": "done"}]}
        responses = ctx.params.get("inputResponses") or {}
        if "who" not in responses:
            form = {"type": "object", "properties": {"name": {"type": "string"}}}
            params = {"mode": "form", "message": "Who?", "requestedSchema": form}
            raise Asked({"who": {"method": "elicitation/create", "params": params}})
        return {"content": [{"type": "text", "text": f"hello {responses['who']['content']['name']}"}]}


async def ask_with_a_handshake(url: str) -> str:
    async with mcp.Client(url, mode="legacy") as client:
        return getattr((await client.call_tool("ask", {})).content[0], "text", "")


async def converse(url: str, mode: Any) -> tuple[list[Any], list[str]]:
    """Return the progress messages and results that a client receives."""
    heard: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def answer(context: Any, params: Any) -> mcp_types.ElicitResult:
        assert (context is not None, params.message) == (True, "Who?")
        return mcp_types.ElicitResult(action="accept", content={"name": "Ann"})

    async with mcp.Client(url, mode=mode, elicitation_callback=answer) as client:
        results = [await client.call_tool("slow", {}, progress_callback=on_progress)]
        if mode != "legacy":
            results.append(await client.call_tool("ask", {}))
        return heard, [getattr(result.content[0], "text", "") for result in results]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_proxy_over_http_passes_streams_and_its_recording_has_no_headers(tmp_path: Path, mode: str) -> None:
    handling = ScriptedServer(tools_call=Answering().call, tools_list=Answering().list)
    expected = ([(1, 2, "half")], ["done"] if mode == "legacy" else ["done", "hello Ann"])
    options = ["-o", "r.jsonl", "--token", "top-5ecret"]
    with serve(handling.server) as url, over_http(tmp_path, "record", *options, url) as proxy:
        assert asyncio.run(converse(proxy, mode)) == expected
        foreign = httpx2.post(proxy, json={}, headers={"Origin": "https://evil.example"})
        rebound = httpx2.post(proxy, json={}, headers={"Host": "evil.example"})
        assert [foreign.status_code, rebound.status_code] == [403, 421]
    text = (tmp_path / "r.jsonl").read_text()
    assert "5ecret" not in text
    assert "Bearer" not in text
    assert json.loads(text.splitlines()[0])["server"] == {"url": url, "headers": ["Authorization"]}
    with over_http(tmp_path, "replay", "r.jsonl") as double:
        assert asyncio.run(converse(double, mode)) == expected
        if mode == "auto":  # an older client cannot be asked
            assert asyncio.run(ask_with_a_handshake(double)) == "hello Ann"


def test_credentials_and_cookies_of_a_client_stay_with_it(tmp_path: Path) -> None:
    """A server may repeat what it gets; the proxy adds no cookie that another client got."""
    seen: list[str] = []

    async def echo(request: Request) -> Response:
        seen.append(request.headers.get("cookie", ""))
        said = json.dumps(dict(request.headers))
        result = {"content": [{"type": "text", "text": said}]}
        answer = {"jsonrpc": "2.0", "id": 1, "result": result}
        return JSONResponse(answer, headers={"Set-Cookie": "crumb=first-client; Path=/"})

    app = Starlette(routes=[Route("/mcp", echo, methods=["POST"])])
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
    own = {"Authorization": "Bearer own-t0ken", "X-Api-Key": "own-k3y-of-ann", "Cookie": "a=b; sid=own-s1d"}
    mirrored = {"Mcp-Param-Token": "Rome", "Connection": "X-Hop, Keep-Alive", "X-Hop": "of-one-connection"}
    with asgi(app) as url, over_http(tmp_path, "record", "-o", "r.jsonl", f"{url}/mcp") as proxy:
        answer = httpx2.post(proxy, json=request, headers={**own, **mirrored}).json()
        httpx2.post(proxy, json=request)
    assert "own-k3y-of-ann" in answer["result"]["content"][0]["text"]
    assert "of-one-connection" not in answer["result"]["content"][0]["text"]
    assert seen == ["a=b; sid=own-s1d", ""]
    text = (tmp_path / "r.jsonl").read_text()
    assert "Rome" in text
    assert [secret for secret in ("own-t0ken", "own-k3y", "own-s1d") if secret in text] == []


PASSWORD: Final = "p/ä ss<w>?d+1"


@pytest.mark.parametrize(
    "form",
    [
        PASSWORD,
        json.dumps(PASSWORD)[1:-1],
        json.dumps(PASSWORD)[1:-1].replace("/", "\\/"),
        json.dumps(PASSWORD)[1:-1].replace("<", "\\u003c").replace(">", "\\u003e"),
        repr(PASSWORD)[1:-1],
        quote(PASSWORD),
        quote(PASSWORD, safe=""),
        quote(PASSWORD, safe="").lower(),
        quote_plus(PASSWORD),
        PASSWORD.encode().hex(),
        PASSWORD.encode().hex().upper(),
        base64.b64encode(PASSWORD.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(PASSWORD.encode()).decode().rstrip("="),
        quote(base64.b64encode(PASSWORD.encode()).decode().rstrip("="), safe=""),
        "".join(f"%{byte:02x}" for byte in PASSWORD.encode()),
        "".join(f"%{byte:02X}" for byte in PASSWORD.encode()),
        "".join(f"={byte:02X}" for byte in PASSWORD.encode()),
        quopri.encodestring(PASSWORD.encode()).decode(),
        "=\n".join(PASSWORD),
        "".join(f"\\u{ord(character):04x}" for character in PASSWORD),
        "".join(f"\\\\u{ord(character):04X}" for character in PASSWORD),
        "".join(f"\\x{byte:02x}" for byte in PASSWORD.encode()),
        json.dumps(json.dumps(json.dumps(PASSWORD)[1:-1])[1:-1])[1:-1],
        html.escape(PASSWORD),
        "".join(f"&#{ord(character)};" for character in PASSWORD),
        "".join(f"&#x{ord(character):X};" for character in PASSWORD),
        quote(PASSWORD[:3]) + json.dumps(PASSWORD[3:])[1:-1],
    ],
)
def test_a_secret_is_found_in_each_form(form: str) -> None:
    redactor = Redactor(secrets=[PASSWORD])
    assert redactor.redact({"text": f"it is {form}."}) == {"text": "it is [redacted]."}


@pytest.mark.parametrize("secret", ["pa\\\\ss\\word", "\\\\\\\\", "a \n\t\U0001f511", "\ud800abc"])
def test_a_secret_with_odd_characters_is_found_escaped(secret: str) -> None:
    redactor = Redactor(secrets=[secret])
    units = secret.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    for form in (secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret))[3:-3], escaped):
        assert redactor.redact({"text": f"it is {form}."}) == {"text": "it is [redacted]."}


def test_text_that_resembles_an_escaped_secret_stays() -> None:
    text = {
        "text": f"{quote(PASSWORD[:-1])} \\u0041 100% =41 &amp; {'%' * 1000} {chr(92) * 1000} {PASSWORD.swapcase()}"
    }
    assert Redactor(secrets=[PASSWORD]).redact(text) == text


@pytest.mark.parametrize("before", [b"", b"a", b"ab", b"abc"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_is_found_within_base64(before: bytes, encode: Callable[[bytes], bytes]) -> None:
    said = encode(before + PASSWORD.encode() + b" and more").decode()
    text = Redactor(secrets=[PASSWORD]).redact({"text": said})["text"]
    assert "[redacted]" in text
    left = sum(map(len, text.split("[redacted]")))
    assert left <= len(encode(before + b" and more")) + 4


@pytest.mark.parametrize(("before", "length"), [(46, 1), (54, 8), (0, 40)])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_secret_is_found_in_lines_of_base64(before: int, length: int, ending: str) -> None:
    secret = PASSWORD * length
    wrapped = base64.encodebytes(b"x" * before + secret.encode() + b" and more").decode().replace("\n", ending)
    text = f"An attachment:{ending}{wrapped}The end."
    masked = Redactor(secrets=[secret]).redact({"text": text})["text"]
    assert masked.startswith(f"An attachment:{ending}{base64.b64encode(b'x' * before).decode()[:-4]}")
    assert masked.endswith("The end.")
    assert len(masked) <= len(text) - len(base64.b64encode(secret.encode())) + len("[redacted]") + 4
    assert Redactor(secrets=["another"]).redact({"text": text}) == {"text": text}


def test_a_long_line_without_an_end_takes_no_longer_than_others() -> None:
    said = {"text": "An image:\n" + "Q" * 1_000_000 + " and more"}
    assert Redactor(secrets=["correct-horse-battery"]).redact(said) == said


def test_a_short_secret_is_found_in_no_form() -> None:
    said = {"text": "abc YWJj 616263"}
    assert Redactor(secrets=["abc"]).redact(said) == said


@pytest.mark.parametrize("from_proxy", amounts.sample([True, False], 1))
def test_the_password_of_basic_credentials_is_not_written_down(from_proxy: bool, tmp_path: Path) -> None:
    """Nor is a session, which a client sends and a server may repeat. The user is no secret."""

    async def repeat(request: Request) -> Response:
        pair = base64.b64decode(request.headers["authorization"].partition(" ")[2]).decode()
        user, _, password = pair.partition(":")
        session = request.headers.get("mcp-session-id", "new-sess10n")
        said = json.dumps([pair, {"login": user}, quote(password, safe=""), f"session {session}"])
        answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": said}]}}
        return JSONResponse(answer, headers={"Mcp-Session-Id": session})

    app = Starlette(routes=[Route("/mcp", repeat, methods=["POST"])])
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who"}}
    credentials = f"Basic {base64.b64encode(b'ann.smith:pa55/word').decode()}"
    options = ("--header", f"Authorization: {credentials}") if from_proxy else ()
    headers = {} if from_proxy else {"Authorization": credentials}
    with asgi(app) as url, over_http(tmp_path, "record", "-o", "r.jsonl", *options, f"{url}/mcp") as proxy:
        answer = httpx2.post(proxy, json=request, headers=headers)
        httpx2.post(proxy, json=request, headers={**headers, "Mcp-Session-Id": "own-sess10n"})
    assert json.loads(answer.json()["result"]["content"][0]["text"])[2] == "pa55%2Fword"
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    texts = [line["message"]["result"]["content"][0]["text"] for line in lines if line.get("from") == "server"]
    hidden = ["[redacted]", {"login": "ann.smith"}, "[redacted]", "session [redacted]"]
    assert [json.loads(text) for text in texts] == [hidden, hidden]


def deflate_alone(body: bytes) -> bytes:
    """Return `deflate` without the head of zlib, as some servers send it."""
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()


COMPRESSED: Final = [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", deflate_alone)]


def post_through_proxy(folder: Path, encoding: str, body: bytes, kind: str) -> tuple[bytes, list[Any], str]:
    """Return the client's view of a response with this body, its recording, and the proxy's output."""

    async def give(_: Request) -> Response:
        return Response(body, headers={"Content-Encoding": encoding, "Content-Type": kind})

    app = Starlette(routes=[Route("/mcp", give, methods=["POST"])])
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
    with (
        asgi(app) as url,
        over_http(folder, "record", "-o", "r.jsonl", f"{url}/mcp") as proxy,
        httpx2.stream("POST", proxy, json=request) as response,
    ):
        got = b"".join(response.iter_raw())
        assert response.headers["content-encoding"] == encoding
    lines = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    return got, [line for line in lines if line.get("from") == "server"], (folder / "said").read_text()


@pytest.mark.parametrize(
    ("encoding", "compress", "kind"),
    amounts.sample(
        [(*each, kind) for each in COMPRESSED for kind in ("application/json", "text/event-stream")],
        1,
    ),
)
def test_a_compressed_answer_passes_unchanged_and_is_recorded(
    encoding: str, compress: Callable[[bytes], bytes], kind: str, tmp_path: Path
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "found"}]}}
    text = json.dumps(message)
    body = compress((f"data: {text}\n\n" if kind == "text/event-stream" else text).encode())
    got, recorded, said = post_through_proxy(tmp_path, encoding, body, kind)
    assert got == body
    assert [line.get("message") for line in recorded] == [message]
    assert "not recorded" not in said


@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("br", b"\x0b\x02\x80{}\x03", "its Content-Encoding is 'br', which is not supported"),
        ("gzip", b"{}", "it is not gzip, although its Content-Encoding is"),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", amounts.mark_long("text/event-stream")])
def test_why_an_answer_is_not_recorded(encoding: str, body: bytes, why: str, kind: str, tmp_path: Path) -> None:
    got, [line], said = post_through_proxy(tmp_path, encoding, body, kind)
    assert got == body
    assert (line["unreadable"], line["why"], line["status"]) == (len(body), why, 200)
    assert f"stubwright: a message from the endpoint is not recorded: {why}\n" in said
    done = run(tmp_path, "replay", "r.jsonl")
    assert done.stderr == "stubwright: r.jsonl cannot be replayed: it contains no responses from a server\n"


def test_an_event_without_an_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LARGEST", 1000)
    events = http._Events("")
    assert events.feed(b"data: " + b"x" * 900 + b"\n\n") == [b"x" * 900]
    assert [*events.feed(b"data: " + b"x" * 900)] == []
    assert events.problem == ""
    for _ in range(3):
        assert [*events.feed(b"x" * 100)] == []
    assert events.problem.startswith("an event exceeds")
    assert events.size == len(b"data: ") + 900 + 300


def pass_through(
    proxy_limits: Copies, sent: Sequence[bytes], answer: Sequence[bytes]
) -> tuple[list[Any], bytes, bytes]:
    """The lines of a recording, the body at the endpoint, and the body of the answer at the client."""
    lines: list[Any] = []
    got = bytearray()

    async def parts() -> AsyncIterator[bytes]:
        for part in answer:
            yield part

    async def handle(request: httpx2.Request) -> httpx2.Response:
        got.extend(await request.aread())
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=parts())

    async def talk() -> bytes:
        incoming = [{"type": "http.request", "body": part, "more_body": True} for part in sent]
        coming = iter([*incoming[:-1], {**incoming[-1], "more_body": False}])
        outgoing: list[Any] = []

        async def receive() -> Any:
            message = next(coming, None)
            return message or await asyncio.Event().wait()

        async def send(message: Any) -> None:
            outgoing.append(message)

        async with httpx2.AsyncClient(transport=httpx2.MockTransport(handle)) as client:
            recorder = Recorder(lambda line: lines.append(json.loads(line)), Redactor(), {})
            proxy = http._Proxy("http://127.0.0.1/mcp", {}, client, recorder, ("localhost",), lambda _: None)
            proxy._copies = proxy_limits
            scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"host", b"localhost")]}
            await proxy(scope, receive, send)
        assert outgoing[-1].get("more_body", False) is False
        return b"".join(message.get("body", b"") for message in outgoing)

    answered = asyncio.run(talk())
    return lines[1:], bytes(got), answered


@pytest.mark.parametrize("held", [10, 1 << 20])
def test_large_bodies_pass_and_only_their_size_is_recorded(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_HELD", held)
    small, large = [b'{"a":', b'"' + b"x" * 20 + b'"}'], [b"[" + b"x" * 900] * 3
    limits = Copies(largest=2_000)
    [request, answer], got, answered = pass_through(limits, large, large)
    assert got == answered == b"".join(large)
    assert (request["from"], request["unreadable"], request["why"]) == ("client", 2703, "it exceeds 0 MiB")
    assert (answer["from"], answer["unreadable"], answer["why"]) == ("server", 2703, "it exceeds 0 MiB")
    [request, answer], got, answered = pass_through(limits, small, small)
    assert got == answered == b"".join(small)
    assert request["message"] == answer["message"] == {"a": "x" * 20}
    assert limits.held == 0


def test_the_copies_of_all_messages_in_progress_are_limited() -> None:
    copies = Copies(largest=100, total=150)
    first, second = Copy(copies), Copy(copies)
    first.add(b"x" * 90)
    second.add(b"x" * 60)
    assert copies.held == 150
    second.add(b"y")
    assert (second.problem, second.size, copies.held) == ("the messages in progress exceed 0 MiB", 61, 90)
    assert first.pop() == b"x" * 90
    first.drop()
    assert copies.held == 0


def test_a_line_that_is_too_large_is_not_kept() -> None:
    taken: list[bytes | int] = []
    lines = Lines(taken.append, taken.append, 10)
    for part in (b"ab", b"c\n\nd", b"x" * 10, b"x" * 5, b"\n12345", b"67890\nend"):
        lines.feed(part)
    lines.end()
    assert taken == [b"abc", b"", 16, b"1234567890", b"end"]


def test_a_body_that_expands_without_end_or_is_not_whole_is_not_read() -> None:
    body = gzip.compress(b"{}")
    assert encodings.decode("X-GZip", body) == b"{}"
    bomb = zlib.compress(bytes(65 * 1024 * 1024), 1)
    for data, why in ((bomb, "exceeds 64 MiB"), (zlib.compress(b"{}")[:-1], "stream is incomplete")):
        with pytest.raises(encodings.EncodingError, match=why):
            encodings.decode("deflate", data)
    with pytest.raises(encodings.EncodingError, match="has data after the end"):
        encodings.decode("gzip", body + body)


def test_a_command_that_cannot_be_started_leaves_the_recording_as_it_is(tmp_path: Path) -> None:
    before = b'{"stubwright":"recording","version":1,"run":"a","date":"2026-01-01T00:00:00Z","server":{}}\n{"run"'
    (tmp_path / "old.jsonl").write_bytes(before)
    for name in ("new.jsonl", "old.jsonl"):
        done = run(tmp_path, "record", "-o", name, "--", "no-such-program")
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith("stubwright: `no-such-program` cannot be started: program not found; is it")
    assert [path.name for path in tmp_path.iterdir()] == ["old.jsonl"]
    assert (tmp_path / "old.jsonl").read_bytes() == before


def test_nothing_is_started_for_a_recording_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stdio, "run", lambda *_: pytest.fail("it is started"))
    for path, why in (("no/r.jsonl", "No such file or directory"), ("file/r.jsonl", "Not a directory")):
        assert cli.run(["record", "-o", path, "--", "python"]) == 1
        assert capsys.readouterr().err == f"stubwright: {path} cannot be written: {why}\n"


def test_a_port_that_is_taken_leaves_the_recording_as_it_is(tmp_path: Path) -> None:
    """Also a last line that was cut off, which a run that begins drops."""
    before = b'{"stubwright":"recording","version":1,"run":"a","date":"2026-01-01T00:00:00Z","server":{}}\n{"run"'
    (tmp_path / "old.jsonl").write_bytes(before)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for name in ("new.jsonl", "old.jsonl"):
            done = run(tmp_path, "record", "http://127.0.0.1:1/mcp", "--http", address, "-o", name)
            assert (done.returncode, done.stdout) == (1, "")
            assert (
                done.stderr
                == f"stubwright: cannot listen on {address}: Address already in use; use port 0 for any free port\n"
            )
    assert [path.name for path in tmp_path.iterdir()] == ["old.jsonl"]
    assert (tmp_path / "old.jsonl").read_bytes() == before


async def break_off(scope: Any, receive: Any, send: Any) -> None:
    """Answer a lifespan, and break off the answer to any request; as events, if `Accept` is only that."""
    if scope["type"] == "lifespan":
        for word in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{word}.complete"})
        return
    is_stream = dict(scope["headers"])[b"accept"] == b"text/event-stream"
    kind = (b"content-type", b"text/event-stream" if is_stream else b"application/json")
    length = [] if is_stream else [(b"content-length", b"9999999")]
    await send({"type": "http.response.start", "status": 200, "headers": [kind, *length]})
    message = b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}'
    if b"x-large" in dict(scope["headers"]):
        message += b" " * (2 << 20)
    await send({"type": "http.response.body", "body": b"data: " + message + b"\n\n", "more_body": True})
    await asyncio.sleep(0.1)
    raise RuntimeError


def test_an_answer_that_the_endpoint_breaks_off_is_no_traceback(tmp_path: Path) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "go"}}
    with asgi(break_off) as url, over_http(tmp_path, "record", "-o", "r.jsonl", f"{url}/mcp") as proxy:
        whole = httpx2.post(proxy, json=request, headers={"Accept": "application/json"})
        assert (whole.status_code, whole.text) == (502, "The endpoint aborted its response.")
        with pytest.raises(httpx2.RemoteProtocolError):
            httpx2.post(proxy, json=request, headers={"Accept": "application/json", "X-Large": "1"})
        stream = httpx2.post(proxy, json=request, headers={"Accept": "text/event-stream"})
        assert stream.text.startswith("data: ")
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [(line.get("from"), line.get("status")) for line in lines[1:]] == [
        *[("client", None), ("server", 502)] * 2,
        *[("client", None), ("server", 200)],
    ]


def test_connections_to_the_endpoint_are_closed_before_the_proxy_says_that_it_ended() -> None:
    """Else the loop may end meanwhile, with a traceback."""
    closed: list[tuple[str, bool]] = []
    words = iter(["startup", "shutdown"])
    client = httpx2.AsyncClient()

    async def receive() -> dict[str, Any]:
        return {"type": f"lifespan.{next(words)}"}

    async def send(message: Any) -> None:
        closed.append((message["type"], client.is_closed))

    proxy = http._Proxy("http://127.0.0.1/mcp", {}, client, Recorder(print, Redactor(), {}), (), print)
    asyncio.run(proxy({"type": "lifespan"}, receive, send))
    assert closed == [("lifespan.startup.complete", False), ("lifespan.shutdown.complete", True)]


def test_a_call_is_found_whatever_its_idempotency_key() -> None:
    call = {"name": "pay", "arguments": {"order_id": "A1"}}
    assert (
        conversations.select_params({**call, "idempotencyKey": "1"})
        == conversations.select_params({**call, "_meta": {}})
        == call
    )
