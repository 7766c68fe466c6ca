"""A package whose tools run as tasks, and its handlers."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from packages import generate, imported, manifest, tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

NAMED = {"type": "object", "properties": {"name": {"type": "string", "minLength": 2}}, "required": ["name"]}
OPTIONAL: dict[str, Any] = {"execution": {"taskSupport": "optional"}}
REQUIRED: dict[str, Any] = {"execution": {"taskSupport": "required"}}
NUMBER = {"x": {"type": "integer"}}

MANIFEST = manifest(
    [
        tool("work", NUMBER, **OPTIONAL, stubwright={"task": {"pollInterval": "50ms", "ttl": "10m"}}),
        tool("must", NUMBER, **REQUIRED),
        tool("never", NUMBER),
        tool("again", NUMBER, **OPTIONAL, annotations={"idempotentHint": True}),
        tool(
            "ask",
            **OPTIONAL,
            stubwright={
                "ask": {
                    "who": {"message": "Who?", "schema": NAMED},
                    "pet": {"message": "Pet?", "schema": NAMED},
                    "sign_in": {"mode": "url", "message": "Sign in"},
                }
            },
        ),
        tool(
            "before",
            **REQUIRED,
            stubwright={
                "ask": {
                    "who": {"message": "Who?", "before": "task", "schema": NAMED},
                    "pet": {"message": "Pet?", "before": "task", "schema": NAMED},
                }
            },
        ),
        tool("pay", NUMBER, **OPTIONAL, stubwright={"policy": {"confirm": True}}),
        tool("slow", NUMBER, **OPTIONAL, stubwright={"policy": {"timeout": "300ms", "concurrency": 1}}),
        tool(
            "few",
            NUMBER,
            **OPTIONAL,
            stubwright={"task": {"most": 2, "ttl": "1s", "lease": "1m"}, "budget": {"result": 200}},
        ),
        tool("rare", NUMBER, **OPTIONAL, stubwright={"policy": {"rateLimit": "2/hour"}}),
        tool("big", NUMBER, **OPTIONAL, stubwright={"policy": {"maxResultBytes": 200, "maxArgumentBytes": 100}}),
        tool(
            "typed",
            NUMBER,
            **OPTIONAL,
            outputSchema={"type": "object", "properties": {"y": {"type": "integer"}}, "required": ["y"]},
        ),
    ],
    name="tasked",
    python={"features": ["sampling"]},
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Return the package. A test module imports this fixture by name."""
    folder = tmp_path_factory.mktemp("tasked")
    with imported(folder, generate(folder, MANIFEST)) as made:
        yield made


class Handlers:
    """Each tool runs its function in `does`, or returns its number.

    Attributes:
        runs: The tools whose handlers started, in order.
    """

    def __init__(self, **does: Callable[[Any, Any], Any]) -> None:
        self.does = does
        self.runs: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in {one["name"] for one in MANIFEST["tools"]}:
            raise AttributeError(name)
        given = self.does.get(name)

        if given is not None and not asyncio.iscoroutinefunction(given):

            def at_once(args: Any, ctx: Any) -> Any:
                self.runs.append(name)
                return given(args, ctx)

            return at_once

        async def later(args: Any, ctx: Any) -> Any:
            self.runs.append(name)
            if given is not None:
                return await given(args, ctx)
            return {"y": args.x} if name == "typed" else str(getattr(args, "x", None))

        return later


class Gate:
    """A handler, `async def` or plain `def`, that blocks until it is released or cancelled.

    Attributes:
        begun: Set when it has started.
        go: Releases it.
        cancelled: Set when it was cancelled.
    """

    def __init__(self) -> None:
        self.begun, self.go, self.cancelled = threading.Event(), threading.Event(), threading.Event()

    async def later(self, _args: Any, _ctx: Any) -> str:
        """An `async def` handler."""
        self.begun.set()
        try:
            while not self.go.is_set():  # noqa: ASYNC110 - another task sets the flag
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "let go"

    def at_once(self, _args: Any, ctx: Any) -> str:
        """A plain `def` handler."""
        ctx.on_cancel(self.cancelled.set)
        self.begun.set()
        while not self.go.is_set() and not self.cancelled.is_set():
            self.go.wait(0.005)
        return "let go"


class Clock:
    """The clock of a server's in-memory store, which only the test advances."""

    def __init__(self, server: Any) -> None:
        store = server.core.tasks.task_store._store
        self.now: float = store._clock()
        store._clock = lambda: self.now


def call_params(name: str, x: int = 1, **more: Any) -> Mapping[str, Any]:
    """Return a call's parameters."""
    return {"name": name, "arguments": {"x": x} if name not in ("ask", "before") else {}, **more}


def first(result: Mapping[str, Any]) -> str:
    """Return a result's first text."""
    text: str = result["content"][0]["text"]
    return text
