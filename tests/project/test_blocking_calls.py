"""Detection of blocking calls in `async def` handlers, without false positives."""

from __future__ import annotations

import importlib

import pytest

from stubwright.diagnostics import Span
from stubwright.project.handwritten import blocking_calls, handlers
from stubwright.project.handwritten.handlers import HandwrittenClass

HEAD = """\
import asyncio, os, requests, socket, subprocess, time, urllib.request
import time as t
from time import sleep
from subprocess import run as start
from urllib import request
"""


def found(body: str, signature: str = "async def get(self, args, ctx):", head: str = HEAD) -> list[str]:
    """Return the warnings on a handler with their positions in it."""
    first = f"{head}class X(XHandlers):\n    {signature}\n"
    written = HandwrittenClass("x.py", f"{first}        {body}\n", "X", "XHandlers", "x_mcp")
    lines = []
    for each in handlers.compare(written, ()).diagnostics:
        if each.code == "SW430":
            assert isinstance(each.at, Span)
            line = each.at.line - first.count("\n")
            lines.append(f"{line}:{each.at.column}-{each.at.end_column} {each.message.split('`')[1]}")
    return lines


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("time.sleep(1)", ["1:9-19 time.sleep"]),
        ("t.sleep(1)", ["1:9-16 time.sleep"]),
        ("sleep(1)", ["1:9-14 time.sleep"]),
        ("'é'; return start(['true'])", ["1:21-26 subprocess.run"]),
        ("request.urlopen(x)", ["1:9-24 urllib.request.urlopen"]),
        ("urllib.request.urlopen(x).read()", ["1:9-31 urllib.request.urlopen"]),
        ("(requests\n            .get)(x)", ["2:14-17 requests.get"]),
        ("import time as now; now.sleep(1)", ["1:29-38 time.sleep"]),
        ("from time import sleep as s; s(1)", ["1:38-39 time.sleep"]),
        ("[requests.get(x) for x in y]", ["1:10-22 requests.get"]),
        ("async def inner():\n            os.system('true')", ["2:13-22 os.system"]),
        (
            "print(socket.gethostbyname(x), subprocess.check_output(x))",
            ["1:15-35 socket.gethostbyname", "1:40-63 subprocess.check_output"],
        ),
    ],
)
def test_calls_that_hold_the_loop(body: str, expected: list[str]) -> None:
    assert found(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "await asyncio.to_thread(requests.get, x)",
        "await asyncio.to_thread(lambda: requests.get(x))",
        "await asyncio.sleep(1); self.sleep(1); self.time.sleep(1); time.monotonic()",
        "def inner(): time.sleep(1)",
        "def inner():\n            async def more(): time.sleep(1)",
        "time = self.clock; time.sleep(1)",
        "for sleep in self.sleeps: sleep(1)",
        "from anyio import sleep; await sleep(1)",
        "async def inner(time): time.sleep(1)",
        "async def sleep(): ...\n        await sleep()",
        "subprocess.Popen(['true'])",
    ],
)
def test_calls_that_do_not(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    ("signature", "head"),
    [
        ("def get(self, args, ctx):", HEAD),
        ("async def get(self, args, ctx, time):", HEAD),
        ("async def __aenter__(self):", HEAD),
        ("async def get(self, args, ctx):", ""),
        ("async def get(self, args, ctx):", "from anyio import time\n"),
        ("async def get(self, args, ctx):", "from . import time\n"),
        ("async def get(self, args, ctx):", "try: import time\nexcept ImportError: time = None\n"),
        ("async def get(self, args, ctx):", "import time\nimport mine as time\n"),
    ],
)
def test_methods_and_names_that_are_something_else(signature: str, head: str) -> None:
    assert found("time.sleep(1)", signature, head) == []


def test_methods_of_a_base_class_in_the_module_count() -> None:
    text = "import time\nclass Base:\n    async def get(self): time.sleep(1)\nclass X(Base, XHandlers): ...\n"
    [said] = handlers.compare(HandwrittenClass("x.py", text, "X", "XHandlers", "x_mcp"), ()).diagnostics
    assert (said.code, said.at) == ("SW430", Span("x.py", 3, 26, 3, 36))


def test_a_helper_is_not_told_to_be_a_plain_def() -> None:
    text = "import time\nclass X(XHandlers):\n    async def _wait(self): time.sleep(1)\n"
    [said] = handlers.compare(HandwrittenClass("x.py", text, "X", "XHandlers", "x_mcp"), ()).diagnostics
    assert said.help == "write `await asyncio.sleep(…)` instead"


def test_all_that_is_listed_exists() -> None:
    for name in blocking_calls.INSTEAD:
        module, _, function = name.rpartition(".")
        if module != "requests":  # not among our dependencies
            assert callable(getattr(importlib.import_module(module), function)), name
