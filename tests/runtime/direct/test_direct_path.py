"""The scope of the direct path: all messages over stdio, and the messages in the tables over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest

import amounts
import prompt_ends
from conversations import CAPABILITIES, CLIENTS, MORE, READY, REVISIONS, Handlers, handshake, request, usual
from packages import generate, imported, logging_server, manifest, tool
from serving import asgi
from sink import Sink
from stubwright_runtime.server.app.builder import build_core
from stubwright_runtime.server.protocol import requests, sender
from stubwright_runtime.server.protocol.messages import parse
from stubwright_runtime.server.transports.stdio.connection import Connection
from stubwright_runtime.server.transports.stdio.reader import Line

ends_are_prompt = prompt_ends.ends_are_prompt

TOOLS = [
    tool("add", {"a": {"type": "integer"}}, outputSchema={"type": "object"}),
    tool("talk", {"level": {"type": "string"}}),
    tool("sure", {}, stubwright={"policy": {"confirm": True}}),
    tool("fail", {}),
    tool("say", {}),
    tool("mirror", {"place": {"type": "string", "x-mcp-header": "Place"}}),
]
ROWS: Mapping[str, Mapping[str, Any]] = {
    "ping": {},
    "server/discover": {},
    "tools/list": {},
    "tools/call": {"name": "add", "arguments": {"a": 1}},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "docs://a"},
    "prompts/list": {},
    "prompts/get": {"name": "hello"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "hello"},
        "argument": {"name": "who", "value": ""},
    },
    "logging/setLevel": {"level": "error"},
    "resources/subscribe": {"uri": "docs://a"},
    "resources/unsubscribe": {"uri": "docs://a"},
    "resources/directory/read": {"uri": "skill://a"},
    "skills/list": {},
    "skills/get": {"uri": "skill://a/SKILL.md"},
}
NOT_SERVED = ("completion/complete", "resources/directory/read", "skills/list", "skills/get")
"""Methods that this server has nothing for."""

HANDSHAKE = [method for method in requests.HANDSHAKE_METHODS if method != "initialize"]
STATELESS = [method for method in requests.STATELESS_METHODS if method != "subscriptions/listen"]
ODD: Mapping[str, tuple[str, Mapping[str, Any], tuple[int | None, int | None]]] = {
    "a task, which the server has not": ("tools/call", {"name": "add", "arguments": {}, "task": {}}, (None, None)),
    "a field of another revision": ("tools/call", {"name": "add", "arguments": {}, "soon": True}, (None, None)),
    "an unknown method": ("nothing/known", {}, (-32601, -32601)),
    "a malformed parameter": ("tools/call", {"name": 1}, (-32602, -32602)),
    "a later round": ("tools/call", {"name": "add", "arguments": {}, "requestState": "sealed"}, (-32602, -32602)),
}
"""Odd requests, with the codes of their errors in either era."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("ways")
    with imported(folder, generate(folder, manifest(TOOLS, server=logging_server("ways"), **MORE))) as module:
        yield module


async def answered(package: ModuleType, *messages: Any) -> list[Any]:
    """Return all messages that a client over stdio receives after sending these messages."""
    sink: Any = Sink()
    core = build_core(package.TOOLS["add"].package, Handlers())
    async with core.lifespan():
        connection = Connection(core, sink)
        for message in messages:
            await connection.handle(Line(json.dumps(message).encode()))
        async with asyncio.timeout(60):
            await connection.wait_for_answers()
        await connection.close()
    assert {message["id"] for message in messages if "id" in message} <= {line.get("id") for line in sink.lines}
    lines: list[Any] = sink.lines
    return lines


def is_right(method: str, answer: Mapping[str, Any]) -> bool:
    """Return whether a response is the result of one of the server's methods, or an error for an unknown method."""
    if method in NOT_SERVED:
        return bool(answer["error"]["code"] == -32601)
    return "result" in answer


def test_the_rows_are_those_of_the_tables() -> None:
    assert ROWS.keys() == {*HANDSHAKE, *STATELESS}


@pytest.mark.parametrize(("method", "revision"), amounts.sample(product(HANDSHAKE, REVISIONS), 31))
def test_after_a_handshake(method: str, revision: str, package: ModuleType) -> None:
    messages = [handshake(revision), READY, request(1, method, ROWS[method], stateless=False)]
    assert is_right(method, asyncio.run(answered(package, *messages))[-1])


