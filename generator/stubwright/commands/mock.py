"""`stubwright mock`: serve a manifest before there is any logic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stubwright import paths
from stubwright.commands.shared.addresses import parse_address
from stubwright.commands.shared.console import explain, write_err
from stubwright.commands.shared.inputs import find_target
from stubwright.commands.shared.manifests import read_manifest

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the parser of the command."""
    mock = verbs.add_parser("mock", help="serve a manifest with its examples, or answers made from its schemas")
    mock.add_argument("manifest", metavar="MANIFEST", type=paths.normalize, help="the manifest to serve")
    mock.add_argument("--http", metavar="HOST:PORT", help="serve Streamable HTTP at this address (default: stdio)")
    mock.add_argument("--toolset", metavar="NAME", help="offer only the tools of this toolset (default: all)")
    mock.add_argument("--seed", metavar="N", type=int, default=0, help="what made answers depend on (default: 0)")
    mock.set_defaults(verb=_mock)


def _mock(arguments: argparse.Namespace) -> int:
    from stubwright.mock import files, server
    from stubwright.project import config

    if arguments.http is not None:
        parse_address("--http", arguments.http)
    options = [] if arguments.http is None else ["--http", arguments.http]
    options += [] if arguments.toolset is None else ["--toolset", arguments.toolset]
    found_project, _ = config.find()
    mocked = files.find_generated(arguments.manifest, find_target(found_project))
    if mocked is None:
        manifest = read_manifest(arguments.manifest)
        if manifest is None:
            return 1
        mocked = files.make_files(manifest)
    try:
        return server.serve(mocked, options, seed=arguments.seed)
    except OSError as error:
        write_err(f"stubwright: the mock cannot be written: {explain(error)}")
        return 1
