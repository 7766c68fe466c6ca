"""The command line and its exit statuses. The commands are in `commands`.

Exit statuses: 0 success, including warnings unless `--strict` is set; 1 invalid input or a stale tree; 2 an invalid
command line or a missing package. Commands import heavy modules only when they need them, so that `--help` is fast.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from stubwright import __version__
from stubwright.commands import GROUPS, VERBS
from stubwright.commands.examples import EXAMPLES, format_epilog
from stubwright.commands.shared.console import STYLE, Output, OutputError, Style, UsageError, write_err
from stubwright.commands.shared.options import CommandParser


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its status."""
    if argv is None:
        _start_in_utf8()
    gc.disable()  # a command is short-lived, and most of its objects live until exit
    # Skip the slow destruction of all objects.
    os._exit(execute(sys.argv[1:] if argv is None else argv))


def _start_in_utf8() -> None:
    """Restart this process in Python's UTF-8 mode if the locale uses another encoding for file names (PEP 540).

    File names in manifests are UTF-8, and a name on the command line must refer to the same file. Unlike an environment
    variable, an interpreter option is not inherited by servers that a command starts.
    """
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - without a shell


def execute(argv: Sequence[str]) -> int:
    """Run one command with `sys.stdout` and `sys.stderr` wrapped, and return the exit status."""
    sys.stdout, sys.stderr = Output.wrap(sys.stdout), Output.wrap(sys.stderr)
    try:
        try:
            status = run(argv)
        except KeyboardInterrupt:
            status = 130
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    except OutputError as error:
        status = 1
        if not isinstance(error.why, BrokenPipeError):  # a reader such as `head` can exit early
            with suppress(OutputError):
                write_err(f"stubwright: cannot write the output: {error}")
                sys.stderr.flush()
    return status


def run(argv: Sequence[str]) -> int:
    """Run one command and return the exit status. Loads only that command's parser."""
    # Loading all commands takes longer than running most of them; only `completion` needs them all.
    named = argv[:1] if argv and argv[0] in VERBS.keys() - {"completion"} else VERBS
    command_line = _parser(named)
    arguments = command_line.parse_args(argv)
    default = Style()  # an earlier command in this process may have set a different style
    for field in Style.__slots__:
        setattr(STYLE, field, getattr(arguments, field, getattr(default, field)))
    arguments.command_line = command_line
    verb: Callable[[argparse.Namespace], int] | None = getattr(arguments, "verb", None)
    if verb is None:
        command_line.print_help(sys.stderr)
        return 2
    try:
        return verb(arguments)
    except UsageError as error:
        write_err(f"stubwright: {error}")
        return 2
    except ModuleNotFoundError as error:
        from stubwright.project.optional_dependencies import explain_missing

        explanation = explain_missing(error)
        if explanation is None:
            raise
        write_err(f"stubwright: {explanation}")
        return 2


def _parser(named: Iterable[str] = VERBS) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="stubwright",
        usage="stubwright [-h] [--version] COMMAND ...",
        description="Compile declarative tool manifests into typed MCP servers and clients.",
    )
    parser.add_argument("--version", action="version", version=f"stubwright {__version__}")
    parser.verbs = parser.add_subparsers(prog="stubwright", metavar="COMMAND", parser_class=CommandParser)
    for verb in named:
        import_module(f"stubwright.commands.{VERBS[verb]}").add(parser)
    return parser


class _Parser(CommandParser):
    verbs: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lines: dict[str, str] = {}

    def add_parser(self, name: str, verb: Callable[[argparse.Namespace], int] | None = None, **options: Any) -> Any:
        self._lines[name] = options.get("help") or ""
        if name in EXAMPLES:
            options["epilog"] = format_epilog(options.get("epilog") or "", *EXAMPLES[name])
        parser = self.verbs.add_parser(name, **options)
        parser.set_defaults(verb=verb)
        return parser

    def format_help(self) -> str:
        groups = [
            f"{group}:\n" + "".join(self._format_line(name) for name in names if name in self._lines)
            for group, names in GROUPS.items()
        ]
        return "\n".join([self.format_usage(), f"{self.description}\n", _OPTIONS, *groups, _MORE])

    def _format_line(self, name: str) -> str:
        text = textwrap.fill(self._lines[name], 66, subsequent_indent=" " * 14)
        return f"  {name:<11} {text}\n"


_OPTIONS = """\
options:
  -h, --help  show this help message and exit
  --version   show the version and exit
  -q, --quiet, --verbose, --color auto|always|never
              output options, available in every command
"""
_MORE = "`stubwright COMMAND --help` shows a command's options, examples and exit statuses.\n"
