"""Selects environment variables for commands and finds missing variables that a failed command may have needed."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

_INHERITED: Final = (
    (
        "APPDATA",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "USERNAME",
        "USERPROFILE",
    )
    if os.name == "nt"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)
"""The variables that the MCP SDKs pass to commands. A test compares them with the SDK's list."""

_RUNNERS: Final = re.compile(
    r"SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    r"|(?i:(?:ALL|HTTPS?|NO)_PROXY)"
    r"|PIP_.+|UV_(?!PUBLISH_).+|(?i:npm_config_).+"  # servers do not need the variables for publishing
)
"""The variables that package runners such as npx and uvx need to fetch a server."""

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NEEDED: Final = re.compile(
    r"\w+_(?:CONFIG|CREDENTIALS?|DSN|ENDPOINT|HOME|HOST|KEY|PASSWORD|PROFILE|PROXY|REGION|SECRET|TOKEN|UR[IL])",
    re.IGNORECASE,
)
"""A variable name for a credential, or for the location of a file or server."""

_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{2,}|[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
"""A name that is unlikely to be an ordinary word."""

_MISSING_MODULE: Final = re.compile(r"\bNo module named\b")
"""Python's message for a missing module, which does not mention a variable."""

_SHOWN: Final = 5


def select_inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that every command inherits, except shell functions, which could run code in the command."""
    return {
        name: value
        for name, value in environment.items()
        if (name in _INHERITED or _RUNNERS.fullmatch(name)) and not value.startswith("()")
    }


def find_withheld(ours: Iterable[str], passed: Set[str], lines: Iterable[str], *, at_start: bool) -> tuple[str, ...]:
    """Return the sorted names of variables that a command did not get but may have needed.

    Args:
        ours: The names of all variables set in this process.
        passed: The names of the variables passed to the command.
        lines: The last lines of the command's output, which can mention variables. If they report a missing Python
            module, `PYTHONPATH` counts as mentioned.
        at_start: Whether the command exited before its first response. If so, variables that look like credentials or
            configuration count even if not mentioned.
    """
    withheld = sorted({name for name in ours if _WORD.fullmatch(name)} - passed)
    words = {word for line in lines for word in _list_words(line)}
    named = tuple(name for name in withheld if name in words and _NAME.fullmatch(name))
    return named or tuple(name for name in withheld if at_start and _NEEDED.fullmatch(name))


def _list_words(line: str) -> list[str]:
    return [*_WORD.findall(line), *(["PYTHONPATH"] if _MISSING_MODULE.search(line) else [])]


def describe_withheld(names: Sequence[str], option: str) -> str:
    """Return a clause about the variables that a command did not inherit, and the option that passes them.

    `NAME` in `option` is replaced with the variable's name.
    """
    shown = ", ".join(names[:_SHOWN])
    if len(names) > _SHOWN:
        shown += f" and {len(names) - _SHOWN} more"
    if len(names) == 1:
        return f"the command did not inherit {shown}, which is set here; pass it with {option.replace('NAME', shown)}"
    return f"the command did not inherit {shown}, which are set here; pass the ones it needs with {option}"
