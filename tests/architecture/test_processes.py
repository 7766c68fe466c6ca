"""The helpers that start and stop the tests' processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from processes import await_end, list_marked, start_process

INTERRUPTED = """
import signal, sys
from processes import heed_interrupts, start_process
heed_interrupts()
command = [sys.executable, "-c", "print('begun', flush=True); import time; time.sleep(60)"]
with start_process(command, stdout=-1, stderr=-1) as child:
    child.stdout.readline()
    child.send_signal(signal.NAME)
    child.communicate(timeout=20)
    print(child.returncode)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_signals_are_heeded_below_a_shell_that_has_them_ignored(name: str) -> None:
    command = ["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", sys.executable, "-c", INTERRUPTED.replace("NAME", name)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1] / "support", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (f"{-signal.Signals[name]}\n", "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_process_that_is_left_is_found_with_its_test(has_mark: bool) -> None:
    mark = f"STUBWRIGHT_TEST_LEFT={time.time_ns()}"
    name, _, value = mark.partition("=")
    environment = {**os.environ, name: value} if has_mark else {"PATH": os.environ["PATH"]}
    orphan = f'{sys.executable} -c "import time; time.sleep(60)" >/dev/null & echo $!'
    done = subprocess.run(["sh", "-c", orphan], env=environment, stdout=-1, text=True, check=True)
    process = int(done.stdout)
    try:
        left = list_marked(mark)[process]
        assert "time.sleep(60)" in left
        assert ("test_a_process_that_is_left_is_found_with_its_test" in left) == has_mark
    finally:
        os.kill(process, signal.SIGKILL)
        await_end(process)
    assert process not in list_marked(mark)


def test_a_process_is_gone_in_the_end() -> None:
    began = time.monotonic()
    with start_process(
        [sys.executable, "-c", "import time; time.sleep(60)"], patience=0.2, stdout=subprocess.PIPE
    ) as silent:
        assert silent.communicate() == (b"", None)
        assert silent.returncode == -signal.SIGKILL
    with start_process([sys.executable, "-c", "import time; time.sleep(60)"]) as left:
        pass
    assert left.returncode == -signal.SIGKILL
    assert time.monotonic() - began < 30


EXPENSIVE = """
import os, time

def burn():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass

def test_once():
    if "STUBWRIGHT_TEST_ALONE" not in os.environ:
        burn()

def test_always():
    burn()
"""


@pytest.mark.long
def test_a_test_over_the_budget_runs_alone_before_it_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import cpu, reporting\n"
        "reporting.BUDGET, cpu.estimate_slowness = 0.2, lambda: 1.0\n"
        "pytest_runtest_call = reporting.pytest_runtest_call\n"
    )
    (tmp_path / "test_expensive.py").write_text(EXPENSIVE)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("STUBWRIGHT_WHOLE")}
    variables |= {"PYTHONPATH": str(Path(__file__).parents[1] / "support"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "test_always used 0." in done.stdout
    assert "the budget is 0.2 s: reduce it, or mark it `long`" in done.stdout
