"""`stubwright publish`: write or check a server's files for registries, directories and users; send no data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared import inputs as works
from stubwright.commands.shared import server_lookup
from stubwright.commands.shared.console import Printer, UsageError, explain, write_note, write_out
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from stubwright import ir
    from stubwright.diagnostics import Diagnostic
    from stubwright.project.config import Project
    from stubwright.publishing.settings import Publication

_FIX = "run `stubwright publish`"


_OPTIONS: Final = """
--check        write nothing; exit 1 if a file is missing or stale
--bundle FILE  also write a bundle for desktop clients, such as shop.mcpb
--review FILE  also write what directory reviewers require: tool hints, with reasons
"""


def add(verbs: Any) -> None:
    """Register the `publish` subcommand and its options."""
    publish = verbs.add_parser(
        "publish",
        help="write a server's files for the MCP registry and clients, and print the next steps; sends no data",
        epilog="Set the server's registry name in [tool.stubwright.publish] in pyproject.toml.",
    )
    works.add_options(publish)
    declare(publish, _OPTIONS)
    publish.set_defaults(verb=_publish, strict=False)


def _publish(arguments: argparse.Namespace) -> int:
    from stubwright.project import config
    from stubwright.publishing import links, ownership, review, server_json, settings
    from stubwright.serving import issuer

    printer = Printer(arguments.format, strict=False)
    work = works.find_run(arguments, printer)
    project, problems = config.find()
    printer.add(problems)
    if work is None or problems:
        return printer.close()
    if project is None:
        raise UsageError(
            "publish requires a project: no pyproject.toml has [tool.stubwright]; `stubwright new NAME` creates one"
        )
    compiled = server_lookup.compile_server(work, printer)
    if compiled is None or compiled.manifest is None:
        return printer.close()
    manifest = compiled.manifest
    printer.add((), compiled.documents)
    publication = settings.read(
        project.file, Path(project.file).read_text("utf-8"), issuer.list_scopes(manifest.document)
    )
    if isinstance(publication, list):
        printer.add(publication)
        return printer.close()
    diagnostics = [
        *server_json.find_problems(manifest, publication, compiled.entry),
        *ownership.find_problems(project.folder, publication),
    ]
    printer.add(diagnostics)
    if diagnostics:  # the generated files would be wrong, too
        return printer.close()
    text = json.dumps(server_json.make(manifest, publication), ensure_ascii=False, indent=2) + "\n"
    try:
        printer.add(_write(project.folder / server_json.FILE, text, printer, check=arguments.check))
        if arguments.bundle and not arguments.check:
            _write_bundle(Path(arguments.bundle), project, manifest, publication, printer)
        if arguments.review:
            printer.add(review.find_missing(manifest))
            printer.add(_write(Path(arguments.review), review.write(manifest), printer, check=arguments.check))
    except OSError as error:
        raise UsageError(f"cannot write: {explain(error)}") from error
    if publication.is_indexed or arguments.bundle:
        _report_lacking_scopes(manifest, publication)
    if not arguments.check:
        write_out("\nFor the README:\n\n" + "".join(f"{line}\n" for line in links.list_links(manifest, publication)))
        write_out("\nTo publish this version, run:\n\n" + "".join(f"{line}\n" for line in _list_steps(publication)))
    return printer.close()


def _report_lacking_scopes(manifest: ir.Manifest, publication: Publication) -> None:
    from stubwright.project import launch
    from stubwright.publishing.settings import TABLE

    if lacking := launch.find_lacking_scopes(manifest, publication.scopes):
        keys = ", ".join(f'"{scope}"' for scope in (*publication.scopes, *lacking))
        write_note(
            "users whose clients start the server lack scopes for parts of it; to grant them, add "
            f"`scopes = [{keys}]` to `[{TABLE}]`"
        )


def _write(path: Path, text: str, printer: Printer, *, check: bool) -> Iterator[Diagnostic]:
    """Write a missing or stale file. With `check`, only report the file."""
    from stubwright.diagnostics import Diagnostic, Place
    from stubwright.project.files import disk

    shown = path.as_posix()
    before = disk.read_text(path)
    if before == text:
        printer.say(f"{shown}: up to date")
    elif check:
        what = "this file is missing" if before is None else "this file does not match the project"
        yield Diagnostic("SW407", what, Place(shown), _FIX)
    else:
        disk.create(path, text)
        printer.say(f"{shown}: written")


def _write_bundle(
    path: Path, project: Project, manifest: ir.Manifest, publication: Publication, printer: Printer
) -> None:
    from stubwright.project.files import disk
    from stubwright.publishing import bundle

    names = _list_bundled(project, manifest, publication)
    module = next(name for name in names if name.endswith(manifest.package))
    value = bundle.make_manifest(manifest, publication, f"{module}/__main__.py")
    disk.write(path, bundle.pack(project.folder, bundle.list_files(project.folder, names), value))
    printer.say(f"{path.as_posix()}: written")


def _list_bundled(project: Project, manifest: ir.Manifest, publication: Publication) -> Sequence[str]:
    """Return the files and folders that a project's server needs, relative to the project folder. Raises UsageError."""
    from stubwright.project.files import disk

    here = project.folder.resolve()
    folders = [project.output or "generated", *project.handlers]
    wanted = [manifest.package, *([manifest.handlers.partition(":")[0].partition(".")[0]] if manifest.handlers else [])]
    names = ["pyproject.toml", *([publication.readme] if publication.readme else [])]
    for module in wanted:
        path = disk.find_module(module, [str(project.folder / folder) for folder in folders])
        if path is None:
            raise UsageError(
                f"`{module}` is not in {', '.join(f'`{folder}`' for folder in folders)}; run `stubwright generate`"
            )
        whole = path.parent if path.name == "__init__.py" else path
        names.append(whole.resolve().relative_to(here).as_posix())
    return [*names, *(name for name in ("wheels", "LICENSE", "uv.lock") if (project.folder / name).exists())]


def _list_steps(publication: Publication) -> Iterator[str]:
    if publication.is_indexed:
        yield "python -m build && python -m twine upload dist/*"
    if publication.image:
        image = f"{publication.image}:{publication.version}"
        yield f"docker build -t {image} . && docker push {image}"
    host = "github" if publication.name.startswith("io.github.") else "dns"
    yield f"mcp-publisher login {host} && mcp-publisher publish"
