"""Malformed messages and values nested too deeply: each is answered, and the server continues, over stdio and HTTP."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from server_fixture import ENVELOPE, HELLO, write_package
from server_process import Process
from stubwright_runtime.server.protocol.messages import read
from stubwright_runtime.server.protocol.requests import find_size_error
from stubwright_runtime.server.transports.stdio.reader import MAX_LINE
from stubwright_runtime.values.nesting import DEEPEST, is_too_deep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REVISIONS = ("2025-06-18", "2026-07-28")

HANDLERS = """
from mcp_types import EmbeddedResource, TextContent, TextResourceContents
from stubwright_runtime.server.handlers.returns import Reply
from process_mcp.handlers import WeatherHandlers

def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value

class Weather(WeatherHandlers):
    def get_weather(self, args, ctx):
        return {"temperature": 1, "more": nested(int(args.location))}

    async def say(self, args, ctx):
        levels = (args.model_extra or {}).get("levels", 1)
        match (args.model_extra or {}).get("how"):
            case "block":
                return TextContent(type="text", text="said", _meta={"a": nested(levels)})
            case "resource":
                inner = TextResourceContents(uri="a://b", text="said", _meta={"a": nested(levels)})
                return EmbeddedResource(type="resource", resource=inner)
            case "meta":
                return Reply("said", meta={"a": nested(levels)})
            case "log":
                await ctx.log("error", nested(levels))
        return "said"

    def cities(self, args, ctx):
        return nested(args.n)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write_package(folder, "process_mcp", handlers="weather:Weather")
    (folder / "weather.py").write_text(HANDLERS)
    return folder


class Stdio:
    """A client of one revision over stdio."""

    def __init__(self, project: Path, revision: str) -> None:
        self.process = Process(project)
        self.revision = revision
        if revision < "2026":
            self.process.send("initialize", {**HELLO, "protocolVersion": revision})
            assert self.process.receive()["result"]["protocolVersion"] == revision

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; messages of the server's log are passed by."""
        if self.revision >= "2026":
            params = {**params, "_meta": ENVELOPE}
        self.process.send(method, params)
        while "method" in (answer := self.process.receive()):
            continue
        assert answer["id"] == self.process.number
        return answer

    def end(self) -> None:
        """It has lived until now."""
        self.process.close()
        assert self.process.popen.wait(60) == 0


class Http:
    """A client of one revision over HTTP."""

    def __init__(self, project: Path, revision: str) -> None:
        self.process = Process(project, "--http", "127.0.0.1:0")
        self.revision = revision
        self.headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        self.url = self.process.url()
        self.client = httpx2.Client(timeout=60)
        if revision < "2026":
            hello = {
                "jsonrpc": "2.0",
                "id": 0,
                "method": "initialize",
                "params": {**HELLO, "protocolVersion": revision},
            }
            opened = self.post(json.dumps(hello).encode())
            self.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        self.headers["mcp-protocol-version"] = revision

    def post(self, body: bytes, **headers: str) -> httpx2.Response:
        """The response to a body."""
        return self.client.post(self.url, content=body, headers={**self.headers, **headers})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; messages of the server's log are passed by."""
        headers = {}
        if self.revision >= "2026":
            params = {**params, "_meta": ENVELOPE}
            headers = {"mcp-method": method, **({"mcp-name": params["name"]} if "name" in params else {})}
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        text = self.post(json.dumps(message).encode(), **headers).text
        sent = [line.removeprefix("data:") for line in text.splitlines() if line.startswith(("data: {", "{"))]
        answers: list[dict[str, Any]] = [one for one in map(json.loads, sent) if "method" not in one]
        assert [one["id"] for one in answers] == [7]
        return answers[0]

    def end(self) -> None:
        """It has lived until now."""
        self.client.close()
        assert self.process.popen.poll() is None


@pytest.fixture(scope="module", params=[(kind, revision) for kind in (Stdio, Http) for revision in REVISIONS])
def client(request: pytest.FixtureRequest, project: Path) -> Iterator[Stdio | Http]:
    kind, revision = request.param
    made: Stdio | Http = kind(project, revision)
    yield made
    made.end()
    made.process.kill()


