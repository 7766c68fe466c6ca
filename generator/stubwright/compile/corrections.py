"""Applies the diagnostics' fixes to a manifest's files, in memory."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stubwright.compile import pipeline
from stubwright.diagnostics import Place
from stubwright.diagnostics.printers.findings import locate
from stubwright.diagnostics.suggestions import Advice, Correction, Insert, Rename, Requote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stubwright.compile.source import Document, Reader
    from stubwright.ir import Json

_PASSES: Final = 20
"""Maximum passes: a fix can reveal more mistakes."""

_PLAIN: Final = re.compile(r"(?!(?:true|false|null)$)[A-Za-z_$][\w.$?/-]*", re.IGNORECASE)
"""A scalar that is the same string with and without quotes in YAML."""

_FLOW: Final = re.compile(r"\s*:\s*(?:[&!]\S+\s+)*\{")
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _Edit:
    """A text replacement in a file, and the file, code and message of the diagnostic that it fixes."""

    file: str
    start: int
    end: int
    text: str
    fixes: tuple[str, str, str]


class _Overlay:
    def __init__(self, reader: Reader) -> None:
        self.old: dict[str, bytes] = {}
        self.new: dict[str, bytes] = {}
        self.glob = reader.glob
        self.is_within = reader.is_within
        self._reader = reader

    def read(self, path: str) -> bytes:
        if path not in self.new:
            self.old[path] = self.new[path] = self._reader.read(path)
        return self.new[path]


def correct(entry: str, reader: Reader, targets: Sequence[str] = ()) -> Mapping[str, tuple[bytes, bytes]]:
    """Correct a manifest's files. Return each changed file's old and new contents.

    Revert a fix if its diagnostic remains, or if the fix causes a diagnostic from an earlier stage than every
    diagnostic that it removes. A warning therefore never becomes an error.
    """
    files = _Overlay(reader)

    def check() -> pipeline.Result:
        return pipeline.compile_manifest(entry, files, targets=targets)

    def fixes(edits: Sequence[_Edit]) -> bool:
        unchanged = {**files.new}
        files.new |= _apply(edits, files.new)
        is_better = _is_better(_count(result), _count(check()), edits)
        files.new = unchanged
        return is_better

    for _ in range(_PASSES):
        result = check()
        edits = [*_find_edits(result, files.new)]
        if edits and not fixes(edits):
            edits = [edit for edit in edits if fixes([edit])]
            edits = edits if fixes(edits) else edits[:1]
        if not edits:
            break
        files.new |= _apply(edits, files.new)
    return {path: (files.old[path], new) for path, new in files.new.items() if new != files.old[path]}


def _count(result: pipeline.Result) -> Counter[tuple[str, str, str]]:
    findings = locate(result.diagnostics, result.documents)
    return Counter(
        (finding.span.file if finding.span else "", finding.diagnostic.code, finding.diagnostic.message)
        for finding in findings
    )


def _is_better(
    before: Counter[tuple[str, str, str]], after: Counter[tuple[str, str, str]], edits: Sequence[_Edit]
) -> bool:
    fixed = before - after
    # the third character of a code identifies the stage
    stage = min((code[2] for _, code, _ in fixed), default="0")
    return Counter(edit.fixes for edit in edits) <= fixed and all(code[2] >= stage for _, code, _ in after - before)


def _find_edits(result: pipeline.Result, files: Mapping[str, bytes]) -> Iterator[_Edit]:
    end: tuple[str, int] = "", 0
    for finding in locate(result.diagnostics, result.documents):
        span, diagnostic = finding.span, finding.diagnostic
        document = result.documents.get(span.file) if span else None
        if span is None or document is None or not isinstance(diagnostic.help, Advice):
            continue
        if files.get(span.file, b"").removeprefix(_BOM) != document.text.encode("utf-8", "surrogatepass"):
            continue
        start = document.lines.find_offset(span.line, span.column)
        token = document.text[start : start + span.end_column - span.column]
        correction = diagnostic.help.correction
        if isinstance(correction, Insert):
            edit = _insert(correction, document, diagnostic.at, start + len(token))
        else:
            text = _rewrite(correction, token)
            edit = None if text is None else (start, start + len(token), text)
        if edit is not None and (span.file, edit[0]) >= end:
            end = span.file, edit[1]
            yield _Edit(span.file, *edit, (span.file, diagnostic.code, diagnostic.message))


def _rewrite(correction: Correction, token: str) -> str | None:
    """Return the corrected scalar as source text, or None if the source has an unexpected form."""
    mark = token[0] if token[:1] in ("'", '"') and token[0] == token[-1] and len(token) > 1 else ""
    inner = token[1:-1] if mark else token
    match correction:
        case Rename(old, new) if inner == old and _PLAIN.fullmatch(new):
            return f"{mark}{new}{mark}"
        case Requote(True) if not mark and not re.search(r'[\\"]', inner):
            return f'"{inner}"'
        case Requote(False) if mark:
            return inner
        case _:
            return None


def _insert(correction: Insert, document: Document, at: object, after: int) -> tuple[int, int, str] | None:
    """Return an edit that adds a first entry to the mapping whose key ends at `after`, or None for unexpected text."""
    value = _get(document.value, at) if isinstance(at, Place) else None
    if not isinstance(value, dict) or not isinstance(at, Place):
        return None
    if found := _FLOW.match(document.text, after):
        mark = '"' if document.text[after - 1] == '"' else ""
        entry = f"{mark}{correction.key}{mark}: {mark}{correction.value}{mark}{', ' if value else ''}"
        return found.end(), found.end(), entry
    if not value:
        return None
    first = document.find_span((Place(at.file, at.pointer) / next(iter(value))).point_at_key())
    start = document.lines.find_offset(first.line, first.column)
    indent = document.text[start - first.column + 1 : start]
    newline = "\r\n" if "\r\n" in document.text else "\n"
    return None if indent.strip() else (start, start, f"{correction.key}: {correction.value}{newline}{indent}")


def _get(value: Json, at: Place) -> Json:
    for step in at.pointer:
        value = value[step]
    return value


def _apply(edits: Sequence[_Edit], files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    changed: dict[str, bytes] = {}
    for edit in reversed(edits):  # last first, since an edit shifts all later offsets
        data = changed.get(edit.file, files[edit.file])
        mark = _BOM if data.startswith(_BOM) else b""
        text = data.removeprefix(_BOM).decode()
        changed[edit.file] = mark + f"{text[: edit.start]}{edit.text}{text[edit.end :]}".encode()
    return changed
