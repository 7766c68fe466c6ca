"""The file that is imported, read and parsed, and the errors of sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stubwright.compile.source import Document, Reader
    from stubwright.compile.syntax.positions import Problem
    from stubwright.diagnostics import Diagnostic
    from stubwright.ir import Json


class SourceError(ValueError):
    """A source cannot be imported; the message explains why, for people.

    `names_source` specifies whether the message names the source.
    """

    names_source = False


class DocumentError(SourceError):
    """The document cannot be imported; the message explains why, and `diagnostics` show where, if that is known."""

    def __init__(
        self, message: str, diagnostics: Sequence[Diagnostic] = (), documents: Mapping[str, Document] | None = None
    ) -> None:
        """Say what is wrong."""
        super().__init__(message)
        self.diagnostics = diagnostics
        self.documents = documents or {}


@dataclass(frozen=True, slots=True)
class SingleFileReader:
    """A reader of one document without other files."""

    path: str
    data: bytes

    def read(self, path: str) -> bytes:
        """Return the document's bytes. Raises FileNotFoundError for any other path."""
        if path != self.path:
            raise FileNotFoundError(path)
        return self.data

    def glob(self, _folder: str, _pattern: str) -> list[str]:
        """Return no files."""
        return []

    def is_within(self, _path: str, _folder: str) -> bool:
        """There are no links."""
        return True


def read(path: str, reader: Reader, parse: Callable[[str], tuple[Json, list[Problem]]], wanted: str) -> Document:
    """Read a file.

    Args:
        path: The file.
        reader: The reader of files.
        parse: Gives the value of its text, or its problems.
        wanted: The expected kind of file, for people.

    Raises:
        DocumentError: It cannot be read or parsed.
    """
    from stubwright.compile import source  # here, since commands that read nothing know the errors above

    try:
        data = reader.read(path)
    except OSError as error:
        diagnostic = source.report_unreadable(path, error)
        raise DocumentError(diagnostic.message, [diagnostic]) from error
    document, problems = source.read_document(path, data, parse, wanted)
    if problems:
        raise DocumentError(problems[0].message, problems, {path: document})
    return document
