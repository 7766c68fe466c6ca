"""Finds each contract's server from the contract's location and the command-line options.

A header is sent only to the server whose contract names it, and a variable is set only for contracts that name it.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stubwright.commands.contracts.targets import Target, from_file, list_secrets
from stubwright.commands.shared import logins, servers
from stubwright.commands.shared.console import UsageError
from stubwright.diagnostics import Diagnostic, Place
from stubwright.importers.contracts.locations import KEY
from stubwright.importers.document_reader import DocumentError, SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.importers.contracts.contract import Contract
    from stubwright.importers.sources import Source


class MissingOptionError(SourceError):
    """A server cannot be reached without an option, which the message names."""


def find_targets(
    contracts: Sequence[Contract], url: str | None, arguments: argparse.Namespace
) -> list[Target | MissingOptionError | DocumentError]:
    """Return the server for each contract, or the reason that the server cannot be reached.

    Args:
        url: The URL on the command line, which replaces the only contract's location; may be None.

    Raises:
        UsageError: An option applies to none of the contracts, or would send a secret to several servers.
        SourceError: The client configuration is invalid.
    """
    if url is not None or arguments.command is not None:
        if len(contracts) != 1 or arguments.config is not None:
            raise UsageError("a URL or a command after `--` applies to one contract: specify which")
        source = servers.parse_source(url, arguments.command, arguments)
        return [_make_target(contracts[0], source, dict(map(servers.parse_variable, arguments.env)))]
    logins.check_shared(arguments, sum(bool(contract.location.url) for contract in contracts))
    configured = {} if arguments.config is None else _read_configuration(arguments.config, contracts)
    others = [contract for contract in contracts if contract.path not in configured]
    headers, variables = _share_headers(others, arguments.header), _share_variables(others, arguments.env)
    targets: list[Target | MissingOptionError | DocumentError] = []
    for contract in contracts:
        path = contract.path
        try:
            if path in configured:
                targets.append(_find_configured(contract, configured[path], arguments))
            else:
                targets.append(_find(contract, headers[path], variables[path], arguments))
        except (MissingOptionError, DocumentError) as error:
            targets.append(error)
    return targets


def _find(
    contract: Contract, headers: Mapping[str, str], given: Mapping[str, str], arguments: argparse.Namespace
) -> Target:
    """Return the server for a contract. Raises MissingOptionError and DocumentError."""
    from stubwright.importers import sources
    from stubwright.importers.contracts import secrets

    location = contract.location
    if location.file:
        return replace(from_file(location.file), file=_find_file(contract))
    if not location.is_complete:
        where = "its URL" if location.url else "`--` and its command"
        raise MissingOptionError(
            f"the contract omits parts of the server's address that may be secret; add {where}, as in "
            f"`{contract.path} {'URL' if location.url else '-- COMMAND ARGS…'}`"
        )
    variables = {**{name: os.environ[name] for name in location.env if name in os.environ}, **given}
    for name in location.env:
        if name not in variables:
            raise MissingOptionError(
                f"its server requires the environment variable `{name}`: set it, or pass --env {name}=VALUE"
            )
    if location.command:
        words = [secrets.put_values(word, variables) for word in location.command]
        return _make_target(contract, sources.Command(words, variables), variables)
    address = servers.check_url(secrets.put_values(location.url, variables))
    passed = {name.lower() for name in headers}
    for name in location.headers:
        is_obtained = name.lower() == "authorization" and (logins.is_requested(arguments) or logins.is_stored(address))
        if name.lower() not in passed and not is_obtained:
            option = "--token TOKEN" if name.lower() == "authorization" else f'--header "{name}: VALUE"'
            raise MissingOptionError(f"its server requires the header `{name}`: pass {option}")
    return _make_target(contract, logins.make_endpoint(address, headers, arguments), variables)


def _find_file(contract: Contract) -> str:
    """Return the path of the contract's file, relative to the working folder.

    A contract does not record where it was locked, so the file is searched for in the working folder and then in the
    folders above the contract.

    Raises:
        DocumentError: The file is missing or ambiguous.
    """
    file, own = contract.location.file, Path(contract.path).absolute()

    def is_source(path: Path) -> bool:
        return path.exists() and not path.samefile(own)  # a contract can have the same name as its manifest

    if is_source(Path(file)):
        return file
    found = [path for path in (folder / file for folder in own.parents) if is_source(path)]
    if len(found) == 1:
        return found[0].as_posix()
    fix = "the path is relative to the folder where the contract was locked: run this command there"
    if found:
        message = f"several parent folders have `{file}`: {', '.join(f'`{path.as_posix()}`' for path in found)}"
    else:
        message = f"`{file}` does not exist in this folder or in the folders above the contract"
    problem = Diagnostic("SW011", message, Place(contract.path, (KEY, "file")), fix)
    raise DocumentError(problem.message, [problem], {contract.path: contract.document})


def _make_target(contract: Contract, source: Source, variables: Mapping[str, str]) -> Target:
    name = str((contract.manifest.get("server") or {}).get("name") or servers.name(source))
    return Target(source.label, contract.location, source, name, list_secrets(source, variables))


def _share_headers(contracts: Sequence[Contract], texts: Sequence[str]) -> Mapping[str, dict[str, str]]:
    """Return each contract's headers, keyed by path.

    Raises UsageError for a header that no contract or several contracts name.
    """
    shares: dict[str, dict[str, str]] = {contract.path: {} for contract in contracts}
    remote = [contract for contract in contracts if contract.location.url]
    for name, value in map(servers.parse_header, texts):
        named = [
            contract
            for contract in remote
            if len(remote) == 1 or name.lower() in (known.lower() for known in contract.location.headers)
        ]
        if not named:
            raise UsageError(f"--header, --token: none of these contracts names the header `{name}`")
        if len(named) > 1:
            paths = ", ".join(contract.path for contract in named)
            raise UsageError(
                f"--header, --token: {paths} would get the same secret, `{name}`; verify them one at a time"
            )
        shares[named[0].path][name] = value
    return shares


def _share_variables(contracts: Sequence[Contract], texts: Sequence[str]) -> Mapping[str, dict[str, str]]:
    """Return each contract's `--env` variables, keyed by path.

    Raises UsageError for a variable that no contract names.
    """
    shares: dict[str, dict[str, str]] = {contract.path: {} for contract in contracts}
    commands = [contract for contract in contracts if contract.location.command]
    for name, value in map(servers.parse_variable, texts):
        named = [contract for contract in contracts if name in contract.location.env]
        if not named and len(commands) == 1:
            named = commands
        if not named:
            raise UsageError(f"--env: none of these contracts names the variable `{name}`")
        for contract in named:
            shares[contract.path][name] = value
    return shares


def _read_configuration(path: str, contracts: Sequence[Contract]) -> Mapping[str, Any]:
    """Return a client configuration's entries, keyed by contract path.

    Raises:
        UsageError: The file does not contain any of the contracts' servers.
        SourceError: The file is invalid.
    """
    from stubwright.commands.contracts import configurations, files

    entries = {files.make_name(name): entry for name, entry in configurations.read(path).items()}
    entry_of = {contract.path: entries[name] for contract in contracts if (name := Path(contract.path).name) in entries}
    if not entry_of:
        raise UsageError(f"--config: {path} has no server that is named like one of these contracts")
    return entry_of


def _find_configured(contract: Contract, entry: Any, arguments: argparse.Namespace) -> Target:
    from stubwright.commands.contracts import configurations
    from stubwright.project.clients import entries

    try:
        server = entries.parse(entry, os.environ)
        source = configurations.find_source(server, argparse.Namespace(**{**vars(arguments), "env": []}))
    except (entries.EntryError, UsageError) as error:
        raise MissingOptionError(str(error)) from None
    return _make_target(contract, source, server.variables)
