"""Compares `stubwright call` with `fastmcp call`, mcporter and the Inspector's command line on one server.

    python bench/callers.py

Starts each program as its own help describes, against the same server on standard input and output, and inspects its
output, its exit status, and the calls that reached the server. Prints the Markdown table in docs/overview.md. Needs
npx; installs FastMCP into `bench/.venv`. Omits programs that cannot be installed.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "peers"))

import inspector
from peers import NotThereError, fastmcp

BIN = Path(sys.executable).parent
MCPORTER = "mcporter@0.9.0"
PATIENCE = 60  # seconds
NODE = "node@22"

MANIFEST = """\
stubwright: 1
server: {name: callers, version: 1.0.0}
python: {handlers: "callers:Callers"}
tools:
  - name: echo
    description: Give back what it was called with.
    inputSchema:
      type: object
      properties:
        zip: {type: string}
        days: {type: integer}
        tags: {type: array, items: {type: string}}
        place: {type: object, properties: {city: {type: string}}}
    outputSchema: {type: object}
  - {name: fail, description: Fail., inputSchema: {type: object}}
  - {name: steps, description: Say how far it is., inputSchema: {type: object}}
  - name: greet
    description: Ask for a name.
    inputSchema: {type: object}
    stubwright:
      ask:
        name: {message: Who are you?, schema: {type: object, properties: {name: {type: string}}, required: [name]}}
"""
HANDLERS = """\
import asyncio, json, os
from callers_mcp import ToolError

class Callers:
    async def echo(self, args, ctx):
        with open(os.environ["CALLERS_LOG"], "a") as log:
            log.write("called\\\\n")
        return args.model_dump(mode="json", exclude_unset=True)

    async def fail(self, args, ctx):
        raise ToolError("it is broken")

    async def steps(self, args, ctx):
        await ctx.progress(1, 2, "half way")
        await asyncio.sleep(0.2)
        return "there"

    async def greet(self, args, ctx):
        return f"hello {(await ctx.ask.name()).name}"
"""


@dataclass(frozen=True)
class Result:
    """The outcome of a call.

    Attributes:
        status: The exit status.
        out: Standard output.
        err: Standard error.
        reached: How many calls reached the tool.
    """

    status: int
    out: str
    err: str
    reached: int


@dataclass(frozen=True)
class Caller:
    """A program to compare.

    Attributes:
        name: Its name in the table.
        command: Returns its command line for a server, a tool, arguments as words, and whether to print JSON.
    """

    name: str
    command: Callable[[str, str, Sequence[str], bool], list[str]]


def callers() -> list[Caller]:
    """Return the installed programs."""
    found = [
        Caller(
            "stubwright call",
            lambda server, tool, words, as_json: [
                str(BIN / "stubwright"),
                "call",
                tool,
                *words,
                *(["--json"] if as_json else []),
                "--",
                server,
            ],
        )
    ]
    try:
        program = fastmcp().parent / "fastmcp"
        found.append(
            Caller(
                "fastmcp call",
                lambda server, tool, words, as_json: [
                    str(program),
                    "call",
                    _configured(server),
                    tool,
                    *words,
                    *(["--json"] if as_json else []),
                ],
            )
        )
    except NotThereError as error:
        print(error, file=sys.stderr)
    found.append(
        Caller(
            "mcporter",
            lambda server, tool, words, as_json: [
                "npx",
                "-y",
                MCPORTER,
                "call",
                "--stdio",
                server,
                tool,
                *words,
                *(["--output", "json"] if as_json else []),
            ],
        )
    )
    try:
        program_ = inspector.fetch()
        found.append(
            Caller(
                "Inspector",
                lambda server, tool, words, as_json: [
                    str(program_.node),
                    str(program_.entry),
                    "--cli",
                    server,
                    "--method",
                    "tools/call",
                    "--tool-name",
                    tool,
                    *(part for word in words for part in ("--tool-arg", word)),
                    *(["--format", "json"] if as_json else []),
                ],
            )
        )
    except inspector.NotThereError as error:
        print(error, file=sys.stderr)
    return found


def _configured(server: str) -> str:
    """Write a client configuration with one server, and return its path."""
    file = Path(tempfile.gettempdir()) / f"callers-{abs(hash(server))}.json"
    file.write_text(json.dumps({"mcpServers": {"callers": {"command": server}}}))
    return str(file)


class Server:
    """A running server and its folder."""

    def __init__(self, folder: Path) -> None:
        """Start the server."""
        self.folder = folder
        self.log = folder / "log"
        (folder / "callers.yaml").write_text(MANIFEST)
        (folder / "callers.py").write_text(HANDLERS.replace("\\\\n", "\\n"))
        subprocess.run(
            [BIN / "stubwright", "generate", "callers.yaml", "-o", "."], cwd=folder, check=True, capture_output=True
        )
        self.command = str(folder / "serve")
        Path(self.command).write_text(
            f"#!/bin/sh\nexport PYTHONPATH={folder} CALLERS_LOG={self.log}\nexec {sys.executable} -m callers_mcp\n"
        )
        Path(self.command).chmod(0o755)

    def call(self, caller: Caller, tool: str, *words: str, as_json: bool = False, server: str | None = None) -> Result:
        """Call a tool without a terminal."""
        before = self._reached()
        command = caller.command(server or self.command, tool, words, as_json)
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
        return Result(done.returncode, done.stdout, done.stderr, self._reached() - before)

    def type(self, caller: Caller, tool: str, wanted: str, answer: bytes = b"") -> bool:
        """Call a tool in a terminal, type an answer after a few seconds, and return whether a text appears."""
        ours, theirs = pty.openpty()
        command = caller.command(self.command, tool, (), False)
        process = subprocess.Popen(
            command, cwd=self.folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        shown, begun, typed = b"", time.monotonic(), not answer
        while time.monotonic() - begun < 25 and wanted.encode() not in shown:
            if not typed and time.monotonic() - begun > 8:
                os.write(ours, answer)
                typed = True
            if select.select([ours], [], [], 0.5)[0]:
                try:
                    data = os.read(ours, 1 << 16)
                except OSError:
                    break
                shown += data
        process.kill()
        process.wait()
        os.close(ours)
        return wanted.encode() in shown

    def _reached(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


def has(said: Result, **expected: object) -> bool:
    """Return whether the output contains the call's arguments."""
    text = said.out.replace('\\"', '"').replace(" ", "").replace("\n", "")
    wanted = json.dumps(expected, separators=(",", ":"))[1:-1]
    return said.status == 0 and wanted in text


