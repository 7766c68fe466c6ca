"""Runs a server's event loop, and does not wait for handlers that ignore their cancellation."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

CANCEL_TIMEOUT: Final = 1.0
"""Seconds in which cancelled tasks can end."""

ABANDONED: Final[set[asyncio.Task[Any]]] = set()
"""Tasks that were still running when their event loop stopped, because they ignore their cancellation."""


def run_loop(
    main: Coroutine[object, object, None], make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> None:
    """Run a coroutine in a new event loop, like `asyncio.run`, but do not wait for tasks and threads that do not end.

    Call `end_without_handlers` afterwards.

    Args:
        main: The coroutine.
        make_loop: Creates the event loop; by default asyncio's.
    """

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(_Executor())
        try:
            await main
        finally:
            ABANDONED.update(await end_tasks(asyncio.all_tasks() - {asyncio.current_task()}))

    runner = asyncio.Runner(loop_factory=make_loop)
    try:
        runner.run(run())
    finally:
        if not ABANDONED:  # otherwise it would wait for them
            runner.close()


async def end_tasks(tasks: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Cancel tasks, wait for at most `CANCEL_TIMEOUT`, and return the tasks that are still running."""
    for task in tasks:
        task.cancel()
    return (await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT))[1] if tasks else set()


class _Executor(ThreadPoolExecutor):
    """The executor of `asyncio.to_thread`. Its shutdown does not wait for running functions."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - called with it
        super().shutdown(wait=False, cancel_futures=cancel_futures)
