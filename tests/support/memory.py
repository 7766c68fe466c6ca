"""In-memory manifests, for tests of stages that do not use the disk."""

from __future__ import annotations

import fnmatch
import textwrap
from typing import TYPE_CHECKING

from stubwright.compile import source
from stubwright.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from stubwright.compile.source import Bundle


class Files:
    """A reader for in-memory texts, by path."""

    def __init__(self, **texts: str) -> None:
        self._texts = {path: textwrap.dedent(text) for path, text in texts.items()}

    def read(self, path: str) -> bytes:
        """Return the encoded text at a path."""
        if path not in self._texts:
            raise FileNotFoundError(2, "no such file", path)
        return self._texts[path].encode()

    def glob(self, folder: str, pattern: str) -> list[str]:
        """Return the matching paths below a folder."""
        return sorted(fnmatch.filter(self._texts, f"{folder}/{pattern}" if folder else pattern))

    def is_within(self, path: str, folder: str) -> bool:
        """Return whether a path starts with a folder. There are no links to resolve."""
        return path.startswith(folder)


def load(entry: str, **texts: str) -> Bundle:
    """Return the bundle of the manifest `entry`, which must be readable."""
    bundle, found = source.load(entry, Files(**texts))
    assert found == []
    assert bundle is not None
    return bundle


def shown(bundle: Bundle, diagnostics: list[Diagnostic]) -> list[str]:
    """Format diagnostics as `file:line:column code message (help)`."""
    lines = []
    for one in diagnostics:
        assert isinstance(one.at, Place)
        span = bundle.documents[one.at.file].find_span(one.at)
        lines.append(f"{span.file}:{span.line}:{span.column} {one.code} {one.message} ({one.help})")
    return lines
