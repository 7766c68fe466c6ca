"""A module that another thread is importing counts as not loaded."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

import pytest

from stubwright_runtime.values.modules import find_loaded

SLOW = """
import threading
began, go = threading.Event(), threading.Event()
import sys
sys.slow_import = began, go
began.set()
assert go.wait(60)
name = "whole"
"""


def test_a_module_that_is_being_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_load.py").write_text(SLOW)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "slow_import", None, raising=False)
    assert find_loaded("slow_to_load") is None
    thread = threading.Thread(target=importlib.import_module, args=("slow_to_load",))
    thread.start()
    while getattr(sys, "slow_import", None) is None:
        thread.join(0.01)
    began, go = sys.slow_import  # type: ignore[attr-defined]
    assert began.wait(60)
    assert "slow_to_load" in sys.modules
    assert find_loaded("slow_to_load") is None
    go.set()
    thread.join(60)
    assert find_loaded("slow_to_load").name == "whole"
    del sys.modules["slow_to_load"]
