"""Circles of references: what lies in one is in memory until Python next looks for them."""

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


def no_requests_left() -> AbstractContextManager[None]:
    """Refuse that any request of what is done here is left in a circle, with its message."""
    return none_left(*REQUESTS)


@contextmanager
def none_left(*kinds: type) -> Iterator[None]:
    """Refuse that any object of these kinds is left in a circle by what is done here."""
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
