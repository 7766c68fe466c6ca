"""Mistakes in a command line, in one line each, with the nearest word that exists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from argparse import ArgumentParser

_CHOICE: Final = re.compile(
    r"argument (?P<name>\S+): invalid choice: '(?P<word>.*)' \(choose from (?P<known>.*)\)", re.DOTALL
)
_UNKNOWN: Final = re.compile(r"unrecognized arguments: (?P<word>-\S+)(?!.*; put `--`).*", re.DOTALL)
_OPTION: Final = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def explain(parser: ArgumentParser, message: str) -> str:
    """Return the explanation of an error of argparse; other errors than the usual ones keep argparse's words."""
    from stubwright.commands import VERBS
    from stubwright.diagnostics.suggestions import did_you_mean, find_nearest

    if found := _CHOICE.fullmatch(message):
        name, word = found["name"].rpartition("/")[2], found["word"]
        if name == "COMMAND":
            return f"there is no command `{word}`; {did_you_mean(word, VERBS, 'commands')}"
        known = [each.strip("' ") for each in found["known"].split(",")]
        return f"`{word}` is not a value of `{name}`; {did_you_mean(word, known, 'values')}"
    if found := _UNKNOWN.fullmatch(message):
        word = found["word"].partition("=")[0]
        near = find_nearest(word, dict.fromkeys(_OPTION.findall(parser.format_help())))
        advice = f"did you mean `{near}`?" if near else f"see `{parser.prog} --help`"
        return f"there is no option `{word}`; {advice}"
    return f"{message}; see `{parser.prog} --help`"