@pytest.mark.parametrize("method", STATELESS)
def test_without_a_handshake(method: str, package: ModuleType) -> None:
    assert is_right(method, asyncio.run(answered(package, request(1, method, ROWS[method], stateless=True)))[-1])


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("capabilities", CAPABILITIES)
@pytest.mark.parametrize("stateless", [False, True])
def test_what_clients_say_of_themselves(
    client: Mapping[str, Any], capabilities: Mapping[str, Any], stateless: bool, package: ModuleType
) -> None:
    asked = request(1, "tools/list", {}, stateless=stateless)
    if stateless:
        said = asked["params"]["_meta"]
        said |= {f"{_OURS}clientInfo": client, f"{_OURS}clientCapabilities": capabilities}
        lines = asyncio.run(answered(package, asked))
    else:
        shaken = handshake("2025-11-25")
        shaken["params"] |= {"clientInfo": client, "capabilities": capabilities}
        lines = asyncio.run(answered(package, shaken, READY, asked))
    assert lines[-1]["result"]["tools"]


_OURS = "io.modelcontextprotocol/"


@pytest.mark.parametrize("stateless", [False, True])
def test_progress_and_log_lines_on_stdio(stateless: bool, package: ModuleType) -> None:
    wanted = {"progressToken": 1, **({f"{_OURS}logLevel": "info"} if stateless else {})}
    talking = {"name": "talk", "arguments": {}, "_meta": wanted}
    opening = [] if stateless else [handshake("2025-11-25"), READY]
    messages = [*opening, request("t", "tools/call", talking, stateless=stateless)]
    progress, message, answer = asyncio.run(answered(package, *messages))[-3:]
    assert progress["params"] == {"progressToken": 1, "progress": 1, "total": 2, "message": "half"}
    assert message["params"] == {"level": "info", "data": {"said": "this"}}
    assert [progress["method"], message["method"], answer["id"]] == [
        "notifications/progress",
        "notifications/message",
        "t",
    ]


def test_a_server_that_does_not_declare_logging_sends_no_message_on_stdio(tmp_path: Path) -> None:
    talking = {"name": "talk", "arguments": {}, "_meta": {"progressToken": 1, f"{_OURS}logLevel": "info"}}
    with imported(tmp_path, generate(tmp_path, manifest(TOOLS, name="silent", **MORE))) as package:
        lines = asyncio.run(answered(package, request("t", "tools/call", talking, stateless=True)))
    assert [line.get("method", line.get("id")) for line in lines] == ["notifications/progress", "t"]


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("stateless", [False, True])
def test_odd_requests_are_answered(what: str, stateless: bool, package: ModuleType) -> None:
    method, params, codes = ODD[what]
    opening = [] if stateless else [handshake("2025-11-25"), READY]
    answer = asyncio.run(answered(package, *opening, request(1, method, params, stateless=stateless)))[-1]
    assert answer.get("error", {}).get("code") == codes[stateless]


def test_listening(package: ModuleType) -> None:
    sink: Any = Sink()
    core = build_core(package.TOOLS["add"].package, Handlers())
    wanted = {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["docs://a"], "soon": 1}
    listen = request("l", "subscriptions/listen", {"notifications": wanted}, stateless=True)

    async def told() -> Any:
        async with core.lifespan(), asyncio.timeout(60):
            connection = Connection(core, sink)
            await connection.handle(Line(json.dumps(listen).encode()))
            while not sink.lines:  # noqa: ASYNC110 - the sink has no event
                await asyncio.sleep(0)
            for _ in range(2):  # of which the client hears once
                await core.resources.updated("docs://a")
            await core.resources.updated("docs://b")
            await core.tools.disable("say")
            await core.prompts.changed()
            await asyncio.sleep(0.01)
            await connection.disconnect()
            await connection.close()
        return sink.lines

    meta = {"io.modelcontextprotocol/subscriptionId": "l"}
    acknowledged, updated, changed, answer = asyncio.run(told())
    honored = {"toolsListChanged": True, "resourceSubscriptions": ["docs://a"]}
    assert acknowledged["params"] == {"notifications": honored, "_meta": meta}
    assert (updated["method"], updated["params"]) == (
        "notifications/resources/updated",
        {"uri": "docs://a", "_meta": meta},
    )
    assert (changed["method"], changed["params"]) == ("notifications/tools/list_changed", {"_meta": meta})
    assert answer["id"] == "l"
    assert answer["result"]["resultType"] == "complete"
    assert answer["result"]["_meta"].items() >= meta.items()


