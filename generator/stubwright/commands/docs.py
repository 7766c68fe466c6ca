"""`stubwright docs`: write an HTML page for each server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared import inputs as works
from stubwright.commands.shared.console import Printer, explain
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse

    from stubwright.diagnostics import Diagnostic
    from stubwright.project.build import Target
    from stubwright.project.files.disk import Disk

_PAGE: Final = "page"
_INDEX: Final = "index.html"


_OPTIONS: Final = """
-o, --output DIR  the folder for the pages
"""


def add(verbs: Any) -> None:
    """Register the `docs` subcommand and its options."""
    docs = verbs.add_parser("docs", _docs, help="create a static page of each server's tools")
    works.add_options(docs)
    declare(docs, _OPTIONS, output={"required": True})


def _docs(arguments: argparse.Namespace) -> int:
    printer = Printer(arguments.format, strict=arguments.strict)
    run = works.find_run(arguments, printer)
    if run is None:
        return printer.close()

    from stubwright.project.files import disk

    folder = Path(arguments.output)
    sources: dict[Path, str] = {}
    is_changed = False
    for path in run.manifests:
        reader = disk.Disk()
        page = _find_page(path, folder, reader)
        if page is None or page in sources:
            _make_page(path, run.target, folder, reader.share_cache(), sources, printer, strict=arguments.strict)
            is_changed = True
        else:
            sources[page] = path
            printer.say(f"{page}: up to date")
            is_changed = is_changed or not (folder / _INDEX).exists()
    if is_changed and not printer.failed and folder / _INDEX not in sources:
        _write_index(folder, printer)
    return printer.close()


def _option() -> str:
    """Return the token unit, the only setting outside the manifest that affects a page."""
    from stubwright import tokens

    return tokens.name_unit()


def _find_page(path: str, folder: Path, reader: Disk) -> Path | None:
    """Return the path of the manifest's page, or None if the page is stale."""
    from stubwright.project import freshness
    from stubwright.project.files import layout

    name = layout.make_relative(path, folder)
    recalled = freshness.recall(reader, folder, name, _option(), lambda _: True, _PAGE)
    return folder / next(iter(recalled)) if recalled else None


def _make_page(
    path: str, target: Target, folder: Path, reader: Disk, sources: dict[Path, str], printer: Printer, *, strict: bool
) -> None:
    from stubwright.diagnostics import Diagnostic
    from stubwright.docs import page, views
    from stubwright.project import build

    checked = build.compile_alone(path, target, reader, Path(path).name)  # the output must not depend on the folder
    printer.add(checked.diagnostics if strict or checked.manifest is None else (), checked.documents)
    if checked.manifest is None:
        return
    if not strict and (count := len(checked.diagnostics)):
        printer.say(f"{path}: {count} warning{'' if count == 1 else 's'}, which `stubwright check` lists")
    file = folder / f"{checked.manifest.package}.html"
    if file in sources:
        message = f"`{file}` is already generated from `{sources[file]}`"
        help_ = "set a different `python: {package: …}` in one of the two"
        printer.add([Diagnostic("SW401", message, build.locate_package(path, checked), help_)])
        return
    sources[file] = path
    text = page.render(views.view(checked.manifest, checked.documents[path].value))
    try:
        is_written = _write(file, text, printer)
    except OSError as error:
        printer.add([_report_unwritable(folder, error)])
        return
    if is_written and not checked.diagnostics:
        _remember(path, file, text, reader)


def _report_unwritable(folder: Path, error: OSError) -> Diagnostic:
    from stubwright.diagnostics import Diagnostic

    message = f"cannot write below `{folder}`: {explain(error)}"
    return Diagnostic("SW406", message, help="fix the cause and run the command again")


def _write_index(folder: Path, printer: Printer) -> None:
    """Write a page with links to all pages in a folder, unless another program wrote the folder's index."""
    from stubwright.docs import page
    from stubwright.project.files import disk

    texts = {file.name: disk.read_text(file) or "" for file in sorted(folder.glob("*.html"))}
    existing = texts.pop(_INDEX, page.GENERATOR)
    text = page.render_index({name: each for name, each in texts.items() if page.GENERATOR in each})
    try:
        if page.GENERATOR in existing and existing != text:
            _write(folder / _INDEX, text, printer)
    except OSError as error:
        printer.add([_report_unwritable(folder, error)])


def _remember(path: str, target: Path, text: str, reader: Disk) -> None:
    """Record in the cache that a page is up to date. The manifest must not have warnings."""
    from stubwright.incremental import digests
    from stubwright.project import freshness
    from stubwright.project.files import layout
    from stubwright.project.files.lock import Entry
    from stubwright.project.saved_findings import SavedFindings

    folder = target.parent
    entry = Entry("", {target.name: frozenset({digests.compute_digest(text.encode())})})
    note = freshness.make_note(reader, folder, _option(), entry, SavedFindings(path, target.stem))
    freshness.remember(folder, layout.make_relative(path, folder), note, _PAGE)


def _write(target: Path, text: str, printer: Printer) -> bool:
    """Write a page unless another program wrote the existing file. Return whether the page is now up to date."""
    from stubwright.diagnostics import Diagnostic
    from stubwright.docs import page
    from stubwright.project.files import disk

    existing = disk.read_text(target)
    if existing is not None and page.GENERATOR not in existing:
        help_ = "move or delete it, or choose another folder"
        printer.add([Diagnostic("SW403", f"`{target}` was not written by stubwright", help=help_)])
        return False
    if existing == text:
        printer.say(f"{target}: up to date")
    else:
        disk.create(target, text)
        printer.say(f"{target}: written")
    return True
