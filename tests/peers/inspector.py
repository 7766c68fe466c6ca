"""Runs the command line of the MCP Inspector, the MCP project's debugging tool, and parses its output.

It is a Node program, which `npx` fetches; later runs start its entry file with the same Node.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
NODE = "node@22"  # it needs 22.19

_FETCH = ("npx", "-y", "-p", NODE, "-p", INSPECTOR, "-c", "command -v node && command -v mcp-inspector")
_RUN = 60  # seconds


class NotThereError(Exception):
    """The Inspector cannot be had."""


@dataclass(frozen=True, slots=True)
class Inspector:
    """The fetched Inspector: the program, and the Node that runs it."""

    node: Path
    entry: Path

    def ask(self, target: Sequence[str], paths: Sequence[Path], *arguments: str) -> Any:
        """Return the result of one method, without a complaint of the Inspector or the server.

        Args:
            target: The server's URL, or the command that starts it.
            paths: The folders of the server's modules.
            arguments: The request.

        Raises:
            AssertionError: It failed or complained.
        """
        place = ["-e", f"PYTHONPATH={os.pathsep.join(map(str, paths))}"] if paths else []
        command = [str(self.node), str(self.entry), "--cli", *target, *place, "--format", "json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN)
        assert (done.returncode, done.stderr.strip()) == (0, ""), f"{done.stderr}\n{done.stdout}"
        return json.loads(done.stdout)["result"]


def fetch() -> Inspector:
    """Fetch the Inspector, where it is not there yet.

    Raises:
        NotThereError: It cannot be had.
    """
    if shutil.which(_FETCH[0]) is None:
        raise NotThereError("there is no npx, with which the MCP Inspector is fetched and run")
    done = subprocess.run(_FETCH, capture_output=True, text=True)
    if done.returncode:
        raise NotThereError(f"npx cannot fetch the MCP Inspector:\n{done.stderr}")
    node, entry = done.stdout.split()
    return Inspector(Path(node), Path(entry).resolve())
