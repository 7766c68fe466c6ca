"""The addresses that commands' servers listen on, from the command line."""

from __future__ import annotations

from contextlib import suppress

from stubwright.commands.shared.console import UsageError


def parse_address(option: str, text: str) -> tuple[str, int]:
    """Return the host and the port of an option's HOST:PORT. Raises UsageError if it is not one."""
    from argparse import ArgumentTypeError

    from stubwright_runtime.server import main

    with suppress(ArgumentTypeError):
        address = main.address(text)
        if not isinstance(address, int):  # a listener that is open, which none of our commands is handed
            return address
    raise UsageError(f"{option} is {text!r}; it is HOST:PORT, such as 127.0.0.1:8000")
