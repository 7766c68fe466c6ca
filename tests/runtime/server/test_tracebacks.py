"""Logged tracebacks have the handler's frames without the runtime's."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stubwright_runtime
from packages import generate, manifest, tool
from server_fixture import HELLO
from server_process import Process
from stubwright_runtime.observability.tracebacks import format_folded
from stubwright_runtime.values.units import parse_rate

HANDLERS = """
from process_mcp import ProcessHandlers

class Handlers(ProcessHandlers):
    async def fail(self, args, ctx):
        try:
            await ctx.once("key", self.count)
        except ZeroDivisionError as error:
            raise RuntimeError("no books") from error

    async def count(self):
        return 1 / 0
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced")
    generate(folder, manifest([tool("fail")], name="process", emit=["server"], python={"handlers": "shop:Handlers"}))
    (folder / "shop.py").write_text(HANDLERS)
    return folder


@pytest.fixture(params=["info", "debug"])
def log(request: pytest.FixtureRequest, project: Path) -> Iterator[tuple[str, str]]:
    process = Process(project, "--log-level", request.param)
    process.send("initialize", {**HELLO, "protocolVersion": "2025-11-25"})
    process.call("fail")
    for _ in range(2):  # a server whose input ends gives a call two seconds, which a busy machine needs to start
        process.receive()
    process.close()
    yield request.param, process.end()[1]
    process.kill()


def test_frames_of_the_runtime_are_folded_below_the_level_debug(log: tuple[str, str]) -> None:
    level, text = log
    assert 'shop.py", line 7, in fail' in text
    assert 'shop.py", line 12, in count' in text
    assert "RuntimeError: no books" in text
    assert "The above exception was the direct cause" in text
    is_folded = level != "debug"
    assert ("/server/calls/invocation.py" in text) is not is_folded
    folds = re.findall(r"^ +\(\d+ frames? of stubwright_runtime; --log-level debug shows them\)$", text, re.MULTILINE)
    assert len(folds) == (2 if is_folded else 0), "before the handler, and between it and what it had called"


def test_a_traceback_that_ends_in_the_runtime_is_whole() -> None:
    with pytest.raises(KeyError) as caught:
        parse_rate("1/eon")
    assert format_folded(caught.value) == "".join(traceback.format_exception(caught.value)).rstrip("\n")


def test_the_parts_of_a_group_are_folded() -> None:
    ours: dict[str, Any] = {}
    exec(compile("def call(function): function()", str(Path(stubwright_runtime.__path__[0], "x.py")), "exec"), ours)
    try:
        ours["call"](lambda: 1 / 0)
    except ZeroDivisionError as error:
        text = format_folded(ExceptionGroup("several", [error]))
    assert text.count("(1 frame of stubwright_runtime;") == 1
    assert "x.py" not in text
