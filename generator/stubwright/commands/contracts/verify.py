"""`stubwright verify`: compare servers' lists with their contracts, and report who is affected by changes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright import http, paths
from stubwright.commands import diff
from stubwright.commands.contracts.targets import Target
from stubwright.commands.importing import import_
from stubwright.commands.shared import inputs as works
from stubwright.commands.shared import logins, servers
from stubwright.commands.shared.console import Printer, UsageError, print_import, write_err, write_out
from stubwright.commands.shared.options import CommandParser, declare
from stubwright.importers.document_reader import DocumentError, SourceError
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from stubwright.commands.contracts.reports import Outcome
    from stubwright.importers.acceptance import ImportResult
    from stubwright.importers.contracts.contract import Contract
    from stubwright.importers.server_listing import ServerListing

_FOLDER: Final = "contracts"
_WRONG: Final = 1
_NO_ANSWER: Final = 3

_EPILOG: Final = """exit status:
  0 no failing change, 1 a breaking change (or a level from --fail-on) or an invalid contract,
  2 usage error, 3 no response from a server, and no errors, 130 interrupted

examples:
  stubwright verify
  stubwright verify contracts/weather.yaml --token "$TOKEN"
  stubwright verify contracts/desk.yaml -- npx -y desk-server@2
  stubwright verify contracts/desk.yaml --against tools.json
