"""Finds the manifest and interpreter of the server that a verb starts or installs."""

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
--python FILE           the interpreter that runs the server (default: the interpreter of stubwright)
-o, --output DIR        the folder of packages (default: the project's `output`, otherwise generated)
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the manifest, and the options for starting its server."""
    declare(parser, _OPTIONS, manifests={"default": (), "type": lambda path: (path,)})


def find_server(work: Run, printer: Printer, *, starts: bool = True) -> ir.Manifest | None:
    """Return the manifest of the server of a run; None if it is invalid, which the printer reports.

    Args:
        work: The run.
        printer: Reports the faults.
        starts: False if its server is only listed or mocked, so that its `emit` may omit the server.

    Raises:
        UsageError: There are several manifests, or `starts` is true and the manifest makes no server.
    """
    compiled = compile_server(work, printer, starts=starts)
    return None if compiled is None else compiled.manifest


def compile_server(work: Run, printer: Printer, *, starts: bool = True) -> Version | None:
    """Return the manifest of the server of a run with its documents; otherwise like `find_server`."""
    from stubwright.commands.shared.comparison import Version
    from stubwright.compile import pipeline
    from stubwright.project.files import disk

    path = find_manifest(work)
    checked = pipeline.compile_manifest(path, disk.Disk())
    if checked.manifest is None:
        printer.add(checked.diagnostics, checked.documents)
        return None
    if starts and "server" not in checked.manifest.emit:
        raise UsageError(f"`{path}` makes only a client, because of its `emit`")
    return Version(path, checked.manifest, checked.documents, entry=paths.normalize(path))


def find_manifest(work: Run) -> str:
    """Return the path of the only manifest of a run. Raises UsageError if there are several."""
    if len(work.manifests) > 1:
        raise UsageError(f"the project has {len(work.manifests)} manifests; name one: {', '.join(work.manifests)}")
    return work.manifests[0]


def find_interpreter(arguments: argparse.Namespace) -> str | None:
    """Return the interpreter that `--python` names. Raises UsageError if there is no such file."""
    python: str | None = arguments.python
    if python is not None and not Path(python).is_file():
        raise UsageError(f"--python {python}: file not found")
    return python
