"""Follows a page of the docs as a reader would: writes its files, makes its edits, and runs its commands, in order.

A code block whose first line is `# PATH` is a file; `# PATH, at the end` is appended to a file. Lines of files in
`generated/` must exist after the next commands. "In `PATH`, replace `OLD` with `NEW`" is an edit; with a colon in place
of `NEW`, the next block is the new text. A `console` block has commands after `$`, each followed by its output, in
which `…` matches any text, and a line `…` any lines. Servers run until the next server starts; the page's address means
the server's address. The text after `[y/n]: ` is typed at a terminal.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Any, Final, Self

import forked
from processes import start_process
from terminals import Terminal

ADDRESS: Final = "127.0.0.1:8000"
"""The listening address of all servers in a page."""

STEP: Final = re.compile(
    r"^```(?P<language>\w*)\n(?P<block>.*?)^```$"
    r"|\b[Ii]n\s+`(?P<file>[^`\n]+)`,\s+replace\s+`(?P<old>[^`\n]+)`\s+with(?:\s+`(?P<new>[^`\n]+)`|:)",
    re.MULTILINE | re.DOTALL,
)
_HEADER: Final = re.compile(r"# (?P<file>[\w./-]+\.\w+)(?P<appended>, at the end)?\n")
_SERVER: Final = re.compile(rf"^stubwright dev|--http {re.escape(ADDRESS)}|python -m (?:uvicorn|http\.server) ")
_SERVED: Final = re.compile(r"http://(127\.0\.0\.1:\d+)(?:/mcp|/\)| \(Press)")
_PROMPT: Final = re.compile(r"^(.*\[y/n\]: )(\w)$", re.MULTILINE)


def commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block with their output."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(command, printed) for command, _, printed in (part.partition("\n") for part in parts)]


class Walkthrough:
    """A reader of a page in a folder; `blocks` are the blocks that are neither files nor commands."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        skip: str = r"(?!)",
        instead: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Set up the environment, by default ours; omit commands that `skip` matches, and replace words."""
        self._stack = ExitStack()
        self.folder = folder
        self.environment = {**(environment or self._ours()), "PYTHONUNBUFFERED": "1"}
        self.skip = re.compile(skip)
        self.instead = instead
        self.blocks: list[str] = []
        self.count = 0
        self._edited: tuple[Path, str] | None = None
        self._generated: list[str] = []
        self._server: tuple[subprocess.Popen[Any], Path] | None = None
        self._address = ADDRESS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._stack:
            if error is None:
                self._stop()

    def play(self, page: str) -> None:
        """Follow all steps of a page. Raises AssertionError if the result differs from the page."""
        for step in STEP.finditer(page):
            if step["file"] is not None:
                self._edit(self.folder / step["file"], step["old"], step["new"])
            elif step["language"] == "console":
                for command, printed in commands(step["block"]):
                    self.run(command, printed)
                self._compare()
            else:
                self._block(step["block"])
        assert (self._edited, self._generated) == (None, [])

    def run(self, command: str, printed: str = "") -> None:
        """Run a command, and compare its output."""
        self.count += 1
        for old, new in self.instead.items():
            command = command.replace(old, new)
        if self.skip.search(command):
            return
        if command.startswith("cd "):
            self.folder /= command.removeprefix("cd ")
        elif variable := re.fullmatch(r"(\w+)=\S*…", command):
            self.environment[variable[1]] = self._token(variable[1])
        elif _SERVER.search(command):
            self._serve(command, printed)
        else:
            status, said = self._finish(command.replace(ADDRESS, self._address), _PROMPT.search(printed))
            said = said.replace(self._address, ADDRESS)
            told = f"$ {command}\n{said}"
            assert printed or status == 0, told
            if printed or command.startswith("stubwright "):
                assert _pattern(printed).fullmatch(said), f"{told}\nexpected by the page:\n{printed}"

    def _ours(self) -> dict[str, str]:
        """Return the environment of a shell with the forking stubwright and interpreter."""
        programs = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        python = forked.interpreter_in(programs)
        command = programs / "stubwright"
        command.write_text(f'#!/bin/sh\nexec {python} -m stubwright "$@"\n')
        command.chmod(0o755)
        return {**os.environ, **forked.ALONE, "PATH": os.pathsep.join((str(programs), os.environ["PATH"]))}

    def _edit(self, path: Path, old: str, new: str | None) -> None:
        assert path.read_text("utf-8").count(old) == 1, f"{path.name} must have exactly one `{old}`"
        if new is None:
            self._edited = (path, old)
        else:
            path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")

    def _block(self, text: str) -> None:
        header = _HEADER.match(text)
        if self._edited is not None:
            (path, old), self._edited = self._edited, None
            before = path.read_text("utf-8").partition(old)[0].rpartition("\n")[2]
            self._edit(path, old, text.removesuffix("\n").replace("\n", "\n" + before))
        elif header is None:
            self.blocks.append(text)
        elif header["file"].startswith("generated/"):
            self._generated += re.split(r"(?=^# generated/)", text, flags=re.MULTILINE)[1:]
        else:
            path = self.folder / header["file"]
            path.parent.mkdir(exist_ok=True)
            there = path.read_text("utf-8") if header["appended"] else ""
            path.write_text(there + (text[header.end() :] if header["appended"] else text), "utf-8")

    def _compare(self) -> None:
        for part in self._generated:
            name, _, lines = part.partition("\n")
            assert lines.strip("\n") + "\n" in (self.folder / name.removeprefix("# ")).read_text("utf-8"), part
        self._generated.clear()

    def _finish(self, command: str, prompt: re.Match[str] | None) -> tuple[int, str]:
        shell = ["bash", "-euo", "pipefail", "-c", command]
        if prompt is not None:
            variables = [f"{name}={value}" for name, value in self.environment.items()]
            terminal = Terminal(["env", "-i", *variables, "TERM=dumb", *shell], self.folder)
            terminal.until(prompt[1])
            terminal.type(f"{prompt[2]}\r")
            return terminal.rest(), terminal.text.replace("\r\n", "\n")
        done = subprocess.run(
            shell,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        return done.returncode, done.stdout

    def _serve(self, command: str, printed: str) -> None:
        self._stop()
        log = Path(self._stack.enter_context(tempfile.TemporaryDirectory())) / "log"
        words = shlex.split(re.sub(r"\b8000\b", "0", command))
        if words[:2] == ["stubwright", "dev"] and "--http" not in words:
            words += ["--http", "127.0.0.1:0"]
        out: IO[bytes] = self._stack.enter_context(log.open("wb"))
        started = ["bash", "-c", f"exec env {shlex.join(words)}"]
        process = self._stack.enter_context(
            start_process(started, cwd=self.folder, env=self.environment, stdout=out, stderr=out)
        )
        self._server = (process, log)
        wanted = _pattern(printed + "…\n")
        end = time.monotonic() + 60
        while not ((at := _SERVED.search(self._said())) and wanted.match(self._said(at[1]))):
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"$ {command}\n{self._said()}\nexpected by the page:\n{printed}")
            time.sleep(0.05)
        self._address = at[1]

    def _said(self, address: str = ADDRESS) -> str:
        assert self._server is not None
        return self._server[1].read_text("utf-8").replace(address, ADDRESS)

    def _token(self, name: str) -> str:
        found = re.search(rf"^{name}=(\S+)$", self._said(), re.MULTILINE)
        assert found is not None, self._said()
        return found[1]

    def _stop(self) -> None:
        if self._server is not None:
            process, _ = self._server
            process.send_signal(signal.SIGINT)
            assert process.wait(30) in (0, 130), self._said()
            self._server = None


def _pattern(printed: str) -> re.Pattern[str]:
    """Return a pattern for an output in the page."""
    lines = [
        r"(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in printed.splitlines()
    ]
    return re.compile("".join(lines))
