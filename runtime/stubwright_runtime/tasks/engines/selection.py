"""Selects the task engine: the user's, or the default for the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...extras import Extra
from ...state.store import Store, StoreConfigurationError
from .memory import MemoryEngine

if TYPE_CHECKING:
    from ...server.core.task_engine import TaskEngine


def choose_engine(store: Store, engine: TaskEngine | None = None) -> TaskEngine:
    """Return `engine`, or the store's default if it is `None`.

    Raises:
        MissingExtraError: A required package is not installed.
        StoreConfigurationError: An engine was passed for a store that is not shared.
    """
    if engine is not None:
        if not store.is_shared:
            raise StoreConfigurationError("a task engine requires a shared store; use redis://HOST:PORT")
        return engine
    if not store.is_shared:
        return MemoryEngine()
    with Extra("redis", "a server with tasks and state in Redis"):
        from .redis import StreamEngine
    return StreamEngine(store)
