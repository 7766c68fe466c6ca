"""`stubwright list`: show a server's lists, and their cost in tokens."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.client import destinations
from stubwright.commands.shared import servers
from stubwright.commands.shared.console import Printer, print_painted, write_err, write_note, write_out
from stubwright.commands.shared.options import CommandParser, declare

if TYPE_CHECKING:
    import argparse

    from stubwright.commands.client.destinations import Destination
    from stubwright.importers.server_listing import ServerListing


_OPTIONS: Final = """
server SOURCE?  the server: a manifest or a URL
--format text|json  the output format
"""


def add(verbs: Any) -> None:
    """Register the `list` subcommand and its options."""
    list_: CommandParser = verbs.add_parser(
        "list",
        _list,
        help="show a server's tools, resources and prompts, and their cost",
        usage="stubwright list [options] [MANIFEST | URL] [-- COMMAND…]",
        epilog="Lists the declarations in a manifest; with --scope, --handlers or --mock, starts a server and "
        "requests its lists. Tokens are estimates, because models count differently.",
    )
    destinations.add_options(list_)
    servers.add_limits(list_, "time limit for reading all lists")
    declare(list_, _OPTIONS)


def _list(arguments: argparse.Namespace) -> int:
    from stubwright.calling import listings, results

    printer = Printer(arguments.format, strict=False)
    destination = destinations.find_destination(arguments.server, arguments, printer, generated=_is_asked(arguments))
    listing = None if destination is None else _read(destination, arguments)
    if destination is None:
        return printer.close()
    if listing is None:
        return destinations.NO_ANSWER
    if arguments.format == "json":
        write_out(results.to_json(listings.to_json(listing)) + "\n")
        return 0
    tools = () if destination.manifest is None else destination.manifest.tools
    needs = {tool.name: tool.policy.get("scopes", ()) for tool in tools}
    print_painted(lambda color: listings.show(listing, needs=needs, color=color), sys.stdout)
    hidden = [tool.name for tool in tools if listings.find(listing, tool.name) is None]
    if note := destinations.describe_hidden(destination, *hidden):
        write_note(note)
    return 0


def _is_asked(arguments: argparse.Namespace) -> bool:
    return bool(arguments.scope or arguments.handlers or arguments.mock or arguments.toolset)


def _read(destination: Destination, arguments: argparse.Namespace) -> ServerListing | None:
    from stubwright.calling import listings
    from stubwright.importers import live
    from stubwright_runtime.mcp.revisions import REVISIONS

    if destination.manifest is not None and not _is_asked(arguments):
        return listings.list_manifest(destination.manifest, REVISIONS[-1])
    try:
        return live.read(destination.source, servers.find_limits(arguments, destination.source))
    except live.UnreachableError as error:
        write_err(f"stubwright: {error}")
        return None
