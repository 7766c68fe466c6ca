"""`toolwright new`: a server project that runs at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwright.commands.printing import UsageError

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Say how the verb is called."""
    new = verbs.add_parser("new", help="start a server project that runs at once")
    new.add_argument("name", metavar="NAME", help="the server's name, such as `weather`")
    new.add_argument("--dir", metavar="DIR", help="where to put it (default: a new folder of that name)")
    new.set_defaults(verb=_new)


def _new(arguments: argparse.Namespace) -> int:
    from toolwright import scaffold

    try:
        print(scaffold.create(arguments.name, Path(arguments.dir) if arguments.dir else None), end="")
    except scaffold.NameRefusedError as error:
        raise UsageError(str(error)) from error
    except scaffold.ScaffoldError as error:
        print(f"toolwright: {error}", file=sys.stderr)
        return 1
    return 0
