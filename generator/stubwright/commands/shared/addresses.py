"""Where servers of commands listen, as the command line has it."""

from __future__ import annotations

from typing import Final

from stubwright.commands.shared.console import UsageError

_LAST_PORT: Final = 65535


def check_address(text: str) -> str:
    """Return the HOST:PORT of `--http`. Raises UsageError if it is not one."""
    port = text.rpartition(":")[2]
    if not port.isdecimal() or int(port) > _LAST_PORT:
        raise UsageError(f"--http is {text!r}; it is HOST:PORT, such as 127.0.0.1:8000")
    return text
