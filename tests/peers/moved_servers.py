"""Third-party servers before and after their port, each in a separate environment.

Lists and calls the tools of the old and of the new server. Their packages are in `moved/NAME.txt`, locked by
`uv pip compile --universal --python-version 3.11`; if both servers share an environment, with the requirements of
stubwright and its runtime, and constrained to their lock.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conftest import ROOT

UV = ROOT / ".venv" / "uv" / "bin" / "uv"
LOCKS = Path(__file__).with_name("moved")

_INSTALL = 300  # seconds
_RUN = 120

ASK = """
import asyncio, json, sys

import mcp
from mcp.client.stdio import StdioServerParameters


async def ask(command, environment, folder, calls):
    process = StdioServerParameters(command=command[0], args=command[1:], env=environment, cwd=folder)
    async with mcp.Client(process, cache=None) as client:
        tools = (await client.list_tools()).tools
        results = [await client.call_tool(name, arguments) for name, arguments in calls]
    print(json.dumps([[each.model_dump(mode="json", by_alias=True, exclude={"meta"}) for each in found]
                      for found in (tools, results)]))


asyncio.run(ask(*json.load(sys.stdin)))
"""


class NotThereError(Exception):
    """The server cannot be installed."""


@dataclass(frozen=True, slots=True)
class Published:
    """A third-party server.

    Attributes:
        name: Its name here, and the name of its requirements file.
        distribution: Its name on the index.
        old: The command of the old server, in its environment's folder of programs.
        source: The file with the server object: in the environment's packages, or the text of a file to write.
        is_shared: Whether both servers share an environment; otherwise the old server needs another SDK.
        calls: Calls that both must answer alike; `{folder}` is a folder that is empty before each server's first call.
        by_hand: The remaining manual steps, as in docs/importing.md.
    """

    name: str
    distribution: str
    old: tuple[str, ...]
    source: str
    is_shared: bool
    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    by_hand: str


@dataclass(frozen=True, slots=True)
class Installed:
    """A published server in its environment.

    Attributes:
        server: Which one.
        bin: The folder of the environment's programs.
        version: Which version was installed.
    """

    server: Published
    bin: Path
    version: str

    @property
    def python(self) -> str:
        """The interpreter that runs stubwright and the new server."""
        return str(self.bin / "python") if self.server.is_shared else sys.executable

    def source(self, folder: Path) -> Path:
        """Return the file with the server object; write it if the package does not have it."""
        if self.server.source.endswith(".py"):
            [site] = self.bin.parent.glob("lib/*/site-packages")
            return site / self.server.source
        file = folder / "app.py"
        file.write_text(self.server.source)
        return file

    def move(self, folder: Path) -> subprocess.CompletedProcess[str]:
        """Make a project `moved` of it in a folder."""
        command = [self.python, "-m", "stubwright", "new", "moved", "--from", "python", f"{self.source(folder)}:mcp"]
        return _run([*command, "--yes", "--", str(self.bin / "python")], _RUN, folder)

    def ask_old(self, folder: Path) -> tuple[list[Any], list[Any]]:
        """Return the old server's tools and results."""
        program, *options = self.server.old
        return self._ask([str(self.bin / program), *options], {}, folder)

    def ask_new(self, folder: Path) -> tuple[list[Any], list[Any]]:
        """Return the moved server's tools and results."""
        return self._ask([self.python, "-m", "moved_mcp"], _find_moved(folder), folder)

    def run_new(self, script: str, folder: Path) -> Any:
        """Return the JSON that a script prints, which imports the moved server."""
        done = _run([self.python, "-c", script], _RUN, folder, more=_find_moved(folder))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _ask(self, command: Sequence[str], more: Mapping[str, str], folder: Path) -> tuple[list[Any], list[Any]]:
        files = folder / "files"
        shutil.rmtree(files, ignore_errors=True)
        files.mkdir()
        calls = json.dumps(self.server.calls).replace("{folder}", files.as_posix())
        asked = json.dumps([command, {**os.environ, **more}, str(folder), json.loads(calls)])
        done = _run([sys.executable, "-c", ASK], _RUN, folder, asked)
        assert done.returncode == 0, done.stderr
        tools, results = json.loads(done.stdout)
        return tools, results


def install(server: Published, ours: Sequence[Path], folder: Path) -> Installed:
    """Install a server, with our wheels if both share an environment.

    Raises:
        NotThereError: There is no uv, or the index does not have it.
    """
    if not UV.is_file():
        raise NotThereError("there is no uv in .venv/uv; `make .venv/uv/ready` installs it")
    lock = LOCKS / f"{server.name}.txt"
    into = ["pip", "install", "--python", str(folder / "bin" / "python")]
    steps = [["venv", "--python", sys.executable, str(folder)], [*into, "-r", str(lock)]]
    if server.is_shared:
        steps.append([*into, "--no-deps", *map(str, ours)])
    for step in steps:
        done = _run([str(UV), "--quiet", *step], _INSTALL, folder.parent)
        if done.returncode:
            raise NotThereError(f"{server.distribution} is not installed: {done.stderr.strip()}")
    pin = f"{server.distribution}=="
    [version] = [line.removeprefix(pin) for line in lock.read_text("utf-8").splitlines() if line.startswith(pin)]
    return Installed(server, folder / "bin", version)


def _find_moved(folder: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(map(str, (folder / "moved", folder / "moved" / "generated")))}


def _run(
    command: Sequence[str], timeout: float, folder: Path, said: str | None = None, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(more or {})},
        input=said,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
