"""The command line: verbs and exit codes, and nothing else.

Exit status: 0 fine, also with warnings (`--strict` makes them count); 1 the input is wrong or the tree is stale; 2 the
command line is wrong. Heavy modules are imported by the verb that needs them, so that `--help` costs little.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

from toolwright import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolwright.build import Built, Target
    from toolwright.diagnostics import Diagnostic
    from toolwright.lock import Lock
    from toolwright.project import Project
    from toolwright.source import Document
    from toolwright.workspace import Changes

Format = Literal["text", "json", "github"]


class UsageError(Exception):
    """The command line asks for something that it cannot."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a verb works on: the manifests, where their packages go, and whether that is the whole project."""

    manifests: tuple[str, ...]
    target: Target
    whole: bool
    project: Project | None


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its status."""
    gc.disable()  # a command is short, and makes many objects that live until it ends
    try:
        try:
            status = run(sys.argv[1:] if argv is None else argv)
        except KeyboardInterrupt:
            status = 130
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone, which is its right; the interpreter must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.stderr.flush()
    os._exit(status)  # nothing is left to do, and to take all objects apart one by one takes its time


def run(argv: Sequence[str]) -> int:
    """Run one command and give its exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    verb: Callable[[argparse.Namespace], int] | None = getattr(arguments, "verb", None)
    if verb is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        return verb(arguments)
    except UsageError as error:
        print(f"toolwright: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="toolwright",
        description="Compile declarative tool manifests into typed MCP servers and clients.",
        epilog="Each command tells more with --help, such as `toolwright generate --help`.",
    )
    parser.add_argument("--version", action="version", version=f"toolwright {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")

    new = verbs.add_parser("new", help="start a server project that runs at once")
    new.add_argument("name", metavar="NAME", help="the server's name, such as `weather`")
    new.add_argument("--dir", metavar="DIR", help="where to put it (default: a new folder of that name)")
    new.set_defaults(verb=_new)

    check = verbs.add_parser("check", help="say what is wrong in manifests; write nothing")
    _manifests(check)
    check.set_defaults(verb=_check)

    generate = verbs.add_parser("generate", help="compile manifests; write only what changed")
    _manifests(generate)
    generate.add_argument(
        "-o", "--output", metavar="DIR", help="where packages go (default: as the project says, else generated)"
    )
    generate.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 and show the difference where the tree is stale"
    )
    generate.add_argument("--force", action="store_true", help="overwrite generated files that were edited by hand")
    generate.set_defaults(verb=_generate)

    imports = verbs.add_parser("import", help="make a manifest from what others describe")
    kinds = imports.add_subparsers(title="what to import", metavar="KIND", required=True)
    tools = kinds.add_parser("tools", help="a saved tools/list result")
    tools.add_argument("file", metavar="FILE", help="its JSON, bare or in a wrapper")
    tools.add_argument("--name", help="the server's name (default: as the file says, else the file's name)")
    tools.add_argument("--prefix", default="", help="put in front of each tool's name")
    tools.add_argument("-o", "--output", metavar="MANIFEST", help="where to write (default: standard output)")
    tools.set_defaults(verb=_import_tools)

    schema = verbs.add_parser("schema", help="print the manifest's own JSON Schema, for editors")
    schema.set_defaults(verb=_schema)
    return parser


