"""`toolwright check`: diagnostics, and nothing written."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwright.commands.shared import inputs as works
from toolwright.commands.shared.console import Printer

if TYPE_CHECKING:
    import argparse

    from toolwright.compile.pipeline import Result
    from toolwright.diagnostics import Diagnostic


def add(verbs: Any) -> None:
    """Say how the verb is called."""
    check = verbs.add_parser("check", help="say what is wrong in manifests; write nothing")
    works.options(check)
    check.add_argument(
        "--all", action="store_true", help="list each warning about a server that only a client is made for"
    )
    check.set_defaults(verb=_check)


def _check(arguments: argparse.Namespace) -> int:
    printer = Printer(arguments.format, strict=arguments.strict)
    work = works.of(arguments, printer)
    if work is not None:
        from toolwright.codegen.pages import artifacts
        from toolwright.compile import pipeline
        from toolwright.diagnostics import Diagnostic
        from toolwright.project import build, config
        from toolwright.project.files import disk

        packages: dict[str, str] = {}
        for path in work.manifests:
            checked = pipeline.compile_manifest(path, disk.Disk())
            printer.compiled(path, checked.diagnostics, checked.documents, every=arguments.all)
            if checked.manifest is None:
                continue
            first = packages.setdefault(checked.manifest.package, path)
            if Path(first).resolve() != Path(path).resolve():
                printer.add([_clash(checked, path, first)])
            document = _document(path, checked.manifest.package, work.target.folder)
            printer.fits(build.fit(checked.manifest, work.target.handlers, path, document))
            if work.project is None:
                continue
            needed = artifacts.requirements(checked.manifest.document, checked.manifest.emit)
            absent = config.missing(work.project, needed)
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


def _document(path: str, package: str, folder: Path) -> str | None:
    """The package's `manifest.json` as it was generated before; None where that cannot be told."""
    from toolwright.project.files import journal, layout, lock, tree

    with suppress(OSError, lock.LockError):
        known = journal.read_lock(folder)
        return tree.generated(tree.Tree(folder), known, layout.relative(path, folder), package).text("manifest.json")
    return None


def _clash(checked: Result, path: str, first: str) -> Diagnostic:
    """What to tell of a manifest whose package is another one's, too."""
    from toolwright.diagnostics import Diagnostic
    from toolwright.project import build

    name = checked.manifest.package if checked.manifest is not None else ""
    return Diagnostic(
        "TW401",
        f"the package `{name}` is made from `{first}` already",
        build.package_at(path, checked),
        "give one of the two another `python: {package: …}`",
    )
