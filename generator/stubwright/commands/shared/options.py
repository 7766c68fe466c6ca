"""Tables of options: the arguments of a command as its help lists them."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

_ROW: Final = re.compile(r"^(\S.*?)  +(.*(?:\n +.*)*)", re.MULTILINE)


class _Parser(Protocol):
    """A parser, or a group of its options."""

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action: ...


Type: TypeAlias = Callable[[str], Any]


def declare(parser: _Parser, table: str, /, **settings: Type | tuple[Type, Any] | Mapping[str, Any]) -> None:
    """Add the arguments in a table to a parser.

    Args:
        parser: The parser of a command, or a group of its options.
        table: A row for each argument, its usage and its help two spaces apart; indented lines continue a row. Usages
            are `--strict` (a flag), `-o, --output FILE`, `--tool NAME…` (may be repeated), `--format text|json` (one of
            these, by default the first), `file FILE` (positional), `file FILE?` (optional) and `files FILE*` (any
            number).
        settings: The types of arguments by name, types with defaults, or other settings as argparse takes them.
    """
    for usage, text in _ROW.findall(textwrap.dedent(table)):
        *short, last = usage.split(", ")
        name, _, value = last.partition(" ")
        row: dict[str, Any] = {"help": " ".join(text.split())}
        if not name.startswith("-"):
            row |= {"metavar": value.rstrip("?*") or name}
            row |= {"nargs": value[-1]} if value.endswith(("?", "*")) else {}
        elif not value:
            row |= {"action": "store_true"}
        elif "|" in value:
            row |= {"choices": (choices := tuple(value.split("|"))), "default": choices[0]}
        else:
            row |= {"metavar": value.removesuffix("…")}
            row |= {"action": "append", "default": []} if value.endswith("…") else {}
        more = settings.get(name.lstrip("-").replace("-", "_"), {})
        if isinstance(more, tuple):
            more = {"type": more[0], "default": more[1]}
        parser.add_argument(*short, name, **{**row, **({"type": more} if callable(more) else more)})
