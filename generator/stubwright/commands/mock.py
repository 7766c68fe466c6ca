"""`stubwright mock`: serve a manifest before there is any logic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stubwright import paths
from stubwright.commands.shared.console import Printer, UsageError, err, reason

if TYPE_CHECKING:
    import argparse


_LAST_PORT = 65535


def add(verbs: Any) -> None:
    """Add the parser of the command."""
    mock = verbs.add_parser("mock", help="serve a manifest with its examples, or answers made from its schemas")
    mock.add_argument("manifest", metavar="MANIFEST", type=paths.normal, help="the manifest to serve")
    mock.add_argument("--http", metavar="HOST:PORT", help="serve Streamable HTTP at this address (default: stdio)")
    mock.add_argument("--seed", metavar="N", type=int, default=0, help="what made answers depend on (default: 0)")
    mock.set_defaults(verb=_mock)


def _mock(arguments: argparse.Namespace) -> int:
    from stubwright.compile import pipeline
    from stubwright.mock import server
    from stubwright.project.files import disk

    port = "0" if arguments.http is None else arguments.http.rpartition(":")[2]
    if not port.isdecimal() or int(port) > _LAST_PORT:
        raise UsageError(f"--http is {arguments.http!r}; it is HOST:PORT, such as 127.0.0.1:8000")
    printer = Printer("text", strict=False)
    checked = pipeline.compile_manifest(arguments.manifest, disk.Disk())
    printer.add(checked.diagnostics, checked.documents)
    status = printer.close()  # on standard error: standard output is the protocol's
    if checked.manifest is None:
        return status
    options = [] if arguments.http is None else ["--http", arguments.http]
    try:
        return server.serve(checked.manifest, options, seed=arguments.seed)
    except OSError as error:
        err(f"stubwright: the mock cannot be written: {reason(error)}")
        return 1
