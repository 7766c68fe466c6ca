"""Sends a task's questions to a client that is waiting for its result (MCP 2025-11-25 and earlier)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio

from ..mcp.errors import CONNECTION_CLOSED, REQUEST_TIMEOUT, ProtocolError
from ..server.features.input_requests import InvalidAnswer, find_rounds
from ..server.protocol.sender import UnreachableError
from ..state.store import StateLost
from . import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..server.core.request import Request
    from .connections import TaskConnection
    from .records import Question, Task
    from .service import Tasks

_GONE: Final = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT})
"""Errors that do not count as the client's answer."""


class InputRequester:
    """Sends tasks' pending questions to the clients that wait for their results."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def ask(self, connection: TaskConnection, task: Task, key: str) -> None:
        """Ask the pending question with this key, and return when this or another client has answered it.

        Raises:
            ProtocolError: The client cannot be asked.
            StateLost: The answer may not have been stored.
        """
        question = task.pending[key]
        answers: list[Mapping[str, Any]] = []
        failures: list[ProtocolError] = []

        async def send() -> None:
            try:
                answers.append(await _send(connection, task, question))
            except ProtocolError as error:
                failures.append(error)
            except anyio.get_cancelled_exc_class():
                return  # anyio leaves a reference cycle with the frames of a cancelled task
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
            raise failures.pop()  # pop, because its traceback references this frame
        if answers:
            await self._tasks.answer(task, {key: answers[0]})


def find_question(request: Request, task: Task) -> str | None:
    """Return the key of the first pending question that the sender of `request` supports, or `None`."""
    rounds = find_rounds(request)
    return next((key for key, each in task.pending.items() if rounds.can(_find_capability(each.request))), None)


def _find_capability(question: Mapping[str, Any]) -> str:
    params: Mapping[str, Any] = question.get("params", {})
    match question["method"]:
        case "elicitation/create":
            return f"elicitation.{params.get('mode', 'form')}"
        case "sampling/createMessage":
            return "sampling.tools" if "tools" in params else "sampling"
        case _:
            return "roots"


async def _send(connection: TaskConnection, task: Task, question: Question) -> Mapping[str, Any]:
    """Send a question, and return the client's answer. An error is an invalid answer, so the question is repeated."""
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
