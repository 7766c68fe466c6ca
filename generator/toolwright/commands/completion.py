"""`toolwright completion`: what a shell needs to complete the command line."""

from __future__ import annotations

import argparse
from typing import Any

from toolwright.commands.shared.console import out


def add(verbs: Any) -> None:
    """Add the parser of the command."""
    completion = verbs.add_parser("completion", help="print a script that lets a shell complete commands")
    completion.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "tcsh"), help="bash, zsh or tcsh")
    completion.set_defaults(verb=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    import shtab

    parser: argparse.ArgumentParser = arguments.command_line
    _mark_paths(
        parser, dict.fromkeys(("MANIFEST", "FILE", "SOURCE", "OLD", "NEW"), shtab.FILE) | {"DIR": shtab.DIRECTORY}
    )
    out(shtab.complete(parser, shell=arguments.shell) + "\n")
    return 0


def _mark_paths(parser: argparse.ArgumentParser, kinds: dict[str, Any]) -> None:
    """Mark the arguments that are paths, by their names in the usage."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                _mark_paths(subparser, kinds)
        elif isinstance(action.metavar, str) and action.metavar in kinds:
            setattr(action, "complete", kinds[action.metavar])  # noqa: B010 - shtab's own attribute
