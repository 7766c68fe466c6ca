"""`stubwright explain`: print the meaning of a code from `check` or `diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared.console import UsageError, write_out
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse

_SEVERITIES: Final = {
    "error": "An error stops the compiler.",
    "warning": "A warning does not stop the compiler, unless you pass `--strict`. To silence it, write\n"
    "`lint: {{ignore: [{code}]}}` in the manifest, or under `stubwright` in one tool.",
}
_CHANGE: Final = (
    "`diff` reports this change {side}.\nTo treat it as harmless, write `diff: {{ignore: [{code}]}}` in the manifest."
)
_SIDES: Final = {
    "wire": "of the protocol, for models and clients",
    "python": "of the package, for handlers and callers",
}


_OPTIONS: Final = """
code CODE            the code, such as SW203
--format text|json   how to print it
"""


def add(verbs: Any) -> None:
    """Register the `explain` subcommand and its options."""
    parser = verbs.add_parser(
        "explain",
        _explain,
        help="explain a code from `check` or `diff`",
        description="Explain a code from `check` or `diff`.",
    )
    declare(parser, _OPTIONS)


def _explain(arguments: argparse.Namespace) -> int:
    from stubwright.diagnostics import CODES
    from stubwright.diagnostics.printers.json import format_ascii
    from stubwright.diagnostics.suggestions import did_you_mean
    from stubwright.diff.changes import CODES as CHANGES

    code = arguments.code.upper()
    if code in CODES:
        found = CODES[code]
        kind: str = found.severity
        meaning, details = found.meaning, _SEVERITIES[found.severity]
    elif code in CHANGES:
        side, meaning = CHANGES[code]
        kind, details = "change", _CHANGE.replace("{side}", _SIDES[side])
    else:
        raise UsageError(f"there is no code `{arguments.code}`; {did_you_mean(code, [*CODES, *CHANGES], 'codes')}")
    details = details.format(code=code)
    if arguments.format == "json":
        write_out(format_ascii({"code": code, "kind": kind, "meaning": meaning, "details": details}))
    else:
        write_out(f"{code} ({kind}): {meaning}\n\n{details}\n")
    return 0
