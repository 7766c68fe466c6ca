"""`stubwright install`: add a server to an MCP client's configuration, or remove it from there."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared import inputs as works
from stubwright.commands.shared import server_lookup, servers
from stubwright.commands.shared.console import (
    Printer,
    UsageError,
    confirm,
    is_interactive,
    report,
    write_err,
    write_note,
    write_out,
)
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from stubwright import ir
    from stubwright.project.clients.configuration import Entry
    from stubwright.project.clients.table import Client
    from stubwright.project.launch import Launch

_LIMIT: Final = 30
"""Startup time limit for a server, in seconds."""


_OPTIONS: Final = """
--list                list all clients and their files, or one client with its sources; writes nothing
--format text|json    the format of --list
--print               print the entry with all values; writes nothing
--remove              remove the server from the client's configuration
--name NAME           the server's name in the client (default: the server's name)
--scope user|project  the user's file, or the project's file (default: user)
--env NAME[=VALUE]…   an environment variable for the server; without VALUE, its value in this shell
--env-file FILE…      a file of variables, NAME=VALUE on each line
--local-scope SCOPE…  a scope granted to the local user, who has no token; may be repeated
"""


def add(verbs: Any) -> None:
    """Register the `install` subcommand and its options."""
    install = verbs.add_parser(
        "install",
        _install,
        help="add a server to an MCP client's configuration",
        usage="stubwright install [options] CLIENT [MANIFEST]\n       stubwright install --list",
        epilog="Generate the server first. Its entry has absolute paths for this interpreter and all folders.",
    )
    install.add_argument("client", metavar="CLIENT", nargs="?", help="the client, such as claude; --list shows all")
    server_lookup.add_options(install)
    install.late = "manifests"
    declare(install, _OPTIONS)


def _install(arguments: argparse.Namespace) -> int:
    from stubwright.diagnostics.suggestions import did_you_mean
    from stubwright.project.clients import table
    from stubwright.project.clients.configuration import RefusedError

    if arguments.client not in (*table.CLIENTS, *([None] if arguments.list else [])):
        problem = "no client is specified" if arguments.client is None else f"there is no client `{arguments.client}`"
        raise UsageError(f"{problem}; {did_you_mean(arguments.client or '', table.CLIENTS, 'clients')}")
    if arguments.list:
        _list_clients(arguments)
        return 0
    if arguments.format != "text":
        raise UsageError("--format requires --list")
    if arguments.print and arguments.remove:
        raise UsageError("--print and --remove cannot be combined: --print shows an entry to add")
    printer = Printer("text", strict=False)
    client = table.CLIENTS[arguments.client]
    run = works.find_run(arguments, printer, arguments.output)
    manifest = server_lookup.find_server(run, printer) if run is not None else None
    if run is None or manifest is None:
        return printer.close()
    folder = Path.cwd() if run.project is None else Path.cwd() / run.project.folder
    file = client.find_file(arguments.scope, folder)
    if file is None:
        raise UsageError(f"{client.title} has no project configuration; omit --scope")
    try:
        if arguments.remove:
            return _remove(arguments, client, manifest, file)
        return _write(arguments, client, manifest, run, file)
    except RefusedError as error:
        printer.add([error.diagnostic])
        return printer.close()


def _list_clients(arguments: argparse.Namespace) -> None:
    from stubwright.diagnostics.printers.json import format_ascii
    from stubwright.project.clients import table

    clients = [client for client in table.CLIENTS.values() if arguments.client in (None, client.name)]
    if arguments.format == "json":
        write_out(format_ascii([_to_json(client) for client in clients]))
        return
    for client in clients:
        files = [client.find_file("user", Path()), client.find_file("project", Path())]
        listed = ", ".join(str(file) for file in files if file)
        if arguments.client is None:
            write_out(f"{client.name:<11} {client.title:<15} {listed}\n")
        else:
            write_out(f"{client.title}: {listed}\n  as in {', '.join(client.sources)}\n")


def _to_json(client: Client) -> dict[str, Any]:
    files = {"user": str(client.find_file("user", Path())), "project": client.project}
    return {"client": client.name, "title": client.title, **files, "sources": client.sources}


def _remove(arguments: argparse.Namespace, client: Client, manifest: ir.Manifest, file: Path) -> int:
    from stubwright.project.clients import configuration

    name = arguments.name or configuration.find_default_name(manifest)
    entry = configuration.Entry(client, name, {})
    if not file.exists() or not configuration.edit(file, entry.remove, private=False):
        write_err(f"stubwright: {file} has no server `{name}`")
        return 1
    report(f"{client.title}: `{name}` was removed from {file}\n")
    return 0


def _write(arguments: argparse.Namespace, client: Client, manifest: ir.Manifest, run: works.Run, file: Path) -> int:
    """Add the server to the client's configuration, or print the server's entry. Raises RefusedError and UsageError."""
    from stubwright.project import launch
    from stubwright.project.clients import configuration

    start = launch.prepare(
        manifest, run.target, handlers=arguments.handlers, python=server_lookup.find_interpreter(arguments)
    )
    start = replace(start, scopes=tuple(arguments.local_scope))
    name = arguments.name or configuration.find_default_name(manifest)
    if not configuration.NAME.fullmatch(name):
        raise UsageError(f"`{name}` is not a name that every client accepts: use 1 to 64 of A-Z, a-z, 0-9, `-` and `_`")
    variables = _read_variables(arguments)
    entry = configuration.Entry.make(client, name, start, variables)
    if arguments.print:
        write_err(f"for {file}:")
        write_out(entry.format_file())
        return 0
    if not launch.is_generated(manifest, run.target):
        raise UsageError(f"`{run.target.folder / manifest.package}` does not exist; run `stubwright generate` first")
    if not _agree_to_folder(arguments, client, file):
        return 1
    _report_risks(arguments, entry, start, file)
    _report_local_needs(manifest, start, variables)
    is_written = configuration.edit(file, entry.put, private=arguments.scope == "user")
    if is_written:
        report(f"{client.title}: `{name}` was added to {file}\n  {client.then}\n")
    else:
        report(f"{client.title}: `{name}` is already in {file}\n")
    return 0


def _agree_to_folder(arguments: argparse.Namespace, client: Client, file: Path) -> bool:
    """Return whether to create the missing folder for a client's configuration file. Ask the user if on a terminal."""
    if arguments.scope == "project" or file.parent.is_dir():
        return True
    missing = f"{file.parent} does not exist yet; is {client.title} installed?"
    if not is_interactive():
        write_note(missing)
        return True
    return confirm(f"{missing} Create the folder?")


