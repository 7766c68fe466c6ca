"""`stubwright inspect`: show a server as clients of each protocol revision see it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from stubwright import http
from stubwright.commands.client import destinations
from stubwright.commands.shared import servers
from stubwright.commands.shared.console import Printer, UsageError, write_err, write_out
from stubwright.commands.shared.options import CommandParser, declare
from stubwright_runtime.mcp.revisions import REVISIONS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from stubwright.commands.client.destinations import Destination
    from stubwright.importers.limits import Limits
    from stubwright.importers.server_listing import ServerListing


_OPTIONS: Final = """
words WORD*  the server, unless a command follows; one of its entries
--format text|json  the format of each revision's lists
"""


def add(verbs: Any) -> None:
    """Register the `inspect` subcommand and its options."""
    inspect: CommandParser = verbs.add_parser(
        "inspect",
        _inspect,
        help="show a server as clients of each MCP revision see it",
        usage="stubwright inspect [options] [MANIFEST | URL] [NAME] [-- COMMAND…]",
        epilog="A manifest's server is a mock, unless --scope or --handlers is set. NAME is a tool, a "
        "prompt, or the URI of a resource, and is shown as sent.",
    )
    inspect.late = "words"
    destinations.add_options(inspect)
    servers.add_limits(inspect, "time limit for reading the lists in all revisions")
    inspect.add_argument("--revision", choices=REVISIONS, action="append", help="only this revision; may be repeated")
    declare(inspect, _OPTIONS)


def _inspect(arguments: argparse.Namespace) -> int:
    words = list(arguments.words)
    named = destinations.pop_server(words, arguments)
    if len(words) > 1:
        raise UsageError(f"specify one entry, not {len(words)}: {', '.join(words)}")
    arguments.mock = arguments.mock or not (arguments.scope or arguments.handlers or arguments.command is not None)
    arguments.mock = arguments.mock and (named is None or not http.is_url(named))
    printer = Printer(arguments.format, strict=False)
    destination = destinations.find_destination(named, arguments, printer)
    if destination is None:
        return printer.close()
    asked = sorted(arguments.revision or REVISIONS, reverse=True)
    listings = dict(_read(destination, asked, servers.find_limits(arguments, destination.source)))
    known = {revision: listing for revision, listing in listings.items() if not isinstance(listing, str)}
    if not known:
        reasons = [f"{date}: {reason}" for date, reason in listings.items()]
        is_same = len(set(listings.values())) == 1
        write_err("\n".join(f"stubwright: {reason}" for reason in ([listings[asked[0]]] if is_same else reasons)))
        return destinations.NO_ANSWER
    return _show(listings, known, words[0] if words else None, arguments)


def _show(
    asked: Mapping[str, ServerListing | str],
    known: Mapping[str, ServerListing],
    key: str | None,
    arguments: argparse.Namespace,
) -> int:
    from stubwright.calling import listings, results
    from stubwright.diagnostics.suggestions import did_you_mean

    newest = next(iter(known.values()))
    if key is not None and all(listings.find(listing, key) is None for listing in known.values()):
        raise UsageError(f"there is no `{key}`; {did_you_mean(key, listings.list_keys(newest), 'entries')}")
    if arguments.format == "json":
        shown = {
            date: listings.to_json(each) if key is None else listings.find(each, key) for date, each in known.items()
        }
        write_out(results.to_json(shown) + "\n")
        return 0
    entry = None if key is None else listings.find(newest, key)
    if entry is not None:
        write_out(results.to_json(entry) + "\n\n")
    shown_newest = False
    for date, listing in asked.items():
        if isinstance(listing, str):
            write_out(f"{date}: {listing}\n")
            continue
        if listing.revision != date:
            write_out(f"{date}: not supported; the server negotiated {listing.revision}\n")
        elif not shown_newest:
            write_out(
                f"{date}: {'' if key is None else 'as above' + chr(10)}{listings.show(listing) if key is None else ''}"
            )
            shown_newest = True
        else:
            lines = listings.describe_differences(newest, listing, key)
            write_out(f"{date}: {'the same' if not lines else f'as {newest.revision}, but'}\n")
            ignored = listings.describe_unknown(listing, date) if key is None else ""
            write_out("".join(f"  {line}\n" for line in (*lines, *([ignored] if ignored else []))))
    return 0


def _read(
    destination: Destination, revisions: Sequence[str], limits: Limits
) -> Iterator[tuple[str, ServerListing | str]]:
    """Yield each revision with the server's lists, or with the reason that the lists cannot be read.

    The time limit covers all revisions together; the other limits apply to each revision.
    """
    from stubwright.importers import live
    from stubwright.importers.limits import Deadline

    deadline = Deadline(limits.seconds)
    for number, revision in enumerate(revisions):
        starting = None if number else limits.starting
        if starting is None and deadline.remaining <= 0:
            yield revision, f"not requested within {limits.seconds:g} s; allow more time with --timeout"
            continue
        seconds = limits.seconds if starting else max(round(deadline.remaining, 1), 0.1)
        own = replace(limits, seconds=seconds, starting=starting)
        try:
            yield (
                revision,
                live.read(destination.source, own, started=None if number else deadline.restart, revision=revision),
            )
        except live.UnreachableError as error:
            yield revision, str(error)
