"""Creates contract manifests from servers and files.

Lists that contain a secret are rejected, so that no contract or report contains one.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright import paths
from stubwright.commands.shared import servers
from stubwright.importers.document_reader import DocumentError, SourceError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from stubwright.contract_tests.probes import Call
    from stubwright.importers.acceptance import ImportResult
    from stubwright.importers.contracts.locations import Location
    from stubwright.importers.server_listing import ServerListing
    from stubwright.importers.sources import Source


_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SPECIAL: Final = re.compile(r'([\\"`]|\$(?!\{))')


class LeakError(SourceError):
    """A server's lists contain a secret; the message names it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server or a file to create a contract from.

    Attributes:
        label: The target's name in messages.
        location: The location to record in the contract.
        source: The server; None for a file.
        default_name: The contract's name if the server does not report one.
        secrets: The secrets sent to the server, which a contract must not contain, as (name in messages, value).
        name: The server's name in the user's configuration; empty without one.
        file: The file's path relative to the working folder; empty for a server.
    """

    label: str
    location: Location
    source: Source | None = None
    default_name: str = ""
    secrets: tuple[tuple[str, str], ...] = ()
    name: str = ""
    file: str = ""

    def read(self, arguments: argparse.Namespace) -> ImportResult:
        """Return the manifest for the server's lists, read within the command line's limits. Raises SourceError."""
        if self.source is None:
            return _read_file(self.file)
        deadline = servers.start_deadline(arguments)  # each server has its own time limit
        return servers.prepare_manifest(self.source, arguments, self.make_manifest, deadline)()

    def make_manifest(self, listed: ServerListing) -> ImportResult:
        """Return the manifest for lists that were already read. Raises UnfixableError."""
        return _make_manifest(listed, self.default_name)

    def arrange(self, result: ImportResult) -> dict[str, Any]:
        """Return the contract's manifest.

        Raises LeakError if the manifest contains a secret that was sent to the server.
        """
        from stubwright.importers.contracts import contract, secrets

        manifest = contract.arrange(result.manifest, self.location)
        auth = getattr(self.source, "auth", None)
        tokens = () if auth is None else tuple(("the login", value) for value in auth.secrets)
        if leak := secrets.find_leak(manifest, (*self.secrets, *tokens)):
            raise LeakError(f"its lists contain the value of {leak}, which a contract must not contain")
        return manifest


def from_source(source: Source, variables: Mapping[str, str], name: str = "") -> Target:
    """Return the target for a live server.

    Args:
        variables: The user's values: environment variables for the command, and variables in the command or URL.
        name: The server's name in the user's configuration.
    """
    from stubwright.importers import sources
    from stubwright.importers.contracts.locations import Location

    if isinstance(source, sources.Command):
        location = Location.from_command(source.words, variables)
    else:
        location = Location.from_url(source.url, source.headers, variables)
    values = list_secrets(source, variables)
    return Target(source.label, location, source, name or servers.name(source), values, name)


def list_secrets(source: Source, variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the secrets that are sent to a server, as (name in messages, value)."""
    from stubwright.importers import sources
    from stubwright.importers.contracts import secrets

    if isinstance(source, sources.Command):
        return tuple(secrets.list_values("", {}, variables))
    return tuple(secrets.list_values(source.url, source.headers, variables))


def from_file(path: str) -> Target:
    """Return the target for a manifest or a saved list."""
    from stubwright.importers.contracts.locations import Location

    file = paths.normalize(path)
    return Target(path, Location(file=file), file=file)