def said(client: Stdio | Http, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = client.ask("tools/call", {"name": "say", "arguments": arguments})["result"]
    return result


def request(arguments: str, identity: str = "5") -> bytes:
    """A call whose arguments are this text, its id behind them, as the TypeScript SDK writes it."""
    params = f'{{"name":"say","arguments":{{"a":{arguments},"id":6}}}}'
    return f'{{"method":"tools/call","params":{params},"jsonrpc":"2.0","id":{identity}}}'.encode()


PARSE, INVALID, PARAMS = -32700, -32600, -32602

MALFORMED: dict[str, tuple[bytes, int, object]] = {
    "no JSON": (b"{not json", PARSE, None),
    "no JSON with an id": (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":}}', PARSE, 5),
    "cut off": (b'{"jsonrpc":"2.0","id":"5","method":"ping","params":{"a":"\\', PARSE, "5"),
    "deep": (request("[" * 199 + "]" * 199), PARSE, 5),
    "very deep": (request("[" * 10_000 + "]" * 10_000), PARSE, 5),
    "deeper than its id can be read": (request("[" * 200_000), PARSE, None),
    "deep objects": (request('{"id":1,"a":' * 300 + "1" + "}" * 300), PARSE, 5),
    "an integer of many digits": (request("1" * 5000), PARSE, 5),
    "a number of many digits": (request("-" + "1" * 5000 + ".5e7"), PARSE, 5),
    "an id of many digits": (request("1", "1" * 5000), PARSE, None),
    "NaN": (request("NaN"), PARSE, 5),
    "Infinity": (request("[-Infinity]"), PARSE, 5),
    "a string without end": (b'{"jsonrpc":"2.0","id":5,"method":"' + b'\\"' * 100_000, PARSE, 5),
    "a number": (b"5", INVALID, None),
    "a string": (b'"ping"', INVALID, None),
    "null": (b"null", INVALID, None),
    "an empty batch": (b"[]", INVALID, None),
    "an empty object": (b"{}", INVALID, None),
    "a batch of nothing": (b"[1]", INVALID, None),
    "a large batch": (b"[" + b"1," * 100_000 + b"1]", INVALID, None),
    "no jsonrpc": (b'{"id":5,"method":"ping"}', INVALID, 5),
    "another jsonrpc": (b'{"jsonrpc":"1.0","id":5,"method":"ping"}', INVALID, 5),
    "no method": (b'{"jsonrpc":"2.0","id":5}', INVALID, 5),
    "a method that is a number": (b'{"jsonrpc":"2.0","id":5,"method":5}', INVALID, 5),
    "an id that is null": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID, None),
    "an id that is true": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID, None),
    "an id with a fraction": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID, None),
    **{
        f"a call whose id is {identity}": (request("1", identity), INVALID, None)
        for identity in ("null", "1.5", "true", "[1]", "{}")
    },
    "a call without a method": (b'{"jsonrpc":"2.0","id":5,"params":{"name":"say","arguments":{}}}', INVALID, 5),
    "params that are an array": (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}', PARAMS, 5),
    "params that are a text": (b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":"x"}', PARAMS, "a"),
}


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_malformed_line_is_answered_and_a_good_call_after_it(project: Path, revision: str) -> None:
    client = Stdio(project, revision)
    try:
        client.process.write(b" \n\r\n")
        for name, (line, code, identity) in MALFORMED.items():
            client.process.write(line + b"\n")
            answer = client.process.receive()
            named = {} if identity is None and revision >= "2025-11-25" else {"id": identity}
            assert answer == {"jsonrpc": "2.0", **named, "error": answer["error"]}, name
            assert answer["error"]["code"] == code, name
            assert said(client)["content"][0]["text"] == "said", name
        client.end()
        assert client.process.popen.stderr is not None
        log = client.process.popen.stderr.read().decode()
        assert log.count("refused a message that ") == len(MALFORMED)
        assert "Traceback" not in log
    finally:
        client.process.kill()


def test_a_byte_order_mark_before_a_message_is_ignored(client: Stdio | Http) -> None:
    """RFC 8259, 8.1; on stdio before any line."""
    envelope = {"_meta": ENVELOPE} if client.revision >= "2026" else {}
    ping = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": envelope}
    line = b"\xef\xbb\xbf" + json.dumps(ping).encode()
    if isinstance(client, Stdio):
        client.process.write(line + b"\n")
        assert client.process.receive()["result"]["tools"]
    else:
        client.headers |= {"mcp-method": "tools/list"}
        assert "result" in client.post(line).text
        del client.headers["mcp-method"]


def test_a_line_without_end_is_refused_and_a_good_call_answered(project: Path) -> None:
    client = Stdio(project, "2025-06-18")
    try:
        long = b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"' + b"x" * 50_000_000 + b'"}}\n'
        for start in range(0, len(long), 1 << 20):
            client.process.write(long[start : start + (1 << 20)])
        answer = client.process.receive()
        assert (answer["error"]["code"], answer["id"]) == (INVALID, 5)
        assert said(client)["content"][0]["text"] == "said"
        client.end()
    finally:
        client.process.kill()
    assert len(long) > MAX_LINE


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_malformed_body_is_answered_and_a_good_call_after_it(project: Path, revision: str) -> None:
    client = Http(project, revision)
    try:
        for name, (body, code, identity) in MALFORMED.items():
            response = client.post(body)
            answer = response.json()
            named = {} if identity is None and revision >= "2025-11-25" else {"id": identity}
            assert answer == {"jsonrpc": "2.0", **named, "error": answer["error"]}, name
            assert (response.status_code, answer["error"]["code"]) == (400, code), name
            assert len(answer["error"]["message"]) < 200, name
            assert re.search(r"\n|pydantic|union|[Vv]alidation error", answer["error"]["message"]) is None, name
            assert said(client)["content"][0]["text"] == "said", name
        assert client.post(b'{"a":"' + b"x" * 5_000_000 + b'"}').status_code == 413
        assert said(client)["content"][0]["text"] == "said"
        client.end()
    finally:
        client.process.kill()


