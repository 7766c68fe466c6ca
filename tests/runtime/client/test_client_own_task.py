"""A client in a fixture: opened by one task, used by others, and closed by yet another."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import unittest
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, Self

import anyio
import mcp
import mcp_types
import pytest
import pytest_asyncio
from mcp.server.lowlevel import Server

import amounts
from processes import is_alive
from stubwright_runtime.client.core.binding import Binding
from stubwright_runtime.client.core.connect_errors import ServerExited, ServerNotFound, Unreachable
from stubwright_runtime.client.features.subscriptions import changes
from stubwright_runtime.client.transports.connect import Connection
from stubwright_runtime.package import Package, Tool

MANIFEST: Final = {
    "stubwright": 1,
    "server": {"name": "echo", "version": "1"},
    "tools": [{"name": "ping", "inputSchema": {"type": "object"}}],
}

OF_CALLER: Final[ContextVar[str]] = ContextVar("of_caller", default="nobody")
OF_LIFESPAN: Final[ContextVar[str]] = ContextVar("of_lifespan", default="nothing")


class _Package(Package):
    @property
    def manifest(self) -> dict[str, Any]:
        return MANIFEST


class EchoClient(Binding):
    _package = _Package("echo_mcp", tools=[Tool("ping")])

    async def ping(self) -> str:
        (block,) = await self._call_content("ping", {})
        assert isinstance(block, mcp_types.TextContent)
        return block.text


def echo() -> Server[Any]:
    """A server in this process that answers with the context variables that it sees."""

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[None]:
        token = OF_LIFESPAN.set("the lifespan")
        async with anyio.create_task_group():  # which only the task that entered it may leave
            yield
        OF_LIFESPAN.reset(token)

    async def call(_: Any, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        text = f"{OF_CALLER.get()}, {OF_LIFESPAN.get()}"
        return mcp_types.CallToolResult(content=[mcp_types.TextContent(text=text)])

    return Server("echo", version="1", on_call_tool=call, lifespan=lifespan)


def target(kind: str) -> Any:
    """Return a target in this process, spoken to in either way, or a command."""
    if kind == "command":
        return command(f"{ANSWER_INITIALIZE}\n{ANSWER_CALLS}")
    return echo() if kind == "direct" else mcp.Client(echo(), mode="legacy")


def command(code: str) -> list[str]:
    return [sys.executable, "-c", code]


ANSWER_INITIALIZE: Final = """
import json, os, sys
def answer():
    message = json.loads(sys.stdin.readline() or sys.exit())
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    elif message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "pong"}]}
    elif "id" in message:
        error = {"code": -32601, "message": "no"}
        return print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
    else:
        return
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
ANSWER_CALLS: Final = "while True: answer()"

KINDS: Final = ("direct", "legacy", "command")


async def in_own_task(awaitable: Any) -> Any:
    """Await a coroutine in a separate task."""

    async def run() -> Any:
        return await awaitable

    return await asyncio.create_task(run())


# --- The fixtures of users ------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(params=KINDS)
async def client(request: pytest.FixtureRequest) -> AsyncIterator[EchoClient]:
    async with EchoClient.connect(target(request.param)) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client_of_module() -> AsyncIterator[EchoClient]:
    async with EchoClient.connect(echo()) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def client_of_session() -> AsyncIterator[EchoClient]:
    async with EchoClient.connect(target("command")) as client:
        yield client


@pytest.mark.asyncio
async def test_a_fixture_of_pytest_asyncio(client: EchoClient) -> None:
    assert await client.ping()
    assert await asyncio.gather(client.ping(), client.ping())


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("number", [1, 2])
async def test_a_fixture_of_a_module(client_of_module: EchoClient, number: int) -> None:
    assert await client_of_module.ping(), number


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("number", [1, 2])
async def test_a_fixture_of_a_session(client_of_session: EchoClient, number: int) -> None:
    assert await client_of_session.ping() == "pong", number


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def client_of_anyio(anyio_backend: str) -> AsyncIterator[EchoClient]:
    async with EchoClient.connect(echo()) as client:
        yield client


@pytest.mark.anyio
@pytest.mark.parametrize("number", [1, 2])
async def test_a_fixture_of_anyio(client_of_anyio: EchoClient, number: int) -> None:
    assert await client_of_anyio.ping(), number