def _report_risks(arguments: argparse.Namespace, entry: Entry, start: Launch, file: Path) -> None:
    """Print warnings about the entry and the server. The warnings omit the values of variables."""
    from stubwright.serving import processes

    title = entry.client.title
    if replaced := entry.list_replaced():
        write_note(f"{title} treats `$` as the start of its own variables, which changes {', '.join(replaced)}")
    if arguments.scope == "project":
        secrets = " and the values of variables" if len(entry.value["env"]) > 1 else ""
        write_note(f"{file.name} contains this machine's paths{secrets}; consider that before committing it")
    variables = {key: value for key, value in entry.value["env"].items() if key != "PYTHONPATH"}
    deadline = time.monotonic() + _LIMIT
    startup = processes.StartupWait(lambda: time.monotonic() > deadline, _report_slow)
    try:
        if (problem := processes.prove(start, variables, startup)) is not None:
            write_err(f"warning: the server cannot be started:\n{problem}")
    except processes.StaleError as error:
        where = f"; its handlers are at\n{str(error).rstrip()}" if str(error) else ""
        write_err(f"warning: the server has not started after {_LIMIT} s{where}")


def _report_slow(seconds: int, _stack: str) -> None:
    write_note(f"the server has not started after {seconds} s; waiting for up to {_LIMIT} s")


def _report_local_needs(manifest: ir.Manifest, start: Launch, variables: Mapping[str, str]) -> None:
    """Print the scopes and variables that the server needs but a local user, who has no token, lacks."""
    from stubwright.project import launch
    from stubwright.project.variables import list_variables

    if lacking := launch.find_lacking_scopes(manifest, start.scopes):
        options = " ".join(f"--local-scope {scope}" for scope in lacking)
        write_note(f"the local user lacks scopes that parts of the server need; grant them with {options}")
    for variable in list_variables(manifest.document):
        if variable.kind == "argument" and variable.name not in variables:
            write_note(f"some tools take an argument from the environment; --env {variable.name} sets it")


def _read_variables(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the variables from `--env-file` and `--env`. `--env` takes precedence.

    Raises RefusedError and UsageError.
    """
    from stubwright.diagnostics import Diagnostic, Place
    from stubwright.project.clients import configuration, variables
    from stubwright.project.clients.jsonc import EditError

    values: dict[str, str] = {}
    for name in arguments.env_file:
        try:
            text = Path(name).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not in UTF-8"
            diagnostic = Diagnostic("SW001", f"the file cannot be read: {reason}", Place(name))
            raise configuration.RefusedError(diagnostic) from error
        try:
            values |= variables.parse(text)
        except EditError as error:
            raise configuration.RefusedError(configuration.report_misplaced(text, Path(name), error)) from error
    for text in arguments.env:
        key, value = servers.parse_variable(text)
        if not variables.NAME.fullmatch(key):
            raise UsageError(f"--env: `{key}` is not a variable name")
        if "\0" in value:
            raise UsageError(f"--env {key}: a variable cannot contain a null character")
        values[key] = value
    return values
