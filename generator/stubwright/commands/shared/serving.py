"""Options for commands that serve a manifest."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from stubwright.commands.shared.console import Printer, UsageError
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse

    from stubwright import ir

_OPTIONS: Final = """
--http HOST:PORT  serve Streamable HTTP at this address (default: stdio)
--toolset NAME    offer only the tools in this toolset (default: all)
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options `--http` and `--toolset`."""
    declare(parser, _OPTIONS)


def list_options(arguments: argparse.Namespace) -> list[str]:
    """Return the server's command-line arguments: address and toolset. Raises UsageError if the address is invalid."""
    if arguments.http is not None:
        parse_address("--http", arguments.http)
    given = (("--http", arguments.http), ("--toolset", arguments.toolset))
    return [word for option, value in given if value is not None for word in (option, value)]


def parse_address(option: str, text: str) -> tuple[str, int]:
    """Parse an option's HOST:PORT value. Raises UsageError."""
    from argparse import ArgumentTypeError

    from stubwright_runtime.server import main

    with suppress(ArgumentTypeError):
        address = main.address(text)
        if not isinstance(address, int):  # an int is an open listener, which our commands do not support
            return address
    raise UsageError(f"{option} is {text!r}; expected HOST:PORT, such as 127.0.0.1:8000")


def read_manifest(path: str) -> ir.Manifest | None:
    """Read a manifest and report its diagnostics; return None if it is invalid."""
    from stubwright.compile import pipeline
    from stubwright.project.files.disk import Disk

    printer = Printer("text", strict=False)
    checked = pipeline.compile_manifest(path, Disk())
    printer.add(checked.diagnostics, checked.documents)
    printer.close()
    return checked.manifest
