"""Runs a generated server over HTTP as the target of an attack, and reports the attack.

Writes its files to an empty folder. The process listens on the loopback interface and stops when its block exits.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizing import find_port, start

_SECONDS: Final = {"type": "object", "properties": {"seconds": {"type": "number"}}}
_MANIFEST: Final[dict[str, Any]] = {
    "stubwright": 1,
    "server": {"name": "target", "version": "1"},
    "tools": [{"name": name, "inputSchema": _SECONDS} for name in ("block", "echo", "wait")],
}
_HANDLERS: Final = """
import asyncio
import os
import time
from pathlib import Path

# The command may start this process as a child, so record the id of the server itself.
Path("process").write_text(str(os.getpid()))

class Target:
    def block(self, args, ctx):
        time.sleep(args.seconds)
        return "blocked"

    def echo(self, args, ctx):
        return "echo"

    async def wait(self, args, ctx):
        await asyncio.sleep(args.seconds or 0)
        return "waited"
"""


@dataclass(frozen=True, slots=True)
class Target:
    """A running server."""

    port: int
    process: int
    log: Path

    def threads(self) -> int:
        """The number of its threads."""
        return len(list(Path(f"/proc/{self.process}/task").iterdir()))

    def descriptors(self) -> int:
        """The number of its open file descriptors."""
        return len(list(Path(f"/proc/{self.process}/fd").iterdir()))


@contextmanager
def target(folder: Path, *options: str, descriptors: int | None = None) -> Iterator[Target]:
    """Run a server during a block; `descriptors` limits its open descriptors."""
    (folder / "target.json").write_text(json.dumps(_MANIFEST))
    (folder / "target.py").write_text(_HANDLERS)
    generate = [sys.executable, "-m", "stubwright", "generate", "-q", "target.json", "-o", "."]
    subprocess.run(generate, cwd=folder, check=True)
    port, log = find_port(), folder / "log"
    limits = ["prlimit", f"--nofile={descriptors}:{descriptors}"] if descriptors else []
    command = [sys.executable, "-m", "target_mcp", "--handlers", "target:Target", "--http", f"127.0.0.1:{port}"]
    redirected = ["sh", "-c", 'exec "$@" 2>log', "sh", *limits, *command, *options]
    with start(redirected, folder, port):
        yield Target(port, int((folder / "process").read_text()), log)


def allow_descriptors(number: int) -> None:
    """Raise this process's limit on open descriptors to this number, or to the highest permitted number."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(number, most), most))


@dataclass(slots=True)
class Report:
    """An attack's findings, one line each."""

    name: str
    failed: list[str] = field(default_factory=list)

    def say(self, what: str, value: str, limit: str = "", *, holds: bool = True) -> None:
        """Print a figure, and whether it is within its limit."""
        said = f" ({limit})" if limit else ""
        print(f"{self.name}: {what}: {value}{said}{'' if holds else ' FAILED'}", flush=True)
        if not holds:
            self.failed.append(what)

    def status(self) -> int:
        """The exit status: 1 if a limit was exceeded."""
        return 1 if self.failed else 0
