"""`stubwright import`: create a manifest from a server, a saved list or an API document."""

from __future__ import annotations

import argparse
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from stubwright import paths
from stubwright.commands.examples import EXAMPLES, format_epilog
from stubwright.commands.shared import logins
from stubwright.commands.shared import servers as sources
from stubwright.commands.shared.console import Printer, UsageError, print_import, write_err, write_out
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from stubwright.compile.source import Document
    from stubwright.diagnostics import Diagnostic
    from stubwright.importers.acceptance import ImportResult
    from stubwright.importers.document_reader import SourceError
    from stubwright.importers.openapi.options import Auth
    from stubwright.importers.server_listing import ServerListing

_T = TypeVar("_T")
_FRAGMENT: Final = "omit `server`, for a file to include in another manifest"


_OPENAPI: Final = f"""
file SOURCE  the document, in YAML or JSON: a file, a URL, or `-`
--fragment   {_FRAGMENT}
--pages      paginate tool results, if the document describes the pages
"""


_TOOLS: Final = """
file FILE  the result as JSON, bare or in a wrapper
"""


_MCP: Final = f"""
url URL?    a Streamable HTTP endpoint
--client    write `emit: [client]`: bindings without a server
--typescript  write `emit: [typescript]`: bindings in TypeScript
--fragment  {_FRAGMENT}
"""


def add(verbs: Any) -> None:
    """Register the `import` subcommand and its options."""
    imports = verbs.add_parser("import", help="create a manifest from an existing server or API")
    kinds = imports.add_subparsers(title="the source to import", metavar="KIND", required=True)
    live = kinds.add_parser(
        "mcp",
        help="a live server's tools, resources and prompts",
        epilog=format_epilog(
            "", EXAMPLES["import"][0], "stubwright import mcp https://example.com/mcp -o specs/desk.yaml"
        ),
        usage="stubwright import mcp [options] URL\n       stubwright import mcp [options] -- COMMAND ARGS…",
    )
    _add_options(live, "the server's own name")
    declare(live, _MCP)
    sources.add_options(live)
    logins.add_options(live)
    live.set_defaults(verb=_import_mcp)
    tools = kinds.add_parser(
        "tools",
        help="a saved tools/list result",
        epilog=format_epilog("", EXAMPLES["import"][0], "stubwright import tools tools.json -o specs/desk.yaml"),
    )
    declare(tools, _TOOLS, file=paths.use_slashes)
    _add_options(tools, "the name in the file, otherwise the file's name")
    tools.set_defaults(verb=_import_tools)
    openapi = kinds.add_parser(
        "openapi",
        help="an OpenAPI or Swagger document, for a server that calls the API",
        epilog=format_epilog("", EXAMPLES["import"][0], "stubwright import openapi api.json -o specs/api.yaml"),
    )
    _add_options(openapi, "the document's title")
    add_selection(openapi)
    declare(openapi, _OPENAPI, file=paths.use_slashes)
    openapi.set_defaults(verb=_import_openapi)


def add_selection(parser: argparse.ArgumentParser, note: str = "") -> None:
    """Add the options that select operations in an OpenAPI document and name their tools."""
    fits = "operationId, tag, path, METHOD or `METHOD path` matches; may be repeated"
    declare(
        parser,
        f"""
--include GLOB…        {note}import only operations whose {fits}
--exclude GLOB…        {note}omit operations whose {fits}
--rename OLD=NEW…      {note}name the tool for operation OLD NEW; may be repeated
--media-type TYPE…     {note}prefer this media type for requests and responses; may be repeated, best first
--server SERVER        {note}call this server: its number, URL or description
--auth HOW             {note}override the document's authentication scheme: bearer, basic, apiKey=HEADER,
  apiKey=query:NAME or clientCredentials=TOKEN_URL; secrets come from environment variables
--no-output-schema     {note}omit all output schemas
--trim-descriptions N  {note}shorten descriptions to N characters, at the end of a sentence or a word
--group-by-tag         {note}group tools by tag, and prefix their names with the tag
""",
        trim_descriptions=_parse_length,
    )


_SHORTEST: Final = 20


def _parse_length(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not _SHORTEST <= int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"`{text}` is not a character limit of {_SHORTEST} or more")
    return int(text)


def has_selection(arguments: argparse.Namespace) -> bool:
    """Return whether the command line has one of `add_selection`'s options."""
    return bool(_list_selected(arguments))


def _list_selected(arguments: argparse.Namespace) -> list[str]:
    words: list[str] = []
    for option in ("--include", "--exclude", "--rename", "--media-type"):
        for value in getattr(arguments, option[2:].replace("-", "_")):
            words += [option, value]
    for option in ("--server", "--auth", "--trim-descriptions"):
        value = getattr(arguments, option[2:].replace("-", "_"))
        words += [] if value is None else [option, str(value)]
    for option in ("--no-output-schema", "--group-by-tag"):
        words += [option] if getattr(arguments, option[2:].replace("-", "_")) else []
    return words


