"""The event loop of a server process, which does not wait for tasks that ignore their cancellation."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import TYPE_CHECKING, Any

import pytest

from stubwright_runtime.server.execution import event_loop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine


async def exit_in_a_task() -> None:
    async def ignore_cancellation() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    async def leave() -> None:
        sys.exit(7)

    await asyncio.gather(ignore_cancellation(), leave())


async def exit_with_an_open_generator() -> None:
    async def generate() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            await asyncio.sleep(60)

    generator = generate()
    await anext(generator)
    sys.exit(7)


@pytest.mark.parametrize("main", [exit_in_a_task, exit_with_an_open_generator])
def test_an_exit_waits_neither_for_tasks_nor_for_generators(
    main: Callable[[], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_loop, "CANCEL_TIMEOUT", 0.01)
    monkeypatch.setattr(event_loop, "ABANDONED", abandoned := set[asyncio.Task[Any]]())
    loop = asyncio.new_event_loop()
    with pytest.raises(SystemExit, match="7"):
        event_loop.run_loop(main(), lambda: loop)
    assert (len(abandoned), loop.is_closed()) == (1, True)
    abandoned.clear()
    gc.collect()  # asyncio logs the unfinished tasks here, rather than during another test
