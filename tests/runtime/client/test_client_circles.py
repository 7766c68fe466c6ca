"""Failed calls do not cause reference cycles or retain frames after the caller has dropped the exception."""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Iterator
from traceback import walk_tb
from types import ModuleType
from typing import Any

import mcp
import mcp_types
import pytest

import amounts
import prompt_ends
from circles import no_cycles
from packages import generate, imported, manifest, tool
from serving import asgi
from stubwright_runtime.client.core.errors import ResultTooLarge, ToolFailed
from stubwright_runtime.client.core.pending_requests import PendingRequests
from stubwright_runtime.client.transports.bounds import Bound
from stubwright_runtime.server.app.builder import build_core
from stubwright_runtime.server.transports.http.asgi import asgi_app

ends_are_prompt = prompt_ends.ends_are_prompt


class Handlers:
    async def fail(self, args: Any, ctx: Any) -> str:
        if args.how == "tool":
            raise ValueError
        if args.how == "protocol":
            raise mcp.MCPError(code=-32000, message="no")
        if args.how == "late":
            await asyncio.sleep(60)
        return "x" * 10_000


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("circles")
    tools = [tool("fail", {"how": {"type": "string"}})]
    with imported(folder, generate(folder, manifest(tools, name="failing"))) as module:
        yield module


IN_CONTEXTLIB = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="contextlib leaves a circle: the traceback of what a generator raised holds it"
)


@pytest.mark.parametrize(
    ("how", "error"),
    amounts.sample(
        [
            ("tool", ToolFailed),
            ("protocol", mcp.MCPError),
            pytest.param("late", mcp.MCPError, marks=IN_CONTEXTLIB),
            pytest.param("large", ResultTooLarge, marks=IN_CONTEXTLIB),
        ],
        2,
    ),
)
def test_calls_that_fail(how: str, error: type[Exception], package: ModuleType) -> None:
    async def use(url: str) -> None:
        timeout = 1 if how == "late" else 60
        async with package.FailingClient.connect(url, timeout=timeout, max_result_bytes=5000) as client:
            with no_cycles(Bound, mcp_types.CallToolRequestParams):
                with pytest.raises(error) as caught:
                    await client.fail(how=how)
                del caught
                await asyncio.sleep(0.1)

    with asgi(asgi_app(build_core(package.TOOLS["fail"].package, Handlers()))) as url:
        asyncio.run(use(f"{url}/mcp"))


class Argument:
    """What a call holds while its frame is alive."""


def _break() -> None:
    raise ConnectionError("gone")


async def _call(in_flight: PendingRequests, argument: Argument, started: asyncio.Event | None = None) -> None:
    with in_flight.request(None):
        assert started is not None, f"a call with {argument} went on"
        started.set()
        await asyncio.Event().wait()


async def _measure(
    in_flight: PendingRequests, started: asyncio.Event | None = None
) -> tuple[int, weakref.ref[Argument]]:
    """The frames in the traceback of a call that fails, and its argument."""
    argument = Argument()
    try:
        await _call(in_flight, argument, started)
    except ConnectionError as error:
        return len(list(walk_tb(error.__traceback__))), weakref.ref(argument)
    raise AssertionError


def test_calls_after_the_connection_broke() -> None:
    async def use() -> None:
        in_flight = PendingRequests(expects_questions=False)
        in_flight.start()
        events = [asyncio.Event() for _ in range(3)]
        under_way = [asyncio.create_task(_measure(in_flight, event)) for event in events]
        for event in events:
            await event.wait()
        try:
            _break()
        except ConnectionError as error:
            in_flight.fail(error)
        found = [await task for task in under_way]
        later = [await _measure(in_flight) for _ in range(4)]
        assert len({length for length, _ in found}) == 1
        assert len({length for length, _ in later}) == 1
        assert [argument() for _, argument in found + later[:-1]] == [None] * 6
        with pytest.raises(ConnectionError) as caught:
            await _call(in_flight, Argument())
        assert "_break" in [entry.name for entry in caught.traceback]

    asyncio.run(use())