class TestOfTheStandardLibrary(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.connection = EchoClient.connect(target("legacy"))
        self.client = await self.connection.__aenter__()
        self.other = await self.enterAsyncContext(EchoClient.connect(echo()))

    async def asyncTearDown(self) -> None:
        await self.connection.__aexit__(None, None, None)

    async def test_two_clients(self) -> None:
        assert await self.client.ping()
        assert await self.other.ping()


# --- What opening and closing raise ---------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", KINDS)
async def test_one_task_opens_and_another_closes(kind: str) -> None:
    before = asyncio.all_tasks()
    connection = EchoClient.connect(target(kind))
    client = await in_own_task(connection.__aenter__())
    assert await in_own_task(client.ping())
    await in_own_task(connection.__aexit__(None, None, None))
    assert asyncio.all_tasks() == before
    await connection.__aexit__(None, None, None)  # all is already closed


@pytest.mark.asyncio
async def test_what_opening_raises_is_as_it_was() -> None:
    before = asyncio.all_tasks()
    for wrong, kind in [
        ("http://127.0.0.1:9/mcp", Unreachable),
        (["/nowhere/at-all"], ServerNotFound),
        (command("raise SystemExit(3)"), ServerExited),
    ]:
        with pytest.raises(kind) as raised:
            await EchoClient.connect(wrong).__aenter__()
        assert type(raised.value) is kind
    assert asyncio.all_tasks() == before


@pytest.mark.asyncio
async def test_a_client_is_not_entered_twice() -> None:
    connection = EchoClient.connect(echo())
    async with connection as client:
        with pytest.raises(RuntimeError, match="already entered"):
            await connection.__aenter__()
        assert await client.ping()


class _Ending(AbstractAsyncContextManager[Any, None]):
    """A client of the SDK with the interface that `Connection` requires."""

    def __init__(self, *, crash: Exception | None = None, leaving: Exception | None = None) -> None:
        self.server = None
        self.read_timeout_seconds: float | None = None
        self.crash = crash
        self.crashes = anyio.Event()
        self._leaving = leaving

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        if self.crash is not None:
            self._tasks.start_soon(self._crash)
        return self

    async def _crash(self) -> None:
        await self.crashes.wait()
        assert self.crash is not None
        raise self.crash

    async def __aexit__(self, *error: object) -> None:
        try:
            await self._tasks.__aexit__(*error)  # type: ignore[arg-type]
        finally:
            if self._leaving is not None:
                raise self._leaving


def connect(ending: Any, failed: Any = None) -> Connection[None]:
    return Connection(ending, None, "echo_mcp", failed=failed)


@pytest.mark.asyncio
async def test_what_closing_raises_is_raised_as_it_is() -> None:
    error = ValueError("no")
    connection = connect(_Ending(leaving=error))
    await connection.__aenter__()
    with pytest.raises(ValueError, match="no") as raised:
        await connection.__aexit__(None, None, None)
    assert raised.value is error

    assert await leave(connect(_Ending()), own := KeyError("own")) is own


async def fail(error: BaseException) -> None:
    raise error


async def leave(connection: Connection[None], raised: BaseException) -> BaseException:
    """Return what comes out of a block that raises an exception."""
    with pytest.raises(BaseException) as left:  # noqa: PT011 - the caller looks which
        async with connection:
            await fail(raised)
    return left.value


@pytest.mark.asyncio
async def test_what_ends_a_connection_early_is_told_and_raised() -> None:
    ending, failed = _Ending(crash=ValueError("no")), asyncio.get_running_loop().create_future()
    connection = connect(ending, failed.set_result)
    await connection.__aenter__()
    ending.crashes.set()
    assert await failed is ending.crash
    with pytest.raises(ValueError, match="no") as raised:
        await connection.__aexit__(None, None, None)
    assert raised.value is ending.crash


async def leave_failed(crash: Exception, raised: BaseException) -> BaseException:
    """Return what comes out of a block that raises an exception when its connection has failed."""
    ending, failed = _Ending(crash=crash), asyncio.Event()
    connection = connect(ending, lambda _: failed.set())
    await connection.__aenter__()
    ending.crashes.set()
    await failed.wait()
    try:
        await connection.__aexit__(type(raised), raised, None)
    except Exception as error:  # noqa: BLE001 - the caller looks which
        return error
    return raised


class _Failed(BaseException):
    """As pytest's own `Failed`, no kind of `Exception`."""


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "own",
    [
        ValueError("own"),
        _Failed("own"),
        asyncio.CancelledError(),
        mcp.MCPError(code=mcp_types.INTERNAL_ERROR, message="an answer"),
        BaseExceptionGroup("own", [mcp.MCPError(code=mcp_types.CONNECTION_CLOSED, message="ended"), ValueError("own")]),
    ],
    ids=repr,
)
async def test_what_the_block_raises_itself_is_kept_when_the_connection_has_failed(own: BaseException) -> None:
    for connection in (leave_failed(KeyError("gone"), own), leave(connect(_Ending(leaving=KeyError("gone"))), own)):
        own.__notes__ = []
        assert await connection is own
        assert own.__notes__ == ["The connection also failed: KeyError: 'gone'"]


@pytest.mark.asyncio
async def test_what_follows_from_a_failed_connection_is_raised_as_its_reason() -> None:
    closed = mcp.MCPError(code=mcp_types.CONNECTION_CLOSED, message="ended")
    crash = ValueError("no")
    crash.__cause__ = cause = OSError("why")
    for raised in (crash, closed, ExceptionGroup("tasks", [closed, ExceptionGroup("more", [crash])])):
        assert await leave_failed(crash, raised) is crash
        assert crash.__cause__ is cause
        assert not hasattr(crash, "__notes__")


