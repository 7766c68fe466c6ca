"""`stubwright new NAME --from python FILE:NAME`: migrate a server object.

The file is third-party code, so the command prints the file and the interpreter, and asks before it runs the file.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared import servers as sources
from stubwright.commands.shared.console import UsageError, confirm, is_interactive, write_err
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from stubwright.importers.acceptance import ImportResult
    from stubwright.importers.python.migration import Source
    from stubwright.project.migration import PythonServer

_SOURCE: Final = re.compile(r"(.+\.py)(?::([^\W\d]\w*))?")


_OPTIONS: Final = """
--yes  with python: run the file without asking
"""


def add_options(parser: Any) -> None:
    """Add the option `--yes`."""
    declare(parser, _OPTIONS)


def parse(text: str | None, arguments: argparse.Namespace) -> Source:
    """Return the server object specified on the command line.

    Raises:
        UsageError: The server object is missing, its file does not exist, or an option does not apply.
    """
    from stubwright.importers.python.migration import Source

    if text is None:
        raise UsageError("--from python requires a file and the name of its server object, such as app.py:mcp")
    if arguments.header:
        raise UsageError("--header and --token are for --from mcp URL")
    if arguments.command == []:
        raise UsageError("the command after `--` is empty; it must start Python, as in: -- uv run python")
    match = _SOURCE.fullmatch(text)
    if match is None:
        raise UsageError(f"`{text}` does not name a server object in a Python file, such as app.py:mcp")
    path, name = match[1], match[2] or ""
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"there is no file `{path}`")
    program, *options = arguments.command or [find_python(file.parent, os.environ)]
    if Path(program).name != program:  # the new server can be started from any folder
        program = os.path.abspath(program)  # noqa: PTH100 - `resolve` would follow an environment's link
    command = sources.start([program, *options], arguments)
    return Source(file, name, command.words, command.environment)


def find_python(folder: Path, variables: Mapping[str, str]) -> str:
    """Return the interpreter of the active environment or of the environment nearest to `folder`.

    By default, return this interpreter.
    """
    environments = [*([Path(variables["VIRTUAL_ENV"])] if variables.get("VIRTUAL_ENV") else [])]
    environments += [each / ".venv" for each in (folder, *folder.parents)]
    name = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    pythons = (environment / name for environment in environments)
    return next((str(python) for python in pythons if python.is_file()), sys.executable)


def agree(source: Source, *, yes: bool) -> bool:
    """Print the command and return whether the user allows it to run.

    Raises:
        UsageError: There is no terminal to ask on.
    """
    command = f"`{source.file}` with `{shlex.join(source.python)}`"
    if yes:
        write_err(f"running {command}to read its server's lists")
        return True
    if not is_interactive():
        raise UsageError(f"this would run {command}: add --yes to allow it")
    write_err(f"This runs {command} to read its server's lists.")
    return confirm("Run it?")


def read(source: Source, arguments: argparse.Namespace) -> tuple[ImportResult, PythonServer]:
    """Run the file; return its manifest, and the facts about the old server for the new project. Raises SourceError."""
    from stubwright.importers import servers
    from stubwright.importers.python import migration

    listing, old = migration.read(source, replace(sources.find_limits(arguments), starting=None))
    return servers.make_manifest(listing, name=None, default_name=source.file.stem), old
