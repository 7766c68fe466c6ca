"""`toolwright import`: a manifest from what others describe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwright.commands.printing import reason

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Say how the verb is called."""
    imports = verbs.add_parser("import", help="make a manifest from what others describe")
    kinds = imports.add_subparsers(title="what to import", metavar="KIND", required=True)
    tools = kinds.add_parser("tools", help="a saved tools/list result")
    tools.add_argument("file", metavar="FILE", help="its JSON, bare or in a wrapper")
    tools.add_argument("--name", help="the server's name (default: as the file says, else the file's name)")
    tools.add_argument("--prefix", default="", help="put in front of each tool's name")
    tools.add_argument("-o", "--output", metavar="MANIFEST", help="where to write (default: standard output)")
    tools.set_defaults(verb=_import_tools)


def _import_tools(arguments: argparse.Namespace) -> int:
    from toolwright import workspace
    from toolwright.importing import tools, writing

    source = Path(arguments.file)
    try:
        listed, info = tools.read(workspace.Disk().read(arguments.file).decode("utf-8-sig"))
        name = arguments.name or info.get("name") or source.stem
        made = tools.manifest(listed, name=name, info=info, prefix=arguments.prefix)
        text = writing.manifest(made.manifest)
        if arguments.output:
            workspace.create(Path(arguments.output), text)
        else:
            print(text, end="")
    except (tools.ToolListError, UnicodeDecodeError) as error:
        print(f"toolwright: `{source}` cannot be imported: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"toolwright: {reason(error)}", file=sys.stderr)
        return 1
    for note in made.notes:
        print(f"note: {note}", file=sys.stderr)
    return 0
