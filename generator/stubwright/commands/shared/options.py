"""The command parser, and option tables."""

from __future__ import annotations

import argparse
import re
import shlex
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, Protocol, TypeAlias

from stubwright.commands.shared.console import write_err
from stubwright_runtime.values.terminal import replace_controls

_ROW: Final = re.compile(r"^(\S.*?)  +(.*(?:\n +.*)*)", re.MULTILINE)

_STYLE: Final = """
-q, --quiet                print results and errors, but no notes or reports of finished work
--verbose                  print every warning, and server logs
--color auto|always|never  use colors; auto: on a terminal, unless NO_COLOR is set
"""
_CHOICE: Final = re.compile(
    r"argument (?P<name>\S+): invalid choice: '(?P<word>.*)' \(choose from (?P<known>.*)\)", re.DOTALL
)
_UNKNOWN: Final = re.compile(r"unrecognized arguments: (?P<word>-[^\s;]+)(?!.*; put `--`).*", re.DOTALL)
_WITHOUT_VALUE: Final = re.compile(r"argument (?P<name>\S+): expected (?:at least )?one argument")
_MISSING: Final = re.compile(r"the following arguments are required: (?P<names>.*)")
_NO_NUMBER: Final = re.compile(r"argument (?P<name>\S+): invalid (?:int|float) value: '(?P<word>.*)'", re.DOTALL)
_EXAMPLE: Final = re.compile(r"^examples?:\n  (.*)", re.MULTILINE)
_OPTION: Final = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


class CommandParser(argparse.ArgumentParser):
    """A command parser in which the words after `--` can be a server command.

    If `takes_command` is set, the parser stores the words after `--` as `command`, or None without `--`. If
    `only_after` is also set, the words are a command only if that option precedes the `--`. Otherwise, `--` has its
    usual meaning.
    """

    takes_command = False
    only_after: str | None = None
    late: str | None = None
    """A positional argument that can also follow options, which argparse does not support after another positional
    argument. It takes one word, or any number of words if its value is a list.
    """

    def __init__(self, **options: Any) -> None:
        if "\n" in (options.get("epilog") or ""):
            options["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(**options)
        unset = {"default": argparse.SUPPRESS}  # keep options that precede the command
        declare(self.add_argument_group("output"), _STYLE, quiet=unset, verbose=unset, color=unset)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words before `--`."""
        words = list(args)
        command = None
        at = words.index("--") if self.takes_command and "--" in words else -1
        if at >= 0 and (self.only_after is None or self.only_after in words[:at]):
            words, command = words[:at], words[at + 1 :]
        parsed, rest = super().parse_known_args(words, namespace)
        if self.late is not None and rest and not any(word.startswith("-") and word != "-" for word in rest):
            before = getattr(parsed, self.late)
            if isinstance(before, list):
                setattr(parsed, self.late, [*before, *rest])
                rest = []
            elif not before and len(rest) == 1:
                setattr(parsed, self.late, tuple(rest))
                rest = []
        if rest:  # argparse would report this with the usage of the main parser
            takes_one = self.takes_command and (self.only_after is None or self.only_after in words)
            lacks_dashes = (
                takes_one and command is None and not (_is_misspelt(rest[0], self) or _is_server_named(parsed))
            )
            hint = (
                f"; put `--` before a command, as in: {self.prog} -- {_complete_command(parsed, rest)}"
                if lacks_dashes
                else ""
            )
            self.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
        if self.takes_command:
            parsed.command = command
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Print a one-line explanation of the error, without control characters from the command line, and exit."""
        write_err(replace_controls(f"{self.prog}: {_explain(self, message)}"))
        self.exit(2)


def _is_misspelt(word: str, parser: argparse.ArgumentParser) -> bool:
    from stubwright.diagnostics.suggestions import is_slip

    return word.startswith("-") and any(is_slip(word.partition("=")[0], each) for each in _list_options(parser))


def _list_options(parser: argparse.ArgumentParser) -> list[str]:
    return [*dict.fromkeys(_OPTION.findall(parser.format_help()))]


def _is_server_named(parsed: argparse.Namespace) -> bool:
    """Return whether the first word is a URL or a manifest instead of a server command."""
    first = next(iter(getattr(parsed, "words", None) or [getattr(parsed, "url", None) or ""]))
    return "://" in first or first.endswith((".yaml", ".yml", ".json"))


def _complete_command(parsed: argparse.Namespace, rest: Sequence[str]) -> str:
    """Return the command that was probably intended, or a placeholder if its first word is unknown."""
    first = getattr(parsed, "url", None)
    return shlex.join([*([first] if first else []), *rest]) if first else "COMMAND ARGS…"


def _explain(parser: argparse.ArgumentParser, message: str) -> str:
    """Return an explanation of argparse's error, or argparse's own text for uncommon errors."""
    from stubwright.commands import VERBS
    from stubwright.diagnostics.suggestions import did_you_mean, find_misspelt, find_nearest

    if found := _CHOICE.fullmatch(message):
        name, word = found["name"].rpartition("/")[2], found["word"]
        if name == "COMMAND":
            return f"there is no command `{word}`; {did_you_mean(word, [*VERBS, '--help'], 'commands')}"
        known = [each.strip("' ") for each in found["known"].split(",")]
        return f"`{word}` is not a valid value for `{name}`; {did_you_mean(word, known, 'values')}"
    if found := _UNKNOWN.fullmatch(message):
        word = found["word"].partition("=")[0]
        is_first = " " not in parser.prog  # an option before its command's name is misplaced, not misspelled
        find = find_misspelt if is_first else find_nearest
        near = find(word, _list_options(parser))
        advice = "put a command's options after its name" if is_first else f"see `{parser.prog} --help`"
        if not near and parser.prog == "stubwright call":
            advice = f"write arguments as NAME=VALUE, such as `{word.lstrip('-')}=…`"
        return f"there is no option `{word}`; {f'did you mean `{near}`?' if near else advice}"
    more = f"see `{parser.prog} --help`"
    if found := _WITHOUT_VALUE.fullmatch(message):
        return f"`{found['name'].rpartition('/')[2]}` requires a value; {more}"
    if found := _MISSING.fullmatch(message):
        names = " and ".join(f"`{name.rpartition('/')[2]}`" for name in found["names"].split(", "))
        example = _EXAMPLE.search(parser.epilog or "")
        return f"name {names}{f', as in: {example[1]}' if example else f'; {more}'}"
    if found := _NO_NUMBER.fullmatch(message):
        return f"`{found['word']}` is not a number, as `{found['name']}` requires; {more}"
    return f"{message}; {more}"


class _Parser(Protocol):
    def add_argument(self, *names: str, **settings: Any) -> argparse.Action: ...


Type: TypeAlias = Callable[[str], Any]


def declare(parser: _Parser, table: str, /, **settings: Type | tuple[Type, Any] | Mapping[str, Any]) -> None:
    """Add arguments from a table to a parser.

    Args:
        parser: A command's parser, or an option group.
        table: A row for each argument: usage, two spaces, help. Indented lines continue a row. Usages
            are `--strict` (a flag), `-o, --output FILE`, `--tool NAME…` (may be repeated), `--format text|json` (one of
            these, by default the first; also adds `--json`), `file FILE` (positional), `file FILE?` (optional) and
            `files FILE*` (any number).
        settings: By argument name: a type, a type with a default, or other settings of argparse.
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
        if name == "--format" and "json" in row["choices"]:
            form: dict[str, Any] = {"action": "store_const", "const": "json", "default": argparse.SUPPRESS}
            parser.add_argument("--json", dest="format", help="the same as --format json", **form)
