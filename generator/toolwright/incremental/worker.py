"""A second process that makes models, and gets ready for that while the first one still reads and checks.

To load the generator of models takes longer than all the rest of a run in which little has changed. Where the second
process fails, the first one does the same again, and meets the same mistake.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Helper:
    """A process that does one job at a time: ask for the result before the next is started."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        self._process = Process(target=_serve, args=(theirs, self._connection), daemon=True)
        self._process.start()
        theirs.close()

    def start(self, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
        """Begin with `make(…)`, which depends on its arguments alone; what is given waits for its result."""
        with suppress(OSError):  # it has died, which shows when it is asked for the result
            self._connection.send((make, args, kwargs))

        def result() -> T:
            try:
                made: T = self._connection.recv()
            except (EOFError, OSError):
                return make(*args, **kwargs)
            return made

        return result

    @property
    def alive(self) -> bool:
        """Whether it can still be given work."""
        return self._process.is_alive()

    def stop(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.join()


def worthwhile() -> bool:
    """Whether a helper can save time: there is a processor for it, and something to load."""
    return (os.cpu_count() or 1) > 1 and "datamodel_code_generator" not in sys.modules


def _serve(connection: Connection, other: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    other.close()  # else this process would keep its own connection open when the first one is gone
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # they take a look at all that is installed
    with suppress(Exception):
        from toolwright.codegen import datamodel

        datamodel.load()
        while True:
            make, args, kwargs = connection.recv()
            connection.send(make(*args, **kwargs))
