"""The engines, by the stores that they go with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...extras import Extra
from ...state.store import Store
from .memory import MemoryEngine

if TYPE_CHECKING:
    from .base import Engine


def choose_engine(store: Store) -> Engine:
    """Return the engine for tasks that a store keeps.

    Raises:
        MissingExtraError: What it needs is not installed.
    """
    if not store.is_shared:
        return MemoryEngine()
    with Extra("redis", "a server with tasks whose state is in Redis"):
        from .redis import StreamEngine
    return StreamEngine(store)
