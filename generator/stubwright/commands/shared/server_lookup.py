"""Finds the manifest and interpreter of the server that a command starts or installs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from stubwright import paths
from stubwright.commands.shared.console import UsageError
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse

    from stubwright import ir
    from stubwright.commands.shared.comparison import Version
    from stubwright.commands.shared.console import Printer
    from stubwright.commands.shared.inputs import Run


_OPTIONS: Final = """
manifests MANIFEST?     the server's manifest (default: the project's only manifest)
--handlers MODULE:NAME  the handlers (default: the manifest's `handlers`)
--python FILE           the interpreter that runs the server (default: stubwright's interpreter)
-o, --output DIR        the folder for packages (default: the project's `output`, otherwise generated)
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the manifest, and the options for starting its server."""
    declare(parser, _OPTIONS, manifests={"default": (), "type": lambda path: (path,)})


def find_server(work: Run, printer: Printer, *, starts: bool = True) -> ir.Manifest | None:
    """Return the manifest of a run's server, or None after reporting an invalid manifest.

    Args:
        starts: False if the server is only listed or mocked, so that `emit` may omit it.

    Raises:
        UsageError: There are several manifests, or `starts` is true and the manifest generates no server.
    """
    compiled = compile_server(work, printer, starts=starts)
    return None if compiled is None else compiled.manifest


def compile_server(work: Run, printer: Printer, *, starts: bool = True) -> Version | None:
    """Return the manifest of a run's server with its source documents; otherwise like `find_server`."""
    from stubwright.commands.shared.comparison import Version
    from stubwright.compile import pipeline
    from stubwright.project.files import disk

    path = find_manifest(work)
    checked = pipeline.compile_manifest(path, disk.Disk())
    if checked.manifest is None:
        printer.add(checked.diagnostics, checked.documents)
        return None
    if starts and "server" not in checked.manifest.emit:
        raise UsageError(f"`{path}` generates only a client, because of its `emit`")
    return Version(path, checked.manifest, checked.documents, entry=paths.normalize(path))


def find_manifest(work: Run) -> str:
    """Return the path of a run's only manifest. Raises UsageError if there are several."""
    if len(work.manifests) > 1:
        raise UsageError(f"the project has {len(work.manifests)} manifests; specify one: {', '.join(work.manifests)}")
    return work.manifests[0]


def find_interpreter(arguments: argparse.Namespace) -> str | None:
    """Return the interpreter from `--python`. Raises UsageError if the file does not exist."""
    python: str | None = arguments.python
    if python is not None and not Path(python).is_file():
        raise UsageError(f"--python {python}: file not found")
    return python
