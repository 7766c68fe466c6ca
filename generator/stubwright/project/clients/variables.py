"""Parses environment variable files, in the syntax that `docker --env-file` and dotenv share.

Each line is `NAME=value`. A value can be in single quotes, which preserve it, or in double quotes, with escapes such as
`\\n`. An unquoted value ends before ` #`. `export` can precede a name. `$NAME` is not expanded.
"""

from __future__ import annotations

import re
from typing import Final

from stubwright.compile.syntax.positions import Problem
from stubwright.project.clients.jsonc import EditError

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Valid variable names."""

_LINE: Final = re.compile(
    rf"\s*(?:export\s+)?(?P<name>{NAME.pattern})\s*=\s*"
    r"""(?:'(?P<single>[^']*)'\s*(?:\#.*)?|"(?P<double>(?:[^"\\]|\\.)*)"\s*(?:\#.*)?|(?P<bare>[^'"\s].*|))$"""
)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


def parse(text: str) -> dict[str, str]:
    """Parse the variables in a file; the last value for a name wins.

    Raises:
        EditError: A line is neither empty, nor a comment, nor a variable. The message does not quote the line, which
            may contain a secret.
    """
    variables: dict[str, str] = {}
    offset = 0
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            read = _LINE.match(line.rstrip())
            if read is None or "\0" in line:
                message = "this line is not `NAME=value`; a quoted value must end on the same line"
                raise EditError(Problem("SW004", message, offset, offset + len(line.rstrip())))
            variables[read["name"]] = _value(read)
        offset += len(line) + 1
    return variables


def _value(read: re.Match[str]) -> str:
    if read["single"] is not None:
        return read["single"]
    if read["double"] is not None:
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), read["double"])
    return re.split(r"\s#", read["bare"], maxsplit=1)[0].strip()
