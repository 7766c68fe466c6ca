"""`stubwright record`: record the messages between a client and a server, without secrets."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright import paths
from stubwright.commands.shared import logins, servers
from stubwright.commands.shared.console import UsageError, explain, write_err, write_note
from stubwright.commands.shared.options import CommandParser, declare
from stubwright.commands.shared.serving import parse_address, read_manifest
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from stubwright.importers.sources import Command, Endpoint
    from stubwright.recording.recorder import Recorder
    from stubwright.recording.redaction import Redactor

_DEFAULT: Final = "recording.jsonl"
_WRONG: Final = 1
_NO_ANSWER: Final = 3

_EPILOG: Final = """exit status:
  the command's exit status; 1 if a file is invalid or cannot be written, 2 on a usage error, 3 if the command
  cannot be started or the login fails

examples:
  stubwright record --env API_KEY -- npx -y desk-server
  stubwright record -o desk.jsonl --redact password -- python server.py
  stubwright record https://example.com/mcp --http 127.0.0.1:8000 --token "$TOKEN"
"""


_OPTIONS: Final = f"""
url URL?           an MCP endpoint; clients connect to the --http address instead
--http HOST:PORT   with a URL: the address for clients
-o, --output FILE  the recording; an existing recording is appended to (default: {_DEFAULT})
--redact NAME…     record [redacted] as the value of properties with this name; may be repeated
--manifest FILE    also redact the arguments redacted by this manifest (`policy: {{redact: …}}`)
"""


def add(verbs: Any) -> None:
    """Register the `record` subcommand and its options."""
    record: CommandParser = verbs.add_parser(
        "record",
        _record,
        help="record the messages between a client and a server",
        usage="stubwright record [options] -- COMMAND ARGS…\n       stubwright record [options] URL --http HOST:PORT",
        epilog=_EPILOG,
    )
    declare(record, _OPTIONS, output=(paths.use_slashes, _DEFAULT), manifest=paths.normalize)
    servers.add_reaching(record)
    logins.add_options(record)


def _record(arguments: argparse.Namespace) -> int:
    from stubwright.importers.sources import Command

    source = servers.parse_source(arguments.url, arguments.command, arguments)
    if (arguments.http is None) != isinstance(source, Command):
        raise UsageError("--http and a URL require each other: clients of a command use standard input and output")
    if arguments.http is not None:
        arguments.http = parse_address("--http", arguments.http)
    variables = dict(map(servers.parse_variable, arguments.env))
    tools: Mapping[str, Sequence[str]] = {}
    if arguments.manifest is not None:
        redacted = _read_redacted(arguments.manifest)
        if redacted is None:
            return _WRONG
        tools = redacted
    state = _read_state(arguments.output)
    if state is None:
        return _WRONG
    redactor, place = _make_redactor(source, variables, tools, arguments), _locate(source, variables)

    def begin() -> Recorder | None:
        return _open(arguments.output, state, redactor, place)

    if isinstance(source, Command):
        return _record_command(source, begin, arguments.output)
    return _record_endpoint(source, begin, arguments)


def _record_endpoint(endpoint: Endpoint, begin: Callable[[], Recorder | None], arguments: argparse.Namespace) -> int:
    """Record an endpoint. Leave the file unchanged if clients cannot connect."""
    import anyio

    from stubwright.login.errors import LoginError
    from stubwright.recording import http
    from stubwright_runtime.server.app.loader import StartError

    def report(message: str) -> None:
        write_err(to_one_line(f"stubwright: {message}"))

    try:
        listener = http.reserve(arguments.http)
    except StartError as error:
        report(str(error))
        return _WRONG
    with listener:
        if endpoint.auth is not None:
            try:
                anyio.run(endpoint.auth.prepare)
            except LoginError as error:
                report(str(error))
                return _NO_ANSWER
        recorder = begin()
        if recorder is None:
            return _WRONG
        http.run(endpoint.url, endpoint.headers, listener, recorder, report, endpoint.auth)
    return _find_status(recorder, 0, arguments.output)


def _record_command(command: Command, begin: Callable[[], Recorder | None], path: str) -> int:
    """Record a command. Leave the file unchanged if the command cannot be started."""
    from stubwright.recording import stdio
    from stubwright_runtime.client.core.environment import describe_withheld, find_withheld, select_inherited

    environment = {**select_inherited(os.environ), **command.environment}
    try:
        recorder, status = stdio.run(command.words, environment, begin)
    except (OSError, ValueError) as error:
        why = explain(error) if isinstance(error, OSError) else str(error)
        why = "program not found; is it installed?" if isinstance(error, FileNotFoundError) else why
        write_err(to_one_line(f"stubwright: `{command.label}` cannot be started: {why}"))
        return _NO_ANSWER
    if recorder is None:
        return _WRONG
    if status and not recorder.has_answers:
        withheld = find_withheld(os.environ, environment.keys(), (), at_start=True)
        if withheld:
            write_err(f"stubwright: {describe_withheld(withheld, '--env NAME')}")
    return _find_status(recorder, status, path)


def _read_state(path: str) -> tuple[int, bool] | None:
    """Return the size of a recording's complete lines in bytes, and whether an incomplete line follows.

    Return None after reporting an invalid or read-only recording. The file is not written.
    """
    from stubwright.project.files.append_only import AppendedFile
    from stubwright.project.files.disk import Disk
    from stubwright.recording import lines

    file = Path(path)
    try:
        data = Disk().read(path) if file.exists() else b""
        whole = lines.count_whole(path, data)
        if file.exists():
            AppendedFile(file).close()
        else:
            _check_folder(file.parent)
    except lines.RecordingError as error:
        write_err(to_one_line(f"stubwright: {error}"))
        return None
    except OSError as error:
        _report_unwritable(path, error)
        return None
    return whole, whole < len(data)


def _check_folder(folder: Path) -> None:
    """Raise OSError if no file can be created in a folder."""
    for is_met, number in (
        (folder.exists(), errno.ENOENT),
        (folder.is_dir(), errno.ENOTDIR),
        (os.access(folder, os.W_OK), errno.EACCES),
    ):
        if not is_met:
            raise OSError(number, os.strerror(number))


def _open(path: str, state: tuple[int, bool], redactor: Redactor, place: Mapping[str, Any]) -> Recorder | None:
    """Open a recording for appending. Return None after reporting that the file cannot be written."""
    from stubwright.project.files.append_only import AppendedFile
    from stubwright.recording.recorder import Recorder

    whole, is_cut = state
    try:
        file = AppendedFile(Path(path))
        if is_cut:  # the previous run was killed while writing
            file.shorten(whole)
            write_note(to_one_line(f"{path}: the last line was cut off and will be removed"))
    except OSError as error:
        _report_unwritable(path, error)
        return None
    return Recorder(file.append, redactor, place)


def _report_unwritable(path: str, error: OSError) -> None:
    write_err(to_one_line(f"stubwright: {path} cannot be written: {explain(error)}"))


def _find_status(recorder: Recorder, status: int, path: str) -> int:
    if recorder.failure is None:
        return status
    write_err(to_one_line(f"stubwright: {path} is incomplete: {explain(recorder.failure)}"))
    return status or _WRONG


def _read_redacted(path: str) -> Mapping[str, Sequence[str]] | None:
    """Return the fields that a manifest redacts, keyed by tool, or None after reporting an invalid manifest."""
    manifest = read_manifest(path)
    if manifest is None:
        return None
    default: Mapping[str, Any] = manifest.document.get("policy") or {}
    tools: dict[str, Sequence[str]] = {}
    for tool in manifest.document.get("tools") or ():
        own: Mapping[str, Any] = tool.get("stubwright") or {}
        policy: Mapping[str, Any] = {**default, **(own.get("policy") or {})}
        for name in (tool["name"], *(alias["name"] for alias in own.get("aliases") or ())):
            tools[name] = policy.get("redact") or ()
    return tools


def _make_redactor(
    source: Command | Endpoint,
    variables: Mapping[str, str],
    tools: Mapping[str, Sequence[str]],
    arguments: argparse.Namespace,
) -> Redactor:
    from stubwright.commands.contracts.targets import list_secrets
    from stubwright.recording.redaction import Redactor, list_parts

    headers: Mapping[str, str] = getattr(source, "headers", {})
    given = [*variables.values(), *(part for value in headers.values() for part in list_parts(value))]
    return Redactor(arguments.redact, [*given, *(value for _, value in list_secrets(source, variables))], tools)


def _locate(source: Command | Endpoint, variables: Mapping[str, str]) -> Mapping[str, Any]:
    from stubwright.importers.contracts.locations import Location
    from stubwright.importers.sources import Command

    if isinstance(source, Command):
        return Location.from_command(source.words, variables).to_value()
    return Location.from_url(source.url, source.headers, variables).to_value()
