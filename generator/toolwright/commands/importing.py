"""`toolwright import`: a manifest from what others describe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwright.commands import sources
from toolwright.commands.printing import UsageError, reason, told

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


def add(verbs: Any) -> None:
    """Say how the verb is called."""
    imports = verbs.add_parser("import", help="make a manifest from what others describe")
    kinds = imports.add_subparsers(title="what to import", metavar="KIND", required=True)
    live = kinds.add_parser(
        "mcp",
        help="a live server: its tools, resources and prompts",
        usage="toolwright import mcp [options] URL\n       toolwright import mcp [options] -- COMMAND ARGS…",
    )
    live.add_argument("url", metavar="URL", nargs="?", help="a Streamable HTTP endpoint")
    _options(live, "as the server says")
    live.add_argument("--client", action="store_true", help="write `emit: [client]`: bindings without a server half")
    live.add_argument("--fragment", action="store_true", help="leave out `server`: a file for another one's `include`")
    sources.options(live)
    live.set_defaults(verb=_import_mcp)
    tools = kinds.add_parser("tools", help="a saved tools/list result")
    tools.add_argument("file", metavar="FILE", help="its JSON, bare or in a wrapper")
    _options(tools, "as the file says, else the file's name")
    tools.set_defaults(verb=_import_tools)


def _options(parser: argparse.ArgumentParser, otherwise: str) -> None:
    parser.add_argument("--name", help=f"the server's name (default: {otherwise})")
    parser.add_argument("--prefix", default="", help="put in front of each tool's name")
    parser.add_argument("-o", "--output", metavar="MANIFEST", help="where to write (default: standard output)")


def _import_mcp(arguments: argparse.Namespace) -> int:
    if arguments.client and arguments.prefix:
        raise UsageError("--prefix changes names that the server would not know: it cannot go with --client")
    if arguments.client and arguments.fragment:
        raise UsageError("`emit` cannot stand in an included file: --client cannot go with --fragment")
    if arguments.name is not None and not arguments.name.strip():
        raise UsageError("--name is empty")
    source = sources.of(arguments.url, arguments.command, arguments)
    from toolwright.importing import live, servers, settling

    try:
        listed = live.read(source, arguments.timeout or live.TIMEOUT)
        made = servers.manifest(
            listed,
            name=arguments.name,
            otherwise=sources.name(source),
            prefix=arguments.prefix,
            client=arguments.client,
            fragment=arguments.fragment,
        )
        _write(made.manifest, arguments.output)
    except live.UnreachableError as error:
        print(f"toolwright: {error}", file=sys.stderr)
        return 1
    except settling.UnsettledError as error:
        print(f"toolwright: `{source.shown}` cannot be imported: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"toolwright: {reason(error)}", file=sys.stderr)
        return 1
    notes = list(made.notes)
    if made.warnings:
        word = "warning" if made.warnings == 1 else "warnings"
        notes.append(f"`toolwright check` has {made.warnings} {word} of what the server says")
    told(made.summary, notes)
    return 0


def _import_tools(arguments: argparse.Namespace) -> int:
    from toolwright import workspace
    from toolwright.importing import settling, tools

    source = Path(arguments.file)
    try:
        listed, info = tools.read(workspace.Disk().read(arguments.file).decode("utf-8-sig"))
        name = arguments.name or info.get("name") or source.stem
        made = tools.manifest(listed, name=name, info=info, prefix=arguments.prefix)
        settled = settling.settle(made.manifest)
        _write(settled.manifest, arguments.output)
    except (tools.ToolListError, settling.UnsettledError, UnicodeDecodeError) as error:
        print(f"toolwright: `{source}` cannot be imported: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"toolwright: {reason(error)}", file=sys.stderr)
        return 1
    told(None, (*made.notes, *settled.notes))
    return 0


def _write(manifest: Mapping[str, Any], output: str | None) -> None:
    """Write a manifest as YAML, to a file or to standard output. Raises OSError."""
    from toolwright import workspace
    from toolwright.importing import writing

    text = writing.manifest(manifest)
    if output:
        workspace.create(Path(output), text)
    else:
        print(text, end="")
