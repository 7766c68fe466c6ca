"""`stubwright new`: create a runnable server project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright import paths
from stubwright.commands.importing import from_python, import_
from stubwright.commands.shared import servers as sources
from stubwright.commands.shared.console import UsageError, print_import, report, write_err
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from stubwright.importers.acceptance import ImportResult
    from stubwright.importers.server_listing import ServerListing
    from stubwright.project.migration import PythonServer
    from stubwright.project.scaffold import Origin


_INSTALLING: Final = """
--from-index  let installers fetch stubwright-runtime from your package index; omits its wheel
"""


_OPTIONS: Final = """
name NAME  the server's name, such as `weather`
--dir DIR  the project folder (default: a new folder with that name)
"""


def add(verbs: Any) -> None:
    """Register the `new` subcommand and its options."""
    new = verbs.add_parser(
        "new",
        _new,
        help="create a runnable server project",
        usage="stubwright new [options] NAME\n"
        "       stubwright new [options] NAME --from mcp URL\n"
        "       stubwright new [options] NAME --from mcp -- COMMAND ARGS…\n"
        "       stubwright new [options] NAME --from openapi SOURCE\n"
        "       stubwright new [options] NAME --from python FILE.py:NAME [-- PYTHON…]",
    )
    declare(new, _OPTIONS)
    new.add_argument(
        "--from",
        metavar=("KIND", "SOURCE"),
        nargs="+",
        dest="origin",
        help="start from another server's lists, an API, or a FastMCP or MCP SDK server object; "
        f"KIND is {', '.join(_ORIGINS)}",
    )
    declare(new, _INSTALLING)
    import_.add_selection(new, "with openapi: ")
    from_python.add_options(new)
    sources.add_options(new, only_after="--from")


def _new(arguments: argparse.Namespace) -> int:
    from stubwright.project import scaffold

    origin = _find_origin(arguments)
    try:
        folder = Path(arguments.dir) if arguments.dir else None
        report(
            scaffold.create(arguments.name, folder, origin, is_published=arguments.from_index or scaffold.IS_PUBLISHED)
        )
    except scaffold.NameRefusedError as error:
        raise UsageError(str(error)) from error
    except scaffold.ScaffoldError as error:
        write_err(f"stubwright: {error}")
        return 1
    return 0


def _find_origin(arguments: argparse.Namespace) -> Callable[[], Origin] | None:
    if arguments.yes and (arguments.origin is None or arguments.origin[0] != "python"):
        raise UsageError("--yes requires --from python")
    if arguments.origin is None:
        if arguments.header or arguments.env or arguments.timeout:
            raise UsageError("--header, --env and --timeout require --from mcp")
        _refuse_selection(arguments)
        return None
    kind, *rest = arguments.origin
    if kind not in _ORIGINS or len(rest) > 1:
        raise UsageError(f"--from requires a kind ({', '.join(_ORIGINS)}) and one source; put NAME first")
    return _ORIGINS[kind](paths.use_slashes(rest[0]) if rest else None, arguments)


def _refuse_selection(arguments: argparse.Namespace) -> None:
    if import_.has_selection(arguments):
        raise UsageError("options that select operations require --from openapi SOURCE")


def _read_openapi(file: str | None, arguments: argparse.Namespace) -> Callable[[], Origin]:
    from stubwright.importers.openapi import sources as documents

    if file is None or arguments.command is not None:
        raise UsageError("--from openapi requires a file or a URL")
    if arguments.header or arguments.env or arguments.timeout:
        raise UsageError("--header, --env and --timeout require --from mcp")
    make = import_.prepare_openapi(file, arguments, name=arguments.name)
    again = import_.describe_import(_find_from_project(file, arguments), arguments)
    is_repeatable = file != documents.STANDARD_INPUT
    return lambda: _read_origin(documents.hide_credentials(file), make, again, is_repeatable=is_repeatable)


def _find_from_project(file: str, arguments: argparse.Namespace) -> str:
    """Return a document's path for the new project.

    The path is absolute only if `file` is absolute and the document does not move with the project.
    """
    from stubwright import http
    from stubwright.importers.openapi import sources as documents
    from stubwright.project import scaffold

    if file == documents.STANDARD_INPUT or http.is_url(file):
        return file
    folder = scaffold.find_folder(arguments.name, Path(arguments.dir) if arguments.dir else None).resolve()
    if Path(file).is_absolute() and not _moves_with(folder, Path(file)):
        return file
    return paths.use_slashes(os.path.relpath(Path(file).resolve(), folder))


def _moves_with(folder: Path, file: Path) -> bool:
    around = next((above for above in folder.parents if (above / ".git").exists()), folder.parent)
    return file.resolve().is_relative_to(around)


def _read_origin(label: str, make: Callable[[], ImportResult], command: str, *, is_repeatable: bool = False) -> Origin:
    """Import a manifest with `make`, and return the manifest as a new project's origin."""
    from stubwright.project import scaffold

    result = import_.attempt(label, make)
    if result is None:
        raise scaffold.ScaffoldError("nothing was created")
    return _make_origin(result, command, is_repeatable=is_repeatable)


def _make_origin(
    result: ImportResult, command: str, old: PythonServer | None = None, *, is_repeatable: bool = False
) -> Origin:
    from stubwright.project import scaffold

    print_import(result.summary, result.all_notes)
    fragment = {key: value for key, value in result.manifest.items() if key != "server"}
    return scaffold.Origin(fragment, result.manifest["server"], command, is_repeatable, old)


def _read_mcp(url: str | None, arguments: argparse.Namespace) -> Callable[[], Origin]:
    _refuse_selection(arguments)
    source = sources.parse_source(url, arguments.command, arguments)

    def make(listed: ServerListing) -> ImportResult:
        from stubwright.importers import servers

        return servers.make_manifest(listed, name=None, default_name=sources.name(source))

    return lambda: _read_origin(
        source.label, sources.prepare_manifest(source, arguments, make, sources.start_deadline(arguments)), "mcp …"
    )


def _read_python(file: str | None, arguments: argparse.Namespace) -> Callable[[], Origin]:
    _refuse_selection(arguments)
    source = from_python.parse(file, arguments)

    def read() -> Origin:
        from stubwright.project import scaffold

        if not from_python.agree(source, yes=arguments.yes):
            raise scaffold.ScaffoldError("nothing was created")
        attempted = import_.attempt(source.label, lambda: from_python.read(source, arguments))
        if attempted is None:
            raise scaffold.ScaffoldError("nothing was created")
        result, old = attempted
        again = "mcp …"
        return _make_origin(result, again, old)

    return read


_ORIGINS: Final[Mapping[str, Callable[[str | None, argparse.Namespace], Callable[[], Origin]]]] = {
    "mcp": _read_mcp,
    "openapi": _read_openapi,
    "python": _read_python,
}
"""Kinds of origins. Each function checks the source and the other arguments, and returns a reader."""
