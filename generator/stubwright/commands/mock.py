"""`stubwright mock`: serve a manifest before there is any logic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stubwright import paths
from stubwright.commands.shared.addresses import check_address
from stubwright.commands.shared.console import Printer, err, reason

if TYPE_CHECKING:
    import argparse


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

    options = [] if arguments.http is None else ["--http", check_address(arguments.http)]
    printer = Printer("text", strict=False)
    checked = pipeline.compile_manifest(arguments.manifest, disk.Disk())
    printer.add(checked.diagnostics, checked.documents)
    status = printer.close()  # on standard error: standard output is the protocol's
    if checked.manifest is None:
        return status
    try:
        return server.serve(checked.manifest, options, seed=arguments.seed)
    except OSError as error:
        err(f"stubwright: the mock cannot be written: {reason(error)}")
        return 1
