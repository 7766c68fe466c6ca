"""Typed clients over existing clients and sessions. Other SDKs: `tests/peers/test_sdk_versions.py`."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp
import mcp_types
import pytest
from mcp import ClientSession
from mcp.shared.message import SessionMessage

from packages import generate, imported, manifest, tool
from server_fixture import ENVELOPE
from stubwright_runtime import MCPError
from stubwright_runtime.server.transports.stdio import connection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import ModuleType

pytestmark = pytest.mark.anyio


class Handlers:
    """Answer with the text, or refuse."""

    def echo(self, args: Any, ctx: object) -> str:
        if args.text == "no":
            raise MCPError(-32000, "not today")
        text: str = args.text
        return text


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("held")
    tools = [tool("echo", {"text": {"type": "string"}})]
    with imported(folder, generate(folder, manifest(tools, name="held"))) as module:
        yield module


@asynccontextmanager
async def opened(kind: str, package: ModuleType) -> AsyncIterator[Any]:
    """An open client of the SDK with this `mode`, a session, or the server itself."""
    server = package.build_server(Handlers())
    if kind == "own":
        yield server
    elif kind == "session":
        async with server as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            yield session
    else:
        async with mcp.Client(server, mode=kind) as client:
            yield client


@pytest.mark.parametrize("kind", ["session", "legacy", "auto"])
async def test_an_open_client_stays_open(kind: str, package: ModuleType) -> None:
    async with opened(kind, package) as client:
        for _ in range(2):
            async with package.HeldClient.connect(client, timeout=5) as typed:
                assert (await typed.echo(text="hello")).text == "hello"
                assert [tool.name for tool in await package.list_tools(typed)] == ["echo"]
                with pytest.raises(MCPError, match=r"^not today$"):
                    await typed.echo(text="no")
        assert (await client.call_tool("echo", {"text": "still open"})).content[0].text == "still open"


@pytest.mark.parametrize("kind", ["session", "legacy", "auto", "own"])
async def test_a_list_may_not_be_too_large(kind: str, package: ModuleType) -> None:
    async with (
        opened(kind, package) as target,
        package.HeldClient.connect(target) as typed,
    ):
        with pytest.raises(MCPError, match=r"has more than 10 bytes$") as caught:
            await package.list_tools(typed.with_options(max_result_bytes=10))
        assert caught.value.error.code == mcp_types.CONNECTION_CLOSED
        assert (await typed.echo(text="still open")).text == "still open"


@pytest.mark.parametrize("kind", ["session", "legacy", "auto"])
async def test_calls_after_its_owner_closed_the_client_fail(kind: str, package: ModuleType) -> None:
    async with AsyncExitStack() as stack:
        async with opened(kind, package) as client:
            typed = await stack.enter_async_context(package.HeldClient.connect(client))
            await typed.echo(text="hello")
        with pytest.raises(MCPError, match="closed") as caught:
            await typed.echo(text="hello")
    assert caught.value.error.code == mcp_types.CONNECTION_CLOSED


async def test_a_response_after_the_client_has_closed_its_stream_is_dropped(
    package: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    server = package.build_server(Handlers())
    async with server as (reading, writing):
        await reading.aclose()
        call = mcp_types.JSONRPCRequest(jsonrpc="2.0", id=1, method="ping", params={"_meta": ENVELOPE})
        await writing.send(SessionMessage(call))
        await anyio.wait_all_tasks_blocked()
    gc.collect()
    assert not caplog.records


async def test_a_response_after_the_connection_has_closed_is_dropped(
    package: ModuleType, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn:
        async def echo(self, args: Any, ctx: object) -> str:
            has_begun.set()
            while not may_end.is_set():
                try:
                    await may_end.wait()
                except asyncio.CancelledError:
                    continue
            return "late"

    monkeypatch.setattr(connection, "CANCEL_TIMEOUT", 0.01)
    has_begun, may_end = asyncio.Event(), asyncio.Event()
    params = {"name": "echo", "arguments": {"text": "hello"}, "_meta": ENVELOPE}
    async with package.build_server(Stubborn()) as (_, writing):
        call = mcp_types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params=params)
        await writing.send(SessionMessage(call))
        await has_begun.wait()
    may_end.set()
    await anyio.wait_all_tasks_blocked()
    gc.collect()
    assert not caplog.records


async def test_an_open_client_receives_changes_before_2026_07_28(package: ModuleType) -> None:
    async with (
        opened("auto", package) as client,
        package.HeldClient.connect(client) as typed,
        package.changes(typed) as stream,
    ):
        assert stream is not None
    async with opened("session", package) as session, package.HeldClient.connect(session) as typed:
        with pytest.raises(
            TypeError, match="in revision 2025-11-25, only the client passed to connect receives changes"
        ):
            async with package.changes(typed):
                pass


async def test_a_session_is_initialized_first(package: ModuleType) -> None:
    server = package.build_server(Handlers())
    async with server as (reading, writing), ClientSession(reading, writing) as session:
        with pytest.raises(RuntimeError, match=r"await its `initialize\(\)` first"):
            async with package.HeldClient.connect(session):
                pass
