"""`toolwright new`: a server project that runs at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolwright.commands import sources
from toolwright.commands.printing import UsageError, told

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from toolwright.scaffold import Origin


def add(verbs: Any) -> None:
    """Say how the verb is called."""
    new = verbs.add_parser(
        "new",
        help="start a server project that runs at once",
        usage="toolwright new [options] NAME\n"
        "       toolwright new [options] NAME --from mcp URL\n"
        "       toolwright new [options] NAME --from mcp -- COMMAND ARGS…",
    )
    new.add_argument("name", metavar="NAME", help="the server's name, such as `weather`")
    new.add_argument("--dir", metavar="DIR", help="where to put it (default: a new folder of that name)")
    new.add_argument(
        "--from",
        metavar=("KIND", "SOURCE"),
        nargs="+",
        dest="origin",
        help=f"start from what another server offers; KIND is {' or '.join(_ORIGINS)}",
    )
    sources.options(new, only_after="--from")
    new.set_defaults(verb=_new)


def _new(arguments: argparse.Namespace) -> int:
    from toolwright import scaffold

    origin = _origin(arguments)
    try:
        print(scaffold.create(arguments.name, Path(arguments.dir) if arguments.dir else None, origin), end="")
    except scaffold.NameRefusedError as error:
        raise UsageError(str(error)) from error
    except scaffold.ScaffoldError as error:
        print(f"toolwright: {error}", file=sys.stderr)
        return 1
    return 0


def _origin(arguments: argparse.Namespace) -> Callable[[], Origin] | None:
    """What gives the origin that the command line names.

    Raises:
        UsageError: There is no such kind, or it does not fit.
    """
    if arguments.origin is None:
        if arguments.header or arguments.env or arguments.timeout:
            raise UsageError("a server to start from is named with --from mcp")
        return None
    kind, *rest = arguments.origin
    if kind not in _ORIGINS or len(rest) > 1:
        raise UsageError(f"--from takes a kind ({', '.join(_ORIGINS)}) and one source; NAME stands before it")
    return _ORIGINS[kind](rest[0] if rest else None, arguments)


def _mcp(url: str | None, arguments: argparse.Namespace) -> Callable[[], Origin]:
    source = sources.of(url, arguments.command, arguments)

    def read() -> Origin:
        from toolwright import scaffold
        from toolwright.importing import live, servers, settling

        try:
            listed = live.read(source, arguments.timeout or live.TIMEOUT)
            made = servers.manifest(listed, name=None, otherwise=sources.name(source))
        except (live.UnreachableError, settling.UnsettledError) as error:
            raise scaffold.ScaffoldError(str(error)) from error
        told(made.summary, made.notes)
        server = made.manifest["server"]
        return scaffold.Origin({key: value for key, value in made.manifest.items() if key != "server"}, server)

    return read


_ORIGINS: Final[Mapping[str, Callable[[str | None, argparse.Namespace], Callable[[], Origin]]]] = {"mcp": _mcp}
"""What a project can start from: takes the source and the other arguments, checks them, and gives what reads it."""
