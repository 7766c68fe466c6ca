"""Detects reference cycles, whose objects stay in memory until the next garbage collection."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from stubwright_runtime.server.core.request import Request
from stubwright_runtime.server.features.context import Context
from stubwright_runtime.server.transports.channel import ClientChannel

REQUESTS: Final = (ClientChannel, Context, Request)


def no_request_cycles() -> AbstractContextManager[None]:
    """Fail if the block leaves a request in a reference cycle, which would retain its message."""
    return no_cycles(*REQUESTS)


@contextmanager
def no_cycles(*kinds: type) -> Iterator[None]:
    """Fail if the block leaves objects of these classes in a reference cycle."""
    gc.collect()
    gc.disable()
    try:
        yield
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = Counter(type(each).__name__ for each in gc.garbage if isinstance(each, kinds))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left
