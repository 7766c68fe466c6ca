"""`stubwright check`: report diagnostics; with `--fix`, apply corrections."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared import inputs as works
from stubwright.commands.shared.console import Printer, UsageError, confirm, is_interactive, write_err
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stubwright.diagnostics import Diagnostic


_OPTIONS: Final = """
--all  list each server warning, even if the manifest generates only a client
--fix  apply the exact corrections from `help:` lines, and check again; shows the changes, and asks first on a terminal
--yes  with --fix: write without asking
"""


def add(verbs: Any) -> None:
    """Register the `check` subcommand and its options."""
    check = verbs.add_parser("check", _check, help="report mistakes in manifests, and correct them with --fix")
    works.add_options(check)
    declare(check, _OPTIONS)
    works.add_target(check)


def _check(arguments: argparse.Namespace) -> int:
    printer = Printer(arguments.format, strict=arguments.strict)
    if arguments.yes and not arguments.fix:
        raise UsageError("--yes requires --fix")
    chosen = works.choose_targets(arguments)
    run = works.find_run(arguments, printer)
    if run is not None:
        from stubwright.project import project_check

        packages: dict[str, str] = {}
        for path in run.manifests:
            if arguments.fix:
                _correct(path, chosen, printer, is_agreed=arguments.yes or not is_interactive())
            result = project_check.check(path, run.target, run.project, chosen)
            printer.add_compiled(path, result.diagnostics, result.documents, every=arguments.all)
            if result.package is None:
                continue
            first = packages.setdefault(result.package, path)
            if Path(first).resolve() != Path(path).resolve():
                printer.add([_report_clash(path, result.package, first)])
    return printer.close()


def _correct(path: str, targets: Sequence[str], printer: Printer, *, is_agreed: bool) -> None:
    from stubwright.compile import corrections
    from stubwright.diagnostics import Diagnostic, printers
    from stubwright.project.files import disk, inside

    changes = corrections.correct(path, disk.Disk(), targets)
    show = printer.say if is_agreed else write_err
    for file, (old, new) in changes.items():
        show(printers.unified_diff.render(file, old, new))
    if not changes or not (is_agreed or confirm("Write these changes?")):
        return
    for file, (old, new) in changes.items():
        try:
            if inside.read_regular(file) != old:
                problem = "it has changed on disk"
            elif not Path(file).stat().st_mode & stat.S_IWUSR:  # a replaced file loses its mode
                problem = "it is read-only"
            else:
                problem = None
                disk.write(Path(file), new)
        except OSError as error:
            problem = error.strerror or str(error)
        if problem is not None:
            fix = "the file was not written; fix the cause and run the command again"
            printer.add([Diagnostic("SW406", f"cannot write `{file}`: {problem}", help=fix)])


def _report_clash(path: str, package: str, first: str) -> Diagnostic:
    from stubwright.compile import pipeline
    from stubwright.diagnostics import Diagnostic
    from stubwright.project import build
    from stubwright.project.files import disk

    return Diagnostic(
        "SW401",
        f"the package `{package}` is already generated from `{first}`",
        build.locate_package(path, pipeline.compile_manifest(path, disk.Disk())),
        "set a different `python: {package: …}` in one of the two",
    )
