"""The manifests of verbs whose standard output is the protocol's: the faults of one are printed on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.commands.shared.console import Printer

if TYPE_CHECKING:
    from stubwright import ir


def read_manifest(path: str) -> ir.Manifest | None:
    """Return a manifest; None if it is wrong. Errors and warnings are reported."""
    from stubwright.compile import pipeline
    from stubwright.project.files.disk import Disk

    printer = Printer("text", strict=False)
    checked = pipeline.compile_manifest(path, Disk())
    printer.add(checked.diagnostics, checked.documents)
    printer.close()
    return checked.manifest
