"""The in-process engine retries a task that another run still holds."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import anyio
import pytest

from stubwright_runtime.server.execution import event_loop
from stubwright_runtime.state.store import StateLost
from stubwright_runtime.tasks.engines.memory import MemoryEngine


@pytest.mark.anyio
async def test_a_task_whose_last_run_is_ending_is_looked_at_again() -> None:
    asked: list[str] = []
    done = anyio.Event()

    async def work(task: str) -> bool:
        asked.append(task)
        if len(asked) < 3:
            return False
        done.set()
        return True

    engine = MemoryEngine()
    async with engine.run(work, 0.0):
        await engine.submit("a")
        with anyio.fail_after(60):
            await done.wait()
        await anyio.wait_all_tasks_blocked()
        assert engine._running == set()
    assert asked == ["a", "a", "a"]


@pytest.mark.anyio
async def test_a_task_that_ignores_its_cancellation_is_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_loop, "CANCEL_TIMEOUT", 0.01)
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def work(task: str) -> bool:
        has_begun.set()
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                assert task == "a"
        return True

    engine = MemoryEngine()
    async with asyncio.timeout(60):
        async with engine.run(work, 0.0):
            await engine.submit("a")
            await has_begun.wait()
    may_end.set()
    assert "abandoning a task that did not finish after being cancelled" in caplog.text


@pytest.mark.anyio
async def test_a_cancelled_server_waits_for_its_tasks() -> None:
    """A task runs outside the context of the request that created it, and cannot create tasks once the server stops."""
    caller, callers, refused = ContextVar("caller", default="nobody"), list[str](), list[StateLost]()
    has_begun = asyncio.Event()

    async def work(task: str) -> bool:
        callers.append(caller.get())
        try:
            has_begun.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            with pytest.raises(StateLost) as caught:
                await engine.submit("b")
            refused.append(caught.value)
        return True

    engine = MemoryEngine()
    with anyio.CancelScope() as scope:
        async with engine.run(work, 0.0):
            caller.set("ada")
            await engine.submit("a")
            await has_begun.wait()
            scope.cancel()
    assert (callers, len(refused)) == (["nobody"], 1)
