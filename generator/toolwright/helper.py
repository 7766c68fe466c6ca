"""A second process that makes units, and gets ready for that while the first one still reads and checks.

To load the generator of models takes longer than all the rest of a run in which little has changed. What it makes is
what `units.make` makes; where it fails, the first process makes the same again, and meets the same mistake.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.units import Unit

    Tools: TypeAlias = Sequence[ir.Tool]
    Shared: TypeAlias = Sequence[ir.SharedSchema]


class Helper:
    """A process that waits for work. It ends with the process that started it, at the latest."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        self._process = Process(target=_serve, args=(theirs, self._connection), daemon=True)
        self._process.start()
        theirs.close()

    def start(self, tools: Tools, shared: Shared, source: str, command: str) -> Callable[[], list[Unit]]:
        """Begin with the units of `tools`; what is given waits for them. One job at a time."""
        with suppress(OSError):  # it has died, which shows when it is asked for the result
            self._connection.send((tools, shared, source, command))

        def result() -> list[Unit]:
            try:
                made: list[Unit] = self._connection.recv()
            except (EOFError, OSError):
                from toolwright import units

                return units.make(tools, shared, source, command)
            return made

        return result


def worthwhile() -> bool:
    """Whether a helper can save time: there is a processor for it, and something to load."""
    return (os.cpu_count() or 1) > 1 and "datamodel_code_generator" not in sys.modules


def _serve(connection: Connection, other: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    other.close()  # else this process would keep its own connection open when the first one is gone
    with suppress(Exception):
        from toolwright import models, units

        models.load()
        while True:
            connection.send(units.make(*connection.recv()))
