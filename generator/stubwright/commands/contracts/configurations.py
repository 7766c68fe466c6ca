"""Reads the servers in a client's configuration."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from stubwright.commands.contracts.targets import from_source
from stubwright.commands.shared import logins, servers
from stubwright.commands.shared.console import UsageError, write_note
from stubwright.compile import source
from stubwright.compile.syntax.positions import Lines
from stubwright.importers import sources
from stubwright.importers.document_reader import DocumentError, SourceError
from stubwright.project.clients import entries
from stubwright.project.clients.jsonc import EditError
from stubwright.project.files import disk
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from stubwright.commands.contracts.targets import Target
    from stubwright.importers.sources import Source
    from stubwright.project.clients.entries import Server


def read(path: str) -> Mapping[str, Any]:
    """Return the servers in a client's configuration, keyed by name. Raises SourceError."""
    text = ""
    try:
        text = disk.Disk().read(path).decode("utf-8-sig")
        return entries.find_entries(text, path)
    except OSError as error:
        diagnostic = source.report_unreadable(path, error)
    except UnicodeDecodeError as error:
        raise SourceError("it is not valid UTF-8") from error
    except EditError as error:
        diagnostic = Lines(text).report(path, error.problem)
    raise DocumentError(diagnostic.message, [diagnostic])


def find_targets(arguments: argparse.Namespace) -> Iterator[tuple[str, Target | SourceError]]:
    """Yield each enabled server in the configuration, or the reason that the server cannot be used.

    Raises SourceError.
    """
    for name, entry in read(arguments.config).items():
        if entries.is_disabled(entry):
            write_note(to_one_line(f"`{name}` of {arguments.config} is disabled, so it was omitted"))
            continue
        try:
            server = entries.parse(entry, os.environ)
            yield name, from_source(find_source(server, arguments), server.variables, name)
        except (entries.EntryError, UsageError) as error:
            yield name, SourceError(str(error))


def find_source(server: Server, arguments: argparse.Namespace) -> Source:
    """Return a configured server's source. Raises UsageError, whose message omits values because they may be secret."""
    if server.command:
        started = servers.start(server.command, arguments)
        return sources.Command(started.words, {**started.environment, **server.variables})
    headers = dict(map(servers.check_header, server.headers.items()))
    try:
        url = servers.check_url(server.url)
    except UsageError:
        raise UsageError("its URL is not http or https") from None  # omits the URL, which may contain a secret
    return logins.make_endpoint(url, headers, arguments)