def describe_import(file: str, arguments: argparse.Namespace) -> str:
    """Return the arguments of the `stubwright import` that would repeat a document's import, without secrets."""
    from stubwright.importers.openapi import sources as documents

    words = ["openapi", documents.hide_credentials(file), *_list_selected(arguments)]
    if arguments.name is not None:
        words += ["--name", arguments.name]
    if getattr(arguments, "prefix", ""):
        words += ["--prefix", arguments.prefix]
    if getattr(arguments, "pages", False):
        words.append("--pages")
    return shlex.join(words)


def _add_options(parser: argparse.ArgumentParser, default: str) -> None:
    declare(
        parser,
        f"""
--name NAME            the server's name (default: {default})
--prefix PREFIX        a prefix for every tool name
-o, --output MANIFEST  the manifest file (default: standard output)
--force                replace an imported file that was edited
""",
        prefix={"default": ""},
        output=paths.use_slashes,
    )


def _import_mcp(arguments: argparse.Namespace) -> int:
    emit = [part for part in ("client", "typescript") if getattr(arguments, part)]
    if emit and arguments.prefix:
        raise UsageError(f"--prefix changes tool names, so the server would reject calls: omit --{emit[0]}")
    if emit and arguments.fragment:
        raise UsageError(f"`emit` is not allowed in an included file: --{emit[0]} cannot be combined with --fragment")
    source = sources.parse_source(arguments.url, arguments.command, arguments)

    def make(listed: ServerListing) -> ImportResult:
        from stubwright.importers import servers

        return servers.make_manifest(
            listed,
            name=arguments.name,
            default_name=sources.name(source),
            prefix=arguments.prefix,
            emit=emit,
        )

    deadline = sources.start_deadline(arguments)
    asked = sources.prepare_manifest(source, arguments, make, deadline)
    return _import(source.label, asked, arguments, "the server", deadline.enforce)


def _import_tools(arguments: argparse.Namespace) -> int:
    words = ["tools", arguments.file, *(["--name", arguments.name] if arguments.name is not None else [])]
    words += [*(["--prefix", arguments.prefix] if arguments.prefix else []), *_list_output(arguments)]
    command = f"stubwright import {shlex.join(words)}"
    return _import(arguments.file, prepare_saved_list(arguments), arguments, "the file", command=command)


def prepare_saved_list(arguments: argparse.Namespace) -> Callable[[], ImportResult]:
    """Return a function that creates a manifest from a saved tool list."""

    def make() -> ImportResult:
        from stubwright.importers import acceptance, tools
        from stubwright.project.files import disk

        forgiven: list[str] = []
        entries, info = tools.read_file(arguments.file, disk.Disk(), forgiven)
        name = arguments.name or info.get("name") or Path(arguments.file).stem
        draft = tools.make_manifest(entries, name=name, info=info, prefix=arguments.prefix)
        checked = acceptance.repair(draft.manifest)
        notes = (*forgiven, *draft.notes, *checked.notes, *acceptance.report_unfillable(checked.unfillable))
        return acceptance.ImportResult(checked.manifest, "", notes, checked.warnings)

    return make


def _list_output(arguments: argparse.Namespace) -> list[str]:
    return ["-o", arguments.output] if arguments.output else []


def _import_openapi(arguments: argparse.Namespace) -> int:
    from stubwright.importers.openapi import sources as documents

    make = prepare_openapi(arguments.file, arguments, name=arguments.name, prefix=arguments.prefix)
    words = [*(["--fragment"] if arguments.fragment else []), *_list_output(arguments)]
    command = " ".join(["stubwright import", describe_import(arguments.file, arguments), *map(shlex.quote, words)])
    return _import(documents.hide_credentials(arguments.file), make, arguments, "the document", command=command)


def prepare_openapi(
    file: str, arguments: argparse.Namespace, *, name: str | None, prefix: str = ""
) -> Callable[[], ImportResult]:
    """Return a function that creates a manifest from an OpenAPI document.

    Raises:
        UsageError: `--rename` is not OLD=NEW.
    """
    new_names = parse_renames(arguments.rename)
    auth = parse_auth(arguments.auth)

    def make() -> ImportResult:
        from stubwright.importers.openapi import manifest as assembling
        from stubwright.importers.openapi import sources as documents
        from stubwright.importers.openapi.naming import Selection
        from stubwright.importers.openapi.options import Options

        selection = Selection(arguments.include, arguments.exclude, new_names, prefix, arguments.group_by_tag)
        options = Options(
            media_types=arguments.media_type,
            output_schemas=not arguments.no_output_schema,
            server=arguments.server,
            auth=auth,
            longest=arguments.trim_descriptions,
            pages=getattr(arguments, "pages", False),
        )
        return assembling.make_manifest(documents.read_documents(file), selection, name, options)

    return make


