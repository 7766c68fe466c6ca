"""Blame for a server's crash: calls are repeated on fresh servers, here in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from stubwright.commands.contracts.targets import CallLine
from stubwright.contract_tests import checks, runner
from stubwright.contract_tests.answers import Answer, Disconnect, Result
from stubwright.contract_tests.crashes import Crashes
from stubwright.contract_tests.probes import Call, ProbeError
from stubwright.contract_tests.reports import Fault, Report, write_command
from stubwright.contract_tests.session import BudgetError, Loss, Request, SentCall
from stubwright.importers.sources import Command

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOLS = {name: {"name": name, "inputSchema": SCHEMA} for name in "ab"}

SERVER = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "dies", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in "ab"]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "ok"}]}
    else:
        result = None
    reply = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
    if method == "tools/call" and message["params"]["name"] == "b":
        os._exit(7)  # after its answer
"""


class Servers:
    """A session whose servers end by the calls they have had, during the last call or after its answer."""

    def __init__(
        self, ends: Callable[[Sequence[str]], bool] = lambda _: False, *, is_late: bool = False, servers: int = 100
    ) -> None:
        self._ends = ends
        self._is_late = is_late
        self.servers = servers
        self.history: list[SentCall] = []
        self.calls: list[str] = []
        self.loss: Loss | None = None

    def run(self, *calls: str) -> None:
        """Lose the server after calls, such as `a:x`: the tool `a` with the argument `x`."""
        sent = [SentCall(TOOLS[call[0]], {"q": call[2:]}, float(number)) for number, call in enumerate(calls)]
        self.loss = Loss(sent, "exited with status 1", float(len(sent)))

    def pop_loss(self) -> Loss | None:
        loss, self.loss = self.loss, None
        return loss

    def count_seconds_left(self) -> float:
        return 60.0

    @contextmanager
    def limit(self, _seconds: float) -> Iterator[None]:
        yield

    async def disconnect(self) -> None:
        self.calls.clear()
        self.servers -= 1
        if self.servers < 0:
            raise BudgetError

    async def call(self, tool: Any, arguments: Any) -> Answer:
        self.calls.append(f"{tool['name']}:{arguments.get('q', '')}")
        if not self._is_late and self._ends(self.calls):
            return Disconnect("exited with status 1")
        return Result({"content": []}, 0.1, 2)

    async def ask(self, method: str, **params: Any) -> Answer:
        self.calls.append(f"{method} {params.get('name', params.get('cursor'))}")
        if not self._is_late and self._ends(self.calls):
            return Disconnect("exited with status 1")
        return Result({}, 0.1, 2)

    async def outlast(self, _seconds: float) -> Disconnect | None:
        return Disconnect("exited with status 1") if self._is_late and self._ends(self.calls) else None


def explain(servers: Any, *calls: str) -> Fault:
    crashes = Crashes(servers)
    servers.run(*calls)
    anyio.run(crashes.explain)
    [fault] = crashes.faults
    assert fault.check is checks.SURVIVES
    return fault


def has_poison(calls: Sequence[str]) -> bool:
    return any(call.startswith("a:x") for call in calls)


def test_the_call_in_progress_is_blamed_if_it_ends_a_fresh_server_alone() -> None:
    fault = explain(Servers(has_poison), "b:", "b:", "a:xyz")
    assert (fault.tool, fault.arguments, fault.message) == ("a", {"q": "x"}, "the server exited with status 1")
    assert write_command(fault, CallLine()) == """stubwright call a '{"q": "x"}'"""


def test_an_earlier_call_is_blamed_if_the_server_ends_after_its_answer() -> None:
    calls = [*(9 * ["b:"]), "a:xyz", *(11 * ["b:"])]
    fault = explain(Servers(has_poison, is_late=True), *calls)
    assert (fault.tool, fault.arguments) == ("a", {"q": "x"})
    assert fault.message.endswith("s after the response, the server exited with status 1")
    assert write_command(fault, CallLine()) == """stubwright test --call 'a {"q": "x"}'"""


