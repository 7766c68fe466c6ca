"""Runs a server's event loop, and does not wait for handlers that ignore their cancellation."""

from __future__ import annotations

import asyncio
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
    runner = asyncio.Runner(loop_factory=make_loop)
    loop = runner.get_loop()
    try:
        runner.run(main)
    finally:  # not in a task, which Ctrl-C or SystemExit in another task can interrupt
        ABANDONED.update(loop.run_until_complete(end_tasks(asyncio.all_tasks(loop))))
        closing = {loop.create_task(loop.shutdown_asyncgens())}
        ABANDONED.update(loop.run_until_complete(asyncio.wait(closing, timeout=CANCEL_TIMEOUT))[1])
        loop.close()  # unlike `Runner.close`, does not wait for threads


async def end_tasks(tasks: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Cancel tasks, wait for at most `CANCEL_TIMEOUT`, and return the tasks that are still running."""
    for task in tasks:
        task.cancel()
    return (await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT))[1] if tasks else set()
