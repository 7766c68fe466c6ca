"""Lists the contents of a server object in a Python file, which only a separate process imports."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.importers import live, sources
from stubwright.importers.document_reader import SourceError
from stubwright.importers.python import contexts
from stubwright.project.migration import PythonServer
from stubwright_runtime.client.core.environment import describe_withheld
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.importers.limits import Limits
    from stubwright.importers.server_listing import ServerListing

PROGRAM: Final = Path(__file__).with_name("program.py")

_LINES: Final = 6
"""The number of lines to quote from the end of a traceback."""


class MigrationError(SourceError):
    """The file has no server that can be queried; the message explains why."""

    names_source = True


@dataclass(frozen=True, slots=True)
class Source:
    """A server object: its file, its name in the file (empty for the first common name), and the Python command."""

    file: Path
    name: str
    python: Sequence[str]
    environment: Mapping[str, str]

    @property
    def label(self) -> str:
        """The server's name in messages."""
        return to_one_line(f"{self.file}:{self.name}" if self.name else str(self.file))


def read(source: Source, limits: Limits) -> tuple[ServerListing, PythonServer]:
    """Run the file and list its server.

    Raises:
        MigrationError: The file cannot be imported, has no such server, or the server does not respond in time.
        UnreachableError: Python cannot be started, or the server violates the protocol or a limit.
    """
    with tempfile.TemporaryDirectory(prefix="stubwright-") as folder:
        report = Path(folder) / "report.json"
        words = [*source.python, str(PROGRAM), str(source.file), source.name, str(report)]
        try:
            listing = live.read(sources.Command(words, source.environment), limits)
        except live.UnreachableError as error:
            if "did not respond" in str(error):
                raise MigrationError(
                    f"the server in `{source.file}` did not respond within {limits.seconds:g} s; does the file call "
                    '`run()` outside of `if __name__ == "__main__":`?'
                ) from error
            facts = _read_report(report)
            if facts is None or "sdk" in facts:
                raise
            raise MigrationError(_describe(source, facts)) from error
        facts = _read_report(report)
    if facts is None or not any(listing.sections.values()):
        raise MigrationError(
            f"`{source.label}` has no tools, resources or prompts; if a function adds them, "
            "specify a file that imports the server and calls that function"
        )
    return listing, _make_server(source, facts, listing)


def _read_report(report: Path) -> dict[str, Any] | None:
    try:
        facts: dict[str, Any] = json.loads(report.read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):  # the process exited before it was written
        return None
    return facts


def _describe(source: Source, facts: Mapping[str, Any]) -> str:
    """Return the reason that the file has no usable server."""
    if "raised" in facts:
        lines = [to_one_line(line) for line in facts["raised"][-_LINES:]]
        quoted = "".join(f"\n  | {line}" for line in lines)
        return f"`{source.file}` cannot be imported:{quoted}{_describe_key(source, facts['missing_key'])}"
    if "shadowed" in facts:
        return f"`import {source.file.stem}` imports `{to_one_line(facts['shadowed'])}` instead: rename this file"
    servers = ", ".join(f"`{to_one_line(name)}`" for name in facts["servers"])
    hint = f"; it has the server objects {servers}" if servers else "; it has no server object at its top level"
    if facts["other"] is not None:
        other = to_one_line(facts["other"])
        return f"`{source.label}` is of type `{other}`, not FastMCP or MCPServer{hint}"
    if not source.name:
        return f"name the server in `{source.file}`, as in {source.file.name}:NAME{hint}"
    return f"`{source.file}` has no `{source.name}`{hint}"


def _describe_key(source: Source, key: str | None) -> str:
    if key is None or key not in os.environ or key in source.environment:
        return ""
    return f"\n  help: {describe_withheld([key], '--env NAME')}"


_CHANGES: Final = (
    "the text content returned with a structured result is now that result as JSON",
    'arguments are no longer converted, such as `"2"` to 2: values that the schema forbids are rejected',
)


def _make_server(source: Source, facts: Mapping[str, Any], listing: ServerListing) -> PythonServer:
    is_shared = facts["prefix"] == sys.prefix  # the interpreter for `stubwright dev`
    changes = [*_CHANGES]
    is_fastmcp = facts["distribution"] == "fastmcp"
    major, minor, *_ = facts["version"].split(".")
    unchanged = contexts.OF_REQUEST if is_fastmcp and int(major) == 2 else frozenset[str]()
    uses = {name: contexts.analyze({*names} - unchanged) for name, names in facts["contexts"].items()}
    tools: dict[str, list[str]] = {}
    for name, each in uses.items():
        for note in each.notes:
            tools.setdefault(note, []).append(name)
    changes += [f"{_quote(names)}: {to_one_line(note)}" for note, names in tools.items()]
    if facts["elsewhere"]:
        changes.append(
            f"{_quote(facts['elsewhere'])}: resources and prompts log to the server's own log and cannot ask questions"
        )
    if facts["protected"]:
        changes.append("its authentication: declare `auth` in the manifest")
    if listing.capabilities.get("completions") is not None:
        changes.append("its completions: declare `complete` in the manifest")
    needed = ""
    if is_shared and is_fastmcp:
        needed = f"fastmcp>={major}.{minor},<{int(major) + 1}"
    return PythonServer(
        source.file,
        Path(facts["root"]),
        facts["module"],
        facts["name"],
        frozenset(facts["loaded"]),
        None if is_shared else tuple(source.python),
        is_fastmcp,
        needed,
        {name: each.notes for name, each in uses.items()},
        frozenset(name for name, each in uses.items() if each.logs or each.asks),
        any(each.logs for each in uses.values()),
        any(each.asks for each in uses.values()),
        tuple(changes),
    )


def _quote(names: Sequence[str]) -> str:
    return ", ".join(f"`{to_one_line(name)}`" for name in names)
