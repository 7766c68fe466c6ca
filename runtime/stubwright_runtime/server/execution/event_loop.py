"""Runs a server's event loop, and does not wait for handlers that ignore their cancellation."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

CANCEL_TIMEOUT: Final = 1.0
"""Seconds in which cancelled tasks can end."""


def run_loop(
    main: Coroutine[object, object, None], make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> bool:
    """Run a coroutine in a new event loop, like `asyncio.run`, but do not wait for tasks and threads that do not end.

    Args:
        main: The coroutine.
        make_loop: Creates the event loop; by default asyncio's.

    Returns:
        True if all tasks have ended. Otherwise, the process must exit without running Python's cleanup; see
        `end_without_handlers`.
    """
    has_ended = True

    async def run() -> None:
        nonlocal has_ended
        asyncio.get_running_loop().set_default_executor(_Executor())
        try:
            await main
        finally:
            has_ended = await end_tasks(asyncio.all_tasks() - {asyncio.current_task()})

    runner = asyncio.Runner(loop_factory=make_loop)
    try:
        runner.run(run())
    finally:
        if has_ended:
            runner.close()
    return has_ended


async def end_tasks(tasks: set[asyncio.Task[None]]) -> bool:
    """Cancel tasks, wait for at most `CANCEL_TIMEOUT`, and return whether all have ended."""
    for task in tasks:
        task.cancel()
    return not tasks or not (await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT))[1]


class _Executor(ThreadPoolExecutor):
    """The executor of `asyncio.to_thread`. Its shutdown does not wait for running functions."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - called with it
        super().shutdown(wait=False, cancel_futures=cancel_futures)
