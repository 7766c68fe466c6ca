"""The direct path and the SDK answer the same conversations alike: the SDK is the oracle.

Comparisons here list the intended differences with their reasons.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from itertools import islice
from types import ModuleType
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import amounts
import prompt_ends
from conversations import CAPABILITIES, CLIENTS, MORE, READY, REVISIONS, Handlers, handshake, request, usual
from packages import generate, imported, manifest, tool
from serving import WAYS
from sink import Sink
from stubwright_runtime.server.app.builder import build_core
from stubwright_runtime.server.app.core import Core
from stubwright_runtime.server.transports.stdio.connection import Connection
from stubwright_runtime.server.transports.stdio.reader import Line

ends_are_prompt = prompt_ends.ends_are_prompt

TOOLS = [
    tool("add", {"a": {"type": "integer"}, "b": {"type": "integer"}}, outputSchema={"type": "object"}),
    tool("say", {"text": {"type": "string"}}),
    tool("fail", {"how": {"type": "string"}}),
    tool("talk", {"level": {"type": "string"}}),
    tool("sure", {}, stubwright={"policy": {"confirm": True}}),
    tool("mirror", {"place": {"type": "string", "x-mcp-header": "Place"}}),
]
CALLS: Sequence[Mapping[str, Any]] = (
    {"name": "add", "arguments": {"a": 1, "b": 2}},
    {"name": "add", "arguments": {"a": "one"}},
    {"name": "say", "arguments": {"text": "snow \N{SNOWMAN} \u202e"}},
    {"name": "say"},
    {"name": "fail", "arguments": {"how": "tool"}},
    {"name": "fail", "arguments": {"how": "crash"}},
    {"name": "talk", "arguments": {"level": "error"}},
    {"name": "talk", "arguments": {"level": "debug"}, "_meta": {"progressToken": "t"}},
    {"name": "sure"},
    {"name": "mirror", "arguments": {"place": "here"}},
    {"name": "nowhere"},
)
REQUESTS: Sequence[tuple[str, Mapping[str, Any] | None]] = (
    ("ping", None),
    ("server/discover", None),
    ("tools/list", None),
    ("tools/list", {"cursor": "nowhere"}),
    ("tools/list", {"cursor": ""}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "docs://a"}),
    ("resources/read", {"uri": "docs://each/x"}),
    ("resources/read", {"uri": "docs://nowhere"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "hello", "arguments": {"who": "you"}}),
    ("prompts/get", {"name": "nobody"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "hello"}, "argument": {"name": "who", "value": "y"}},
    ),
    ("logging/setLevel", {"level": "debug"}),
    ("logging/setLevel", {"level": "loud"}),
    ("resources/subscribe", {"uri": "docs://a"}),
    ("nothing/known", {}),
    *(("tools/call", call) for call in CALLS),
)
ODD: Sequence[Any] = (None, True, 0, -1, 1.5, 1 << 70, "", "\ud800", "x", [], [1], {}, {"a": None}, "2026-07-28")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("equal")
    with imported(folder, generate(folder, manifest(TOOLS, name="equal", **MORE))) as module:
        yield module


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container in a message with each of its keys."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(below, dict | list):
            yield from places(below)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[bool, list[Any]]:
    """Requests of one client, most of them plain and some odd, after a handshake or without."""
    stateless = draw(st.booleans())
    chosen = draw(st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=6))
    messages: list[Any] = [request(n, *each, stateless=stateless) for n, each in enumerate(chosen)]
    for message in messages:
        if draw(st.integers(0, 2)):
            continue
        container, key = draw(st.sampled_from([*places(message)]))
        how = draw(st.sampled_from(["drop", "change", "add"]))
        if how == "drop" and isinstance(container, dict):
            del container[key]
        elif how == "add" and isinstance(container, dict):
            container[draw(st.sampled_from(["extra", "_meta", "task", "cursor", "id"]))] = draw(st.sampled_from(ODD))
        else:
            container[key] = draw(st.sampled_from(ODD))
    client, capabilities = draw(st.sampled_from(CLIENTS)), draw(st.sampled_from(CAPABILITIES))
    for message in messages:
        meta = (message.get("params") or {}).get("_meta") if isinstance(message.get("params"), dict) else None
        if isinstance(meta, dict) and stateless:
            meta |= {
                key: value for key, value in _said(client, capabilities).items() if isinstance(meta.get(key), dict)
            }
    if not stateless and draw(st.integers(0, 9)):
        shaken = handshake(draw(st.sampled_from(REVISIONS)))
        shaken["params"] |= deepcopy({"clientInfo": client, "capabilities": capabilities})
        if not draw(st.integers(0, 3)):
            container, key = draw(st.sampled_from([*places(shaken["params"])]))
            container[key] = draw(st.sampled_from(ODD))
            return stateless, [shaken, *messages]  # with READY, the SDK takes it as if it had shaken hands
        messages = [shaken, READY, *messages]
    return stateless, messages


def is_read_alike(message: Any) -> bool:
    """Return whether the schema accepts all that the SDK accepts (`test_messages.py`), without lone surrogates.

    Over HTTP, as over stdio, these become U+FFFD; the SDK rejects them at some places, and replaces them at others.
    """
    return "\\ud8" not in json.dumps(message) and not any(
        (key == "progressToken" and type(container[key]) in (bool, float))
        or (key == "listChanged" and type(container[key]) is not bool)
        for container, key in places(message)
    )


def _said(client: Mapping[str, Any], capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return a client's information about itself in each request."""
    said = {"clientInfo": client, "clientCapabilities": capabilities}
    return {f"io.modelcontextprotocol/{key}": deepcopy(dict(value)) for key, value in said.items()}


