"""The engines, by the stores that they go with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..state.store import Store, Unfit
from .memory import MemoryEngine

if TYPE_CHECKING:
    from .engine import Engine


def engine_for(store: Store) -> Engine:
    """The engine for tasks that a store keeps.

    Raises:
        Unfit: There is none.
    """
    if not store.is_shared:
        return MemoryEngine()
    raise Unfit(f"tasks cannot be kept at {store.url} yet; the tools with `taskSupport` need memory://")
