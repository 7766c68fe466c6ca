"""Command lines of `stubwright call` that reach a server again, without a secret, quoted for a POSIX shell."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.contract_tests.probing import Call
    from stubwright.importers.contracts.locations import Location

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SPECIAL: Final = re.compile(r'([\\"`]|\$(?!\{))')


@dataclass(frozen=True, slots=True)
class CallLine:
    """The words of a call, or of several, before and after its tool and arguments, quoted."""

    before: str = ""
    after: str = ""

    def write(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the command line of a call. Characters beyond ASCII are escaped, so that each is seen and kept."""
        return self._write("stubwright call", f"{shlex.quote(tool)} {shlex.quote(json.dumps(arguments))}")

    def write_replay(self, calls: Sequence[Call]) -> str:
        """Return the command line of `stubwright test` that sends calls over one connection."""
        options = [f"--call {shlex.quote(f'{call.tool} {json.dumps(call.arguments)}')}" for call in calls]
        return self._write("stubwright test", " ".join(options))

    def _write(self, command: str, words: str) -> str:
        return " ".join(part for part in (command, self.before, words, self.after) if part)


def make_for_location(location: Location) -> CallLine:
    """Return the line for a server by its URL or its command; secrets in it are variables of the shell, or `…`."""
    if location.url:
        headers = " ".join(f'--header "{name}: ${_to_variable(name)}"' for name in location.headers)
        return CallLine(_quote(location.url, location), headers)
    options = [f"--env {shlex.quote(name)}" for name in location.env]
    return CallLine("", " ".join([*options, "--", *(_quote(word, location) for word in location.command)]))


def make_for_manifest(path: str, scopes: tuple[str, ...], *, is_mock: bool) -> CallLine:
    """Return the line for the server of a manifest."""
    options = [*(["--mock"] if is_mock else []), *(f"--scope {shlex.quote(scope)}" for scope in scopes)]
    return CallLine(shlex.quote(path), " ".join(options))


def _to_variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def _quote(word: str, location: Location) -> str:
    """Quote a word; the variables that the location names represent their values."""
    if any(name in location.env for name in _VARIABLE.findall(word)):
        escaped = _SPECIAL.sub(r"\\\1", word)
        return f'"{escaped}"'
    return shlex.quote(word)
