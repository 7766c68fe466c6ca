"""`stubwright targets`: print the limits of clients and model APIs, with the source of each rule."""

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
names TARGET*  a client, an API or a preset (default: list all)
--format text|json  the output format
"""


def add(verbs: Any) -> None:
    """Register the `targets` subcommand and its options."""
    targets = verbs.add_parser(
        "targets",
        _show,
        help="show the limits of clients and model APIs, with sources",
        epilog="To check tools, set `targets: [NAME, …]` in a manifest, or run `stubwright check --target NAME`.",
    )
    declare(targets, _OPTIONS)


def _show(arguments: argparse.Namespace) -> int:
    from stubwright.targets import TARGETS

    chosen = [TARGETS[name] for name in works.parse_targets(arguments.names)] or [*TARGETS.values()]
    if arguments.format == "json":
        write_out(json.dumps({target.name: _to_json(target) for target in chosen}, indent=2) + "\n")
    elif arguments.names:
        write_out("\n".join(map(_describe, chosen)))
    else:
        width = max(map(len, TARGETS))
        presets = {name: ", ".join(TARGETS.expand([name])) for name in TARGETS.list_presets()}
        titles = presets | {target.name: target.title for target in chosen}
        write_out("".join(f"{name:<{width}}  {title}\n" for name, title in titles.items()))
    return 0


def _describe(target: Target) -> str:
    from stubwright.targets.descriptions import describe

    lines = [f"{target.name}: {target.title}"]
    lines += (
        [f"Otherwise {target.consequence}."] if target.rules else ["No tool was rejected, and no schema lost a part."]
    )
    lines += [*([target.note] if target.note else []), ""]
    today = datetime.now(UTC).date()
    for rule in target.rules:
        age = ", over a year ago" if rule.is_old(today) else ""
        lines += [f"- {describe(rule)}", f"  {rule.certainty}, read {rule.read}{age}: {rule.source}"]
    return "\n".join(lines) + "\n"


def _to_json(target: Target) -> dict[str, Any]:
    rules = [
        {"rule": rule.kind, "value": rule.value, "source": rule.source, "read": rule.read, "certainty": rule.certainty}
        for rule in target.rules
    ]
    note = {"note": target.note} if target.note else {}
    return {"title": target.title, "consequence": target.consequence, **note, "rules": rules}
