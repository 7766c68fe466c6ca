"""A script that runs a command, and notes how it ended, which the SDK's transport does not tell.

    python -I child.py REPORT COMMAND ARGUMENTS…

It gives the command its own standard streams, and writes its exit status into the file REPORT: the negative number of a
signal that ended it, or why it could not be started. Of toolwright it imports nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def main(report: str, *command: str) -> int:
    """Run the command; its exit status, as a shell has it."""
    try:
        process = subprocess.Popen(command)  # noqa: S603 - what the user asked to start
    except OSError as error:
        Path(report).write_text(error.strerror or str(error), "utf-8")
        return 127
    with Path(os.devnull).open("r+b") as nothing:  # so that these streams end where the command ends or closes them
        for stream in (0, 1):
            os.dup2(nothing.fileno(), stream)
    status = process.wait()
    Path(report).write_text(str(status), "utf-8")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