@pytest.mark.asyncio
async def test_requests_end_with_what_ended_the_connection() -> None:
    crash, asked = ValueError("no"), asyncio.Event()

    async def call(*_: Any) -> mcp_types.CallToolResult:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:

            async def fail() -> None:
                await asked.wait()
                raise crash

            tasks.start_soon(fail)
            yield

    async def use() -> None:
        async with EchoClient.connect(Server("a", version="1", on_call_tool=call, lifespan=lifespan)) as client:
            for request in ("under way", "later"):
                with pytest.raises(ValueError, match="no") as of_request:
                    await client.ping()
                assert of_request.value is crash, request

    with pytest.raises(ValueError, match="no") as raised:
        await use()
    assert raised.value is crash


def test_another_event_loop_is_refused_with_a_reason() -> None:
    opening = EchoClient.connect(echo()).__aenter__()
    with pytest.raises(RuntimeError, match=r"requires asyncio, not another event loop such as trio's"):
        opening.send(None)  # as any other event loop would


# --- Cancellation ---------------------------------------------------------------------------------------------------


class _Slow(_Ending):
    """A client that takes for ever to open or close, until it is cancelled, and then a while to clean up."""

    def __init__(self, *, opens: bool) -> None:
        super().__init__()
        self._opens = opens
        self.waits = asyncio.Event()
        self.cleans = asyncio.Event()
        self.may_end = asyncio.Event()
        self.has_ended = False

    async def _wait(self) -> None:
        try:
            self.waits.set()
            await anyio.sleep_forever()
        finally:
            self.cleans.set()
            with anyio.CancelScope(shield=True):
                await self.may_end.wait()
            self.has_ended = True

    async def __aenter__(self) -> Self:
        if not self._opens:
            await self._wait()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._wait()


@pytest.mark.asyncio
@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("how", ["task", "scope"])
async def test_who_is_cancelled_leaves_nothing_behind(opens: bool, how: str) -> None:
    before, slow, scope = asyncio.all_tasks(), _Slow(opens=opens), anyio.CancelScope()

    async def use() -> None:
        with scope:
            async with connect(slow):
                pass

    using = asyncio.create_task(use())
    await slow.waits.wait()
    if how == "task":
        using.cancel()
    else:
        scope.cancel()
    await slow.cleans.wait()
    using.cancel()  # a second cancellation must not abandon the task
    await asyncio.wait([using], timeout=0)
    assert not using.done()
    slow.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await using
    assert slow.has_ended
    assert asyncio.all_tasks() == before


@pytest.mark.asyncio
async def test_a_block_that_is_cancelled_cancels_what_is_in_it() -> None:
    before, entered = asyncio.all_tasks(), asyncio.Event()

    async def use() -> None:
        async with EchoClient.connect(echo()):
            entered.set()
            await anyio.sleep_forever()

    using = asyncio.create_task(use())
    await entered.wait()
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    assert asyncio.all_tasks() == before


@pytest.mark.asyncio
async def test_a_process_does_not_outlive_who_waited_for_it(tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    code = f"import os, sys; open({str(fifo)!r}, 'w').write(str(os.getpid())); sys.stdin.read()"
    opening = asyncio.create_task(EchoClient.connect(command(code)).__aenter__())
    process = int(await asyncio.to_thread(fifo.read_text))
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with asyncio.timeout(60):  # the system may still list it for a moment, until its status is read
        while is_alive(process):  # noqa: ASYNC110 - what ends is no event
            await asyncio.sleep(0.01)


# --- Context variables ----------------------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["direct", "legacy"])
async def test_handlers_see_the_context_variables_that_they_saw_before(kind: str) -> None:
    OF_CALLER.set("ann")
    OF_LIFESPAN.set("nothing")
    async with EchoClient.connect(target(kind)) as client:
        of_lifespan = "the lifespan" if kind == "direct" else "nothing"  # otherwise it has a separate task
        assert await client.ping() == f"ann, {of_lifespan}"
        OF_CALLER.set("bob")
        assert await client.ping() == f"bob, {of_lifespan}"
    assert OF_LIFESPAN.get() == "nothing"


def _run_in_another_loop(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    asyncio.run(asyncio.wait_for(call(), 60))


@pytest.mark.anyio
async def test_another_event_loop_is_refused_and_breaks_nothing() -> None:
    connection = EchoClient.connect(echo())
    async with connection as client:
        with pytest.raises(RuntimeError, match="belongs to another event loop"):
            await asyncio.to_thread(_run_in_another_loop, client.ping)
        with pytest.raises(RuntimeError, match="belongs to another event loop; leave its"):
            await asyncio.to_thread(_run_in_another_loop, lambda: connection.__aexit__(None, None, None))
        with pytest.raises(RuntimeError, match="belongs to another event loop"):
            await asyncio.to_thread(_run_in_another_loop, changes(client).__aenter__)
        assert await client.ping()


@pytest.mark.asyncio
@pytest.mark.parametrize("delay", amounts.sample([0.0, 0.005, 0.02, 0.1], 2))
async def test_connecting_to_a_command_is_cancelled_at_any_moment(delay: float) -> None:
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
    command = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
    connecting = asyncio.ensure_future(EchoClient.connect(command).__aenter__())
    await asyncio.sleep(delay)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    gc.collect()
    await asyncio.sleep(0)
    assert problems == []
