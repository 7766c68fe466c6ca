"""The steps that `clients.py` runs with each Python client, in the client's environment. Requires only Python.

Prints a JSON object with each step's value or error.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

ANSWER = {"username": "ada", "email": "ada@example.com"}
"""The clients' answer to a question."""

PATIENCE = 30
"""Seconds for a step."""

Target = str | list[str]
"""The server: a URL, or a command."""

Note = Callable[..., Awaitable[None]]
"""A progress callback: progress, total, and message."""


@dataclass(frozen=True)
class Called:
    """The outcome of a call."""

    is_error: bool
    text: str
    structured: Any


class Client(Protocol):
    """A connected client."""

    async def hello(self) -> list[str]:
        """Return the revision and the server's name."""

    async def tools(self) -> list[str]:
        """Return the tool names."""

    async def call(self, name: str, arguments: dict[str, Any], note: Note | None = None) -> Called:
        """Call a tool."""

    async def read(self, uri: str) -> str:
        """Return the text of a resource."""

    async def prompt(self, name: str) -> str:
        """Return the text of a prompt's first message."""


Connect = Callable[[Target], AbstractAsyncContextManager[Client]]


def main(connect: Connect) -> None:
    """Connect to the server in the first argument (JSON), run the steps in the others, and print their outcomes."""
    print(json.dumps(asyncio.run(_run(connect, json.loads(sys.argv[1]), sys.argv[2:]))))


async def _run(connect: Connect, target: Target, names: list[str]) -> dict[str, Any]:
    outcomes: dict[str, Any] = {}
    try:
        async with connect(target) as client:
            for name in names:
                outcomes[name] = await _outcome(_STEPS[name], client)
    except Exception as error:  # noqa: BLE001 - a client that fails to connect or to disconnect is an outcome, too
        outcomes["connection"] = _failure(error)
    return outcomes


async def _outcome(step: Callable[[Client], Awaitable[Any]], client: Client) -> Any:
    try:
        return await asyncio.wait_for(step(client), PATIENCE)
    except Exception as error:  # noqa: BLE001 - any exception of a client is the outcome of the step
        return _failure(error)


def _failure(error: BaseException) -> dict[str, str]:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return {"error": f"{type(error).__name__}: {error}"}


async def _call(client: Client) -> Any:
    return (await client.call("test_simple_text", {})).text


async def _fail(client: Client) -> Any:
    called = await client.call("test_error_handling", {})
    return [called.is_error, called.text]


async def _progress(client: Client) -> Any:
    heard: list[float] = []

    async def note(done: float, _total: float | None, _message: str | None) -> None:
        heard.append(done)

    await client.call("test_tool_with_progress", {}, note)
    return heard


async def _question(client: Client) -> Any:
    return (await client.call("test_elicitation", {"message": "Who are you?"})).text


async def _structured(client: Client) -> Any:
    return (await client.call("get_weather", {"location": "Paris"})).structured


_STEPS: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "initialize": lambda client: client.hello(),
    "list": lambda client: client.tools(),
    "call": _call,
    "structured result": _structured,
    "tool error": _fail,
    "progress": _progress,
    "question": _question,
    "resource": lambda client: client.read("test://static-text"),
    "prompt": lambda client: client.prompt("test_simple_prompt"),
}
