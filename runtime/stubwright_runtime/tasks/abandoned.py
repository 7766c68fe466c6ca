"""The `tasks` command: lists tasks whose processes died too often, or reruns one."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..values.sanitizing import clean
from .service import Tasks

if TYPE_CHECKING:
    from ..package import Package
    from ..server.core.task_engine import TaskEngine
    from ..state.store import Store
    from .records import Task


async def manage(package: Package, store: Store, engine: TaskEngine | None, again: str | None) -> None:
    """Write the abandoned tasks to standard output, or rerun one and write its new ID.

    Args:
        package: The server's package.
        store: The store that contains the server's tasks.
        engine: The server's task engine; `None` for the store's default.
        again: The ID of the task to rerun, or `None` to list all.

    Raises:
        BudgetExceeded: The task's caller has no budget for another task.
        LookupError: The ID does not identify an abandoned task.
        StateLost: The store cannot be reached.
    """
    tasks = Tasks(package, store, None, engine)
    async with store.run():
        if again is not None:
            async with tasks.engine.run(None, 0.0):
                sys.stdout.write(f"{await _repeat(tasks, again)}\n")
            return
        abandoned = await tasks.task_store.list_abandoned()
        sys.stdout.write("".join(f"{_describe(task)}\n" for task in abandoned))
        if not abandoned:
            sys.stderr.write("no abandoned tasks\n")


async def _repeat(tasks: Tasks, name: str) -> str:
    """Resubmit the call of an abandoned task as a new task for the same caller. Return the new task's ID."""
    async with tasks.task_store.claim_abandoned(name) as task:
        if task is None:
            raise LookupError(f"{clean(name)} is not the ID of an abandoned task, or the task was already rerun")
        repetition = task.repeat(tasks.task_store.now())
        await tasks.task_store.create(repetition, None)
        await tasks.submit(repetition.id)
    return repetition.id


def _describe(task: Task) -> str:
    caller = clean(task.principal.subject or task.principal.kind)
    times = f"called {_format_time(task.created)}  abandoned {_format_time(task.updated)} after {task.deaths} deaths"
    return f"{task.id}  {clean(task.tool)}  by {caller}  {times}  stored until {_format_time(task.created + task.ttl)}"


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
