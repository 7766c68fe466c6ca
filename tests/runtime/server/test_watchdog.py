"""The log names the handler that blocks the event loop."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mcp
import pytest

import amounts
import prompt_ends
from packages import generate, imported, manifest, tool
from server_fixture import HELLO
from server_process import Process
from serving import asgi
from stubwright_runtime.server.calls import watchdog
from stubwright_runtime.server.calls.watchdog import SWITCH, watch_loop

ends_are_prompt = prompt_ends.ends_are_prompt

TOOLS = [tool("get_book"), tool("wait_for_book"), tool("find_book")]

HANDLERS = """
import os, time
from process_mcp import ProcessHandlers

class Handlers(ProcessHandlers):
    async def get_book(self, args, ctx):
        while not os.path.exists("told"): time.sleep(0.05)
        return "a book"

    async def wait_for_book(self, args, ctx):
        return ""

    def find_book(self, args, ctx):
        return ""
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("held")
    generate(folder, manifest(TOOLS, name="process", emit=["server"], python={"handlers": "library:Handlers"}))
    (folder / "library.py").write_text(HANDLERS)
    return folder


@pytest.fixture(scope="module")
def package(project: Path) -> Iterator[ModuleType]:
    with imported(project, "process_mcp") as module:
        yield module


class Handlers:
    async def get_book(self, args: Any, ctx: Any) -> str:
        for _ in range(2):  # of one call, the first is reported
            time.sleep(0.4)  # noqa: ASYNC251 - the fault that is looked for
            await asyncio.sleep(0.1)
        return "a book"

    async def wait_for_book(self, args: Any, ctx: Any) -> str:
        await asyncio.sleep(0.5)
        return "a book"

    def find_book(self, args: Any, ctx: Any) -> str:
        time.sleep(0.5)
        return "a book"


class Wrapped(Handlers):
    async def around(self, call: Any, proceed: Any) -> Any:
        return await proceed()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "HELD", 0.2)
    monkeypatch.setattr(watchdog, "_PAUSE", 0.05)


def call_over_http(package: ModuleType, handlers: object, *names: str, mode: Any = "legacy") -> None:
    async def call(url: str) -> None:
        async with mcp.Client(url, mode=mode) as client:
            for name in names:
                assert not (await client.call_tool(name, {})).is_error

    with asgi(package.asgi_app(handlers)) as url:
        asyncio.run(call(f"{url}/mcp"))


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "event loop" in record.getMessage()]


@pytest.mark.parametrize(
    ("handlers", "mode"),
    [
        (Handlers, "legacy"),
        (Wrapped, "2026-07-28"),
        amounts.mark_long((Handlers, "2026-07-28")),
        amounts.mark_long((Wrapped, "legacy")),
    ],
)
def test_a_handler_that_holds_the_loop_is_named_once_for_each_call(
    mode: str, handlers: type, package: ModuleType, impatient: None, caplog: pytest.LogCaptureFixture
) -> None:
    call_over_http(package, handlers(), "get_book", "get_book", mode=mode)
    first, second = reports(caplog)
    assert re.match(
        r"the event loop has been blocked for 0\.2 s by get_book \(test_watchdog\.py:\d+\), "
        r"so all other calls wait; write it as a plain `def`, which runs in a thread, "
        r"or await asynchronous calls\n",
        first,
    )
    assert "time.sleep(0.4)" in first.splitlines()[-1]
    assert "invocation.py" not in first, "the stack begins with the handler"
    assert first == second


def test_handlers_that_wait_or_run_in_threads_hold_nothing(
    package: ModuleType, impatient: None, caplog: pytest.LogCaptureFixture
) -> None:
    call_over_http(package, Handlers(), "wait_for_book", "find_book")
    assert reports(caplog) == []


def test_a_loop_has_one_watchdog_which_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def watchdogs() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "stubwright-watchdog"]

    async def watch() -> int:
        with watch_loop("a"), watch_loop("b"):
            return len(watchdogs())

    def find_living() -> list[threading.Thread]:
        """Return the threads that still run; closing a loop stops its thread."""
        for thread in watchdogs():
            thread.join(60)
        return watchdogs()

    assert find_living() == []
    assert asyncio.run(watch()) == 1
    assert find_living() == []
    monkeypatch.setenv(SWITCH, "0")
    assert asyncio.run(watch()) == 0


def test_a_debugger_may_hold_the_loop(impatient: None, caplog: pytest.LogCaptureFixture) -> None:
    namespace: dict[str, Any] = {"__name__": "bdb", "time": time}
    exec("def wait_for_person():\n    time.sleep(0.5)", namespace)

    async def debug() -> None:
        with watch_loop("a"):
            namespace["wait_for_person"]()

    asyncio.run(debug())
    assert reports(caplog) == []


def test_what_is_no_handler_is_named_by_where_it_stands(impatient: None, caplog: pytest.LogCaptureFixture) -> None:
    async def hold() -> None:
        with watch_loop("a"):
            time.sleep(0.5)  # noqa: ASYNC251 - the fault that is looked for

    asyncio.run(hold())
    (report,) = reports(caplog)
    assert "by hold (test_watchdog.py:" in report
    assert "plain `def`" not in report


def test_a_server_on_stdio_says_what_holds_it(project: Path) -> None:
    process = Process(project)
    try:
        process.send("initialize", {**HELLO, "protocolVersion": "2025-11-25"})
        assert process.receive()["id"] == 1
        process.call("get_book")
        process.await_log("the event loop has been blocked for 2 s by get_book (library.py:7)")
        (project / "told").touch()
        assert process.receive()["result"]["content"][0]["text"] == "a book"
    finally:
        process.kill()