def test_calls_that_only_together_end_the_server_are_listed() -> None:
    fault = explain(
        Servers(lambda calls: has_poison(calls) and calls[-1] == "b:end"), "b:", "b:", "a:x", "b:", "b:", "b:end"
    )
    assert fault.tool == "b"
    assert fault.message == "after these calls, the server exited with status 1"
    assert fault.calls == [Call("a", {"q": "x"}), Call("b", {"q": "end"})]
    line = CallLine("specs/desk.yaml", "--scope read")
    assert write_command(fault, line) == (
        """stubwright test specs/desk.yaml --call 'a {"q": "x"}' --call 'b {"q": "end"}' --scope read"""
    )


@pytest.mark.parametrize("is_late", [False, True])
def test_a_request_that_is_not_a_call_is_named(is_late: bool) -> None:
    servers: Any = Servers(lambda calls: "tools/call none" in calls, is_late=is_late)
    unknown = Request("a call of an unknown tool", "tools/call", {"name": "none"}, 0.0)
    servers.run("a:x", "b:")
    cursor = Request("`tools/list` with an unknown cursor", "tools/list", {"cursor": "none"}, 0.0)
    servers.loss = replace(servers.loss, requests=(unknown, cursor))
    crashes = Crashes(servers)
    anyio.run(crashes.explain)
    [fault] = crashes.faults
    assert (fault.tool, [*fault.calls]) == ("", [])
    assert fault.message.endswith("after a call of an unknown tool, the server exited with status 1")


@pytest.mark.parametrize("servers", [100, 1])
def test_no_tool_is_blamed_if_no_call_reproduces_the_end(servers: int) -> None:
    fault = explain(Servers(servers=servers), "a:x", "b:")
    assert (fault.tool, fault.arguments, fault.is_error) == ("", None, True)
    assert fault.message == "the server exited with status 1 during the run, and no call reproduced it"
    assert write_command(fault, CallLine()) is None


def test_a_short_budget_leaves_the_calls_that_were_found() -> None:
    fault = explain(Servers(has_poison, is_late=True, servers=2), "a:xyz", "b:")
    assert fault.calls == [Call("a", {"q": "xyz"}), Call("b", {"q": ""})]


def test_a_call_that_ends_the_server_again_is_counted() -> None:
    servers: Any = Servers(has_poison)
    crashes = Crashes(servers)
    for number in range(3):
        servers.run("b:", f"a:x{number}")
        assert anyio.run(crashes.explain) == "a"
    assert anyio.run(crashes.explain) is None
    assert [fault.count for fault in crashes.faults] == [3]


def replay(tmp_path: Path, *tools: str) -> Report:
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    calls = [Call(tool, {}) for tool in tools]
    return runner.run(runner.Plan(Command((sys.executable, str(program))), calls=calls))


def test_calls_are_made_again_and_the_end_of_the_server_is_waited_for(tmp_path: Path) -> None:
    report = replay(tmp_path, "a", "b")
    [fault] = report.faults
    assert (fault.check, fault.tool, fault.message) == (checks.SURVIVES, "b", "the server exited with status 7")
    assert [(tool.name, tool.calls, tool.skipped) for tool in report.tools] == [("a", 1, ""), ("b", 1, "")]


def test_a_call_of_a_tool_that_is_not_listed_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="there is no tool `c`"):
        replay(tmp_path, "c")


def test_the_end_of_a_server_after_the_last_call_is_noticed(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    # The last request of a run is `tools/list`.
    program.write_text(
        SERVER.replace("for line", "lists = 0\nfor line", 1).replace(
            '    if method == "tools/call" and message["params"]["name"] == "b":',
            '    lists += method == "tools/list"\n    if lists == 5:',
        )
    )
    report = runner.run(
        runner.Plan(Command((sys.executable, str(program))), tools=["a"], allows_writes=True, cases=1, budget=2)
    )
    [fault] = [fault for fault in report.faults if fault.check is checks.SURVIVES]
    assert fault.message == "the server exited with status 7 during the run, and no call reproduced it"


def test_a_tool_whose_calls_end_the_server_is_not_called_again(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    report = runner.run(
        runner.Plan(Command((sys.executable, str(program))), tools=["b"], allows_writes=True, cases=2, budget=4)
    )
    assert [fault.check for fault in report.faults if fault.tool == "b" and fault.is_error] == [checks.SURVIVES]
