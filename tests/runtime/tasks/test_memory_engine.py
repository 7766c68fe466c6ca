"""The in-process engine retries a task that another run still holds."""

from __future__ import annotations

import anyio
import pytest

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
    assert asked == ["a", "a", "a"]
