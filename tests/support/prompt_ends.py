"""Servers in the process of a test end as soon as they are asked to, in files that name the fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from socketserver import BaseServer
from typing import Any

import pytest
import uvicorn.server

from stubwright_runtime.server.transports.http.listener import graceful_shutdown

_LOOK = 0.01
"""Seconds between two looks at whether a server is to end."""


class _PromptAsyncio:
    """The module as uvicorn's server sees it, which otherwise looks ten times a second at whether it is to end."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, _LOOK))


@pytest.fixture(scope="module", autouse=True)
def ends_are_prompt() -> Iterator[None]:
    """Do not wait for clients that could still send something: those of tests are in the same process.

    How long a server waits for them is a matter of `test_graceful_shutdown.py`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graceful_shutdown, "_LATE", 0.0)
        patch.setattr(graceful_shutdown, "_LATEST", 0.0)
        patch.setattr(uvicorn.server, "asyncio", _PromptAsyncio())
        patch.setattr(BaseServer.serve_forever, "__defaults__", (_LOOK,))
        yield
