"""Questions of tasks to clients of 2025-11-25, which ask for results and are asked meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio

from ..mcp.errors import CONNECTION_CLOSED, REQUEST_TIMEOUT, ProtocolError
from ..server.features.input_requests import InvalidAnswer
from ..server.protocol.outgoing import UnreachableError
from ..state.store import StateLost
from . import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .connections import TaskConnection
    from .records import Question, Task
    from .service import Tasks

_GONE: Final = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT})
"""The errors that are not answers of the client."""


class InputRequester:
    """Asks what tasks wait for."""

    def __init__(self, tasks: Tasks) -> None:
        """Take the tasks."""
        self._tasks = tasks

    async def ask(self, connection: TaskConnection, task: Task) -> None:
        """Ask the first question that a task waits for; returns when it waits for that no longer.

        Raises:
            ProtocolError: The client cannot be asked.
            StateLost: It is unknown whether the answer is retained.
        """
        key, question = next(iter(task.pending.items()))
        answers: list[Mapping[str, Any]] = []
        failures: list[ProtocolError] = []

        async def send() -> None:
            try:
                answers.append(await _send(connection, task, question))
            except ProtocolError as error:
                failures.append(error)
            except anyio.get_cancelled_exc_class():
                return  # anyio leaves a task that ends as cancelled in a circle of references, with its frames
            asking.cancel()

        with anyio.CancelScope() as asking, self._tasks.task_store.watch([task.id]) as changed:
            async with anyio.create_task_group() as group:
                group.start_soon(send)
                while True:
                    await changed.wait()
                    changed.clear()
                    try:
                        current = await self._tasks.task_store.find(task.id)
                    except StateLost:
                        continue  # the client may still answer
                    if current is None or key not in current.pending:
                        asking.cancel()
        if failures:
            raise failures.pop()  # its traceback holds this frame, which must not hold it
        if answers:
            await self._tasks.answer(task, {key: answers[0]})


async def _send(connection: TaskConnection, task: Task, question: Question) -> Mapping[str, Any]:
    """Return the client's answer to a question; an error becomes an invalid answer, which repeats the question."""
    params = {**question.request.get("params", {})}
    params["_meta"] = {**params.get("_meta", {}), **wire.relate(task.id)}
    try:
        return await connection.request(question.request["method"], params)
    except InvalidAnswer:
        return {}
    except ProtocolError as error:
        if isinstance(error, UnreachableError) or error.code in _GONE:
            raise
        return {}
