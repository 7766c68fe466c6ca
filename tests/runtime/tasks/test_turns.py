"""The order in which tasks begin."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress

import pytest

from stubwright_runtime.tasks.engines.turns import Turns

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class _Line:
    """Tasks that wait for their turns, and the names of those already begun."""

    def __init__(self, slots: float) -> None:
        self.turns, self.begun = Turns(slots), list[str]()
        self.waiting: dict[str, asyncio.Task[bool]] = {}

    async def add(self, name: str, tool: str, caller: str = "ann", places: float = math.inf) -> None:
        async def wait() -> bool:
            is_turn = await self.turns.acquire(tool, caller, places)
            if is_turn:
                self.begun.append(name)
            return is_turn

        self.waiting[name] = asyncio.create_task(wait())
        await asyncio.sleep(0)

    async def end(self, tool: str) -> None:
        """End a task of a tool."""
        self.turns.release(tool)
        for _ in range(3):
            await asyncio.sleep(0)


async def test_a_task_that_cannot_run_holds_no_slot() -> None:
    line = _Line(2)
    for number in range(100):
        await line.add(f"narrow {number}", "narrow", places=1)
    await line.add("quick", "quick")
    await line.end("quick")
    assert line.begun == ["narrow 0", "quick"]
    await line.end("narrow")
    assert line.begun == ["narrow 0", "quick", "narrow 1"]


async def test_tools_and_their_callers_take_turns() -> None:
    line = _Line(1)
    for number in range(3):
        await line.add(f"film ann {number}", "film")
    await line.add("film bob", "film", "bob")
    await line.add("print ann", "print")
    for tool in ("film", "film", "print", "film"):
        await line.end(tool)
    assert line.begun == ["film ann 0", "film ann 1", "print ann", "film bob", "film ann 2"]


async def test_a_task_that_no_longer_waits_gets_no_slot() -> None:
    line = _Line(1)
    await line.add("first", "film")
    await line.add("cancelled", "film")
    await line.add("last", "film")
    line.waiting["cancelled"].cancel()
    await line.end("film")
    assert line.begun == ["first", "last"]


async def test_a_slot_that_came_with_a_cancellation_is_free_again() -> None:
    line = _Line(1)
    await line.add("first", "film")
    await line.add("cancelled", "film")
    await line.add("last", "film")
    line.turns.release("film")
    line.waiting["cancelled"].cancel()
    with suppress(asyncio.CancelledError):
        await line.waiting["cancelled"]
    assert await line.waiting["last"]
    assert line.begun == ["first", "last"]


async def test_nothing_begins_after_the_end() -> None:
    line = _Line(1)
    await line.add("runs", "film")
    await line.add("waits", "film")
    line.turns.close()
    assert not await line.waiting["waits"]
    assert not await line.turns.acquire("film", "ann", math.inf)
    line.turns.release("film")
    line.turns.open()
    assert await line.turns.acquire("film", "ann", math.inf)
