"""The bounds of `stubwright test` with servers that limit calls, answer sequentially, or hang."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

import amounts
from command_line import stubwright
from stubwright.commands.contracts.targets import CallLine
from stubwright.contract_tests import checks, runner
from stubwright.contract_tests.answers import (
    Answer,
    Disconnect,
    ProtocolError,
    RateLimitRefusal,
    Result,
    Timeout,
    find_limit,
)
from stubwright.contract_tests.probes import Call, ProbeError
from stubwright.contract_tests.reports import Report, show
from stubwright.importers.sources import Command
from stubwright_runtime.client.core.connect_errors import Busy, Unreachable
from stubwright_runtime.client.rpc.mcp_error import MCPError
from stubwright_runtime.client.transports.refusals import find_refusal
from stubwright_runtime.client.transports.replies import HttpRequest, Reply
from stubwright_runtime.server.main import main
from stubwright_runtime.values.units import parse_retry_after

SERVER = """
import json, sys, time
TOOL = {"description": "d", "annotations": {"readOnlyHint": True}, "inputSchema": {
    "type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}}
calls = 0

def answer(arguments):
    if set(arguments) != {"q"} or not isinstance(arguments["q"], str):
        return fail("q: expected a string")
    return {"content": [{"type": "text", "text": "ok"}]}

def fail(text):
    return {"isError": True, "content": [{"type": "text", "text": text}]}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "limited", "version": "1"}}
    elif method == "tools/list" and "cursor" not in params:
        result = {"tools": [{"name": name, **TOOL} for name in NAMES]}
    elif method == "tools/call" and params["name"] in NAMES:
        calls += 1
        result = call(params.get("arguments", {}))
    else:
        result = None
    reply = {"result": result} if result else {"error": {"code": -32602, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
"""

ALWAYS = (
    'NAMES = ["a"]\ndef call(arguments):\n    return answer(arguments) if calls <= 3 else fail("try again in 900 s")\n'
)
SOON = """
NAMES = ["a"]
refusals = 0
def call(arguments):
    global refusals
    if calls % 4 == 0 and refusals < 3:
        refusals += 1
        return fail("a may be called 3 times in a second, and can be called again: try again in 0.1 s")
    return answer(arguments)
"""
HANGS = 'NAMES = [f"t{n}" for n in range(12)]\ndef call(arguments):\n    time.sleep(3600)\n'
SLOW = 'NAMES = ["a"]\ndef call(arguments):\n    time.sleep(0.5)\n    return answer(arguments)\n'


def test(tmp_path: Path, part: str, **options: Any) -> Report:
    program = tmp_path / "server.py"
    head, _, loop = SERVER.partition("for line in")
    program.write_text(f"{head}\n{part}\nfor line in{loop}")
    return runner.run(runner.Plan(Command((sys.executable, str(program))), **options))


test.__test__ = False  # type: ignore[attr-defined]


def test_calls_behind_a_limit_are_not_judged(tmp_path: Path) -> None:
    report = test(tmp_path, ALWAYS, cases=20, budget=60)
    [tool] = report.tools
    assert (tool.calls, tool.limited) == (4, 1)
    assert tool.ended == f"{tool.planned - 4} not made, because of a rate limit"
    shown = show(report, CallLine())
    assert "1 call hit a rate limit and was not checked" in shown
    assert "fewer than half of the planned calls were checked" in shown
    assert [fault.check for fault in report.faults if fault.is_error] == []


def test_a_limit_that_is_soon_over_is_waited_for(tmp_path: Path) -> None:
    report = test(tmp_path, SOON, cases=12, budget=60)
    [tool] = report.tools
    assert (tool.calls, tool.limited, tool.ended) == (tool.planned, 3, "")
    assert "fewer than half" not in show(report, CallLine())
    assert [fault.check for fault in report.faults if fault.is_error] == []


ONCE = """
NAMES = ["a"]
keys = []
def call(arguments):
    time.sleep(0.002)
    result = answer(arguments)
    key = params.get("_meta", {}).get("io.modelcontextprotocol/idempotencyKey")
    keys.append(key)
    return answer_again(result) if key is not None and keys.count(key) == 2 else result

def answer_again(result):
    return ANSWER
"""
MARKED = '{**result, "_meta": {"io.stubwright/replayed": True}}'


@pytest.mark.parametrize(
    ("again", "once", "words"),
    [
        (MARKED, {"key": "request"}, None),
        (MARKED, {"key": ["q"]}, None),
        ("result", {"key": ["unsent"]}, None),
        ("result", {"key": "request", "for": "1ms"}, None),
        (
            "result",
            {"key": "request"},
            "the result of the repeated call has no `io.stubwright/replayed` in its `_meta`",
        ),
        (MARKED.replace("{**result", '{"content": []'), {"key": ["q"]}, "the repeated call returned a new result"),
        ("None", {"key": "all"}, "the repeated call returned no result"),
    ],
)
def test_a_repeated_call_of_a_tool_with_once(
    again: str, once: dict[str, Any], words: str | None, tmp_path: Path
) -> None:
    report = test(tmp_path, ONCE.replace("ANSWER", again), cases=2, once={"a": once})
    assert [fault.message for fault in report.faults if fault.check is checks.ONCE] == ([words] if words else [])


@pytest.mark.long
def test_the_budget_is_a_bound_for_the_server(tmp_path: Path) -> None:
    began = time.monotonic()
    report = test(tmp_path, HANGS, cases=2, budget=2.0, deadline=0.8)
    assert time.monotonic() - began < 60
    assert report.seconds < 30
    assert {fault.check for fault in report.faults if fault.is_error} == {checks.IN_TIME}
    assert report.tools[-1].calls == 0
    assert report.tools[-1].ended == "1 not made, because the --budget time was used up"


def test_a_server_that_answers_in_turn_has_no_fault(tmp_path: Path) -> None:
    report = test(tmp_path, SLOW, cases=1, budget=60, deadline=3)
    assert checks.CONCURRENT not in {fault.check for fault in report.faults}


@pytest.mark.parametrize("budget", amounts.sample([1.0, 1.6, 2.2, 3.0, 5.0], 2))
def test_the_budget_may_end_at_any_request(budget: float, tmp_path: Path) -> None:
    report = test(tmp_path, SLOW, cases=1, budget=budget, deadline=3)
    assert [fault for fault in report.faults if fault.is_error] == []
    assert report.seconds < budget + 30


def test_a_probe_that_the_budget_ends_shows_nothing(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="the --budget time was used up before `a` responded twice"):
        test(tmp_path, SLOW, cases=1, budget=0.7, deadline=3, probe=Call("a", {"q": "x"}))


@pytest.mark.parametrize("has_message", [False, True])
@pytest.mark.parametrize("status", [429, 503])
def test_the_wait_of_an_http_answer_is_read(status: int, has_message: bool) -> None:
    request = HttpRequest("POST", httpx2.URL("http://127.0.0.1/mcp"), {"host": "127.0.0.1"})
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "calm down", "data": 5}}
    body = json.dumps(error).encode() if has_message else b"calm down"
    kind = "application/json" if has_message else "text/plain"
    headers = {"Retry-After": "7", "Content-Type": kind}
    refusal = find_refusal(request, Reply.wrap(httpx2.Response(status, headers=headers)), "tools/call", body)
    assert refusal is not None
    own = MCPError(-32000, "calm down", 5)
    explained = replace(refusal, data=5).to_error(own)
    assert isinstance(explained, Busy if has_message else Unreachable)
    assert (explained.retry_after, explained.status, explained.code, explained.data) == (7, status, -32000, 5)


@pytest.mark.parametrize(
    ("text", "least", "most"), [(" 7 ", 7, 7), ("0", 0, 0), (formatdate(0, usegmt=True), 0, 0), ("FUTURE", 80, 90)]
)
def test_retry_after_is_a_number_or_a_date(text: str, least: float, most: float) -> None:
    seconds = parse_retry_after(text.replace("FUTURE", formatdate(time.time() + 90, usegmt=True)))
    assert seconds is not None
    assert least <= seconds <= most


@pytest.mark.parametrize("text", [None, "", "soon", "-1", "1.5", "9" * 9])
def test_other_texts_are_no_retry_after(text: str | None) -> None:
    assert parse_retry_after(text) is None


def test_a_rate_spaces_calls_and_ends_with_the_budget(tmp_path: Path) -> None:
    report = test(tmp_path, 'NAMES = ["a"]\ncall = answer\n', cases=20, budget=0.5, rate=10)
    [tool] = report.tools
    assert tool.calls < 6
    assert tool.ended.endswith("because the --budget time was used up")


def test_the_server_of_a_manifest_is_tested_without_its_limits(tmp_path: Path) -> None:
    (tmp_path / "desk.yaml").write_text(
        """stubwright: 1
shorthand: true
server: {name: desk, version: "1"}
policy: {rateLimit: 2/hour, concurrency: 1}
tools:
  - name: look
    annotations: {readOnlyHint: true}
    description: Look at a thing.
    input: {thing: string}
"""
    )
    (tmp_path / "desk.py").write_text("class Desk:\n    async def look(self, ctx, args):\n        return 'seen'\n")
    assert stubwright("generate", "desk.yaml", cwd=tmp_path).returncode == 0
    words = ("--format", "json", "--cases", "12", "--handlers", "desk:Desk")
    done = stubwright("test", "desk.yaml", *words, cwd=tmp_path)
    assert done.stdout, done.stderr
    [report] = json.loads(done.stdout)["servers"]
    [tool] = report["tools"]
    assert (tool["valid"] + tool["invalid"], tool["limited"], tool["refused"]) == (12, 0, 0)


def test_a_server_over_http_keeps_its_limits() -> None:
    package: Any = SimpleNamespace(name="desk_mcp", manifest={"server": {"name": "desk", "version": "1"}})
    package.handlers, package.has_tasks = None, False
    with pytest.raises(SystemExit) as end:
        main(package, ["--http", "127.0.0.1:0", "--no-limits"])
    assert end.value.code == 2


def _fail(text: str) -> Result:
    return Result({"isError": True, "content": [{"type": "text", "text": text}]}, 0, 0)


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (_fail("hit may be called 100 times in a minute, and can be called again: try again in 12 s"), 12),
        (_fail("Error: Rate limit exceeded"), 1),
        (_fail("429 Too Many Requests (Retry-After: 7)"), 7),
        (_fail("Too many calls. Try again in 2 minutes."), 120),
        (_fail("Try again in 250ms"), 0.25),
        (ProtocolError(-32000, "rate limited", None, 0), 1),
        (ProtocolError(-32000, "no", {"retryAfter": 3}, 0), 3),
        (_fail("rateLimit: expected a number"), None),
        (Disconnect("answered with HTTP status 429"), 1),
        (Disconnect("answered with HTTP status 503", 7.0), 7),
        (Disconnect("answered with HTTP status 503"), None),
        (ProtocolError(-32000, "calm down", None, 0, 4.0), 4),
        (Disconnect("ended; its log: rate limit exceeded"), None),
        (_fail("q: expected a string"), None),
        (_fail("HTTP error 429"), 1),
        (_fail("Request was rejected: 429"), 1),
        (_fail('{"error": {"code": 429}}'), 1),
        (_fail("rate_limit_exceeded"), 1),
        (_fail("RateLimitError: slow down"), 1),
        (_fail("You have exceeded your rate limit."), 1),
        (_fail("rate limit of 10/min exceeded"), 1),
        (_fail("ThrottlingException"), 1),
        (_fail("limit of 10 calls per second reached"), 1),
        (_fail("Request limit reached"), 1),
        (_fail("RESOURCE_EXHAUSTED"), 1),
        (_fail("Too many requests, please wait 2 seconds"), 2),
        (_fail("Please try again after 3 seconds"), 3),
        (_fail("Retry in 4s."), 4),
        (_fail("Retry after 500 milliseconds"), 0.5),
        (_fail("try again in 1 day"), 86400),
        (_fail("nothing about retry-after and rate limiting was found"), None),
        (_fail("rate_limit: must be a number"), None),
        (_fail("limit: expected at most 100"), None),
        (_fail("wait: expected an integer"), None),
        (_fail("There is no order 429."), None),
        (Result({"content": [{"type": "text", "text": "try again in 3 s"}]}, 0, 0), None),
        (_fail("try again in 3 s" + "x" * 500), None),
        (Timeout(3), None),
    ],
)
def test_words_of_limits(answer: Answer, seconds: float | None) -> None:
    assert find_limit(answer) == (None if seconds is None else RateLimitRefusal(seconds))
