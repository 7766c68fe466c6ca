"""Change notifications in generated clients, in both eras."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import mcp
import mcp_types
import pytest
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared import subscriptions
from mcp.shared.subscriptions import event_to_notification

import amounts
import prompt_ends
from packages import generate, imported, manifest, tool
from serving import KINDS, ScriptedServer, reach, serve
from stubwright_runtime.client.core.binding import Binding
from stubwright_runtime.client.features import subscriptions as listening
from stubwright_runtime.client.features.changes import Change, ListChanged, ResourceUpdated
from stubwright_runtime.client.features.subscriptions import changes
from stubwright_runtime.package import Package, Tool

if TYPE_CHECKING:
    from mcp.shared.subscriptions import ServerEvent

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


PACKAGE = Package("news_mcp", tools=[Tool("tell")])
PACKAGE.manifest = {
    "tools": [{"name": "tell", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]
}


class NewsClient(Binding):
    _package = PACKAGE

    async def tell(self, *, told: Sequence[str]) -> list[mcp_types.ContentBlock]:
        return await self._call_content("tell", {"told": told})


_LISTS: dict[str, ServerEvent] = {
    "tools": subscriptions.ToolsListChanged(),
    "prompts": subscriptions.PromptsListChanged(),
    "resources": subscriptions.ResourcesListChanged(),
}


class News:
    """A server whose tool `tell` notifies of changes: of lists by their kind, of resources by their URI."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self.bus)
        self.subscribed: list[tuple[str, str]] = []
        self.may_unsubscribe: anyio.Event | None = None
        self.handling = ScriptedServer(tools_call=self._tell)
        server = self.handling.server
        server.add_request_handler("subscriptions/listen", mcp_types.SubscriptionsListenRequestParams, self.listen)
        server.add_request_handler("resources/subscribe", mcp_types.SubscribeRequestParams, self._noted("+"))
        server.add_request_handler("resources/unsubscribe", mcp_types.UnsubscribeRequestParams, self._noted("-"))

    @property
    def listeners(self) -> int:
        return len(self.bus._listeners)

    async def _tell(self, ctx: Any) -> Mapping[str, Any]:
        for change in ctx.params["arguments"]["told"]:
            if change == "end":
                self.listen.close()
                continue
            event = _LISTS.get(change) or subscriptions.ResourceUpdated(change)
            if ctx.protocol_version >= "2026-07-28":
                await self.bus.publish(event)
            else:
                await ctx.session.send_notification(event_to_notification(event, {}))
        return {"content": []}

    def _noted(self, sign: str) -> Callable[[Any, Any], Awaitable[mcp_types.EmptyResult]]:
        async def note(ctx: Any, params: Any) -> mcp_types.EmptyResult:
            self.subscribed.append((sign, params.uri))
            if sign == "-" and self.may_unsubscribe is not None:
                await self.may_unsubscribe.wait()
            if params.uri == "test://no":
                raise mcp.MCPError(code=mcp_types.INVALID_PARAMS, message="no such resource")
            return mcp_types.EmptyResult()

        return note


@asynccontextmanager
async def _reached(kind: str, news: News) -> AsyncIterator[NewsClient]:
    async with reach(kind, news.handling) as target, NewsClient.connect(target) as client:
        if kind == "http legacy":
            await anyio.sleep(0.3)  # until the stream for what comes unasked is open
        yield client


async def _next(told: AsyncIterator[Change], count: int) -> list[Change]:
    with anyio.fail_after(60):
        return [await anext(told) for _ in range(count)]


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110 - the changing code has no event, and may be in another thread
            await anyio.sleep(0.01)