def _read_file(path: str) -> ImportResult:
    from stubwright.calling import listings
    from stubwright.commands.shared import comparison
    from stubwright.compile.syntax import yamlwriter
    from stubwright.diff.kinds.server import list_capabilities
    from stubwright_runtime.mcp.revisions import REVISIONS

    version = comparison.read(path, "")
    if version.manifest is None:
        raise DocumentError("it is invalid", version.diagnostics, version.documents)
    entry = version.documents.get(version.entry)
    if entry is not None and yamlwriter.is_locked(entry.text):
        raise SourceError("it is already a contract")
    listed = listings.list_manifest(version.manifest, REVISIONS[-1])
    listed = replace(listed, capabilities={name: {} for name in list_capabilities(version.manifest)})
    if version.is_listed and listed.info.get("name") == comparison.UNNAMED:
        listed = replace(listed, info={**listed.info, "name": Path(path).stem})  # each list has its own contract
    return _make_manifest(listed, Path(path).stem, version.notes)


def _make_manifest(listed: ServerListing, default_name: str, notes: Sequence[str] = ()) -> ImportResult:
    from stubwright.importers import servers as manifests

    result = manifests.make_manifest(listed, name=None, default_name=default_name, emit=["client"])
    others = (note for note in result.notes if note != manifests.UNTRUSTED)
    return replace(result, notes=(*notes, *others))


def read_saved(path: str, known: Mapping[str, Any]) -> ImportResult:
    """Return a contract's manifest with its tools replaced by a saved list.

    Args:
        path: The saved `tools/list` result.
        known: The contract's manifest.

    Raises:
        SourceError: The saved list is invalid.
    """
    from stubwright.importers import tools
    from stubwright.importers.server_listing import ServerListing
    from stubwright.project.files import disk
    from stubwright_runtime.mcp import vocabulary
    from stubwright_runtime.mcp.revisions import REVISIONS

    notes: list[str] = []
    entries, info = tools.read_file(path, disk.Disk(), notes)
    server: Mapping[str, Any] = known["server"]
    capabilities: Mapping[str, Any] = {key: {} for key in server.get("capabilities", ())}
    listed = ServerListing(
        REVISIONS[-1],
        {**server, **info},
        capabilities,
        {vocabulary.TOOLS.name: entries},
        tuple(tools.report_pages(info)),
    )
    result = _make_manifest(listed, str(server["name"]), notes)
    others = {section.name: known[section.name] for section in vocabulary.PRIMITIVES if section.name in known}
    return replace(result, manifest={**result.manifest, **others})


@dataclass(frozen=True, slots=True)
class CallLine:
    """A quoted shell command line, split where a call's tool and arguments go."""

    before: str = ""
    after: str = ""

    def write(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the command line for a call, with non-ASCII characters escaped so that they survive copying."""
        return self._write("stubwright call", f"{shlex.quote(tool)} {shlex.quote(json.dumps(arguments))}")

    def write_replay(self, calls: Sequence[Call]) -> str:
        """Return the `stubwright test` command line that repeats the calls over one connection."""
        options = [f"--call {shlex.quote(f'{call.tool} {json.dumps(call.arguments)}')}" for call in calls]
        return self._write("stubwright test", " ".join(options))

    def _write(self, command: str, words: str) -> str:
        return " ".join(part for part in (command, self.before, words, self.after) if part)


def make_for_location(location: Location) -> CallLine:
    """Return the call's command line for a server's URL or command, with secrets replaced by shell variables or `…`."""
    if location.url:
        headers = " ".join(f'--header "{name}: ${_to_variable(name)}"' for name in location.headers)
        return CallLine(_quote(location.url, location), headers)
    options = [f"--env {shlex.quote(name)}" for name in location.env]
    return CallLine("", " ".join([*options, "--", *(_quote(word, location) for word in location.command)]))


def make_for_manifest(path: str, scopes: tuple[str, ...], *, is_mock: bool) -> CallLine:
    """Return the call's command line for a manifest's server."""
    options = [*(["--mock"] if is_mock else []), *(f"--scope {shlex.quote(scope)}" for scope in scopes)]
    return CallLine(shlex.quote(path), " ".join(options))


def _to_variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def _quote(word: str, location: Location) -> str:
    """Quote an argument, but let the shell expand the location's variables."""
    if any(name in location.env for name in _VARIABLE.findall(word)):
        escaped = _SPECIAL.sub(r"\\\1", word)
        return f'"{escaped}"'
    return shlex.quote(word)
