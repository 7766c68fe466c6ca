"""Checks which official SDK and FastMCP clients work with a generated server over stdio and HTTP.

    python bench/clients.py [--environments FOLDER]

Installs each client into its own environment, in a temporary folder or in FOLDER, and runs the same steps against the
servers of `specs/`. Compares the results with the servers' contents. Prints the table in bench/README.md, followed by
each failed step. Needs npm and Node.js 20 for the TypeScript SDK. Omits clients that cannot be installed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copy
from typing import Any

from peers import NotThereError, environment
from servers import serve

ROOT = Path(__file__).parent.parent
PROGRAMS = Path(__file__).parent / "client_programs"
PATIENCE = 180
"""Seconds for all steps of a client."""

STDIO, HTTP = "stdio", "HTTP"
STEPS = {
    "everything": ("initialize", "list", "call", "tool error", "progress", "question", "resource", "prompt"),
    "weather": ("initialize", "list", "structured result"),
}
"""The steps for each server."""

ANSWERED = '{"username":"ada","email":"ada@example.com"}'
EXPECTED: dict[str, Any] = {
    "call": "This is a simple text response for testing.",
    "structured result": {"temperature": 22.5, "conditions": "Partly cloudy", "humidity": 65},
    "tool error": [True, "This tool intentionally returns an error for testing"],
    "progress": [0, 50, 100],
    "question": f"User response: action=accept, content={ANSWERED}",
    "resource": "This is the content of the static text resource.",
    "prompt": "This is a simple prompt for testing.",
}
"""The expected result of each step except `initialize` and `list`."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client.

    Attributes:
        name: Its name in the table.
        requirement: The package to install.
        program: The file of its program, and the arguments before the server.
    """

    name: str
    requirement: str
    program: tuple[str, ...]


CLIENTS = (
    Client("TypeScript SDK 1", "@modelcontextprotocol/sdk@1.32", ("typescript.mjs", "1")),
    Client("TypeScript SDK 2", "@modelcontextprotocol/client@2", ("typescript.mjs", "2")),
    Client("TypeScript SDK 2, `auto`", "@modelcontextprotocol/client@2", ("typescript.mjs", "2-auto")),
    Client("Python SDK 1", "mcp>=1.30,<2", ("python_1.py",)),
    Client("Python SDK 2", "mcp>=2,<3", ("python_2.py",)),
    Client("FastMCP 2", "fastmcp>=2,<3", ("fastmcp_any.py",)),
    Client("FastMCP 3", "fastmcp>=3,<4", ("fastmcp_any.py",)),
    Client("FastMCP 4", "fastmcp>=4,<5", ("fastmcp_any.py",)),
)


@dataclass(slots=True)
class Outcome:
    """The results of one client.

    Attributes:
        version: Its version.
        revisions: The revisions of MCP that it negotiated.
        works: The transports over which each step worked with all servers.
        faults: One line for each failure.
    """

    version: str
    revisions: set[str]
    works: dict[str, list[str]]
    faults: list[str]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--environments", type=Path, metavar="FOLDER", help="folder for the environments; reuses existing ones"
    )
    kept: Path | None = parser.parse_args().environments
    with tempfile.TemporaryDirectory() as name:
        outcomes = {client.name: outcome for client, outcome in _outcomes((kept or Path(name)).resolve())}
    steps = [*dict.fromkeys(step for some in STEPS.values() for step in some)]
    print(f"| client | version | revision | {' | '.join(steps)} |\n|{'---|' * (len(steps) + 3)}")
    for label, outcome in outcomes.items():
        cells = [_cell(outcome.works[step]) for step in steps]
        print(f"| {label} | {outcome.version} | {', '.join(sorted(outcome.revisions))} | {' | '.join(cells)} |")
    for label, outcome in outcomes.items():
        for fault in outcome.faults:
            print(f"- {label}, {fault}")


def _cell(works: Sequence[str]) -> str:
    return "both" if len(works) == 2 else works[0] if works else "no"


def _outcomes(folder: Path) -> Iterator[tuple[Client, Outcome]]:
    for client in CLIENTS:
        try:
            runner, version = install(client, folder)
        except NotThereError as error:
            print(f"{client.name} is omitted: {error}", file=sys.stderr)
        else:
            yield client, _try(runner, version)


def _try(runner: Sequence[str], version: str) -> Outcome:
    """Run all steps of a client over both transports."""
    steps = dict.fromkeys(step for some in STEPS.values() for step in some)
    outcome = Outcome(version, set(), {step: [STDIO, HTTP] for step in steps}, [])
    for server, names in STEPS.items():
        command = [
            *("env", f"PYTHONPATH={ROOT / 'generated'}:{ROOT / 'examples'}"),
            *(sys.executable, "-m", f"{server}_mcp", "--log-level", "warning"),
        ]
        with serve([*command, "--http", "127.0.0.1:"], ROOT) as port:
            for transport, target in ((STDIO, command), (HTTP, f"http://127.0.0.1:{port}/mcp")):
                values = _run(runner, target, names)
                if "connection" in values:
                    outcome.faults.append(f"{transport}, {server}, connection: {_described(values['connection'])}")
                for name in names:
                    value = values.get(name)
                    if name == "initialize" and isinstance(value, list):
                        outcome.revisions.add(value[0])
                    if not _fits(server, name, value):
                        outcome.faults.append(f"{transport}, {server}, {name}: {_described(value)}")
                        outcome.works[name] = [other for other in outcome.works[name] if other != transport]
    return outcome


def _run(runner: Sequence[str], target: str | list[str], names: Sequence[str]) -> dict[str, Any]:
    command = [*runner, json.dumps(target), *names]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"connection": {"error": f"not done after {PATIENCE} s"}}
    try:
        values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return {"connection": {"error": f"exit status {done.returncode}: {done.stderr[-300:]}"}}
    return values


def _fits(server: str, name: str, value: Any) -> bool:
    """Return whether a step returned the server's actual contents."""
    if name == "initialize":
        return isinstance(value, list) and value[1] == server
    if name == "list":
        manifest = json.loads((ROOT / "generated" / f"{server}_mcp" / "manifest.json").read_text("utf-8"))
        return isinstance(value, list) and sorted(value) == sorted(tool["name"] for tool in manifest["tools"])
    return bool(value == EXPECTED[name])