def _manifests(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "manifests",
        metavar="MANIFEST",
        nargs="*",
        help="manifests (default: those of [tool.toolwright] in pyproject.toml)",
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 on warnings too")
    parser.add_argument("--format", choices=("text", "json", "github"), default="text", help="how to print diagnostics")


def _new(arguments: argparse.Namespace) -> int:
    from toolwright import scaffold

    try:
        print(scaffold.create(arguments.name, Path(arguments.dir) if arguments.dir else None), end="")
    except scaffold.NameRefusedError as error:
        raise UsageError(str(error)) from error
    except scaffold.ScaffoldError as error:
        print(f"toolwright: {error}", file=sys.stderr)
        return 1
    return 0


def _schema(_arguments: argparse.Namespace) -> int:
    text = Path(__file__).with_name("manifest.schema.json").read_text("utf-8")
    print(text, end="")
    return 0


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
        print(f"toolwright: {_reason(error)}", file=sys.stderr)
        return 1
    for note in made.notes:
        print(f"note: {note}", file=sys.stderr)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    printer = _Printer(arguments.format, strict=arguments.strict)
    work = _work(arguments, printer)
    if work is not None:
        from toolwright import compiler, project, workspace
        from toolwright.diagnostics import Diagnostic

        for path in work.manifests:
            checked = compiler.check(path, workspace.Disk())
            printer.add(checked.diagnostics, checked.documents)
            if checked.manifest is None or work.project is None:
                continue
            absent = project.missing(work.project, compiler.requirements(checked.manifest))
            if absent:
                printer.add(
                    [
                        Diagnostic(
                            "TW411",
                            f"the server made from `{path}` needs {' and '.join(f'`{name}`' for name in absent)}",
                            work.project.listed,
                            help="add it to `dependencies` under `[project]`",
                        )
                    ]
                )
    return printer.close()


def _generate(arguments: argparse.Namespace) -> int:
    from toolwright import build, lock, workspace
    from toolwright.diagnostics import Diagnostic

    printer = _Printer(arguments.format, strict=arguments.strict)
    work = _work(arguments, printer, arguments.output)
    if work is None:
        return printer.close()
    folder = work.target.folder
    try:
        known = workspace.read_lock(folder)
        for path in work.manifests:
            trust = not arguments.check and not arguments.force
            built = build.build(path, work.target, known, trust=trust, force=arguments.force)
            printer.add(built.diagnostics, built.documents)
            if built.changes is not None:
                known = _carry_out(built.changes, folder, printer, write=not arguments.check)
                printer.made(built)
            elif not built.failed:
                printer.say(f"{path}: up to date")
        if work.whole and not printer.failed:
            names = [workspace.relative(path, folder) for path in work.manifests]
            _carry_out(workspace.prune(folder, known, names), folder, printer, write=not arguments.check)
    except lock.LockError as error:
        printer.add([lock.unreadable(workspace.shown(folder, lock.NAME), error)])
    except BrokenPipeError:
        raise
    except OSError as error:
        help_ = "nothing was changed there; mend it and run the command again"
        printer.add([Diagnostic("TW406", f"cannot write below `{folder}`: {_reason(error)}", help=help_)])
    return printer.close()


def _carry_out(changes: Changes, folder: Path, printer: _Printer, *, write: bool) -> Lock:
    """Write changes, or show them; and give the lock as it is then."""
    from toolwright import workspace

    printer.add(changes.diagnostics)
    if write:
        workspace.apply(folder, changes)
    else:
        printer.stale(folder, changes)
    return changes.lock


def _work(arguments: argparse.Namespace, printer: _Printer, output: str | None = None) -> Run | None:
    """What to work on, from the arguments and the project; None where the project's table is wrong."""
    from toolwright import build, project

    found, problems = project.read(Path())
    given = tuple(dict.fromkeys(arguments.manifests))
    if problems and not given:
        printer.add(problems)
        return None
    told = found.output if found is not None else None
    target = build.Target(Path(output or told or build.OUTPUT), told=told is not None and output in (None, told))
    if given:
        return Run(given, target, whole=False, project=found)
    if found is None:
        raise UsageError(f"no manifest is given, and {project.FILE} has no [tool.toolwright] that names any")
    if not found.manifests:
        raise UsageError(f"no manifest is given, and [tool.toolwright] in {project.FILE} names none")
    return Run(found.manifests, target, whole=True, project=found)


def _reason(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{reason} (`{error.filename}`)" if error.filename else reason


class _Printer:
    """Collects diagnostics and prints them once, at the end; what a person reads of progress comes as it happens."""

    def __init__(self, style: Format, *, strict: bool) -> None:
        self._style = style
        self._strict = strict
        self._found: list[Diagnostic] = []
        self._documents: dict[str, Document] = {}
        self._stale = False

    @property
    def failed(self) -> bool:
        """Whether an error was found so far."""
        return any(diagnostic.severity == "error" for diagnostic in self._found)

    def add(self, found: Iterable[Diagnostic], documents: Mapping[str, Document] | None = None) -> None:
        """Note diagnostics, and the documents that show their places."""
        self._found += found
        self._documents.update(documents or {})

    def say(self, text: str) -> None:
        """Tell a person what was done; programs that asked for another format are not told."""
        if self._style == "text":
            print(text)

    def made(self, built: Built) -> None:
        """Tell what was written of a package, and what it needs."""
        changes = built.changes
        if changes is None or changes.refused or self._stale:
            return
        written = sum(change.new is not None for change in changes.changes)
        counts = [(written, "written"), (len(changes.changes) - written, "removed"), (changes.kept, "unchanged")]
        told = ", ".join(f"{count} file{'s' if count != 1 else ''} {word}" for count, word in counts if count)
        self.say(f"{built.package}: {told}\n  it needs {', '.join(built.requirements)}")

    def stale(self, output: Path, changes: Changes) -> None:
        """Show what a run would change."""
        from toolwright import report, workspace
        from toolwright.diagnostics import Diagnostic

        lacking: dict[str, None] = {}
        for change in changes.changes:
            self._stale = True
            path = workspace.shown(output, change.path)
            self.say(report.diff(path, change.old, change.new))
            if change.old is None:
                lacking[workspace.shown(output, change.path.partition("/")[0])] = None
            else:
                state = "is no longer made" if change.new is None else "is stale"
                self.add([Diagnostic("TW407", f"`{path}` {state}", help="run `toolwright generate`")])
        for package in lacking:
            message = f"files are missing from `{package}`"
            self.add([Diagnostic("TW407", message, help="run `toolwright generate`")])

    def close(self) -> int:
        """Print the diagnostics, and give the exit status."""
        from toolwright import project, report
        from toolwright.diagnostics import Span
        from toolwright.source import Document

        if any(isinstance(found.at, Span) and found.at.file == project.FILE for found in self._found):
            self._documents[project.FILE] = Document(
                project.FILE, Path(project.FILE).read_text("utf-8", "replace"), None
            )

        if self._found or self._style == "json":
            if self._style == "text":
                colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
                print(report.text(self._found, self._documents, color=colour), end="", file=sys.stderr)
            else:
                printed = report.json if self._style == "json" else report.github
                print(printed(self._found, self._documents), end="")
        return 1 if self.failed or (self._strict and self._found) else 0