@pytest.mark.parametrize("kind", KINDS)
async def test_changes_are_heard(kind: str) -> None:
    news = News()
    async with _reached(kind, news) as client:
        async with changes(client, resources=["test://a", "test://b"]) as told:
            await client.tell(told=["tools", "test://a"])
            assert await _next(told, 2) == [ListChanged("tools"), ResourceUpdated("test://a")]
            await client.tell(told=["prompts", "resources", "test://b", "test://a"])
            assert {*await _next(told, 4)} == {
                ListChanged("prompts"),
                ListChanged("resources"),
                ResourceUpdated("test://b"),
                ResourceUpdated("test://a"),
            }
            with anyio.move_on_after(0.05) as waiting:
                await anext(told)
            assert waiting.cancelled_caught
            await client.tell(told=["tools"])  # a cancelled wait costs nothing
            assert await _next(told, 1) == [ListChanged("tools")]
        await _until(lambda: not news.listeners)
    uris = ["test://a", "test://b"]
    wanted = [*(("+", uri) for uri in uris), *(("-", uri) for uri in uris)]
    assert news.subscribed == (wanted if kind.endswith("legacy") else [])


@pytest.mark.parametrize("kind", amounts.sample(KINDS, 2))
async def test_only_what_was_wanted_is_heard(kind: str) -> None:
    async with (
        _reached(kind, News()) as client,
        changes(client, lists=False, resources=["test://a"]) as of_a,
        changes(client, lists=False, resources=["test://b"]) as of_b,
        changes(client) as of_lists,
    ):
        await client.tell(told=["test://b", "tools", "test://a"])
        assert await _next(of_a, 1) == [ResourceUpdated("test://a")]
        assert await _next(of_b, 1) == [ResourceUpdated("test://b")]
        assert await _next(of_lists, 1) == [ListChanged("tools")]


@pytest.mark.parametrize("kind", amounts.sample(["memory", "pipe legacy"], 1))
async def test_a_slow_listener_hears_each_change_once(kind: str) -> None:
    async with _reached(kind, News()) as client, changes(client, resources=["test://a"]) as told:
        for _ in range(20):
            await client.tell(told=["tools", "test://a"] * 20)
        await anyio.wait_all_tasks_blocked()
        assert {*await _next(told, 2)} == {ListChanged("tools"), ResourceUpdated("test://a")}
        with anyio.move_on_after(0.05) as waiting:
            await anext(told)
        assert waiting.cancelled_caught


async def test_what_waits_is_bounded() -> None:
    async with _reached("pipe legacy", News()) as client, changes(client, resources=["test://a"]) as told:
        for start in range(0, 1200, 100):
            await client.tell(told=[f"test://a/{number}" for number in range(start, start + 100)])
        await anyio.wait_all_tasks_blocked()
        assert len(await _next(told, 1024)) == 1024
        with pytest.raises(mcp.MCPError, match=r"^more than 1024 changes are queued; subscribe again, then reread$"):
            await anext(told)


async def test_what_the_sdk_lets_wait_is_bounded() -> None:
    async with _reached("memory", News()) as client, changes(client, resources=["test://a"]) as told:
        backlog = told._subscription._route  # type: ignore[attr-defined]
        for number in range(1200):
            backlog.deliver(subscriptions.ResourceUpdated(f"test://a/{number}"))
        assert len(await _next(told, 1024)) == 1024
        with pytest.raises(mcp.MCPError, match="re-listen and refetch"):
            await anext(told)


@pytest.mark.parametrize("kind", ["pipe legacy"])
async def test_a_resource_is_unsubscribed_by_its_last_listener(kind: str) -> None:
    news = News()
    async with _reached(kind, news) as client, changes(client, resources=["test://a", "test://a"]):
        async with changes(client, resources=["test://a", "test://b"]):
            pass
        assert news.subscribed[-1] == ("-", "test://b")
    assert news.subscribed.count(("-", "test://a")) == 1


