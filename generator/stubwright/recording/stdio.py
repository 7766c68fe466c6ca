"""A proxy between a client on standard input and output and a command."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from stubwright.mock.server import forward_signals
from stubwright.recording.copies import LARGEST, Lines, describe_excess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stubwright.recording.recorder import Recorder, Sender

_INPUT: Final = 0
_OUTPUT: Final = 1
_CHUNK: Final = 64 * 1024
_PATIENCE: Final = 5.0
"""The time in seconds for the command to exit after its input is closed, and again after SIGTERM."""

_LAST: Final = 2.0
"""The time in seconds to wait for output after the command exits, since child processes can keep it open."""


def run(
    words: Sequence[str], environment: Mapping[str, str], begin: Callable[[], Recorder | None]
) -> tuple[Recorder | None, int]:
    """Run a command between this process's standard input and output; return the recorder and the exit status.

    Args:
        words: The command and its arguments.
        environment: Its environment variables.
        begin: Called once the command has started; returns the recorder for all lines, or None to stop the command.

    Raises:
        OSError: The command cannot be started.
        ValueError: The command contains a NUL byte.
    """
    with forward_signals() as pass_on:
        program = shutil.which(words[0], path=environment.get("PATH")) or words[0]
        # A separate session, so that the command receives Ctrl-C only once, from this process.
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            [program, *words[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            bufsize=0,
            start_new_session=True,
        )
        pass_on(process)
        recorder = begin()
        if recorder is None:
            process.kill()
            return None, process.wait()
        sink, source = process.stdin, process.stdout
        if sink is None or source is None:
            raise AssertionError("both are pipes")

        def close() -> None:
            with suppress(OSError):
                sink.close()
            if not _has_ended(process):
                process.terminate()
                if not _has_ended(process):
                    process.kill()

        client, server = _make_lines(recorder, "client"), _make_lines(recorder, "server")
        reading = _RelayThread(_INPUT, sink.fileno(), client, close)
        writing = _RelayThread(source.fileno(), _OUTPUT, server, close)
        reading.start()
        writing.start()
        status = process.wait()
    writing.finish()  # another signal stops it
    # Python reports a fatal signal as a negative status, a shell as 128 plus its number.
    return recorder, status if status >= 0 else 128 - status


class _RelayThread(threading.Thread):
    """Relays bytes until one end is closed, and then stops the command if the command is still running."""

    def __init__(self, source: int, sink: int, lines: Lines, close: Callable[[], None]) -> None:
        """Create a thread that relays bytes from `source` to `sink` and `lines`. `close` stops the command."""
        super().__init__(daemon=True)
        self._source = source
        self._sink = sink
        self._lines = lines
        self._close = close
        self._steps = 0  # an even number while it waits for bytes, odd while it relays

    def run(self) -> None:
        with suppress(OSError):
            while data := os.read(self._source, _CHUNK):
                self._steps += 1
                self._lines.feed(data)
                while data:
                    data = data[os.write(self._sink, data) :]  # a full pipe accepts only part of the data
                self._steps += 1
        self._steps += 1
        self._lines.end()
        self._close()

    def finish(self) -> None:
        """Wait until all bytes are relayed. Recording a large message takes time."""
        while self.is_alive():
            steps = self._steps
            self.join(_LAST)
            if steps == self._steps and steps % 2 == 0:
                return


def _make_lines(recorder: Recorder, sender: Sender) -> Lines:
    return Lines(
        lambda line: recorder.record(sender, line),
        lambda size: recorder.add_note(sender, unreadable=size, why=describe_excess(LARGEST)),
    )


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)
    return process.returncode is not None
