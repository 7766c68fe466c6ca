"""The servers that a client's configuration names, from its file to what `importers.live` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stubwright.commands.shared import logins, servers
from stubwright.commands.shared.console import UsageError
from stubwright.compile import source
from stubwright.compile.syntax.positions import Lines
from stubwright.importers import sources
from stubwright.importers.reading import DocumentError, SourceError
from stubwright.project.clients import entries
from stubwright.project.clients.jsonc import EditError
from stubwright.project.files import disk

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from stubwright.importers.sources import Source
    from stubwright.project.clients.entries import Server


def read(path: str) -> Mapping[str, Any]:
    """Return the entries of a client's configuration by name. Raises SourceError."""
    text = ""
    try:
        text = disk.Disk().read(path).decode("utf-8-sig")
        return entries.find_entries(text, path)
    except OSError as error:
        diagnostic = source.report_unreadable(path, error)
    except UnicodeDecodeError as error:
        raise SourceError("it is not in UTF-8") from error
    except EditError as error:
        diagnostic = Lines(text).report(path, error.problem)
    raise DocumentError(diagnostic.message, [diagnostic])


def find_source(server: Server, arguments: argparse.Namespace) -> Source:
    """Return the source of a server in a configuration. Raises UsageError, which shows no value."""
    if server.command:
        started = servers.start(server.command, arguments)
        return sources.Command(started.words, {**started.environment, **server.variables})
    headers = dict(map(servers.check_header, server.headers.items()))
    try:
        url = servers.check_url(server.url)
    except UsageError:
        raise UsageError("its URL is not one over http or https") from None  # which may hold a secret
    return logins.make_endpoint(url, headers, arguments)
