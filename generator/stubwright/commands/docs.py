"""`stubwright docs`: a page of each server for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stubwright.commands.shared import inputs as works
from stubwright.commands.shared.console import Printer, reason

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

    from stubwright.compile import pipeline
    from stubwright.diagnostics import Diagnostic
    from stubwright.docs import page, views
    from stubwright.project import build
    from stubwright.project.files import disk

    folder = Path(arguments.output)
    sources: dict[Path, str] = {}
    for path in run.manifests:
        checked = pipeline.compile_manifest(path, disk.Disk(), Path(path).name)  # the same bytes, wherever they go
        printer.add(checked.diagnostics if arguments.strict or checked.manifest is None else (), checked.documents)
        if checked.manifest is not None and not arguments.strict and (count := len(checked.diagnostics)):
            printer.say(f"{path}: {count} warning{'' if count == 1 else 's'}, which `stubwright check` lists")
        if checked.manifest is None:
            continue
        target = folder / f"{checked.manifest.package}.html"
        if target in sources:
            message = f"`{target}` is already made from `{sources[target]}`"
            help_ = "give one of the two another `python: {package: …}`"
            printer.add([Diagnostic("SW401", message, build.package_at(path, checked), help_)])
            continue
        sources[target] = path
        text = page.render(views.view(checked.manifest, checked.documents[path].value))
        try:
            _write(target, text, printer)
        except OSError as error:
            message = f"cannot write below `{folder}`: {reason(error)}"
            printer.add([Diagnostic("SW406", message, help="fix it and run the command again")])
    return printer.close()


def _write(target: Path, text: str, printer: Printer) -> None:
    """Write a page, unless that would replace a file that is not ours."""
    from stubwright.diagnostics import Diagnostic
    from stubwright.docs import page
    from stubwright.project.files import disk

    existing = disk.text(target)
    if existing is not None and page.GENERATOR not in existing:
        help_ = "move or delete it, or choose another folder"
        printer.add([Diagnostic("SW403", f"`{target}` was not written by stubwright", help=help_)])
    elif existing == text:
        printer.say(f"{target}: up to date")
    else:
        disk.create(target, text)
        printer.say(f"{target}: written")