def attempt(label: str, make: Callable[[], _T]) -> _T | None:
    """Return the result of `make`, or None after reporting that the source `label` could not be imported."""
    from stubwright.importers.document_reader import SourceError

    try:
        return make()
    except SourceError as error:
        report_failure(label, error)
    return None


def report_failure(label: str, error: SourceError, verb: str = "imported") -> None:
    """Print why the source `label` could not be imported or, with another `verb`, tested, locked or read."""
    from stubwright.importers.document_reader import DocumentError

    if isinstance(error, DocumentError) and error.diagnostics:
        report(error.diagnostics, error.documents)
    else:
        about = "" if error.names_source else f"`{label}` cannot be {verb}: "
        write_err(f"stubwright: {about}{error}")


def _import(
    label: str,
    make: Callable[[], ImportResult],
    arguments: argparse.Namespace,
    who: str,
    bounded: Callable[[], AbstractContextManager[None]] = nullcontext,
    command: str | None = None,
) -> int:
    """Import a source, report the result, and return the exit status.

    Args:
        label: The source's name in messages.
        make: Reads the source.
        who: The kind of source, such as "the file".
        bounded: Returns a context that enforces the time limit.
        command: The import command, for the file's header.
    """
    from stubwright.compile.syntax import yamlwriter

    if arguments.name is not None and not arguments.name.strip():
        raise UsageError("--name is empty")
    is_fragment = getattr(arguments, "fragment", False)

    def read_and_write() -> tuple[ImportResult, str]:
        result = make()
        manifest = {key: value for key, value in result.manifest.items() if key != "server" or not is_fragment}
        with bounded():
            return result, yamlwriter.format_imported(manifest, arguments.output or "", command)

    outcome = attempt(label, read_and_write)
    if outcome is None:
        return 1
    result, text = outcome
    if not arguments.output:
        write_out(text)
    elif problem := write(Path(arguments.output), text, force=arguments.force):
        report([problem])
        return 1
    notes = [*result.all_notes]
    if result.warnings:
        word = "warning" if result.warnings == 1 else "warnings"
        notes.append(f"`stubwright check` reports {result.warnings} {word} about the contents of {who}")
    print_import(result.summary, notes)
    return 0


def write(path: Path, text: str, *, force: bool) -> Diagnostic | None:
    """Write an imported file unless that would overwrite manual edits; return the diagnostic, if any.

    Args:
        force: True to replace an imported file that was edited.
    """
    from stubwright.compile.syntax import yamlwriter
    from stubwright.diagnostics import Diagnostic, Place
    from stubwright.project.files import disk

    try:
        existing = disk.read_text(path)
        known = yamlwriter.parse_origin(existing or "")
        if existing and existing.strip() and known is None:
            help_ = "move or delete it, or choose another file with `-o`"
            return Diagnostic("SW403", "this file was not imported, so it was left unchanged", Place(str(path)), help_)
        if known is not None and known.is_edited and existing != text and not force:
            message = "this file was edited after it was imported, so it was left unchanged"
            help_ = "move the edits into the `overlay` of a file that includes it, or discard them with `--force`"
            return Diagnostic("SW403", message, Place(str(path)), help_)
        disk.create(path, text)
    except OSError as error:
        return describe_unwritable(error)
    return None


def describe_unwritable(error: OSError) -> Diagnostic:
    """Return the diagnostic for a file that cannot be written, from the error that names the file."""
    from stubwright.diagnostics import Diagnostic

    message = f"`{error.filename}` cannot be written: {error.strerror}"
    return Diagnostic("SW406", message, help="choose another file with `-o`")


def report(diagnostics: Iterable[Diagnostic], documents: Mapping[str, Document] | None = None) -> None:
    """Print diagnostics with excerpts from the documents that they refer to."""
    printer = Printer("text", strict=False)
    printer.add(diagnostics, documents)
    printer.close()


def parse_auth(text: str | None) -> Auth | None:
    """Parse the value of `--auth`. Raises UsageError."""
    from stubwright.importers.openapi.naming import SelectionError
    from stubwright.importers.openapi.options import Auth

    try:
        return None if text is None else Auth.parse(text)
    except SelectionError as error:
        raise UsageError(str(error)) from error


def parse_renames(entries: Sequence[str]) -> dict[str, str]:
    """Parse the values of `--rename`. Raises UsageError if one is not OLD=NEW."""
    new_names = {}
    for entry in entries:
        old, equals, new = entry.partition("=")
        if not (old and equals and new):
            raise UsageError(f"--rename is `{entry}`; expected OLD=NEW, such as listPets=list_pets")
        new_names[old] = new
    return new_names