async def test_a_block_keeps_subscriptions_that_another_block_adds_as_it_ends() -> None:
    news = News()
    async with _reached("pipe legacy", news) as client, AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        news.may_unsubscribe = anyio.Event()
        await stack.enter_async_context(changes(client, resources=["test://a", "test://b"]))
        tasks.start_soon(stack.aclose)
        await _until(lambda: ("-", "test://a") in news.subscribed)
        async with changes(client, resources=["test://b"]):
            news.may_unsubscribe.set()
            await anyio.wait_all_tasks_blocked()
            assert ("-", "test://b") not in news.subscribed
    assert news.subscribed[-1] == ("-", "test://b")


@pytest.mark.parametrize("kind", ["memory", "http", "pipe legacy"])
async def test_the_end_of_the_block_ends_iteration_in_other_tasks(kind: str) -> None:
    heard: set[Change] = set()

    async def iterate(told: AsyncIterator[Change]) -> None:
        async for change in told:
            heard.add(change)

    async with _reached(kind, News()) as client, anyio.create_task_group() as tasks:
        async with changes(client) as told:
            tasks.start_soon(iterate, told)
            await client.tell(told=["tools"])
            await _until(lambda: bool(heard))
        tasks.cancel_scope.deadline = anyio.current_time() + 60
    assert not tasks.cancel_scope.cancelled_caught
    assert heard == {ListChanged("tools")}


async def test_a_refused_subscription_leaves_nothing_behind() -> None:
    news = News()
    async with _reached("pipe legacy", news) as client:
        with pytest.raises(mcp.MCPError, match=r"^no such resource$"):
            async with changes(client, resources=["test://a", "test://no", "test://b"]):
                pass
    assert news.subscribed == [("+", "test://a"), ("+", "test://no"), ("-", "test://a"), ("-", "test://no")]


@pytest.mark.parametrize("kind", ["memory", "pipe legacy"])
async def test_a_cancelled_block_unsubscribes(kind: str) -> None:
    news = News()
    async with _reached(kind, news) as client:
        with anyio.move_on_after(0.1):
            async with changes(client, resources=["test://a"]) as told:
                async for _ in told:
                    pass
        await anyio.wait_all_tasks_blocked()
        assert not news.listeners
    assert news.subscribed == ([("+", "test://a"), ("-", "test://a")] if kind.endswith("legacy") else [])


@pytest.mark.parametrize("kind", ["memory", "pipe", "http"])
async def test_the_server_may_end_the_subscription(kind: str) -> None:
    async with _reached(kind, News()) as client, changes(client) as told:
        await client.tell(told=["tools", "end"])
        with anyio.fail_after(60):
            assert [change async for change in told] == [ListChanged("tools")]


@pytest.mark.parametrize("kind", amounts.sample(KINDS, 2))
async def test_the_end_of_the_connection_is_the_end(kind: str) -> None:
    heard: set[Change] = set()
    ended = anyio.Event()

    async def listen(client: NewsClient, opened: anyio.Event) -> None:
        async with changes(client, resources=["test://a"]) as told:
            opened.set()
            async for change in told:
                heard.add(change)
        ended.set()

    async with anyio.create_task_group() as tasks:
        async with _reached(kind, News()) as client:
            opened = anyio.Event()
            tasks.start_soon(listen, client, opened)
            await opened.wait()
            await client.tell(told=["tools"])
            await _until(lambda: bool(heard))
        with anyio.fail_after(60):
            await ended.wait()
    assert heard == {ListChanged("tools")}


_DYING = """
import sys
for line in sys.stdin:
    if '"initialize"' in line:
        print('{"jsonrpc": "2.0", "id": %s, "result": {"protocolVersion": "2025-11-25", "capabilities": {},'
              '"serverInfo": {"name": "dying", "version": "1"}}}' % line.split('"id":')[1].split(",")[0], flush=True)
    elif "initialized" in line:
        break
    elif '"id"' in line:
        print('{"jsonrpc": "2.0", "id": %s, "error": {"code": -32601, "message": "?"}}'
              % line.split('"id":')[1].split(",")[0].rstrip("} "), flush=True)
"""


