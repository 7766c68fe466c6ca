"""`stubwright lock`: write a server's lists to a file for review."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright import paths
from stubwright.commands.contracts.targets import Target, from_file, from_source
from stubwright.commands.importing import import_
from stubwright.commands.shared import logins, servers
from stubwright.commands.shared.console import UsageError, print_import, report, write_err, write_note, write_out
from stubwright.commands.shared.options import CommandParser, declare
from stubwright.importers.document_reader import SourceError
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from stubwright.diagnostics import Diagnostic
    from stubwright.importers.acceptance import ImportResult

_FOLDER: Final = "contracts"
_STANDARD_OUTPUT: Final = "-"
_WRONG: Final = 1
_NO_ANSWER: Final = 3

_EPILOG: Final = """exit status:
  0 locked, 1 a file is invalid or cannot be replaced, 2 usage error, 3 no response from a server, 130 interrupted

examples:
  stubwright lock https://example.com/mcp --token "$TOKEN"
  stubwright lock --env API_KEY -- npx -y @modelcontextprotocol/server-everything
  stubwright lock specs/weather.yaml -o contracts/weather.yaml
  stubwright lock --config .mcp.json
"""


_OPTIONS: Final = f"""
sources SOURCE*    a URL, a manifest, or a saved tools/list result (JSON)
--config FILE      lock each server in this client configuration, such as .mcp.json; runs its commands
-o, --output FILE  the contract file; `-` is standard output (default: {_FOLDER}/NAME.yaml, from the server's name)
--format text|json  the format of the report on written contracts
--force            replace a contract that was edited or belongs to another server
"""


def add(verbs: Any) -> None:
    """Register the `lock` subcommand and its options."""
    lock: CommandParser = verbs.add_parser(
        "lock",
        _lock,
        help="write a server's lists to a file for review",
        usage="stubwright lock [options] SOURCE…\n"
        "       stubwright lock [options] --config FILE\n"
        "       stubwright lock [options] -- COMMAND ARGS…",
        epilog=_EPILOG,
    )
    lock.late = "sources"
    declare(lock, _OPTIONS, config=paths.use_slashes, output=paths.use_slashes)
    servers.add_options(lock)
    logins.add_options(lock)


def _lock(arguments: argparse.Namespace) -> int:
    try:
        targets, status = (_find_targets(arguments), 0) if arguments.config is None else _find_configured(arguments)
    except SourceError as error:
        import_.report_failure(arguments.config, error, "read")
        return _WRONG
    output: str | None = arguments.output
    if output is not None:
        if len(targets) > 1:
            raise UsageError("-o names one file: lock one server at a time, or omit -o")
        if output == _STANDARD_OUTPUT and arguments.format != "text":
            raise UsageError("`-o -` prints the contract itself: omit --format")
        if output != _STANDARD_OUTPUT and not output.lower().endswith((".yaml", ".yml")):
            raise UsageError(f"-o is `{output}`; a contract is a .yaml file, or `-` for standard output")
    written: dict[str, _WrittenContract] = {}
    status = max([status, *(_lock_one(target, arguments, written) for target in targets)])
    if arguments.format == "json":
        from stubwright.diagnostics.printers.json import format_ascii

        write_out(format_ascii([{"file": file, **asdict(row)} for file, row in written.items()]))
    return status


@dataclass(frozen=True, slots=True)
class _WrittenContract:
    server: str
    state: str


def _find_targets(arguments: argparse.Namespace) -> Sequence[Target]:
    """Return the targets on the command line. Raises UsageError if there is no target or an option does not apply."""
    targets: Sequence[str] = tuple(dict.fromkeys(arguments.sources))
    urls = [target for target in targets if "://" in target]
    if arguments.command is not None:
        if targets:
            raise UsageError("specify sources, or a command after `--`, but not both")
        return [_find_server(None, arguments)]
    if not targets:
        raise UsageError("specify a server: a URL, a manifest, a saved list, or a command after `--`")
    if arguments.header and len(urls) != 1:
        what = "several servers would get the same secrets" if urls else "no URL is specified"
        raise UsageError(f"--header and --token are for one URL; {what}")
    if logins.is_requested(arguments) and not urls:
        raise UsageError("--login and --client-credentials require a URL")
    logins.check_shared(arguments, len(urls))
    if arguments.env:
        raise UsageError("--env is for a command after `--`")
    return [_find_server(target, arguments) if target in urls else from_file(target) for target in targets]


def _find_configured(arguments: argparse.Namespace) -> tuple[Sequence[Target], int]:
    """Return the servers in a client's configuration, and the exit status for unreachable servers.

    Raises:
        UsageError: An option cannot be combined with `--config`.
        SourceError: The file is invalid.
    """
    from stubwright.commands.contracts import configurations

    if arguments.sources or arguments.command is not None or arguments.header or arguments.env:
        raise UsageError("--config specifies the servers: omit other sources, --header, --token and --env")
    logins.check_configured(arguments)
    targets: list[Target] = []
    status = 0
    for name, target in configurations.find_targets(arguments):
        if isinstance(target, SourceError):
            write_err(to_one_line(f"stubwright: `{name}` of {arguments.config} cannot be locked: {target}"))
            status = _WRONG
        else:
            targets.append(target)
    if not targets and status == 0:
        write_note(to_one_line(f"{arguments.config} has no server to lock"))
    return targets, status


def _find_server(url: str | None, arguments: argparse.Namespace) -> Target:
    source = servers.parse_source(url, arguments.command, arguments)
    return from_source(source, dict(map(servers.parse_variable, arguments.env)))


def _lock_one(target: Target, arguments: argparse.Namespace, written: dict[str, _WrittenContract]) -> int:
    """Lock a server; return the exit status.

    Args:
        written: The contracts that this run has written, keyed by file. The call adds the server's contract.
    """
    from stubwright.importers.live import UnreachableError

    try:
        return _lock_or_raise(target, arguments, written)
    except SourceError as error:
        if target.name:
            write_err(to_one_line(f"stubwright: `{target.name}` of {arguments.config} cannot be locked:"))
        import_.report_failure(target.label, error, "locked")
        return _NO_ANSWER if isinstance(error, UnreachableError) else _WRONG


def _lock_or_raise(target: Target, arguments: argparse.Namespace, written: dict[str, _WrittenContract]) -> int:
    from stubwright.commands.contracts import files
    from stubwright.compile.syntax import yamlwriter

    result = target.read(arguments)
    text = yamlwriter.format_locked(target.arrange(result))
    if arguments.output == _STANDARD_OUTPUT:
        write_out(text)
    else:
        name = files.make_name(target.name or str(result.manifest["server"]["name"]))
        path = arguments.output or f"{_FOLDER}/{name}"
        problem: Diagnostic | None
        if path in written:
            problem, state = files.report_duplicate(path, written[path].server, target.label), ""
        else:
            location = None if arguments.output or target.name else target.location
            problem, state = files.write(path, text, location, force=arguments.force)
        if problem is not None:
            import_.report([problem])
            return _WRONG
        written[path] = _WrittenContract(target.label, state)
        if arguments.format == "text":
            report(f"{path}: {state}\n")
    print_import(result.summary, [*result.all_notes, *_list_notes(target, result)])
    return 0


def _list_notes(target: Target, result: ImportResult) -> Iterator[str]:
    if result.warnings:
        word = "warning" if result.warnings == 1 else "warnings"
        yield f"`stubwright check` reports {result.warnings} {word} about the server's lists"
    if not target.location.is_complete:
        yield "the contract shows `…` for parts of the location that may be secret; `verify` requires them again"
