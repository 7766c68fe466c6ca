"""`--target`: the clients and APIs that tools are judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright.commands.shared.console import UsageError
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


_OPTIONS: Final = """
--target TARGET…  a client or an API that must take the tools, in place of the manifest's `targets`; may be repeated
"""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Let a verb be told by which targets."""
    declare(parser, _OPTIONS)


def choose_targets(arguments: argparse.Namespace) -> Sequence[str]:
    """Return the targets that are chosen, each once.

    Raises:
        UsageError: There is no such target.
    """
    return tuple(dict.fromkeys(parse_target(name) for name in arguments.target))


def parse_target(name: str) -> str:
    """Return the name of a target. Raises UsageError if no target has it."""
    from stubwright.diagnostics.suggestions import did_you_mean
    from stubwright.targets import TARGETS

    if name not in TARGETS:
        fix = did_you_mean(name, [*TARGETS], "targets")
        raise UsageError(f"there is no target `{name}`; {fix or 'see `stubwright targets`'}")
    return name
