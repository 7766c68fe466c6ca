"""A run's diagnostics with their spans, stored for later runs on the same input."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from stubwright.compile.syntax.positions import Lines
from stubwright.diagnostics import Diagnostic, Place, Pointer, Span

if TYPE_CHECKING:
    from stubwright.ir import Json
    from stubwright.project.files.disk import Disk

_EMIT = ("emit",)


class Text(Protocol):
    """A file that diagnostics refer to, such as a `compile.source.Document`."""

    @property
    def text(self) -> str:
        """The document's text."""
        ...

    @property
    def value(self) -> Json:
        """The document's parsed value."""
        ...

    @property
    def lines(self) -> Lines:
        """The lines of the text."""
        ...

    def find_span(self, place: Place) -> Span:
        """Return the span of a location."""
        ...


@dataclass(frozen=True)
class _UnparsedText:
    """An unparsed file: only the locations in `spans` are known."""

    text: str
    value: Json = None
    spans: Mapping[Pointer, Span] = field(default_factory=dict)

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text)

    def find_span(self, place: Place) -> Span:
        return self.spans[place.pointer]


@dataclass(frozen=True, slots=True)
class SavedFindings:
    """A run's diagnostics for one manifest, with spans.

    Attributes:
        path: The manifest's path, as diagnostics show it.
        package: The name of the manifest's package.
        diagnostics: The diagnostics.
        files: The files that the diagnostics quote.
        emit: The span of `emit` if the manifest generates only a client.
    """

    path: str
    package: str
    diagnostics: tuple[Diagnostic, ...] = ()
    files: tuple[str, ...] = ()
    emit: Span | None = None

    @classmethod
    def locate(
        cls, path: str, package: str, diagnostics: Iterable[Diagnostic], documents: Mapping[str, Text], reader: Disk
    ) -> SavedFindings | None:
        """Find the spans of diagnostics; return None if a later run could not reproduce them from the stored data."""
        from stubwright.diagnostics.printers import findings

        entry = documents.get(posixpath.normpath(path))
        is_client = entry is not None and isinstance(entry.value, dict) and entry.value.get("emit") == ["client"]
        located = [replace(each, at=findings.find_span(each, documents)) for each in diagnostics]
        if not located:
            return cls(path, package)
        emit = entry.find_span(Place(posixpath.normpath(path), _EMIT)) if entry is not None and is_client else None
        files = {each.at.file for each in located if isinstance(each.at, Span)} & documents.keys()
        kept = cls(path, package, tuple(located), tuple(sorted(files)), emit)
        texts = kept.read(reader)
        is_same = texts is not None and all(texts[file].text == documents[file].text for file in files)
        return kept if is_same and cls.load(kept.dump()) == kept else None

    def read(self, reader: Disk) -> dict[str, Text] | None:
        """Return the files that the diagnostics quote, by name; None if a file cannot be read."""
        entry = posixpath.normpath(self.path)
        try:
            texts: dict[str, Text] = {file: _UnparsedText(reader.read(file).decode("utf-8-sig")) for file in self.files}
            if self.emit is not None:
                text = reader.read(entry).decode("utf-8-sig")
                texts[entry] = _UnparsedText(text, {"emit": ["client"]}, {_EMIT: self.emit})
        except (OSError, UnicodeDecodeError):
            return None
        return texts

    def dump(self) -> list[Any]:
        """Return the findings as a JSON value."""
        rows = [[each.code, each.message, each.help, _dump(each.at)] for each in self.diagnostics]
        return [self.path, self.package, rows, [*self.files], _dump(self.emit)]

    @classmethod
    def load(cls, value: Any) -> SavedFindings:
        """Parse the findings from `dump`'s JSON value. Raises ValueError, TypeError or KeyError."""
        path, package, rows, files, emit = value
        diagnostics = tuple(Diagnostic(code, text, _load_span(at), help_) for code, text, help_, at in rows)
        return cls(path, package, diagnostics, tuple(files), _load_span(emit))


def _dump(at: Place | Span | None) -> list[str | int] | None:
    return [at.file, at.line, at.column, at.end_line, at.end_column] if isinstance(at, Span) else None


def _load_span(value: Any) -> Span | None:
    return None if value is None else Span(*value)
