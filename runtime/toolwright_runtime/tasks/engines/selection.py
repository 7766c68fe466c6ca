"""The engines, by the stores that they go with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...state.store import Store, StoreConfigurationError
from .memory import MemoryEngine

if TYPE_CHECKING:
    from .base import Engine


def engine_for(store: Store) -> Engine:
    """The engine for tasks that a store keeps.

    Raises:
        Unfit: There is none.
    """
    if not store.is_shared:
        return MemoryEngine()
    try:
        from .redis import StreamEngine
    except ImportError as error:
        raise StoreConfigurationError(
            f"tasks in Redis need the packages taskiq and taskiq-redis ({error.name} is missing)"
        ) from None
    return StreamEngine(store)
