"""`stubwright targets`: the limits of clients and APIs, with the source of each rule."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared import inputs as works
from stubwright.commands.shared.console import write_out
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse

    from stubwright.targets import Target


_OPTIONS: Final = """
names TARGET*  a client or an API (default: list all)
--format text|json  how to print the table
"""


def add(verbs: Any) -> None:
    """Add the parser of the command."""
    targets = verbs.add_parser(
        "targets",
        _show,
        help="show the limits of clients and APIs, with sources",
        epilog="`targets: [NAME, …]` in a manifest, or `stubwright check --target NAME`, judges tools by them.",
    )
    declare(targets, _OPTIONS)


def _show(arguments: argparse.Namespace) -> int:
    from stubwright.targets import TARGETS

    chosen = [TARGETS[works.parse_target(name)] for name in arguments.names] or [*TARGETS.values()]
    if arguments.format == "json":
        write_out(json.dumps({target.name: _to_json(target) for target in chosen}, indent=2) + "\n")
    elif arguments.names:
        write_out("\n".join(map(_describe, chosen)))
    else:
        width = max(map(len, TARGETS))
        write_out("".join(f"{target.name:<{width}}  {target.title}\n" for target in chosen))
    return 0


def _describe(target: Target) -> str:
    from stubwright.targets.wording import say

    lines = [f"{target.name}: {target.title}", f"Otherwise {target.consequence}.", ""]
    today = datetime.now(UTC).date()
    for rule in target.rules:
        age = ", over a year ago" if rule.is_old(today) else ""
        lines += [f"- {say(rule)}", f"  {rule.certainty}, read {rule.read}{age}: {rule.source}"]
    return "\n".join(lines) + "\n"


def _to_json(target: Target) -> dict[str, Any]:
    rules = [
        {"rule": rule.kind, "value": rule.value, "source": rule.source, "read": rule.read, "certainty": rule.certainty}
        for rule in target.rules
    ]
    return {"title": target.title, "consequence": target.consequence, "rules": rules}
