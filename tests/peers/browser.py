"""Runs a real headless Chromium.

Prefers a browser on the `PATH`, or else fetches `@sparticuz/chromium`, an npm package for Linux, with `npx`.
Playwright, the driver, and axe-core, the accessibility checker, also come from npm.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_NODE = "node@22"
_PLAYWRIGHT = "playwright-core@1.65.1"
_CHROMIUM = "@sparticuz/chromium@147.0.0"
_AXE = "axe-core@4.14.1"
_INSTALLED = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FETCH = ("npx", "-y", "-p", _NODE, "-p", _PLAYWRIGHT, "-p", _CHROMIUM, "-p", _AXE)
_RUN = 120  # seconds


class NotThereError(Exception):
    """There is no browser."""


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser: the Node that drives it, the folder of its modules, and its program, if it was on the `PATH`."""

    node: Path
    modules: Path
    program: str | None

    def run(self, script: Path, url: str, ready: Callable[[], object] | None = None) -> Any:
        """What a script of ours says, as JSON, of a page; `ready` is called when it prints `READY`.

        Raises:
            AssertionError: The script failed.
        """
        environment = {**os.environ, "MODULES": str(self.modules), "CHROMIUM": self.program or ""}
        command = [str(self.node), str(script), url]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        ) as process:
            assert process.stdout is not None
            timer = threading.Timer(_RUN, process.kill)
            timer.start()
            try:
                if ready is not None and process.stdout.readline() == "READY\n":
                    ready()
                printed, errors = process.communicate()
            finally:
                timer.cancel()
        assert process.returncode == 0, f"{errors}\n{printed}"
        return json.loads(printed)


def find_once(factory: pytest.TempPathFactory) -> Browser:
    """Find a browser, or fetch one once, however many processes the tests run in; skip where there is none."""
    with (factory.getbasetemp().parent / "browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return find()
        except NotThereError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(error))


def find() -> Browser:
    """Find a browser, or fetch one.

    Raises:
        NotThereError: There is none.
    """
    if shutil.which(_FETCH[0]) is None:
        raise NotThereError("there is no npx, with which Playwright and a Chromium are fetched")
    done = subprocess.run(
        [*_FETCH, "-c", "command -v node && command -v playwright-core"], capture_output=True, text=True
    )
    if done.returncode:
        raise NotThereError(f"npx cannot fetch Playwright and a Chromium:\n{done.stderr}")
    node, entry = map(Path, done.stdout.split())
    program = next((found for name in _INSTALLED if (found := shutil.which(name))), None)
    return Browser(node, entry.parents[1], program)
