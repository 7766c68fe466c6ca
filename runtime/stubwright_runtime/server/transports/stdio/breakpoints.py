"""`breakpoint()` in a server on standard input, where a debugger would read the client's messages.

A debugger that a user set up by other means stays.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ....observability.logs import log

if TYPE_CHECKING:
    from collections.abc import Generator

_HINT: Final = (
    "breakpoint() is passed over, since standard input belongs to the MCP client: use `stubwright dev` in a terminal, "
    "or start the server with --debug-port 5678, and attach a debugger"
)


@contextmanager
def pass_over() -> Generator[None, None, None]:
    """Pass over calls of `breakpoint()` until the end of the block."""
    if sys.breakpointhook is not sys.__breakpointhook__ or os.environ.get("PYTHONBREAKPOINT"):
        yield
        return
    sys.breakpointhook = _pass_over
    try:
        yield
    finally:
        sys.breakpointhook = sys.__breakpointhook__


def _pass_over(*_: object, **__: object) -> None:
    frame = sys._getframe(1)
    log().warning("%s:%d: %s", frame.f_code.co_filename, frame.f_lineno, _HINT)
