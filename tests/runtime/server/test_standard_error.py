"""The log of a process whose standard error may be unread."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import ROOT

from stubwright_runtime.observability import logs
from stubwright_runtime.observability.standard_error import BackgroundStream

PROGRAM = """
import logging, sys
from stubwright_runtime.observability.logs import set_up
set_up("info")
log = logging.getLogger("sample")
for number in range(int(sys.argv[1])):
    log.info("%05d %s", number, "x" * 100)
print("done", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe's ends for reading and writing."""
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):  # a test has closed it
            os.close(end)


PRINTING = """
import os, sys
from stubwright_runtime.observability.logs import set_up
from stubwright_runtime.server.transports.stdio.wire import claim_stdio
set_up("info")
with claim_stdio() as held:
    for number in range(int(sys.argv[1])):
        print("a line of handlers:", f"{number:05}", "x" * 100, file=(sys.stdout, sys.stderr)[number % 2])
    os.write(held.sink, b"done\\n")
sys.stdin.read()
"""


def _start(lines: int, program: str = PROGRAM) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime")}
    return subprocess.Popen(
        [sys.executable, "-c", program, str(lines)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )


@pytest.mark.parametrize("program", [PROGRAM, PRINTING], ids=["log", "print"])
def test_a_process_whose_standard_error_is_not_read_goes_on_and_ends(program: str) -> None:
    with _start(20_000, program) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"done\n"
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize("program", [PROGRAM, PRINTING], ids=["log", "print"])
def test_a_reader_gets_every_line_in_order(program: str) -> None:
    with _start(2_000, program) as process:
        _, errors = process.communicate(b"", 60)
    assert [int(line.split()[4]) for line in errors.splitlines()] == [*range(2_000)]


def test_lost_lines_are_counted_where_they_were(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    stream = BackgroundStream(writing, most=1_000)
    line = "x" * 99 + "\n"
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"." * 4096)
    for _ in range(13):
        stream.write(line)
    assert not stream.drain(0)
    os.set_blocking(reading, False)
    read = b""
    while not stream.drain(0.01):
        with suppress(BlockingIOError):
            read += os.read(reading, 1 << 20)
    stream.write("last\n")
    assert stream.drain(60)
    read += os.read(reading, 1 << 20)
    told = read.lstrip(b".").decode().splitlines(keepends=True)
    assert told == [line] * 10 + ["… 3 log lines lost: standard error was not read\n", "last\n"]


def test_a_closed_reader_is_no_error(pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]) -> None:
    reading, writing = pipe
    os.close(reading)
    handler = logging.StreamHandler(BackgroundStream(writing))
    handler.emit(logging.makeLogRecord({"msg": "lost"}))
    assert handler.stream.drain(60)
    handler.emit(logging.makeLogRecord({"msg": "lost"}))
    assert capsys.readouterr().err == ""


def test_a_forked_process_logs_too(tmp_path: Path) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    program = (
        PROGRAM.split("for number")[0]
        + "import os\nlog.info('parent')\nif not os.fork():\n    log.info('child')\nelse:\n    os.wait()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True, timeout=60
    )
    assert sorted(line.split()[-1] for line in done.stderr.splitlines()) == ["child", "parent"]


def test_a_last_line_comes_after_the_log(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    _, writing = pipe
    drained = list[float]()
    handler = logs._Handler(BackgroundStream(writing))
    monkeypatch.setattr(BackgroundStream, "drain", lambda _, seconds: drained.append(seconds))
    logging.getLogger().addHandler(handler)
    try:
        logs.drain_log()
    finally:
        logging.getLogger().removeHandler(handler)
    assert drained == [1.0]
