"""Runs MCP's official conformance suite against a generated server, and parses its findings.

The suite is a Node program, which `npx` fetches; later runs start its entry file with the same Node. The suite alone
decides what is correct; this module has no expectations.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conftest import ROOT

import forked

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
FINE = frozenset({"SUCCESS", "INFO", "SKIPPED"})  # a WARNING is a SHOULD that the server does not keep

_FETCH = ("npx", "-y", "-p", "node@22", "-p", SUITE, "-c", "command -v node && command -v conformance")
_START = 60  # seconds
_RUN = 900  # seconds; a hanging scenario ends after the suite's own 30
_SERVING = re.compile(r"serving (http://\S+)")
_STARTED = re.compile(r"^=== Running scenario: (\S+) ===$", re.MULTILINE)
_FOLDER = re.compile(r"server-(.+)-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-\d{3}Z")


class NotRunError(Exception):
    """The suite, or the server that it was to judge, did not run."""


@dataclass(frozen=True, slots=True)
class Check:
    """The suite's result of one check."""

    scenario: str
    id: str
    status: str
    message: str

    def __str__(self) -> str:
        return textwrap.shorten(f"{self.scenario}: {self.id}: {self.status}: {self.message}", 1000)


@contextmanager
def serving(package: str, paths: Sequence[Path], log: Path, *options: str) -> Iterator[str]:
    """Run a package's server over HTTP on a free port, and yield its URL.

    Args:
        package: The package's name.
        paths: The folders of the package and its handlers.
        log: The file for the server's standard error.
        options: More options of the server.

    Raises:
        NotRunError: The server does not start.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [*forked.interpreter(), "-m", package, "--http", "127.0.0.1:0", *options]
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=stderr)
    try:
        yield _url(process, log)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _url(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + _START
    while time.monotonic() < end:
        ended = process.poll()
        said = log.read_text("utf-8", "replace")
        if ended is not None:
            raise NotRunError(f"the server ended with {ended}:\n{said}")
        serves = _SERVING.search(said)
        if serves and "startup complete" in said:
            return serves[1]
        time.sleep(0.05)
    raise NotRunError(f"the server did not start within {_START} s:\n{said}")


def fetch() -> list[str]:
    """The command of the suite, which is fetched where it is not there yet.

    Raises:
        NotRunError: It cannot be had.
    """
    if shutil.which(_FETCH[0]) is None:
        raise NotRunError("there is no npx, with which the conformance suite is fetched and run")
    done = subprocess.run(_FETCH, capture_output=True, text=True)
    if done.returncode:
        raise NotRunError(f"npx cannot fetch the conformance suite:\n{done.stderr}")
    node, entry = done.stdout.split()
    return [node, str(Path(entry).resolve())]


def judge(suite: Sequence[str], url: str, revision: str, folder: Path) -> list[Check]:
    """Return all checks of the suite for a revision in its order, including checks without a score.

    Args:
        suite: The command of the suite.
        url: The server's URL.
        revision: The revision of the protocol, such as `2026-07-28`.
        folder: An empty folder for the suite's output.

    Raises:
        NotRunError: The suite failed to run.
    """
    command = [*suite, "server", "--url", url, "--requirements", revision, "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN)
    if "=== SUMMARY ===" not in done.stdout:
        raise NotRunError(
            f"the conformance suite ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return read(folder, _STARTED.findall(done.stdout))


def judge_one(suite: Sequence[str], url: str, revision: str, scenario: str, folder: Path) -> list[Check]:
    """Return the checks of one scenario, even if the suite does not assign it to the revision; otherwise as `judge`.

    Args:
        suite: The command of the suite.
        url: The server's URL.
        revision: The revision of the protocol.
        scenario: Its name.
        folder: An empty folder for the suite's output.
    """
    options = ("--scenario", scenario, "--spec-version", revision, "--force", "-o", str(folder))
    done = subprocess.run([*suite, "server", "--url", url, *options], capture_output=True, text=True, timeout=_RUN)
    if "Test Results:" not in done.stdout:
        raise NotRunError(
            f"the conformance suite ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return read(folder, [scenario])


def read(folder: Path, scenarios: Sequence[str]) -> list[Check]:
    """Return the checks in a folder of the suite's output.

    Args:
        folder: The folder.
        scenarios: The scenarios that ran. A crashed scenario has no result, which counts as a failed check.
    """
    results: dict[str, Path] = {}
    for path in folder.glob("*/checks.json"):
        if name := _FOLDER.fullmatch(path.parent.name):
            results[name[1]] = path
    checks: list[Check] = []
    for scenario in scenarios:
        found = json.loads(results[scenario].read_text("utf-8")) if scenario in results else []
        checks += [
            Check(scenario, check["id"], check["status"], check.get("errorMessage") or check["description"])
            for check in found
        ]
        if not found:
            checks.append(Check(scenario, "result", "FAILURE", "the scenario gave no result"))
    return checks


def paths() -> list[Path]:
    """Where the generated packages and their handlers are."""
    return [ROOT / "generated", ROOT / "examples"]
