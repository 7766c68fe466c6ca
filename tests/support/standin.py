"""Stands in for an interpreter: has a process of `forked.py` run a program on the streams of this one, and ends as it.

    python -S -E standin.py SOCKET [-P] -m MODULE | -c PROGRAM | FILE [ARGUMENTS]

It starts in a hundredth of the time that the imports of a server take. Signals are passed on, and the program is killed
where this process is. It gets all open files, under their numbers. With any other option it becomes an interpreter.
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


def connected(where: str, command: Sequence[str], cwd: str, env: Mapping[str, str], files: Mapping[int, int]) -> Link:
    """A connection over which a command was asked for: takes numbers of signals, and gives the status at the end.

    `files` are open files by the numbers that they have for the command.
    """
    asked = json.dumps({"numbers": [*files], "command": command, "cwd": cwd, "env": dict(env)}).encode()
    link = socket.socket(socket.AF_UNIX)
    link.connect(where)
    socket.send_fds(link, [len(asked).to_bytes(4, "big")], [*files.values()])
    link.sendall(asked)
    return link


def status(link: Link) -> int:
    """The exit status of the command, negative for a signal, once it has ended."""
    with link, link.makefile() as answer:
        return int(answer.read())


def is_handed_on(number: int) -> bool:
    """Whether this is the number of an open file that a program would inherit."""
    with suppress(OSError):
        return os.get_inheritable(number)
    return False


def main() -> None:
    """Run the program, and end as it does."""
    if sys.argv[2].startswith("-") and sys.argv[2] not in _KNOWN:
        os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
    here = os.getcwd()  # noqa: PTH109 - pathlib takes longer to load than all the rest
    files = [number for number in range(_MOST) if is_handed_on(number)]
    link = connected(sys.argv[1], ["python", *sys.argv[2:]], here, os.environ, dict(zip(files, files, strict=True)))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # whoever reads what the program says is to see when it closes that
        os.dup2(nothing, stream)
    for number in _PASSED_ON:
        signal.signal(number, lambda sent, _: link.sendall(bytes([sent])))
    ended = status(link)
    if ended < 0:
        with suppress(OSError):  # nobody may say what SIGKILL does
            signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    os._exit(ended)


if __name__ == "__main__":
    main()