def test_changes_of_a_resource_are_told(package: ModuleType) -> None:
    sink: Any = Sink()
    core = build_core(package.TOOLS["add"].package, Handlers())

    async def told() -> Any:
        async with core.lifespan():
            connection = Connection(core, sink)
            for message in (
                handshake("2025-11-25"),
                request(1, "resources/subscribe", {"uri": "docs://a"}, stateless=False),
            ):
                await connection.handle(Line(json.dumps(message).encode()))
            await connection.wait_for_answers()
            sink.lines.clear()
            await core.resources.updated("docs://a")  # before anything may be told
            await core.tools.disable("say")
            await connection.handle(Line(json.dumps(READY).encode()))
            await asyncio.sleep(0.01)
            await core.resources.updated("docs://a")
            await core.resources.updated("docs://b")
            await core.tools.enable("say")
            await asyncio.sleep(0.01)
            await connection.close()
        return sink.lines

    assert asyncio.run(told()) == [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "docs://a"}},
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
    ]


QUESTION = "elicitation/create"
SURE = request("s", "tools/call", {"name": "sure"}, stateless=False)


async def asked(package: ModuleType, *then: Any) -> Any:
    """Return the messages to a client whose call asks a question and that then sends `then`; `None` ends the input."""
    sink: Any = Sink()
    core = build_core(package.TOOLS["add"].package, Handlers())
    async with core.lifespan(), asyncio.timeout(60):
        connection = Connection(core, sink)
        for message in (handshake("2025-11-25"), READY, SURE):
            await connection.handle(Line(json.dumps(message).encode()))
        while len(sink.lines) < 2:  # noqa: ASYNC110 - the sink has no event
            await asyncio.sleep(0)
        for message in then:
            if message is None:
                await connection.disconnect()
            else:
                await connection.handle(Line(json.dumps(message).encode()))
        await connection.wait_for_answers()
        await asyncio.sleep(0)
        await connection.close()
    assert (sink.lines[1]["id"], sink.lines[1]["method"]) == (1, QUESTION)
    return sink.lines[2:]


def test_a_question_on_stdio(package: ModuleType) -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"confirm": True}}}
    unasked = {**answer, "id": 2}
    [result] = asyncio.run(asked(package, unasked, answer, answer))
    assert (result["id"], result["result"]["content"][0]["text"]) == ("s", "done")


def test_a_question_that_is_answered_with_an_error_fails_its_call(package: ModuleType) -> None:
    refusal = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "not here"}}
    [result] = asyncio.run(asked(package, refusal))
    assert result["result"]["isError"] is True
    assert "The client's answer was missing or invalid" in result["result"]["content"][0]["text"]


def test_a_question_is_taken_back_when_its_call_is_cancelled(package: ModuleType) -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}}
    [taken_back] = asyncio.run(asked(package, cancel))
    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == 1


def test_a_question_is_taken_back_when_nobody_answers_it(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "PATIENCE", 0.05)
    taken_back, result = asyncio.run(asked(package))
    assert (taken_back["method"], taken_back["params"]["requestId"]) == ("notifications/cancelled", 1)
    assert result["result"]["isError"] is True
    assert "The client's answer was missing or invalid" in result["result"]["content"][0]["text"]


def test_a_question_fails_when_the_input_ends(package: ModuleType) -> None:
    [result] = asyncio.run(asked(package, None))
    assert result["result"]["isError"] is True
    assert "The client's answer was missing or invalid" in result["result"]["content"][0]["text"]


async def asked_early(package: ModuleType, then: Any) -> Any:
    """Return the messages to a client that calls before it is ready and then sends `then`; `None` ends the input."""
    sink: Any = Sink()
    core = build_core(package.TOOLS["add"].package, Handlers())
    async with core.lifespan(), asyncio.timeout(60):
        connection = Connection(core, sink)
        for message in (handshake("2025-11-25"), SURE):
            await connection.handle(Line(json.dumps(message).encode()))
        while not connection._outgoing.questions._open:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0)
        assert [line["id"] for line in sink.lines] == ["hello"]
        if then is None:
            await connection.disconnect()
        elif then == READY:
            await connection.handle(Line(json.dumps(READY).encode()))
            while len(sink.lines) < 2:  # noqa: ASYNC110 - the sink has no event
                await asyncio.sleep(0)
            answer = {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"confirm": True}}}
            await connection.handle(Line(json.dumps(answer).encode()))
        elif then:
            await connection.handle(Line(json.dumps(then).encode()))
        await connection.wait_for_answers()
        await connection.close()
    return sink.lines[1:]


