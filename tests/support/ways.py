"""The ways to a server in this process: over HTTP, by lines as over stdio, and through the SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import ModuleType
from typing import TypeAlias

import pytest

from serving import asgi
from task_wire import Wire, in_memory, over_http

Opening: TypeAlias = Callable[[ModuleType, object, str], AbstractAsyncContextManager[Wire]]
"""Opens a client of a package with handlers, with a revision."""


@asynccontextmanager
async def by_http(package: ModuleType, handlers: object, revision: str) -> AsyncIterator[Wire]:
    with asgi(package.asgi_app(handlers)) as url:
        async with over_http(f"{url}/mcp", revision, {}) as wire:
            yield wire


@asynccontextmanager
async def by_lines(package: ModuleType, handlers: object, revision: str) -> AsyncIterator[Wire]:
    async with in_memory(package.build_server(handlers), revision, {}) as wire:
        yield wire


REVISIONS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
WAYS = pytest.mark.parametrize("opened", [by_http, by_lines])