async def test_a_server_that_is_gone_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_QUIET", 0.1)
    async with NewsClient.connect([sys.executable, "-c", _DYING]) as client, changes(client) as told:
        with anyio.fail_after(60):
            assert [change async for change in told] == []


@pytest.mark.parametrize("kind", ["http", "http legacy"])
async def test_a_server_that_cannot_be_reached_is_the_end(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_QUIET", 0.2)
    news = News()
    news.handling.handshake = kind.endswith("legacy")
    heard: list[Change] = []
    async with AsyncExitStack() as stack:
        with serve(news.handling.server) as url:
            client = await stack.enter_async_context(NewsClient.connect(url))
            told = await stack.enter_async_context(changes(client))
        with anyio.fail_after(60):
            heard += [change async for change in told]
    assert heard == []


async def test_a_quiet_server_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_QUIET", 0.05)
    async with _reached("pipe legacy", News()) as client, changes(client) as told:
        with anyio.move_on_after(0.3) as waiting:
            await anext(told)
        assert waiting.cancelled_caught
        await client.tell(told=["tools"])
        assert await _next(told, 1) == [ListChanged("tools")]


@pytest.mark.parametrize("kind", ["memory", "pipe legacy"])
async def test_what_is_raised_while_listening_is_not_wrapped(kind: str) -> None:
    with pytest.raises(LookupError, match=r"^mine$"):
        async with _reached(kind, News()) as client, changes(client):
            raise LookupError("mine")


async def test_a_server_may_not_tell_of_changes() -> None:
    async with NewsClient.connect(ScriptedServer().server) as client:
        with pytest.raises(mcp.MCPError) as raised:
            async with changes(client):
                pass
    assert raised.value.code == mcp_types.METHOD_NOT_FOUND


async def test_a_server_may_take_too_long_to_agree() -> None:
    async def never(ctx: Any) -> Mapping[str, Any]:
        await anyio.sleep(30)
        return {}

    async with NewsClient.connect(ScriptedServer(subscriptions_listen=never).server) as client:
        with pytest.raises(mcp.MCPError) as raised:
            async with changes(client.with_options(timeout=0.05)):
                pass
    assert raised.value.code == mcp_types.REQUEST_TIMEOUT


async def test_a_client_of_the_sdk_keeps_its_message_handler() -> None:
    seen: list[Any] = []

    async def handle(message: Any) -> None:
        seen.append(message)

    target = mcp.Client(News().handling.server, mode="legacy", message_handler=handle)
    async with NewsClient.connect(target) as client, changes(client) as told:
        await client.tell(told=["tools"])
        assert await _next(told, 1) == [ListChanged("tools")]
    assert [type(message) for message in seen] == [mcp_types.ToolListChangedNotification]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lists": False}, ValueError, "empty subscription: `lists` is False and `resources` is empty"),
        ({"resources": "test://a"}, TypeError, "resources must be a sequence of URIs, not 'test://a'"),
    ],
)
async def test_what_cannot_be_listened_for(options: Any, error: type[Exception], message: str) -> None:
    async with _reached("memory", News()) as client:
        with pytest.raises(error) as raised:
            async with changes(client, **options):
                pass
    assert str(raised.value) == message


async def test_a_server_without_resources_is_said_to_have_none(tmp_path: Path) -> None:
    with imported(tmp_path, generate(tmp_path, manifest([tool("say")]))) as package:

        class Handlers:
            async def say(self, args: Any, ctx: Any) -> str:
                del args, ctx
                return ""

        client = mcp.Client(package.build_server(Handlers()), mode="legacy")
        async with package.SampleClient.connect(client) as sample:
            with pytest.raises(mcp.MCPError, match=r"if its manifest has `resources`") as caught:
                async with changes(sample, resources=["a:b"]):
                    pass
            assert caught.value.error.code == mcp_types.METHOD_NOT_FOUND
