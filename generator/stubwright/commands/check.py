"""`stubwright check`: diagnostics; with `--fix`, corrections."""

from __future__ import annotations

import posixpath
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared import inputs as works
from stubwright.commands.shared.console import Printer, UsageError, confirm, is_interactive, write_err
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stubwright.compile.pipeline import Result
    from stubwright.diagnostics import Diagnostic


_OPTIONS: Final = """
--all  list each warning about a server that only a client is made for
--fix  correct what a `help:` says exactly, and check again; shows the changes, and asks first on a terminal
--yes  with --fix: write without asking
"""


def add(verbs: Any) -> None:
    """Add the parser of the command."""
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
        from stubwright.compile import pipeline
        from stubwright.diagnostics import Diagnostic
        from stubwright.project import build, config, versions
        from stubwright.project.files import disk

        packages: dict[str, str] = {}
        for path in run.manifests:
            if arguments.fix:
                _correct(path, chosen, printer, is_agreed=arguments.yes or not is_interactive())
            checked = pipeline.compile_manifest(path, disk.Disk(), targets=chosen)
            printer.add_compiled(path, checked.diagnostics, checked.documents, every=arguments.all)
            if checked.manifest is None:
                continue
            first = packages.setdefault(checked.manifest.package, path)
            if Path(first).resolve() != Path(path).resolve():
                printer.add([_report_clash(checked, path, first)])
            before = _read_generated(path, checked.manifest.package, run.target.folder)
            printer.report_fit(build.fit(checked.manifest, run.target.handlers, path, before))
            if run.project is None:
                continue
            document = checked.documents[posixpath.normpath(path)].value
            differing = versions.find_difference(run.project, path, checked.manifest, document)
            printer.add([] if differing is None else [differing])
            for absent in config.find_missing(run.project, build.list_needed(is_vendored=run.target.is_vendored)):
                what = f"the server made from `{path}` needs `{absent}`"
                fix = "add it to `dependencies` under `[project]`"
                printer.add([Diagnostic("SW411", what, run.project.listed, fix)])
    return printer.close()


def _correct(path: str, targets: Sequence[str], printer: Printer, *, is_agreed: bool) -> None:
    """Show the corrections of a manifest's files, and write them if a person agrees."""
    from stubwright.compile import corrections
    from stubwright.diagnostics import Diagnostic, printers
    from stubwright.project.files import disk, inside

    changes = corrections.correct(path, disk.Disk(), targets)
    show = printer.say if is_agreed else write_err
    for file, (old, new) in changes.items():
        show(printers.unified.render(file, old, new))
    if not changes or not (is_agreed or confirm("Write these changes?")):
        return
    for file, (old, new) in changes.items():
        try:
            if inside.read_regular(file) != old:
                problem = "it has changed"
            elif not Path(file).stat().st_mode & stat.S_IWUSR:  # which replacing the file would ignore
                problem = "it is read-only"
            else:
                problem = None
                disk.write(Path(file), new)
        except OSError as error:
            problem = error.strerror or str(error)
        if problem is not None:
            fix = "the file is unchanged; fix that, and run the command again"
            printer.add([Diagnostic("SW406", f"cannot write `{file}`: {problem}", help=fix)])


def _read_generated(path: str, package: str, folder: Path) -> str | None:
    """Return the package's `manifest.json` as generated before; None if that is unknown."""
    from stubwright.project.files import journal, layout, lock, tree

    with suppress(OSError, lock.LockError):
        known_lock = journal.read_lock(folder)
        return tree.find_generated(
            tree.Tree(folder), known_lock, layout.make_relative(path, folder), package
        ).read_text("manifest.json")
    return None


def _report_clash(checked: Result, path: str, first: str) -> Diagnostic:
    """Return the diagnostic for a manifest whose package is also that of another one."""
    from stubwright.diagnostics import Diagnostic
    from stubwright.project import build

    name = checked.manifest.package if checked.manifest is not None else ""
    return Diagnostic(
        "SW401",
        f"the package `{name}` is made from `{first}` already",
        build.locate_package(path, checked),
        "set another `python: {package: …}` in one of the two",
    )
