"""Disables `breakpoint()` in servers over stdio, where the debugger would read the client's messages.

Other debuggers, set with `PYTHONBREAKPOINT` or `sys.breakpointhook`, remain enabled.
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
    "breakpoint() was ignored, because standard input carries MCP messages: use `stubwright dev` in a terminal, "
    "or start the server with --debug-port 5678, and attach a debugger"
)


@contextmanager
def ignore_breakpoints() -> Generator[None, None, None]:
    """Log a warning instead of stopping at `breakpoint()` during the block."""
    if sys.breakpointhook is not sys.__breakpointhook__ or os.environ.get("PYTHONBREAKPOINT"):
        yield
        return
    sys.breakpointhook = _warn
    try:
        yield
    finally:
        sys.breakpointhook = sys.__breakpointhook__


def _warn(*_: object, **__: object) -> None:
    frame = sys._getframe(1)
    log().warning("%s:%d: %s", frame.f_code.co_filename, frame.f_lineno, _HINT)