def test_a_refused_body_is_told_in_plain_words(project: Path) -> None:
    client = Http(project, "2025-06-18")
    try:
        told = {name: client.post(MALFORMED[name][0]).json()["error"] for name in ("no method", "a number", "no JSON")}
        assert told["no method"] == {"code": INVALID, "message": "The message has no method"}
        assert told["a number"] == {"code": INVALID, "message": "The message is not an object"}
        assert told["no JSON"]["code"] == PARSE
        assert told["no JSON"]["message"].startswith("The message is not valid JSON: ")
        batch = client.post(b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]').json()
        assert batch["error"]["message"] == "The message is a batch; send each message in its own request"
        assert client.post(b" ").json()["error"] == {"code": PARSE, "message": "The message is empty"}
        long = client.post(b'{"jsonrpc":"1.0","id":5,"method":"' + b"x" * 100_000 + b'"}').json()
        assert long == {
            "jsonrpc": "2.0",
            "id": 5,
            "error": {"code": INVALID, "message": 'The message lacks "jsonrpc": "2.0"'},
        }
        notification = client.post(b'{"jsonrpc":"2.0","method":"notifications/initialized","params":[]}')
        assert (notification.status_code, notification.json()["id"]) == (400, None)
        assert said(client)["content"][0]["text"] == "said"
        client.end()
    finally:
        client.process.kill()


def test_answers_and_notifications_that_are_malformed_are_never_answered() -> None:
    (answer,) = read(b'{"jsonrpc":"2.0","id":5,"result":7}')
    assert answer.answer is None
    assert answer.message is not None
    assert answer.message["error"]["message"] == "The message has no method"  # which the one who waits for it is told
    (notification,) = read(b'{"jsonrpc":"2.0","method":"notifications/initialized","params":[]}')
    assert (notification.answer, notification.message) == (None, None)
    assert notification.problem == "has params that are not an object"


def hello(size: int, parts: int) -> dict[str, Any]:
    """Return the parameters of a handshake with this many bytes of JSON, objects and arrays."""
    filled = {"lists": [[] for _ in range(parts - 2)], "text": ""}
    filled["text"] = "x" * (size - len(json.dumps(filled, separators=(",", ":"))))
    return filled


@pytest.mark.parametrize(("size", "parts"), [(16 * 1024, 1000), (16 * 1024 + 1, 250), (64 * 1024, 250)])
def test_a_handshake_is_as_large_as_can_be(size: int, parts: int) -> None:
    assert find_size_error(hello(size, parts)) is None


@pytest.mark.parametrize(("size", "parts"), [(16 * 1024 + 1, 251), (64 * 1024, 251), (64 * 1024 + 1, 3)])
def test_a_handshake_that_is_larger_is_refused(size: int, parts: int) -> None:
    fault = find_size_error(hello(size, parts))
    assert fault is not None
    assert (fault.code, "65,536 bytes of JSON with 250 objects and arrays" in fault.message) == (PARAMS, True)


# What no message can carry, where results are made.


DEEP = (250, 500, 990)


@pytest.mark.parametrize("levels", DEEP)
def test_a_result_that_is_too_deep_is_a_failed_call(client: Stdio | Http, levels: int) -> None:
    for _ in range(2):  # the next call in its session is answered, too
        for name, arguments in (("get-weather", {"location": str(levels)}), ("cities", {"n": levels})):
            result = client.ask("tools/call", {"name": name, "arguments": arguments})["result"]
            assert result["isError"] is True
            assert re.search(
                r"nested more than 192 levels deep|does not match its output schema", result["content"][0]["text"]
            )
            assert "structuredContent" not in result
        for how in ("block", "resource", "meta", "log"):
            assert said(client, how=how, levels=levels)["isError"] is True
    assert said(client)["content"] == [{"type": "text", "text": "said"}]


def test_what_is_as_deep_as_can_be_arrives(client: Stdio | Http) -> None:
    for how in ("block", "resource", "meta", "log"):
        assert "isError" not in said(client, how=how, levels=DEEPEST - 4)
    result = client.ask("tools/call", {"name": "get-weather", "arguments": {"location": str(DEEPEST - 1)}})["result"]
    assert is_too_deep([result["structuredContent"]])
    assert not is_too_deep(result["structuredContent"])


def test_arguments_that_are_too_deep_are_refused(client: Stdio | Http) -> None:
    value: list[Any] = []
    for _ in range(DEEPEST - 1):
        value = [value]
    assert said(client, a=value)["content"][0]["text"] == (
        "Invalid arguments for say:\n- nested more than 192 levels deep"
    )
    assert said(client, a=value[0])["content"][0]["text"] == "said"
