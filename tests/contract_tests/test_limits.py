"""What a run judges where a server limits calls, answers in turn, or hangs: the bounds of `stubwright test`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stubwright.commands.contracts.call_lines import CallLine
from stubwright.contract_tests import checks, running
from stubwright.contract_tests.answers import Answer, Gone, Late, Limited, ProtocolError, Result, find_limit
from stubwright.contract_tests.probing import Call, ProbeError
from stubwright.contract_tests.reports import Report, show
from stubwright.importers.sources import Command

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
    return running.run(running.Plan(Command((sys.executable, str(program))), **options))


test.__test__ = False  # type: ignore[attr-defined]


def test_calls_behind_a_limit_are_not_judged(tmp_path: Path) -> None:
    report = test(tmp_path, ALWAYS, cases=20, budget=60)
    [tool] = report.tools
    assert (tool.calls, tool.limited) == (4, 1)
    assert tool.ended == f"{tool.planned - 4} not made, because of a limit of calls"
    shown = show(report, CallLine())
    assert "1 call hit a limit and was not judged" in shown
    assert "fewer than half of the planned calls were judged" in shown
    assert [fault.check for fault in report.faults if fault.is_error] == []


def test_a_limit_that_is_soon_over_is_waited_for(tmp_path: Path) -> None:
    report = test(tmp_path, SOON, cases=12, budget=60)
    [tool] = report.tools
    assert (tool.calls, tool.limited, tool.ended) == (tool.planned, 3, "")
    assert "fewer than half" not in show(report, CallLine())
    assert [fault.check for fault in report.faults if fault.is_error] == []


def test_the_budget_is_a_bound_for_the_server(tmp_path: Path) -> None:
    began = time.monotonic()
    report = test(tmp_path, HANGS, cases=2, budget=2.0, deadline=0.8)
    assert time.monotonic() - began < 60
    assert report.seconds < 30
    assert {fault.check for fault in report.faults if fault.is_error} == {checks.IN_TIME}
    assert report.tools[-1].calls == 0
    assert report.tools[-1].ended == "1 not made, because --budget is used up"


def test_a_server_that_answers_in_turn_has_no_fault(tmp_path: Path) -> None:
    report = test(tmp_path, SLOW, cases=1, budget=60, deadline=3)
    assert checks.CONCURRENT not in {fault.check for fault in report.faults}


@pytest.mark.parametrize("budget", [1.0, 1.6, 2.2, 3.0, 5.0])
def test_the_budget_may_end_at_any_request(budget: float, tmp_path: Path) -> None:
    report = test(tmp_path, SLOW, cases=1, budget=budget, deadline=3)
    assert [fault for fault in report.faults if fault.is_error] == []
    assert report.seconds < budget + 30


def test_a_probe_that_the_budget_ends_shows_nothing(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="the time of --budget is used up before `a` has answered twice"):
        test(tmp_path, SLOW, cases=1, budget=0.7, deadline=3, probe=Call("a", {"q": "x"}))


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
        (Gone("answered with HTTP status 429"), 1),
        (Gone("ended; its log: rate limit exceeded"), None),
        (_fail("q: expected a string"), None),
        (_fail("HTTP error 429"), 1),
        (_fail("There is no order 429."), None),
        (Result({"content": [{"type": "text", "text": "try again in 3 s"}]}, 0, 0), None),
        (_fail("try again in 3 s" + "x" * 500), None),
        (Late(3), None),
    ],
)
def test_words_of_limits(answer: Answer, seconds: float | None) -> None:
    assert find_limit(answer) == (None if seconds is None else Limited(seconds))
