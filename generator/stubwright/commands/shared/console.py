"""Writes command output: diagnostics and reports.

Every command writes to standard output and error through this module, which replaces control characters in untrusted
text.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TextIO, TypeAlias

from stubwright_runtime.values.terminal import replace_controls, to_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stubwright.diagnostics import Diagnostic
    from stubwright.project.build import BuildResult, HandlerReport
    from stubwright.project.files.lock import Lock
    from stubwright.project.files.tree import Changes
    from stubwright.project.saved_findings import Text

Format: TypeAlias = Literal["text", "json", "github"]


_FEW = 10
"""The maximum number of missing files that are listed individually per package."""

_GENERATE = "run `stubwright generate`"

_CLEARED = "\r\x1b[K"
_COLOURS: Final = re.compile(r"(\x1b\[(?:[0-4]?(?:;?3[0-7])?)m)")
"""The escape sequences allowed in terminal output: plain, bold, dim, italic, underlined, and foreground colors."""


@dataclass(slots=True)
class Style:
    """Options for the output of every command.

    Attributes:
        quiet: True to omit notes and reports of finished work.
        verbose: True to print every warning, and server logs.
        color: When to use colors: `auto` means on a terminal, unless NO_COLOR is set.
    """

    quiet: bool = False
    verbose: bool = False
    color: Literal["auto", "always", "never"] = "auto"


STYLE: Final = Style()
"""This process's style, set from the command line."""


class UsageError(Exception):
    """The command line is invalid."""


class OutputError(Exception):
    """The output cannot be written; `why` is the system's error."""

    def __init__(self, why: OSError) -> None:
        super().__init__(explain(why))
        self.why = why


class Output(io.TextIOWrapper):
    """Standard output or error in UTF-8. A failed write raises OutputError.

    The output of argparse and other libraries is also written here, so that control characters are always replaced.
    """

    @classmethod
    def wrap(cls, stream: TextIO | None) -> Output:
        """Return a wrapper for one of Python's standard streams. The stream is None if the shell has closed it."""
        if stream is None:
            return cls(open(os.devnull, "wb"), "utf-8")  # noqa: PTH123 - it stays open until exit
        through = getattr(stream, "write_through", False)  # as with `python -u`
        lines = bool(stream.line_buffering)
        return cls(stream.buffer, "utf-8", "backslashreplace", line_buffering=lines, write_through=through)

    def write(self, text: str) -> int:
        """Write text, removing all escape sequences except colors. Raises OutputError."""
        if text != _CLEARED:
            # The pattern has a group, so every second piece is a color escape sequence.
            pieces = _COLOURS.split(text) if self.isatty() or STYLE.color == "always" else [text]
            text = "".join(piece if index % 2 else replace_controls(piece) for index, piece in enumerate(pieces))
        try:
            return super().write(text)
        except OSError as error:
            raise OutputError(error) from error

    def flush(self) -> None:
        """Flush the stream. Raises OutputError."""
        try:
            super().flush()
        except OSError as error:
            raise OutputError(error) from error


def explain(error: OSError) -> str:
    """Describe why a file could not be read or written."""
    why = error.strerror or str(error)
    return f"{why} (`{error.filename}`)" if error.filename else why


def write_out(text: str) -> None:
    """Write a command's result to standard output, with control characters replaced."""
    print(replace_controls(text), end="")


def report(text: str) -> None:
    """Report finished work on standard output, unless `--quiet` is set."""
    if not STYLE.quiet:
        write_out(text)


def write_err(text: str) -> None:
    """Write a message to standard error."""
    print(replace_controls(text), file=sys.stderr)


def write_note(text: str) -> None:
    """Write a note to standard error, unless `--quiet` is set."""
    if not STYLE.quiet:
        write_err(f"note: {text}")


def is_interactive() -> bool:
    """Return whether standard input and error are terminals."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> str:
    """Print a question on standard error; return the typed line, or an empty string at the end of the input."""
    print(replace_controls(question), end=" ", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def confirm(question: str) -> bool:
    """Ask a yes-or-no question on standard error."""
    return ask(f"{question} [y/n]:").casefold() in ("y", "yes")


def print_painted(make: Callable[[bool], str], stream: TextIO) -> None:
    """Write what `make(use_colors)` returns, with colors on a terminal. `make` must escape untrusted text."""
    is_automatic = _has_escapes(stream) and not os.environ.get("NO_COLOR")
    is_colored = is_automatic if STYLE.color == "auto" else STYLE.color == "always"
    print(make(is_colored), end="", file=stream)


def _has_escapes(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def print_import(summary: str, notes: Iterable[str]) -> None:
    """Print an import's summary and notes on standard error."""
    if summary:
        write_err(to_one_line(summary))
    for note in notes:
        write_note(to_one_line(note))


