"""`stubwright refresh`: repeat the imports that files record in their first lines, and show the changes.

The first lines of a file in a checkout are untrusted, so they select only the document and the options. Only the file
itself is written, and no command is run.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from stubwright import paths
from stubwright.commands import diff
from stubwright.commands.importing import import_
from stubwright.commands.shared.console import Printer, UsageError, print_import, report, write_err, write_out
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.compile.source import Document


_OPTIONS: Final = """
manifests MANIFEST*  manifests with imported files to refresh (default: from [tool.stubwright] in pyproject.toml)
--format text|json   the format of the files and their changes
--check              write nothing; exit 1 if a file would change
--force              replace imported files that were edited
"""


def add(verbs: Any) -> None:
    """Register the `refresh` subcommand and its options."""
    refresh = verbs.add_parser("refresh", _refresh, help="repeat imports, and show the changes")
    declare(refresh, _OPTIONS, manifests=paths.normalize)


@dataclass(frozen=True, slots=True)
class _ImportedFile:
    path: str
    text: str
    command: str


class _UnrepeatableError(Exception):
    """An import cannot be repeated. The message explains why."""


def _refresh(arguments: argparse.Namespace) -> int:
    from stubwright.diagnostics.printers.json import format_ascii
    from stubwright.diff.printers import to_value

    entries = _find_manifests(arguments)
    reading, writing = Printer(arguments.format, strict=False), Printer("text", strict=False)
    imports: dict[str, _ImportedFile] = {}
    documents: dict[str, Mapping[str, Document]] = {}
    for entry in entries:
        documents[entry] = _read(entry, reading)
        for path, document in documents[entry].items():
            if imported := _find_origin(path, document):
                imports.setdefault(path, imported)
    if reading.failed:
        return reading.close()
    if not imports:
        raise UsageError("no manifest or included file records the command that imported its tools")
    status, fresh, states = 0, dict[str, str](), dict[str, str]()
    for imported in imports.values():
        text = _import_again(imported)
        if text is None:
            status, states[imported.path] = 1, "failed"
        elif text == imported.text.replace("\r\n", "\n"):  # git checks out CRLF on Windows
            states[imported.path] = "up to date"
        else:
            fresh[imported.path] = text.replace("\n", "\r\n") if "\r\n" in imported.text else text
    is_text = arguments.format == "text"
    if is_text:
        report("".join(f"{path}: {state}\n" for path, state in states.items() if state != "failed"))
    changed = [entry for entry in entries if not fresh.keys().isdisjoint(documents[entry])]
    differences = {entry: _compare(entry, fresh) for entry in changed}
    for difference in differences.values():
        if difference is not None and is_text:
            diff.print_text(difference)
    status = max(status, int(None in differences.values()))
    for path, text in fresh.items():
        problem = None if arguments.check else import_.write(Path(path), text, force=arguments.force)
        writing.add([problem] if problem else [])
        states[path] = "would change" if arguments.check else "refused" if problem else "refreshed"
        if is_text and not problem:
            (write_out if arguments.check else report)(f"{path}: {states[path]}\n")
    if not is_text:
        values = [to_value(each.changes, each.comparison) for each in differences.values() if each is not None]
        files = [{"file": path, "state": state} for path, state in states.items()]
        write_out(format_ascii({"files": files, "manifests": values}))
    return 1 if arguments.check and fresh else max(status, writing.close())


def _find_manifests(arguments: argparse.Namespace) -> Sequence[str]:
    from stubwright.project import config

    if arguments.manifests:
        return tuple(dict.fromkeys(arguments.manifests))
    project, _ = config.find()
    if project is None or not project.manifests:
        raise UsageError("no manifest is given, and no [tool.stubwright] lists any; specify one")
    return project.manifests


def _read(entry: str, printer: Printer) -> Mapping[str, Document]:
    from stubwright.compile import source
    from stubwright.project.files import disk

    bundle, diagnostics = source.load(entry, disk.Disk())
    if bundle is None:
        printer.add(diagnostics)
        return {}
    return bundle.documents


def _find_origin(path: str, document: Document) -> _ImportedFile | None:
    from stubwright.compile.syntax import yamlwriter

    origin = yamlwriter.parse_origin(document.text)
    return None if origin is None or origin.command is None else _ImportedFile(path, document.text, origin.command)


def _import_again(imported: _ImportedFile) -> str | None:
    """Return the text of a repeated import, or None after reporting that the import failed."""
    from stubwright.compile.syntax import yamlwriter

    try:
        arguments = _parse(imported.command)
        folder = _find_folder(imported.path, arguments.output)
        make = (
            import_.prepare_openapi(arguments.file, arguments, name=arguments.name, prefix=arguments.prefix)
            if arguments.kind == "openapi"
            else import_.prepare_saved_list(arguments)
        )
    except (_UnrepeatableError, UsageError) as error:
        write_err(f"stubwright: `{imported.path}` cannot be imported again: {error}")
        return None
    with contextlib.chdir(folder):  # the recorded paths are relative to the folder
        result = import_.attempt(imported.path, make)
    if result is None:
        return None
    is_fragment = getattr(arguments, "fragment", False)
    manifest = {key: value for key, value in result.manifest.items() if key != "server" or not is_fragment}
    text = yamlwriter.format_imported(manifest, imported.path, imported.command)
    if text != imported.text.replace("\r\n", "\n"):
        print_import("", result.all_notes)  # the notes explain why tools were removed
    return text


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UnrepeatableError(f"the command in its first lines is invalid: {message}")


def _parse(command: str) -> argparse.Namespace:
    parser = _Parser(add_help=False)
    import_.add(parser.add_subparsers(required=True))
    try:
        program, *words = shlex.split(command)
    except ValueError as error:
        raise _UnrepeatableError("the command in its first lines has an unclosed quote") from error
    # `--help` would end this process.
    if program != "stubwright" or words[:1] != ["import"] or "--help" in words or "-h" in words:
        raise _UnrepeatableError("the command in its first lines is not `stubwright import`")
    if words[1:2] not in (["openapi"], ["tools"]):
        raise _UnrepeatableError("a live server must be imported manually, because a file cannot start commands")
    arguments = parser.parse_args(words)
    arguments.kind = words[1]
    if arguments.file == "-":
        raise _UnrepeatableError("it was imported from standard input")
    return arguments


def _find_folder(path: str, output: str | None) -> Path:
    """Return the folder that the recorded command ran in, derived from its relative `-o`."""
    file = Path(path).resolve()
    parts = Path(output or "").parts
    if not parts or file.parts[-len(parts) :] != parts:
        raise _UnrepeatableError(f"according to its first lines, it was written to `{output or 'standard output'}`")
    return Path(*file.parts[: -len(parts)])


def _compare(entry: str, fresh: Mapping[str, str]) -> diff.Difference | None:
    """Return the changes to a manifest, or None after reporting errors in its new version."""
    from stubwright.commands.shared import comparison

    old, new = comparison.read(entry, ""), comparison.with_texts(entry, fresh)
    return diff.find_difference(old, new, argparse.Namespace(fail_on=("never",), target=()))
