"""`toolwright import`: a manifest from what others describe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwright.commands.printing import Printer, UsageError, reason

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from toolwright.importing.tools import Imported


def add(verbs: Any) -> None:
    """Say how the verb is called."""
    imports = verbs.add_parser("import", help="make a manifest from what others describe")
    kinds = imports.add_subparsers(title="what to import", metavar="KIND", required=True)
    tools = kinds.add_parser("tools", help="a saved tools/list result")
    tools.add_argument("file", metavar="FILE", help="its JSON, bare or in a wrapper")
    tools.add_argument("--name", help="the server's name (default: as the file says, else the file's name)")
    _options(tools)
    tools.set_defaults(verb=_import_tools)
    openapi = kinds.add_parser("openapi", help="an OpenAPI 3 document: a server that calls the API")
    openapi.add_argument("file", metavar="FILE", help="the document, in YAML or JSON")
    openapi.add_argument("--name", help="the server's name (default: the document's title)")
    selecting(openapi)
    _options(openapi)
    openapi.set_defaults(verb=_import_openapi)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prefix", default="", help="put in front of each tool's name")
    parser.add_argument("-o", "--output", metavar="MANIFEST", help="where to write (default: standard output)")


def selecting(parser: argparse.ArgumentParser) -> None:
    """Let a verb be told which operations of an OpenAPI document become tools."""
    for option, what in (("--include", "take only"), ("--exclude", "leave out")):
        parser.add_argument(
            option,
            metavar="GLOB",
            action="append",
            default=[],
            help=f"{what} operations whose operationId, tag or path fits; may be given several times",
        )
    parser.add_argument(
        "--rename",
        metavar="OLD=NEW",
        action="append",
        default=[],
        help="call the tool of an operation NEW; may be given several times",
    )


def renames(given: Sequence[str]) -> dict[str, str]:
    """What `--rename` says. Raises UsageError where it is not OLD=NEW."""
    found = {}
    for entry in given:
        old, equals, new = entry.partition("=")
        if not (old and equals and new):
            raise UsageError(f"--rename is `{entry}`; it is OLD=NEW, such as listPets=list_pets")
        found[old] = new
    return found


def _import_tools(arguments: argparse.Namespace) -> int:
    from toolwright import workspace
    from toolwright.importing import tools

    source = Path(arguments.file)
    try:
        listed, info = tools.read(workspace.Disk().read(arguments.file).decode("utf-8-sig"))
        name = arguments.name or info.get("name") or source.stem
        made = tools.manifest(listed, name=name, info=info, prefix=arguments.prefix)
        return _written(made, arguments.output)
    except (tools.ToolListError, UnicodeDecodeError) as error:
        print(f"toolwright: `{source}` cannot be imported: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"toolwright: {reason(error)}", file=sys.stderr)
        return 1


def _import_openapi(arguments: argparse.Namespace) -> int:
    from toolwright import workspace
    from toolwright.importing.openapi import assembling
    from toolwright.importing.openapi.documents import DocumentError, Documents
    from toolwright.importing.openapi.naming import Selection, SelectionError

    selection = Selection(arguments.include, arguments.exclude, renames(arguments.rename), arguments.prefix)
    try:
        documents = Documents(arguments.file, workspace.Disk())
        return _written(assembling.manifest(documents, selection, arguments.name), arguments.output)
    except DocumentError as error:
        if error.diagnostics:
            printer = Printer("text", strict=False)
            printer.add(error.diagnostics, error.documents)
            printer.close()
        else:
            print(f"toolwright: `{arguments.file}` cannot be imported: {error}", file=sys.stderr)
        return 1
    except SelectionError as error:
        print(f"toolwright: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"toolwright: {reason(error)}", file=sys.stderr)
        return 1


def _written(made: Imported, output: str | None) -> int:
    """Write a manifest, and tell what is to be told of it. Raises OSError."""
    from toolwright import workspace
    from toolwright.importing import writing

    text = writing.manifest(made.manifest)
    if output:
        workspace.create(Path(output), text)
    else:
        print(text, end="")
    for note in made.notes:
        print(f"note: {note}", file=sys.stderr)
    return 0
