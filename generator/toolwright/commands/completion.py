"""`toolwright completion`: what a shell needs to complete the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Say how the verb is called."""
    completion = verbs.add_parser("completion", help="print a script that lets a shell complete commands")
    completion.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "tcsh"), help="bash, zsh or tcsh")
    completion.set_defaults(verb=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    import shtab

    from toolwright import cli

    print(shtab.complete(cli.parser(), shell=arguments.shell))
    return 0
