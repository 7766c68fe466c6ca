"""Shuts down in-process servers immediately in files that use the fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from socketserver import BaseServer
from typing import Any

import pytest
import uvicorn.server

from stubwright_runtime.server.transports.http.listener import graceful_shutdown

_LOOK = 0.01
"""Seconds between two checks for a shutdown."""


class _PromptAsyncio:
    """uvicorn's view of `asyncio`, with shorter sleeps. uvicorn checks for a shutdown ten times per second."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, _LOOK))


@pytest.fixture(scope="module", autouse=True)
def ends_are_prompt() -> Iterator[None]:
    """Do not wait for clients that could still send, because tests' clients are in the same process.

    `test_graceful_shutdown.py` tests the waiting time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graceful_shutdown, "_LATE", 0.0)
        patch.setattr(graceful_shutdown, "_LATEST", 0.0)
        patch.setattr(uvicorn.server, "asyncio", _PromptAsyncio())
        patch.setattr(BaseServer.serve_forever, "__defaults__", (_LOOK,))
        yield