"""


_OPTIONS: Final = f"""
contracts CONTRACT*  contracts from `stubwright lock` (default: {_FOLDER}/*.yaml); runs the commands in them
--config FILE        reach the servers with the URLs, commands and variables in this client configuration
--against FILE       compare one contract with a saved tools/list result, without a server
--update             show the changes, and relock changed contracts
"""


def add(verbs: Any) -> None:
    """Register the `verify` subcommand and its options."""
    verify: CommandParser = verbs.add_parser(
        "verify",
        _verify,
        help="compare servers with their contracts, and show who is affected by changes",
        usage="stubwright verify [options] [CONTRACT…]\n"
        "       stubwright verify [options] CONTRACT URL\n"
        "       stubwright verify [options] CONTRACT -- COMMAND ARGS…",
        epilog=_EPILOG,
    )
    verify.late = "contracts"
    declare(verify, _OPTIONS, config=paths.use_slashes, against=paths.use_slashes)
    diff.add_options(verify)
    servers.add_options(verify)
    logins.add_options(verify)


def _verify(arguments: argparse.Namespace) -> int:
    from stubwright.commands.contracts import reports

    works.choose_targets(arguments)
    words: Sequence[str] = tuple(dict.fromkeys(arguments.contracts))
    urls = [word for word in words if http.is_url(word)]
    if len(urls) > 1:
        raise UsageError("specify one URL: the location of the contract's server")
    printer = Printer("text" if arguments.format in ("md", "sarif") else arguments.format, strict=False)
    try:
        files = _find_files([paths.use_slashes(word) for word in words if word not in urls])
    except OSError as error:
        from stubwright.compile.source import report_unreadable  # needs PyYAML, missing from a light installation

        problem = report_unreadable(_FOLDER, error)
        return _refuse([reports.Outcome(_FOLDER, "", error=DocumentError(problem.message, [problem]))], arguments)
    if arguments.against is not None:
        _check_offline(files, urls, arguments)
    contracts, wrong = _read_contracts(files)
    if wrong:
        return _refuse(wrong, arguments)
    try:
        listings = [*_list_now(contracts, urls[0] if urls else None, arguments, printer)]
    except SourceError as error:
        import_.report_failure(arguments.against or arguments.config, error, "read")
        outcomes = [_compare(contract, error, arguments) for contract in contracts]
        if arguments.format != "json":  # only JSON lists each contract; other formats report the invalid file once
            outcomes = [replace(outcomes[0], path=arguments.config or outcomes[0].path)]
        reports.write(outcomes, arguments.format)
        return _WRONG
    outcomes = [_compare(contract, listing, arguments) for contract, listing in zip(contracts, listings, strict=True)]
    reports.show(outcomes, arguments.format)
    if arguments.update:
        outcomes = [_update(outcome, arguments) for outcome in outcomes]
    return _find_worst(outcomes)


def _refuse(wrong: Sequence[Outcome], arguments: argparse.Namespace) -> int:
    from stubwright.commands.contracts import reports

    has_document = arguments.format in ("md", "sarif")
    printer = Printer("text" if has_document else arguments.format, strict=False)
    for outcome in wrong:
        printer.add(outcome.diagnostics, outcome.documents)
    if has_document:
        reports.write(wrong, arguments.format)
    return printer.close()


def _find_worst(outcomes: Sequence[Outcome]) -> int:
    """Return the command's exit status: a breaking change outranks an unreachable server."""
    statuses = {outcome.status for outcome in outcomes}
    return next((status for status in (_WRONG, _NO_ANSWER) if status in statuses), 0)


def _find_files(named: Sequence[str]) -> Sequence[str]:
    """Return `named` or, if `named` is empty, all files in the contracts folder.

    Raises:
        UsageError: The contracts folder has no contracts.
        OSError: The contracts folder cannot be read.
    """
    if named:
        return named
    folder = Path(_FOLDER)
    # `Path.glob` finds nothing in an unreadable folder.
    found = folder.iterdir() if folder.exists() else ()
    files = sorted(path.as_posix() for path in found if path.suffix == ".yaml")
    if not files:
        raise UsageError(f"there is no {_FOLDER}/*.yaml: specify a contract, or create one with `stubwright lock`")
    return files


def _check_offline(files: Sequence[str], urls: Sequence[str], arguments: argparse.Namespace) -> None:
    if len(files) != 1:
        raise UsageError("--against compares one contract: specify it")
    if urls or arguments.command is not None or arguments.header or arguments.env or arguments.config is not None:
        raise UsageError("--against uses no server: omit the URL, command, --header, --token, --env or --config")
    if logins.is_requested(arguments):
        raise UsageError(
            "--login, --client-credentials and --client-id are for a server: they cannot be combined with --against"
        )
    if arguments.update:
        raise UsageError("--update locks a server's lists: it cannot be combined with --against")


def _read_contracts(files: Sequence[str]) -> tuple[list[Contract], list[Outcome]]:
    from stubwright.commands.contracts.reports import Outcome
    from stubwright.importers.contracts import contract
    from stubwright.project.files import disk

    contracts, wrong = [], []
    for path in files:
        try:
            parsed = contract.read_contract(path, disk.Disk())
        except DocumentError as error:
            wrong.append(Outcome(path, "", error=error, status=_WRONG))
            continue
        if parsed.edited is not None:
            edited = DocumentError(parsed.edited.message, [parsed.edited], {path: parsed.document})
            wrong.append(Outcome(path, parsed.location.label, error=edited, status=_WRONG))
        contracts.append(parsed)
    return contracts, wrong


@dataclass(frozen=True, slots=True)
class _ServerLists:
    label: str
    manifest: Mapping[str, Any]
    result: ImportResult


def _list_now(
    contracts: Sequence[Contract], url: str | None, arguments: argparse.Namespace, printer: Printer
) -> Iterator[_ServerLists | SourceError]:
    """Yield the current lists for each contract, or the error in reading them. Raises UsageError and SourceError."""
    from stubwright.commands.contracts import target_lookup, targets
    from stubwright.importers import live

    if arguments.against is not None:
        [contract] = contracts
        target = targets.from_file(arguments.against)
        result = targets.read_saved(arguments.against, contract.manifest)
        yield _ServerLists(target.label, replace(target, location=contract.location).arrange(result), result)
        return
    requested = target_lookup.find_targets(contracts, url, arguments)
    sources = [target.source for target in requested if isinstance(target, Target) and target.source is not None]
    with printer.show_work(f"connecting to {'1 server' if len(sources) == 1 else f'{len(sources)} servers'}"):
        answers = iter(live.read_several(sources, servers.find_limits(arguments)))
    for place in requested:
        if isinstance(place, SourceError):
            yield place
            continue
        answer = next(answers) if place.source is not None else None
        yield answer if isinstance(answer, SourceError) else _arrange(place, answer, arguments)


def _arrange(target: Target, answer: ServerListing | None, arguments: argparse.Namespace) -> _ServerLists | SourceError:
    try:
        with servers.start_deadline(arguments).enforce():
            result = target.read(arguments) if answer is None else target.make_manifest(answer)
            return _ServerLists(target.location.label, target.arrange(result), result)
    except SourceError as error:
        return error


def _compare(contract: Contract, listing: _ServerLists | SourceError, arguments: argparse.Namespace) -> Outcome:
    from stubwright.commands.contracts.reports import Outcome
    from stubwright.commands.contracts.target_lookup import MissingOptionError
    from stubwright.commands.shared import comparison
    from stubwright.importers.limits import TooSlowError
    from stubwright.importers.live import UnreachableError

    path, label = contract.path, contract.location.label
    if isinstance(listing, SourceError):
        is_unreachable = isinstance(listing, UnreachableError | TooSlowError | MissingOptionError)
        return Outcome(path, label, error=listing, status=_NO_ANSWER if is_unreachable else _WRONG)
    # Compared as text, because `1 == True` in Python and key order does not matter.
    if json.dumps(listing.manifest) == json.dumps(contract.manifest):
        return Outcome(path, listing.label)
    old, new = comparison.read(path, ""), comparison.make_version(to_one_line(listing.label), listing.manifest)
    difference = None
    if old.manifest is not None and new.manifest is not None:
        difference = diff.find_difference(old, replace(new, is_listed=True, is_sorted=True), arguments)
    if difference is None:
        documents = {**old.documents, **new.documents}
        fault = DocumentError("it cannot be compared", [*old.diagnostics, *new.diagnostics], documents)
        return Outcome(path, listing.label, error=fault, status=_WRONG)
    print_import("", (f"{path}: {note}" for note in listing.result.notes))
    # Do not suggest a version: the server's authors choose it.
    shown = replace(difference.comparison, old_version="", new_version="")
    difference = replace(difference, comparison=shown)
    return Outcome(path, listing.label, listing.manifest, difference, status=difference.find_status())


def _update(outcome: Outcome, arguments: argparse.Namespace) -> Outcome:
    """Relock a changed contract. Return the outcome with the exit status of the write."""
    from stubwright.commands.contracts import files
    from stubwright.compile.syntax import yamlwriter

    if outcome.manifest is None:
        return outcome
    problem, state = files.write(outcome.path, yamlwriter.format_locked(outcome.manifest), None, force=True)
    if problem is not None:
        import_.report([problem])
        return replace(outcome, status=_WRONG)
    line = f"{outcome.path}: {state}"
    if arguments.format == "text":
        write_out(f"{line}\n")
    else:
        write_err(line)
    return outcome
