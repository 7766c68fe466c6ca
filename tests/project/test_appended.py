"""Lines that several processes append to a file, also if the disk is full in the middle of a line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from stubwright.project.files.append_only import AppendedFile


def _cut(monkeypatch: pytest.MonkeyPatch, after: Callable[[], object]) -> None:
    """Stop the next write after four bytes, and make the following write fail."""
    write, calls = os.write, iter([True])

    def cut(descriptor: int, data: bytes) -> int:
        if next(calls, False):
            return write(descriptor, data[:4])
        after()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", cut)


def test_a_line_that_cannot_be_written_whole_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    file = AppendedFile(path)
    file.append(b"the first\n")
    with monkeypatch.context() as patch:
        _cut(patch, lambda: None)
        with pytest.raises(OSError, match="No space"):
            file.append(b"the second\n")
    file.append(b"the third\n")
    file.close()
    assert path.read_bytes() == b"the first\nthe third\n"


def test_a_line_that_another_process_appended_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    file = AppendedFile(path)

    def append_elsewhere() -> None:
        with path.open("ab", buffering=0) as other:
            other.write(b"of another\n")

    with monkeypatch.context() as patch:
        _cut(patch, append_elsewhere)
        with pytest.raises(OSError, match="No space"):
            file.append(b"cut off\n")
    file.close()
    assert path.read_bytes() == b"cut of another\n"
