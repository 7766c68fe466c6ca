"""`toolwright docs`: a page of each server for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwright.commands.shared import inputs as works
from toolwright.commands.shared.console import Printer, reason

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the parser of the command."""
    docs = verbs.add_parser("docs", help="make a static page of each server's tools")
    works.options(docs)
    docs.add_argument("-o", "--output", metavar="DIR", required=True, help="where the pages go")
    docs.set_defaults(verb=_docs)


def _docs(arguments: argparse.Namespace) -> int:
    printer = Printer(arguments.format, strict=arguments.strict)
    run = works.of(arguments, printer)
    if run is None:
        return printer.close()

    from toolwright.compile import pipeline
    from toolwright.diagnostics import Diagnostic
    from toolwright.docs import page, views
    from toolwright.project import build
    from toolwright.project.files import disk

    folder = Path(arguments.output)
    sources: dict[Path, str] = {}
    for path in run.manifests:
        checked = pipeline.compile_manifest(path, disk.Disk(), Path(path).name)  # the same bytes, wherever they go
        printer.add(checked.diagnostics if arguments.strict or checked.manifest is None else (), checked.documents)
        if checked.manifest is not None and not arguments.strict and (count := len(checked.diagnostics)):
            printer.say(f"{path}: {count} warning{'' if count == 1 else 's'}, which `toolwright check` lists")
        if checked.manifest is None:
            continue
        target = folder / f"{checked.manifest.package}.html"
        if target in sources:
            message = f"`{target}` is already made from `{sources[target]}`"
            help_ = "give one of the two another `python: {package: …}`"
            printer.add([Diagnostic("TW401", message, build.package_at(path, checked), help_)])
            continue
        sources[target] = path
        text = page.render(views.view(checked.manifest, checked.documents[path].value))
        try:
            _write(target, text, printer)
        except OSError as error:
            message = f"cannot write below `{folder}`: {reason(error)}"
            printer.add([Diagnostic("TW406", message, help="fix it and run the command again")])
    return printer.close()


def _write(target: Path, text: str, printer: Printer) -> None:
    """Write a page, unless that would replace a file that is not ours."""
    from toolwright.diagnostics import Diagnostic
    from toolwright.docs import page
    from toolwright.project.files import disk

    existing = disk.text(target)
    if existing is not None and page.GENERATOR not in existing:
        help_ = "move or delete it, or choose another folder"
        printer.add([Diagnostic("TW403", f"`{target}` was not written by toolwright", help=help_)])
    elif existing == text:
        printer.say(f"{target}: up to date")
    else:
        disk.create(target, text)
        printer.say(f"{target}: written")
