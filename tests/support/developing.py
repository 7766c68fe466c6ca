"""Runs `stubwright dev`, and reads its output and its server's answers."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp

import forked
from processes import start_process


class Dev:
    """The command and its server."""

    def __init__(self, process: subprocess.Popen[Any], log: Path) -> None:
        self.process = process
        self.log = log
        self.seen = 0

    def says(self, text: str) -> str:
        """Wait for a string in the output after the previous match, and return the output from there."""
        end = time.monotonic() + 60
        while text not in (log := self.log.read_text())[self.seen :]:
            assert time.monotonic() < end, log
            assert self.process.poll() is None, log
            time.sleep(0.02)
        start = log.index(text, self.seen)
        self.seen = start + len(text)
        return log[start:]

    @property
    def url(self) -> str:
        found = re.search(r"serving (http://\S+)", self.log.read_text())
        assert found is not None
        return found[1]

    def ask(self, tool: str = "say", **arguments: Any) -> list[str]:
        return asyncio.run(ask(self.url, tool, **arguments))

    def answers(self, start: str) -> int:
        """Wait until the tool returns this answer, and return the process ID."""
        end = time.monotonic() + 30
        while not (said := poll(ask(self.url, "say"))[0]).startswith(start):
            assert time.monotonic() < end, said
            time.sleep(0.05)
        return int(said.rpartition(" ")[2])


def poll(asking: Coroutine[Any, Any, list[str]]) -> list[str]:
    """Return the answer, or an empty string if the server accepted the connection and exited without reading it."""
    try:
        said = asyncio.run(asking)
    except* (httpx2.ReadError, httpx2.RemoteProtocolError):
        said = [""]
    return said


async def ask(url: str, tool: str, **arguments: Any) -> list[str]:
    async with mcp.Client(url) as client:
        result = await client.call_tool(tool, arguments)
    return [str(getattr(block, "text", None)) for block in result.content]


async def tools(url: str) -> list[str]:
    async with mcp.Client(url) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


def _impatient(seconds: int) -> str:
    """Write a `stubwright` program that warns after this many seconds that a server has not started."""
    return (
        f"from stubwright.serving import processes; processes._SLOW = {seconds}; from stubwright import cli; cli.main()"
    )


@contextmanager
def dev(
    project: Path,
    *options: str,
    environment: dict[str, str] | None = None,
    python: Sequence[str] = (),
    slow: int | None = None,
) -> Iterator[Dev]:
    """Run the command. `python` starts it and its servers instead of the forking interpreter.

    It warns after `slow` seconds that a server has not started.
    """
    log = project.parent / f"{project.name}.log"
    program = ["-m", "stubwright"] if slow is None else ["-c", _impatient(slow)]
    command = [*(python or forked.interpreter()), *program, "dev", "--http", "127.0.0.1:0", *options]
    if not python:
        command += ["--python", str(forked.interpreter_in(project.parent))]
    with (
        log.open("wb") as out,
        start_process(
            command, cwd=project, stdout=out, stderr=out, env={**os.environ, **(environment or {})}
        ) as process,
    ):
        try:
            yield Dev(process, log)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(20)
