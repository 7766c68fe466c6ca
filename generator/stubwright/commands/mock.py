"""`stubwright mock`: serve a manifest with mock responses, without handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stubwright import paths
from stubwright.commands.shared import serving
from stubwright.commands.shared.console import explain, write_err
from stubwright.commands.shared.inputs import find_target
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse


_OPTIONS: Final = """
manifest MANIFEST  the manifest to serve
--seed N           the seed for generated responses (default: 0)
"""


def add(verbs: Any) -> None:
    """Register the `mock` subcommand and its options."""
    mock = verbs.add_parser("mock", _mock, help="serve a manifest with responses from its examples or schemas")
    serving.add_options(mock)
    declare(mock, _OPTIONS, manifest=paths.normalize, seed=(int, 0))


def _mock(arguments: argparse.Namespace) -> int:
    from stubwright.mock import files, server
    from stubwright.project import config

    options = serving.list_options(arguments)
    found_project, _ = config.find()
    mocked = files.find_generated(arguments.manifest, find_target(found_project))
    if mocked is None:
        manifest = serving.read_manifest(arguments.manifest)
        if manifest is None:
            return 1
        mocked = files.make_files(manifest)
    try:
        return server.serve(mocked, options, seed=arguments.seed)
    except OSError as error:
        write_err(f"stubwright: cannot write the mock: {explain(error)}")
        return 1
