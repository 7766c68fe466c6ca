"""`toolwright check`: diagnostics, and nothing written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolwright.commands import work as works
from toolwright.commands.printing import Printer

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Say how the verb is called."""
    check = verbs.add_parser("check", help="say what is wrong in manifests; write nothing")
    works.options(check)
    check.set_defaults(verb=_check)


def _check(arguments: argparse.Namespace) -> int:
    printer = Printer(arguments.format, strict=arguments.strict)
    work = works.of(arguments, printer)
    if work is not None:
        from toolwright import build, compiler, project, workspace
        from toolwright.diagnostics import Diagnostic

        for path in work.manifests:
            checked = compiler.check(path, workspace.Disk())
            printer.add(checked.diagnostics, checked.documents)
            if checked.manifest is None:
                continue
            printer.fits(build.fit(checked.manifest, work.target.handlers))
            if work.project is None:
                continue
            absent = project.missing(work.project, compiler.requirements(checked.manifest))
            if absent:
                printer.add(
                    [
                        Diagnostic(
                            "TW411",
                            f"the server made from `{path}` needs {' and '.join(f'`{name}`' for name in absent)}",
                            work.project.listed,
                            help="add it to `dependencies` under `[project]`",
                        )
                    ]
                )
    return printer.close()