def test_a_question_waits_until_its_client_is_ready(package: ModuleType) -> None:
    question, result = asyncio.run(asked_early(package, READY))
    assert (question["id"], question["method"]) == (1, QUESTION)
    assert (result["id"], result["result"]["content"][0]["text"]) == ("s", "done")


def test_what_was_never_asked_is_not_taken_back(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancellations name only requests that were sent (MCP 2025-11-25, basic/utilities/cancellation)."""
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}}
    assert asyncio.run(asked_early(package, cancel)) == []
    [ended] = asyncio.run(asked_early(package, None))
    assert ended["result"]["isError"] is True
    monkeypatch.setattr(sender, "PATIENCE", 0.05)
    [late] = asyncio.run(asked_early(package, {}))
    assert "The client's answer was missing or invalid" in late["result"]["content"][0]["text"]


def test_a_client_that_never_says_that_it_is_ready_is_asked(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sender, "READINESS", 0.01)
    monkeypatch.setattr(sender, "PATIENCE", 1.0)
    question, taken_back, _ = asyncio.run(asked_early(package, {}))
    assert (question["id"], question["method"]) == (1, QUESTION)
    assert taken_back["params"]["requestId"] == 1
    assert "sending a request to a client that has not sent notifications/initialized" in caplog.messages


@pytest.mark.parametrize("stateless", [False, True])
def test_an_id_that_is_in_use_is_refused(stateless: bool, package: ModuleType) -> None:
    calls = [request("same", "tools/list", {}, stateless=stateless) for _ in range(2)]
    opening = [] if stateless else [handshake("2025-11-25"), READY]
    answers = [each for each in asyncio.run(answered(package, *opening, *calls)) if each["id"] == "same"]
    assert sorted("error" in each for each in answers) == [False, True]
    assert [each["error"]["code"] for each in answers if "error" in each] == [-32600]


@pytest.mark.parametrize(
    ("revision", "method"),
    amounts.sample(
        [
            *(("2025-11-25", method) for method in ("initialize", *HANDSHAKE)),
            *(("2026-07-28", method) for method in STATELESS),
        ],
        12,
    ),
)
def test_over_http(method: str, revision: str, package: ModuleType) -> None:
    stateless = revision == "2026-07-28"
    with asgi(package.asgi_app(Handlers())) as url, httpx2.Client() as http:
        session = None
        if not stateless:
            first = handshake(revision)
            session = http.post(f"{url}/mcp", json=first, headers=dict(usual(first, revision, None))).headers[
                "mcp-session-id"
            ]
        if method != "initialize":
            message = request(1, method, ROWS[method], stateless=stateless)
            answer = http.post(f"{url}/mcp", json=message, headers=dict(usual(message, revision, session)))
            assert answer.headers["content-type"] == "application/json"
            assert answer.json()["id"] == 1


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"1",
        b"{",
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a":' * 250 + b"1" + b"}" * 250,
        b'{"a": ' + b"1" * 5000 + b"}",
    ],
)
def test_what_parsers_read_in_different_ways_is_read_by_one(data: bytes) -> None:
    assert parse(data) is None


SHOWS = """
import sys

HEAVY = ("mcp", "mcp_types", "pydantic", "opentelemetry", "anyio", "starlette")

class Shows:
    async def shows(self, args, ctx):
        return " ".join(name for name in HEAVY if name in sys.modules)
"""


@pytest.mark.parametrize(
    ("more", "loaded"),
    [({}, "pydantic"), amounts.mark_long(({"execution": {"taskSupport": "optional"}}, "pydantic anyio"))],
)
def test_a_server_loads_what_it_needs_when_it_needs_it(tmp_path: Path, more: dict[str, Any], loaded: str) -> None:
    generate(tmp_path, manifest([tool("shows", {"a": {"type": "string"}}, **more)], name="shows"))
    (tmp_path / "shown.py").write_text(SHOWS)
    call = {"name": "shows", "arguments": {}}
    messages = [
        handshake("2025-11-25"),
        READY,
        request(1, "tools/list", {}, stateless=False),
        request(2, "tools/call", call, stateless=False),
        request(3, "nothing/known", {}, stateless=False),
        request(4, "tools/call", call, stateless=False),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "shows_mcp", "--handlers", "shown:Shows"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    answers = []
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        if "id" in message:
            answers.append(json.loads(process.stdout.readline()))
    process.stdin.close()
    assert process.wait(60) == 0
    texts = [answer["result"]["content"][0]["text"] for answer in answers if "content" in answer.get("result", {})]
    assert texts == [loaded, loaded]