async def spoken(core: Core, messages: Sequence[Any]) -> list[Any]:
    """What a client on standard input gets, one message after the other."""
    async with core.lifespan():
        sink: Any = Sink()
        connection = Connection(core, sink)

        async def take(line: bytes) -> None:
            await connection.handle(Line(line))

        await _say(messages, take, connection._requests, sink.lines)
        await connection.disconnect()
        await connection.close()
    return [normal(line) for line in sink.lines]


async def _say(
    messages: Sequence[Any], take: Callable[[bytes], Awaitable[None]], due: Collection[Any], lines: Sequence[Any]
) -> None:
    """Say each message when those before it are answered; the questions meanwhile are answered, too."""
    read = 0
    for message in messages:
        await take(json.dumps(message).encode())
        async with asyncio.timeout(60):
            while due:
                await asyncio.sleep(0.001)
                new, read = lines[read:], len(lines)
                for question in new:
                    if "method" in question and "id" in question:
                        answer = {"action": "accept", "content": {"confirm": True}}
                        await take(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": answer}).encode())
        await asyncio.sleep(0.002)


def normal(message: Any) -> Any:
    """A message without what is another each time; the state of a question is encrypted."""
    text = re.sub(r"reference [0-9a-f]+", "reference R", json.dumps(message, sort_keys=True))
    return json.loads(re.sub(r'"requestState": "[^"]+"', '"requestState": "S"', text))


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_connection_shakes_hands_once(revision: str, package: ModuleType) -> None:
    core = build_core(package.TOOLS["add"].package, Handlers())
    malformed = {**handshake(revision), "params": {}}
    again = {**handshake("2024-11-05"), "id": "again"}
    call = request(1, "tools/call", CALLS[2], stateless=False)
    messages = [malformed, handshake(revision), READY, again, call]
    said = asyncio.run(spoken(core, messages))
    assert [(each["id"], each.get("error", {}).get("code")) for each in said] == [
        ("hello", -32602),
        ("hello", None),
        ("again", -32600),
        (1, None),
    ]
    assert said[1]["result"]["protocolVersion"] == revision


def variations() -> Iterator[tuple[str, Callable[[list[tuple[str, str]]], list[tuple[str, str]]]]]:
    """Ways to change the headers of a request."""

    def change(name: str, *values: str) -> Callable[[list[tuple[str, str]]], list[tuple[str, str]]]:
        return lambda headers: [each for each in headers if each[0] != name] + [(name, value) for value in values]

    yield "as usual", lambda headers: headers
    for name, odd in (
        ("accept", ("application/json", "text/event-stream", "*/*", "text/html", "application/json;q=0, */*;q=1")),
        ("content-type", ("text/plain", "application/json; charset=utf-8", "application/json-seq", "Application/JSON")),
        ("host", ("evil.example", "localhost:1", "localhost:evil")),
        ("origin", ("http://evil.example", "http://localhost:3000", "null", "")),
        ("mcp-protocol-version", ("2025-11-25", "2026-07-28", "2024-11-05", "1999-01-01", "")),
        ("mcp-method", ("tools/list", "TOOLS/CALL", "")),
        ("mcp-name", ("add", "=?base64?YWRk?=", "other", "")),
        ("mcp-session-id", ("nowhere", "\x7f", "")),
        ("mcp-param-place", ("here", "there", "")),
    ):
        yield f"without {name}", change(name)
        for value in odd:
            yield f"{name} {value!r}", change(name, value)
        if name != "host":  # which the client refuses to send
            yield f"{name} twice", change(name, odd[0], odd[-1])


@pytest.fixture(scope="module")
def urls(package: ModuleType) -> Iterator[list[str]]:
    """Run a server on each way over HTTP. On a busy machine, slow responses would become streams."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr("stubwright_runtime.server.transports.http.post_handler._STREAM_DELAY", 60)
        apps = [(way, package.asgi_app(Handlers(), allowed_hosts=["localhost"])) for way in WAYS]
        yield [f"{stack.enter_context(way(app))}/mcp" for way, app in apps]


def all_alike(answers: Sequence[Any]) -> bool:
    return all(answer == answers[0] for answer in answers)


def posted(
    http: httpx2.Client, url: str, message: Any, headers: Sequence[tuple[str, str]]
) -> tuple[int, Any, str | None]:
    """The status, the last message of the answer, and whether it names a session."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    encoded: Sequence[tuple[bytes, bytes]] = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    response = http.post(url, content=body, headers=encoded)
    text = response.text
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        texts = [line[6:] for line in text.splitlines() if line.startswith("data: ") and line[6:].strip()]
        text = texts[-1] if texts else ""
    try:
        answer = normal(json.loads(text)) if text else None
    except ValueError:
        answer = text
    return response.status_code, answer, "session" if "mcp-session-id" in response.headers else None


LATEST = "2026-07-28"
PARTS = [(revision, part, 2 * len(REVISIONS)) for part, revision in enumerate(REVISIONS)]


@pytest.mark.parametrize(
    ("revision", "part", "parts"),
    [*PARTS, (LATEST, 0, 4), *(amounts.mark_long((revision, 0, 1)) for revision in (*REVISIONS, LATEST))],
)
def test_http(revision: str, part: int, parts: int, urls: Sequence[str]) -> None:
    """Revisions with a handshake share half of the variations, and have all of them each in `make long`."""
    stateless = revision == "2026-07-28"
    with httpx2.Client(timeout=60) as http:
        sessions: list[str | None] = [None] * len(urls)
        if not stateless:
            first = handshake(revision)
            for number, url in enumerate(urls):
                response = http.post(url, json=first, headers=dict(usual(first, revision, None)))
                sessions[number] = response.headers["mcp-session-id"]
                headers = dict(usual(first, revision, sessions[number]))
                assert http.post(url, json=READY, headers=headers).status_code == 202
        number = 0
        for how, change in islice(variations(), part, None, parts):
            for method, params in (
                REQUESTS if how == "as usual" else (("tools/call", CALLS[0]), ("tools/call", CALLS[9]))
            ):
                if params is not None and params.get("name") == "sure" and not stateless:
                    continue  # a question in the middle of a call: its stream waits for the answer
                number += 1
                message = request(number, method, params, stateless=stateless)
                answers = [
                    posted(http, url, message, change(usual(message, revision, session)))
                    for url, session in zip(urls, sessions, strict=True)
                ]
                if how.startswith("mcp-param") or "session" in how:
                    answers = [(*answer[:2], None) for answer in answers]
                if "x7f" in how:
                    del answers[1]  # httptools refuses control characters in headers
                assert all_alike(answers), (how, message)


@pytest.mark.long
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(said=conversations().filter(lambda said: all(map(is_read_alike, said[1]))))
def test_odd_messages_over_http(said: tuple[bool, list[Any]], urls: Sequence[str]) -> None:
    stateless, messages = said
    with httpx2.Client(timeout=60) as http:
        sessions: list[str | None] = [None] * len(urls)
        revision = "2026-07-28"
        for message in messages:
            if isinstance(message, dict) and message.get("method") == "initialize":
                revision = "2025-06-18"
                headers = usual(message, revision, None)
                answers = [posted(http, url, message, headers) for url in urls]
                assert all_alike(answers), message
                if "error" in answers[0][1]:
                    break
                for number, url in enumerate(urls):
                    response = http.post(url, content=json.dumps(message), headers=dict(headers))
                    sessions[number] = response.headers.get("mcp-session-id")
                continue
            if not isinstance(message.get("method"), str) or (message.get("params") or {}) == {"name": "sure"}:
                continue
            if not stateless and revision == "2026-07-28":
                revision = "2025-06-18"
            named = {**message, "params": message.get("params") if isinstance(message.get("params"), dict) else {}}
            if not all(isinstance(named["params"].get(key, ""), str) for key in ("name", "uri")):
                named["params"] = {}
            try:
                answers = [
                    posted(http, url, message, usual(named, revision, session))
                    for url, session in zip(urls, sessions, strict=True)
                ]
            except UnicodeEncodeError:
                continue
            assert all_alike(answers), message