def _described(value: Any) -> str:
    error = value.get("error") if isinstance(value, dict) else None
    return str(error) if error else f"gave {json.dumps(value)[:300]}"


def install(client: Client, folder: Path) -> tuple[list[str], str]:
    """Install a client if necessary, and return its interpreter and its version.

    Args:
        client: The client.
        folder: The environments of all clients.

    Raises:
        NotThereError: It cannot be installed.
    """
    program, *arguments = client.program
    run_installer: Callable[[Client, Path, str], tuple[str, str, Path]] = _npm if program.endswith(".mjs") else _python
    runtime, version, path = run_installer(client, folder / _slug(client.requirement), program)
    return [runtime, str(path), *arguments], version


def _slug(requirement: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in requirement)


def _python(client: Client, folder: Path, program: str) -> tuple[str, str, Path]:
    package = re.split(r"[\[>]", client.requirement)[0].replace("-", "_")
    pattern = f"lib/*/site-packages/{package}-*.dist-info"
    if not [*folder.glob(pattern)]:
        environment(folder, client.requirement)
    version = next(folder.glob(pattern)).name.removeprefix(f"{package}-").removesuffix(".dist-info")
    return str(folder / "bin" / "python"), version, PROGRAMS / program


def _npm(client: Client, folder: Path, program: str) -> tuple[str, str, Path]:
    package = folder / "node_modules" / client.requirement.rpartition("@")[0] / "package.json"
    if not package.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--prefix", str(folder), client.requirement]
        try:
            subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotThereError(f"{client.requirement} cannot be installed: {error}") from error
    copy(PROGRAMS / program, folder / program)  # Node.js resolves modules relative to the program
    return "node", str(json.loads(package.read_text("utf-8"))["version"]), folder / program


if __name__ == "__main__":
    main()
