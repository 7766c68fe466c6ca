"""Lines of standard input: from a pipe and from a file, no faster than they are taken."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stubwright_runtime.server.transports.stdio.wire import Line, read_lines

pytestmark = pytest.mark.anyio

LINE = b"x" * 9_999 + b"\n"
COUNT = 2_000


@contextmanager
def source(kind: str, folder: Path) -> Iterator[int]:
    """A descriptor that gives COUNT lines."""
    if kind == "file":
        (folder / "lines").write_bytes(LINE * COUNT)
        descriptor = os.open(folder / "lines", os.O_RDONLY)
        yield descriptor
    else:
        descriptor, sink = os.pipe()

        def write() -> None:
            with os.fdopen(sink, "wb") as file:
                for _ in range(COUNT):
                    file.write(LINE)

        threading.Thread(target=write, daemon=True).start()
        yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("kind", ["file", "pipe"])
async def test_no_more_is_read_than_is_taken(kind: str, tmp_path: Path) -> None:
    with source(kind, tmp_path) as descriptor:
        async with read_lines(descriptor, lambda _: False) as lines, asyncio.timeout(60):
            await asyncio.sleep(0.3)
            waiting = lines.ag_frame.f_locals["self"]._waiting  # type: ignore[attr-defined]
            assert 0 < len(waiting) < 80
            taken = [line async for line in lines]
    assert taken == [Line(LINE[:-1])] * COUNT


async def test_what_is_taken_at_once_does_not_wait(tmp_path: Path) -> None:
    taken: list[Line] = []

    def take(line: Line) -> bool:
        taken.append(line)
        return True

    with source("file", tmp_path) as descriptor:
        async with read_lines(descriptor, take) as lines, asyncio.timeout(60):
            assert [line async for line in lines] == []
    assert len(taken) == COUNT


async def test_a_file_is_read_no_further_when_the_reader_is_closed(tmp_path: Path) -> None:
    with source("file", tmp_path) as descriptor:
        async with read_lines(descriptor, lambda _: False) as lines:
            assert await anext(aiter(lines)) == Line(LINE[:-1])
        await asyncio.sleep(0.1)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) < len(LINE) * 200
