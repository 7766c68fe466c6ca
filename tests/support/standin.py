"""Runs a program as an interpreter does, but in a process of `forked.py` with this process's streams.

    python -S -E standin.py SOCKET [-P] -m MODULE | -c PROGRAM | FILE [ARGUMENTS]

Starts in a hundredth of the time of a server's imports. Forwards signals, and kills the program if this process is
killed. The program inherits all open files under their numbers. With any other option, it executes an interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

Link = socket.socket

_MOST = 100
_KNOWN = ("-P", "-m", "-c")
_PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def connect(where: str, command: Sequence[str], cwd: str, env: Mapping[str, str], files: Mapping[int, int]) -> Link:
    """Request a command over a connection, which carries signal numbers to it and its exit status back.

    `files` are open files by the numbers that they have for the command.
    """
    asked = json.dumps({"numbers": [*files], "command": command, "cwd": cwd, "env": dict(env)}).encode()
    link = socket.socket(socket.AF_UNIX)
    link.connect(where)
    socket.send_fds(link, [len(asked).to_bytes(4, "big")], [*files.values()])
    link.sendall(asked)
    return link


def status(link: Link) -> int:
    """Wait for the command, and return its exit status, which is negative for a signal."""
    with link, link.makefile() as answer:
        return int(answer.read())


def is_handed_on(number: int) -> bool:
    """Return whether this is the number of an open file that a program would inherit."""
    with suppress(OSError):
        return os.get_inheritable(number)
    return False


def main() -> None:
    """Run the program, and exit with its status."""
    if sys.argv[2].startswith("-") and sys.argv[2] not in _KNOWN:
        os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
    here = os.getcwd()  # noqa: PTH109 - pathlib takes longer to load than all other modules
    files = [number for number in range(_MOST) if is_handed_on(number)]
    link = connect(sys.argv[1], ["python", *sys.argv[2:]], here, os.environ, dict(zip(files, files, strict=True)))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # readers must see the end of these streams when the program closes them
        os.dup2(nothing, stream)
    for number in _PASSED_ON:
        signal.signal(number, lambda sent, _: link.sendall(bytes([sent])))
    ended = status(link)
    if ended < 0:
        with suppress(OSError):  # SIGKILL cannot have a handler
            signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    os._exit(ended)


if __name__ == "__main__":
    main()