class Printer:
    """Collects diagnostics and prints them at the end; prints progress immediately."""

    def __init__(self, style: Format, *, strict: bool, quiet: bool = False) -> None:
        self._style = style
        self._quiet = quiet or STYLE.quiet
        self._strict = strict
        self._diagnostics: list[Diagnostic] = []
        self._documents: dict[str, Text] = {}
        self._stale = False
        self._interrupted = False

    @property
    def failed(self) -> bool:
        """True if an error was added."""
        return any(diagnostic.severity == "error" for diagnostic in self._diagnostics)

    def add(self, diagnostics: Iterable[Diagnostic], documents: Mapping[str, Text] | None = None) -> None:
        """Add diagnostics and the documents that they refer to."""
        self._diagnostics += diagnostics
        self._documents.update(documents or {})

    def add_compiled(
        self, path: str, diagnostics: Iterable[Diagnostic], documents: Mapping[str, Text], *, every: bool = False
    ) -> None:
        """Add the diagnostics from compiling a manifest.

        For a client-only manifest, the warnings about the server are reduced to one line, because the manifest's user
        cannot
        fix the server. `every`, `--verbose` and `--strict` list all warnings.
        """
        from stubwright.diagnostics import Diagnostic, Place

        diagnostics = list(diagnostics)
        entry = posixpath.normpath(path)
        value = documents[entry].value if entry in documents else None
        of_server = [diagnostic for diagnostic in diagnostics if "SW300" <= diagnostic.code < "SW380"]
        if (
            every
            or STYLE.verbose
            or self._strict
            or len(of_server) < 2
            or not isinstance(value, dict)
            or value.get("emit") != ["client"]
        ):
            self.add(diagnostics, documents)
            return
        counts = Counter(diagnostic.code for diagnostic in of_server)
        shown = ", ".join(f"{count} {code}" for code, count in sorted(counts.items()))
        message = f"{len(of_server)} warnings concern the server, which a client cannot change ({shown})"
        fix = "`stubwright check --all` lists them"
        summary = Diagnostic("SW391", message, Place(entry, ("emit",)), fix)
        self.add([*(diagnostic for diagnostic in diagnostics if diagnostic not in of_server), summary], documents)

    def add_generated(self, path: str, diagnostics: Iterable[Diagnostic], documents: Mapping[str, Text]) -> None:
        """Add the diagnostics from generating a package, but only count the warnings that `check` lists.

        Adds all warnings if there is an error, with `--strict` or `--verbose`, and in machine-readable formats.
        """
        diagnostics = list(diagnostics)
        reported = [
            diagnostic
            for diagnostic in diagnostics
            if diagnostic.severity == "error" or not "SW300" <= diagnostic.code < "SW380"
        ]
        shows_all = self._strict or STYLE.verbose or self._style != "text"
        if shows_all or any(diagnostic.severity == "error" for diagnostic in diagnostics):
            reported = diagnostics
        self.add_compiled(path, reported, documents)
        if count := len(diagnostics) - len(reported):
            self.say(f"{path}: {count} warning{'' if count == 1 else 's'}, which `stubwright check` lists")

    def say(self, text: str) -> None:
        """Print a line of progress, only in the text format."""
        if self._style == "text" and not self._quiet:
            write_out(f"{text}\n")

    @contextmanager
    def show_work(self, what: str) -> Iterator[None]:
        """Show a message on a terminal if work takes longer than a second."""
        if self._quiet or self._style != "text" or not _has_escapes(sys.stderr):
            yield
            return
        is_shown = threading.Event()

        def show() -> None:
            is_shown.set()
            print(to_one_line(f"{what} …"), end="", file=sys.stderr, flush=True)

        timer = threading.Timer(1, show)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            if is_shown.is_set():
                print(_CLEARED, end="", file=sys.stderr, flush=True)

    def report_fit(self, fit: HandlerReport | None) -> None:
        """Report the problems in a handwritten class."""
        if fit is not None and fit.findings.diagnostics:
            self.add(fit.findings.diagnostics, fit.documents)

    def report_built(self, built: BuildResult) -> None:
        """Print how many files were written for a package, and the package's requirements if they changed."""
        changes = built.changes
        if changes is None or changes.refused or self._stale:
            return
        written = sum(change.new is not None for change in changes.changes)
        counts = [(written, "written"), (len(changes.changes) - written, "removed"), (changes.kept, "unchanged")]
        summary = ", ".join(f"{_count_files(count)} {word}" for count, word in counts if count)
        self.say(f"{built.package}: {summary}")
        if built.requirements:
            self.say(f"  it needs {', '.join(built.requirements)}")

    def report_pruned(self, output: Path, previous: Lock, changes: Changes) -> None:
        """Print how many files were removed from each package, and why; `previous` is the lock before the removal."""
        from stubwright.project import vendoring
        from stubwright.project.files import layout

        if not self._stale:
            owned = Counter(
                (previous.find_owner(change.path), change.path.partition("/")[0]) for change in changes.changes
            )
            for (manifest, package), count in owned.items():
                why = "the runtime is not vendored" if manifest == vendoring.ENTRY else f"`{manifest}` no longer exists"
                self.say(f"{layout.show_path(output, package)}: {_count_files(count)} removed, because {why}")

    def report_strays(self, output: Path, changes: Changes, *, removed: bool) -> None:
        """Report generated files that do not belong to any manifest."""
        from stubwright.diagnostics import Diagnostic, Place
        from stubwright.project.files import layout

        by_package: dict[str, list[str]] = defaultdict(list)
        for change in changes.changes:
            by_package[change.path.partition("/")[0]].append(change.path)
        for package, paths in by_package.items():
            if removed:
                if not self._stale:
                    self.say(
                        f"{layout.show_path(output, package)}: {_count_files(len(paths))} removed, "
                        "which no manifest generates"
                    )
                continue
            more = f", nor do {len(paths) - _FEW} other files in its package" if len(paths) > _FEW else ""
            for path in paths[:_FEW]:
                message = f"this generated file does not belong to any manifest{more if path == paths[0] else ''}"
                at = Place(layout.show_path(output, path))
                self.add([Diagnostic("SW412", message, at, "delete it, or run `stubwright generate --force`")])

    def report_stale(self, output: Path, previous: Lock, changes: Changes) -> None:
        """Show the changes that a run would make to the files in the previous lock."""
        from stubwright.diagnostics import Diagnostic, Place, printers
        from stubwright.project import vendoring
        from stubwright.project.files import layout, lock

        missing: dict[str, list[str]] = defaultdict(list)
        for change in changes.changes:
            self._stale = True
            path = layout.show_path(output, change.path)
            if not change.path.startswith(vendoring.ENTRY):  # the vendored runtime needs no review
                self.say(printers.unified_diff.render(path, change.old, change.new))
            if change.old is None:
                missing[change.path.partition("/")[0]].append(path)
            else:
                state = "is no longer generated" if change.new is None else "is stale"
                self.add([Diagnostic("SW407", f"this file {state}", Place(path), _GENERATE)])
        is_listed = self._interrupted or _list_files(previous) == _list_files(changes.lock)
        if not changes.changes and not changes.diagnostics and not is_listed:
            self._stale = True
            at = Place(layout.show_path(output, lock.NAME))
            if (output / lock.NAME).exists():
                self.add([Diagnostic("SW407", "this file does not match the generated files", at, _GENERATE)])
            else:
                self.add([Diagnostic("SW407", "this file is missing", at, _GENERATE)])
        for package, paths in missing.items():
            if len(paths) <= _FEW:
                self.add([Diagnostic("SW407", "this file is missing", Place(path), _GENERATE) for path in paths])
            else:
                message = f"this file is missing, and others in `{layout.show_path(output, package)}`"
                self.add([Diagnostic("SW407", message, Place(paths[0]), _GENERATE)])

    def report_interrupted(self, output: Path) -> None:
        """Report that a previous run was killed before it finished writing."""
        from stubwright.diagnostics import Diagnostic, Place
        from stubwright.project.files import layout, lock

        self._stale = self._interrupted = True
        at = Place(layout.show_path(output, lock.NAME))
        self.add([Diagnostic("SW407", "a run that was writing here was killed before it finished", at, _GENERATE)])

    def close(self) -> int:
        """Print the collected diagnostics and return the exit status."""
        if self._diagnostics or self._style == "json":
            from stubwright.diagnostics import Span, printers
            from stubwright.project import config

            for diagnostic in self._diagnostics:
                if isinstance(diagnostic.at, Span) and Path(diagnostic.at.file).name == config.FILE:
                    from stubwright.compile.source import Document

                    file = diagnostic.at.file
                    self._documents[file] = Document(file, Path(file).read_text("utf-8", "replace"), None)
            if self._style == "text":
                print_painted(
                    lambda color: printers.text.render(self._diagnostics, self._documents, color=color), sys.stderr
                )
            else:
                printer = printers.json if self._style == "json" else printers.github
                write_out(printer.render(self._diagnostics, self._documents))
        return 1 if self.failed or (self._strict and self._diagnostics) else 0


def _list_files(lock: Lock) -> Mapping[str, Mapping[str, frozenset[str]]]:
    return {name: entry.files for name, entry in lock.manifests.items()}


def _count_files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"
