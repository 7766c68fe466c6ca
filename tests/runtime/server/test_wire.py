"""Standard input with backpressure, and atomic lines on standard output."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from stubwright_runtime.server.transports.stdio.reader import Line, read_lines
from stubwright_runtime.server.transports.stdio.writer import MAX_UNREAD, Output

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


async def test_blank_lines_count_as_well() -> None:
    descriptor, sink = os.pipe()
    os.write(sink, b"\n" * 60_000)
    async with read_lines(descriptor, lambda _: False, end=lambda: None) as lines, asyncio.timeout(60):
        await asyncio.sleep(0.1)
        os.set_blocking(sink, False)
        written = os.write(sink, b"\n" * 60_000)
        await asyncio.sleep(0.1)
        assert os.write(sink, b"\n" * 65_536) + written < 120_000
        assert await anext(aiter(lines)) == Line(b"")
    os.close(descriptor)
    os.close(sink)


@pytest.mark.parametrize("kind", ["file", "pipe"])
async def test_no_more_is_read_than_is_taken(kind: str, tmp_path: Path) -> None:
    with source(kind, tmp_path) as descriptor:
        async with read_lines(descriptor, lambda _: False, end=lambda: None) as lines, asyncio.timeout(60):
            await asyncio.sleep(0.3)
            waiting = lines.ag_frame.f_locals["self"]._waiting  # type: ignore[attr-defined]
            assert 0 < len(waiting) < 120
            taken = [line async for line in lines]
    assert taken == [Line(LINE[:-1])] * COUNT


async def test_what_is_taken_at_once_does_not_wait(tmp_path: Path) -> None:
    taken: list[Line] = []

    def take(line: Line) -> bool:
        taken.append(line)
        return True

    with source("file", tmp_path) as descriptor:
        async with read_lines(descriptor, take, end=lambda: None) as lines, asyncio.timeout(60):
            assert [line async for line in lines] == []
    assert len(taken) == COUNT


async def test_a_file_is_read_no_further_when_the_reader_is_closed(tmp_path: Path) -> None:
    with source("file", tmp_path) as descriptor:
        async with read_lines(descriptor, lambda _: False, end=lambda: None) as lines:
            assert await anext(aiter(lines)) == Line(LINE[:-1])
        await asyncio.sleep(0.1)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) < len(LINE) * 200


@contextmanager
def output() -> Iterator[tuple[Output, BinaryIO, list[str]]]:
    """An output on a pipe, the pipe's other end, and a list that says when its reader is gone."""
    source, sink = os.pipe()
    told: list[str] = []
    written = Output(sink, lambda: told.append("gone"))
    with os.fdopen(source, "rb") as reader:
        yield written, reader, told
    written.close()
    os.close(sink)


async def test_a_line_is_written_to_its_end_though_its_sender_is_cancelled() -> None:
    lines = [character * 1_000_000 for character in (b"a", b"b", b"c")]
    with output() as (written, reader, _):
        senders = [asyncio.create_task(written.send(line)) for line in lines]
        await asyncio.sleep(0)
        for sender in senders[:2]:  # the first has begun
            sender.cancel()
        read = await asyncio.to_thread(lambda: [reader.readline(), reader.readline()])
        await senders[2]
        assert [sender.cancelled() for sender in senders] == [True, True, False]
    assert read == [lines[0] + b"\n", lines[2] + b"\n"]


async def test_it_is_full_until_enough_is_read() -> None:
    with output() as (written, reader, _):
        sender = asyncio.create_task(written.send(b"x" * 2 * MAX_UNREAD))
        await asyncio.sleep(0)
        assert written.is_full
        read = 0
        while written.is_full:
            part, _ = await asyncio.gather(asyncio.to_thread(reader.read, 2**16), written.wait_for_change())
            read += len(part)
        assert not sender.done()
        await asyncio.to_thread(reader.read, 2 * MAX_UNREAD + 1 - read)
        await sender


async def test_all_senders_go_on_when_the_reader_is_gone() -> None:
    with output() as (written, reader, told):
        senders = [asyncio.create_task(written.send(LINE * 100)) for _ in range(3)]
        await asyncio.sleep(0)
        reader.close()
        async with asyncio.timeout(60):
            await asyncio.gather(*senders)
            await written.send(LINE)
        assert not written.is_full
    assert told == ["gone"]