def is_json(text: str) -> bool:
    """Return whether a string is JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


CHECKS: Mapping[str, Callable[[Server, Caller], bool]] = {
    "digits stay text where the schema says `string`": lambda s, c: has(s.call(c, "echo", "zip=02134"), zip="02134"),
    "numbers where it says `integer`": lambda s, c: has(s.call(c, "echo", "days=3"), days=3),
    "lists": lambda s, c: has(s.call(c, "echo", 'tags=["a","b"]'), tags=["a", "b"]),
    "a nested value by its name, `place.city=Paris`": lambda s, c: has(
        s.call(c, "echo", "place.city=Paris"), place={"city": "Paris"}
    ),
    "a wrong argument is named, and the tool is not called": lambda s, c: _is_named(s.call(c, "echo", "days=soon")),
    "a failed tool has a separate exit status": lambda s, c: _differ(s, c),
    "a misspelled tool: the nearest is named": lambda s, c: _is_guessed(s.call(c, "ecko")),
    "progress is shown at a terminal": lambda s, c: s.type(c, "steps", "half way"),
    "questions of the server appear at a terminal": lambda s, c: s.type(c, "greet", "hello Ada", b"Ada\n"),
    "the whole result as JSON": lambda s, c: is_json(s.call(c, "echo", "days=3", as_json=True).out),
}


def _all(said: Result) -> str:
    return said.out + said.err


def _is_named(said: Result) -> bool:
    return said.status != 0 and said.reached == 0 and "days" in _all(said).replace("days=soon", "")


def _is_guessed(said: Result) -> bool:
    return said.status != 0 and re.search(r"did you mean[^\n]*\becho\b", _all(said), re.IGNORECASE) is not None


def _differ(server: Server, caller: Caller) -> bool:
    failed = server.call(caller, "fail").status
    away = server.call(caller, "fail", server="/nowhere/at/all").status
    return failed != 0 and away not in (0, failed)


def main() -> int:
    """Print the table."""
    found = callers()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        print("| |", " | ".join(f"`{caller.name}`" for caller in found), "|")
        print("|---|", " | ".join("---" for _ in found), "|", sep="")
        for name, check in CHECKS.items():
            marks = []
            for caller in found:
                try:
                    marks.append("yes" if check(server, caller) else "no")
                except subprocess.TimeoutExpired:
                    marks.append("no answer")
            print(f"| {name} |", " | ".join(marks), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
