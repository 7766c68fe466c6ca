"""`breakpoint()` in a server over stdio: ignored, except with an already configured debugger."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from stubwright_runtime.server.transports.stdio.breakpoints import ignore_breakpoints


def stop(*_: Any, **__: Any) -> None:
    """Stand in for a debugger."""


@pytest.fixture(autouse=True)
def no_debugger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)


def test_it_is_passed_over_until_the_end_of_the_block(caplog: pytest.LogCaptureFixture) -> None:
    with ignore_breakpoints():
        breakpoint()
    assert re.search(r"test_breakpoints\.py:\d+: breakpoint\(\) was ignored", caplog.text)
    assert sys.breakpointhook is sys.__breakpointhook__


def test_a_debugger_that_is_there_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """debugpy and PyCharm set the hook when they are imported, before the server runs."""
    monkeypatch.setattr(sys, "breakpointhook", stop)
    with ignore_breakpoints():
        assert sys.breakpointhook is stop


def test_a_debugger_that_the_environment_names_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONBREAKPOINT", f"{__name__}.stop")
    with ignore_breakpoints():
        assert sys.breakpointhook is sys.__breakpointhook__
