"""Circles of references: what lies in one is in memory until Python next looks for them."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from stubwright_runtime.server.direct.answers import DirectExchange
from stubwright_runtime.server.direct.runs import Run


@contextmanager
def no_requests_left() -> Iterator[None]:
    """Refuse that any request of what is done here is left in a circle, with its message."""
    gc.collect()
    gc.disable()
    try:
        yield
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = Counter(type(each).__name__ for each in gc.garbage if isinstance(each, DirectExchange | Run))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left
