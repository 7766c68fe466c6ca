"""The start of a generated server: a signal too early for uvicorn, and missing packages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Final

import pytest
from conftest import ROOT

import amounts
import forked

ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "generated"), str(ROOT / "examples")])}

AT_ONCE: Final = """
import logging, os, signal, sys
number = int(sys.argv.pop())
from weather_mcp.__main__ import run

class Sender(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith("serving http"):
            os.kill(os.getpid(), number)

add = logging.Logger.callHandlers
def call_handlers(self, record):
    add(self, record)
    Sender().handle(record)
logging.Logger.callHandlers = call_handlers
run()
"""

WITHOUT: Final = """
import sys
sys.modules[sys.argv.pop()] = None
from shop_mcp.__main__ import run
run()
"""


def run_program(python: list[str], program: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*python, "-c", program, *words]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("number", amounts.sample([signal.SIGTERM, signal.SIGINT, signal.SIGHUP], 1))
def test_a_signal_between_serving_and_the_start_of_uvicorn_ends_the_server(number: int) -> None:
    done = run_program(forked.interpreter(), AT_ONCE, "--http", "127.0.0.1:0", str(number))
    assert done.returncode == 0, done.stderr
    assert "serving http://127.0.0.1:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("state", "module", "words"),
    [
        ("redis://127.0.0.1:9", "redis", "state in Redis requires the package redis"),
    ],
)
def test_a_missing_extra_is_one_line(state: str, module: str, words: str) -> None:
    done = run_program([sys.executable], WITHOUT, "--state", state, module)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"shop_mcp: {words}")
    assert "Traceback" not in done.stderr
