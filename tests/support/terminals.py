"""Runs commands in pseudo-terminals, to test displayed text and typed input."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Sequence
from pathlib import Path


class Terminal:
    """A command in a pseudo-terminal: its displayed text, and typed input."""

    def __init__(self, command: Sequence[str], cwd: Path) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(command[0], list(command), {**os.environ, "TERM": "xterm"})
        self.text = ""

    def until(self, words: str, seconds: float = 60) -> None:
        """Wait until the terminal shows new text."""
        end = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < end, self.text
            if select.select([self._fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self._fd, 65536).decode()
                except OSError as error:
                    raise AssertionError(f"it ended without {words!r}\n{self.text}") from error

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def rest(self) -> int:
        """Read the remaining output, and return the exit status."""
        while True:
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                break
            if not data:
                break
            self.text += data.decode()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
