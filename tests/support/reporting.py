"""Prints and records test results: failures as they happen, and the CPU time of each test."""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
from collections.abc import Generator

import pytest

import amounts
import cpu
import forked
import processes

BUDGET = 3.0
"""CPU seconds that a test may use on a usual machine, unless it is marked `long`; see `cpu.estimate_slowness`."""

_SHARED = 3.0
"""CPU seconds for modules that a test imports first, and later tests of its process use."""

_FEW = 20  # modules

_ALONE = "STUBWRIGHT_TEST_ALONE"  # set where a test is run a second time

_OF_THIS_RUN = ("PYTEST_", "STUBWRIGHT_TEST_")

_LISTED = 10
_LONGEST_MESSAGE = 12  # lines
_PATIENCE = 20  # seconds for a run's processes to exit


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Measure a test's CPU time, and fail the test if it exceeds the budget twice.

    The second run is in a separate process, without the modules and garbage of other tests.

    Raises pytest.fail.Exception.
    """
    before, loaded = cpu.measure(), len(sys.modules)
    try:
        yield
    finally:
        used = cpu.measure() - before
        item.user_properties.append(("cpu", round(used, 2)))
    if used <= BUDGET or not amounts.IS_SAMPLE or item.get_closest_marker("long"):
        return
    limit = BUDGET * cpu.estimate_slowness() + (_SHARED if len(sys.modules) - loaded > _FEW else 0)
    if used > limit and (_ALONE in os.environ or not _passes_alone(item)):
        note = "" if limit == BUDGET else f" ({limit:.1f} s on this machine now)"
        pytest.fail(
            f"{item.name} used {used:.1f} s of CPU; the budget is {BUDGET:g} s{note}: reduce it, or mark it `long`"
        )


def _passes_alone(item: pytest.Item) -> bool:
    """Run a test once more in a new process, and return whether it passes."""
    faulthandler.cancel_dump_traceback_later()  # the second run has a time limit of its own
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", item.nodeid]
    variables = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THIS_RUN)}
    done = subprocess.run(
        command,
        cwd=item.config.rootpath,
        env=variables | {_ALONE: "1"},
        start_new_session=True,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


class Reporter:
    """Prints each failure when it happens, and the tests that used the most CPU time at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._used: dict[str, float] = {}
        self._left: list[str] = []
        self._mark = processes.mark_run()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a failure: the test's name, the location and the message."""
        if report.when == "call":
            self._used[report.nodeid] = float(str(dict(report.user_properties).get("cpu", 0)))
        if report.failed:
            self._print(f"FAILED {report.nodeid}", _describe_failure(report))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that leaves processes running."""
        forked.close()
        self._left = processes.list_left(self._mark, _PATIENCE)
        if self._left and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the processes that are still running, and the tests that used the most CPU time."""
        for command in self._left:
            terminalreporter.write_line(f"ERROR: the run left a process running: {command}", red=True)
        dearest = sorted(self._used.items(), key=lambda entry: -entry[1])[:_LISTED]
        if len(self._used) > _LISTED:
            terminalreporter.write_sep("-", f"CPU time of tests: {sum(self._used.values()):.0f} s, most of it in")
            for name, used in dearest:
                terminalreporter.write_line(f"{used:6.1f} s  {name}")

    def _print(self, headline: str, message: str) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if isinstance(terminal, pytest.TerminalReporter):
            terminal.ensure_newline()
            terminal.write_line(headline, red=True)
            terminal.write_line(message)


def _describe_failure(report: pytest.TestReport) -> str:
    """Return where a test failed, and the first lines of the reason."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = f"{crash.path}:{crash.lineno}: {crash.message}" if crash else report.longreprtext
    lines = text.splitlines()
    return "\n".join(f"  {line}" for line in (lines[:_LONGEST_MESSAGE] if crash else lines[-_LONGEST_MESSAGE:]))
