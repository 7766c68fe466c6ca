"""Reads imported files, and defines import errors."""

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
    """A source cannot be imported; the message explains why and includes the source if `names_source` is true."""

    names_source = False


class DocumentError(SourceError):
    """A document cannot be imported; `diagnostics` show where, if known."""

    def __init__(
        self, message: str, diagnostics: Sequence[Diagnostic] = (), documents: Mapping[str, Document] | None = None
    ) -> None:
        """Initialize with a message, and the files that the diagnostics quote."""
        super().__init__(message)
        self.diagnostics = diagnostics
        self.documents = documents or {}


@dataclass(frozen=True, slots=True)
class SingleFileReader:
    """Reads a single file from memory."""

    path: str
    data: bytes

    def read(self, path: str) -> bytes:
        """Return the file's bytes. Raises FileNotFoundError for other paths."""
        if path != self.path:
            raise FileNotFoundError(path)
        return self.data

    def glob(self, _folder: str, _pattern: str) -> list[str]:
        """Return an empty list, since the only file is not in a folder."""
        return []

    def is_within(self, _path: str, _folder: str) -> bool:
        """Return True: the only file is always allowed."""
        return True


def read(path: str, reader: Reader, parse: Callable[[str], tuple[Json, list[Problem]]], wanted: str) -> Document:
    """Read a file and parse it with `parse`, which returns a value and any problems.

    `wanted` is the expected file type, for messages.

    Raises:
        DocumentError: The file cannot be read or parsed.
    """
    from stubwright.compile import source  # imported here, since commands that read nothing import the errors above

    try:
        data = reader.read(path)
    except OSError as error:
        diagnostic = source.report_unreadable(path, error)
        raise DocumentError(diagnostic.message, [diagnostic]) from error
    document, problems = source.read_document(path, data, parse, wanted)
    if problems:
        raise DocumentError(problems[0].message, problems, {path: document})
    return document
