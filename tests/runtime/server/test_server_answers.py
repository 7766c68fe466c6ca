"""Questions of a server process: an answer belongs to one call, and a disconnected client ends the wait."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

import amounts
from packages import generate, logging_server, manifest, tool
from server_fixture import ENVELOPE, HELLO
from server_process import Process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WHO = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CAN: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}

HANDLERS = """
import asyncio, sys
from process_mcp import ProcessHandlers
from stubwright_runtime.server.transports.stdio import connection

connection._DRAIN_SECONDS = 60  # so that a server that waits for them does not end in time

class Handlers(ProcessHandlers):
    async def greet(self, args, ctx):
        for _ in range(args.times):
            try:
                who = await ctx.ask.who()
            except Exception as error:
                print("FAILED", error, file=sys.stderr, flush=True)
        return "Hello " + who.name

    async def report(self, args, ctx):
        await asyncio.sleep(0.3)
        for done in (1, 2):
            await ctx.progress(done, 2, "working")
            await ctx.log("error", "working")
        return "all done"

    async def pay(self, args, ctx):
        print("PAID", args.sum, file=sys.stderr, flush=True)
        await asyncio.sleep(0.1)
        return f"paid {args.sum}"

    async def loaded(self, args, ctx):
        who = await ctx.ask.who()
        return who.name + ": " + " ".join(name for name in ("cryptography", "mcp.server") if name in sys.modules)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    ask = {"ask": {"who": {"message": "Who are you?", "schema": WHO}}}
    tools = [
        tool("greet", {"times": {"type": "integer", "default": 1}}, stubwright=ask),
        tool("report"),
        tool("pay", {"sum": {"type": "integer"}}, stubwright={"policy": {"confirm": True}}),
        tool("loaded", stubwright=ask),
    ]
    generate(
        folder, manifest(tools, server=logging_server("process"), emit=["server"], python={"handlers": "desk:Handlers"})
    )
    (folder / "desk.py").write_text(HANDLERS)
    return folder


@pytest.fixture
def process(project: Path) -> Iterator[Process]:
    started = Process(project)
    yield started
    started.kill()


@pytest.mark.parametrize("times", [1, 3])
def test_a_client_that_leaves_an_open_question_ends_the_server_at_once(process: Process, times: int) -> None:
    process.send("initialize", {**HELLO, "capabilities": CAN, "protocolVersion": "2025-11-25"})
    assert process.receive()["id"] == 1
    process.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')  # it is asked nothing before
    process.call("greet", times=times)
    assert process.receive()["method"] == "elicitation/create"
    process.close()
    status, log, rest = process.end()
    assert status == 0
    assert log.count("FAILED the client refused elicitation/create: the client has disconnected") == times
    (answer,) = map(json.loads, rest.splitlines())
    assert answer["id"] == 2
    assert answer["result"]["isError"] is True


def test_a_question_after_the_client_left_fails_at_once(process: Process) -> None:
    process.send("initialize", {**HELLO, "capabilities": CAN, "protocolVersion": "2025-11-25"})
    assert process.receive()["id"] == 1
    process.call("pay", sum=3)
    process.close()
    status, log, rest = process.end()
    assert status == 0
    assert "PAID" not in log
    assert "requires the user's confirmation. The client's answer was missing or invalid" in rest.decode()


@pytest.mark.parametrize("stateless", [False, True])
def test_what_is_told_after_the_last_byte_of_input_comes_before_the_answer(process: Process, stateless: bool) -> None:
    """As in `printf … | python -m server`: the handler is not broken off."""
    meta: dict[str, Any] = {"progressToken": "t"}
    if stateless:
        meta |= {**ENVELOPE, "io.modelcontextprotocol/logLevel": "info"}
    else:
        process.send("initialize", {**HELLO, "protocolVersion": "2025-11-25"})
        assert process.receive()["id"] == 1
    process.send("tools/call", {"name": "report", "arguments": {}, "_meta": meta})
    process.close()
    status, log, rest = process.end()
    *told, answer = map(json.loads, rest.splitlines())
    assert (status, "rror" in log) == (0, False), log
    assert [line["method"] for line in told] == ["notifications/progress", "notifications/message"] * 2
    assert answer["result"]["content"] == [{"type": "text", "text": "all done"}]


YES = {"stubwright.confirm": {"action": "accept", "content": {"confirm": True}}}
CALL = {"name": "pay", "arguments": {"sum": 3}}
META = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": CAN}


def test_an_answer_fits_one_call_over_stdio(process: Process) -> None:
    process.send("tools/call", {**CALL, "_meta": META})
    state = process.receive()["result"]["requestState"]
    for _ in range(3):  # immediately, because no call waits for the first
        process.send("tools/call", {**CALL, "_meta": META, "requestState": state, "inputResponses": YES})
    refused(process.receive() for _ in range(3))
    process.close()
    _, log, _ = process.end()
    assert log.count("PAID") == 1


def test_an_answer_fits_one_call_of_many_clients_over_http(project: Path) -> None:
    process = Process(project, "--http", "127.0.0.1:0")
    try:
        url = process.url()
        state = post(url, {**CALL, "_meta": META})["result"]["requestState"]
        answered = {**CALL, "_meta": META, "requestState": state, "inputResponses": YES}
        answers: list[dict[str, Any]] = []
        threads = [threading.Thread(target=lambda: answers.append(post(url, answered))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refused(iter(answers))
        assert post(url, answered)["error"] == post(url, {**answered, "requestState": f"{state}x"})["error"]
    finally:
        process.kill()


@pytest.mark.parametrize("http", amounts.sample([False, True], 1))
def test_a_question_does_not_load_the_server_of_the_sdk(project: Path, http: bool) -> None:
    process = Process(project, *(("--http", "127.0.0.1:0") if http else ()), python=[sys.executable])
    try:
        url = process.url() if http else None
        call = {"name": "loaded", "arguments": {}, "_meta": META}
        state = round_(process, url, call)["requestState"]
        who = {"who": {"action": "accept", "content": {"name": "Ada"}}}
        result = round_(process, url, {**call, "requestState": state, "inputResponses": who})
        assert result["content"] == [{"type": "text", "text": "Ada: cryptography"}]
    finally:
        process.kill()


def round_(process: Process, url: str | None, params: dict[str, Any]) -> Any:
    if url is not None:
        return post(url, params)["result"]
    process.send("tools/call", params)
    return process.receive()["result"]


def post(url: str, params: dict[str, Any]) -> dict[str, Any]:
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": params["name"],
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    text = httpx2.post(url, json=message, headers=headers, timeout=60).text
    lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith(("data: {", "{"))]
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def refused(answers: Iterator[dict[str, Any]]) -> None:
    """One call was made, and all others were refused as one with a forged state is."""
    made, *others = sorted(answers, key=lambda answer: "error" in answer)
    assert made["result"]["content"] == [{"type": "text", "text": "paid 3"}]
    assert others
    error = {
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": {"reason": "invalid_request_state"},
    }
    assert [other["error"] for other in others] == [error] * len(others)
